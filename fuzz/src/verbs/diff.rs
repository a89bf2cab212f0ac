//! Comparison of a file with itself and with a changed copy.

use spile_ops::diff::{Rules, diff};

use super::inputs;
use crate::drive::show;

pub fn run(data: &[u8]) {
    let (file, control) = inputs::split(data);
    let Ok(first) = inputs::open(file) else { return };
    if let Ok(same) = diff(&first, &first, &Rules::default()) {
        assert!(same.differences.is_empty(), "differs from itself: {:?}", same.differences);
    }
    let Ok(second) = inputs::open(&inputs::changed(file, control)) else { return };
    match diff(&first, &second, &Rules::default()) {
        Ok(found) => drop(format!("{:?}", found.differences)),
        Err(error) => show(&error),
    }
}
