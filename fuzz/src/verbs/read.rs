//! The verbs that read a file: info, ls, cat, stat, hash, map.

use spile::Selection;
use spile_ops::cat::Values;
use spile_ops::pick::Pick;
use spile_ops::stat::More;
use spile_ops::{
    cat, content::content as digest, hash, info::info, list::list, map::map, stat::stat,
};

use super::inputs;
use crate::drive::show;

/// Larger arrays, in bytes, are not printed.
const PRINTED: u64 = 16 << 10;

pub fn run(data: &[u8]) {
    let (file, control) = inputs::split(data);
    let content = match inputs::open(file) {
        Ok(content) => content,
        Err(error) => return show(&error),
    };
    let pick = Pick::default();
    let _ = info(&content).map(|info| serde_json::to_string(&info));
    let _ = list(content.tree(), &pick, None).map(|rows| serde_json::to_string(&rows));
    let _ = map(&content, &mut |_| Ok(()));
    let _ = digest(&content);
    let more = More { components: control[0] & 1 == 1, bins: (control[0] & 2 == 2).then_some(7) };
    let _ = stat(&content, &pick, more, &mut |row| {
        let _ = serde_json::to_string(&row);
        Ok(())
    });
    let _ = hash(&content, &pick, &mut |_| Ok(()));
    let _ = hash::native(&content, &mut |_| Ok(()));
    for (id, ..) in content.arrays() {
        let Ok(Some(array)) = content.array_in_frame(id, 0) else { continue };
        if array.shape().bytes(array.dtype().size()).is_ok_and(|bytes| bytes > PRINTED) {
            continue;
        }
        let values = if control[0] & 4 == 4 { Values::Mapped } else { Values::Stored };
        let mut out = Vec::new();
        let _ = match control[1] % 3 {
            0 => cat::text(&array, &Selection::all(), values, &mut out),
            1 => cat::json(&array, &Selection::all(), values, &mut out),
            _ => cat::raw(&array, &Selection::all(), values, &mut out),
        };
    }
}
