//! Any sequence of TAF operations on any file: after a success the file is valid, after a failure it is unchanged.

use std::path::Path;

use spile::{Dataset, Result, Selection, Source};
use spile_taf::ops::{self, Adjust, Bounds, Target};
use spile_taf::{File, Taf};

use super::inputs;
use crate::drive::{LIMITS, read_all, show};

/// Bytes of one operation at the end of the input.
const OPERATION: usize = 6;

/// Most operations in a program.
const OPERATIONS: usize = 8;

pub fn run(data: &[u8]) {
    let (data, control) = inputs::split(data);
    let count = usize::from(control[0]) % (OPERATIONS + 1);
    let (file, program) = data.split_at(data.len().saturating_sub(count * OPERATION));
    let folder = inputs::folder();
    let path = folder.path().join("ops.taf");
    if std::fs::write(&path, file).is_err() {
        return;
    }
    for operation in program.chunks_exact(OPERATION) {
        let before = std::fs::read(&path).unwrap_or_default();
        let valid = File::from_source(Source::memory(&before[..]), &LIMITS).is_ok();
        let Err(error) = apply(&path, operation) else {
            let opened = File::open(&path, &LIMITS);
            assert!(valid, "an operation on an invalid file succeeded");
            assert!(opened.is_ok(), "{operation:?} made an invalid file: {:?}", opened.err());
            continue;
        };
        show(&error);
        let after = std::fs::read(&path).unwrap_or_default();
        assert!(after == before, "{operation:?} failed and changed the file: {error:?}");
    }
    if let Ok(dataset) = Dataset::open_path(&Taf, &path, &spile::OpenOptions::with_limits(LIMITS)) {
        read_all(&dataset);
    }
}

fn apply(path: &Path, operation: &[u8]) -> Result<()> {
    let [code, a, b, c, d, e] = *operation else { return Ok(()) };
    let number = usize::from(a % 5);
    let value = f64::from(i16::from_le_bytes([c, d])) * 10_f64.powi(i32::from(e as i8));
    match code % 9 {
        0 => {
            let change = match b % 5 {
                0 => Adjust::Shift(value),
                1 => Adjust::Scale(value),
                2 => Adjust::Start(value),
                3 => Adjust::Step(value),
                _ => Adjust::Span(value, f64::from(e)),
            };
            ops::adjust(path, number, change, &LIMITS).map(drop)
        }
        1 => ops::add_comment(path, &String::from_utf8_lossy(operation), &LIMITS),
        2 => ops::set_comment(path, &String::from_utf8_lossy(&operation[1..3]), &LIMITS),
        3 => {
            let order: Vec<usize> = [a, b, c].iter().map(|n| usize::from(n % 4)).collect();
            let order = &order[..usize::from(d % 4)];
            ops::permute(path, order, &Target::InPlace, &LIMITS).map(drop)
        }
        4 => ops::transpose(path, &Target::InPlace, &LIMITS).map(drop),
        5 => {
            let index = (b & 1 == 1).then_some((u64::from(c), u64::from(d)));
            let grid = (b & 2 == 2).then_some((value, f64::from(e)));
            let bounds = Bounds { grid, index };
            ops::crop(path, number, bounds, &Target::InPlace, &LIMITS).map(drop)
        }
        // The file itself is the input.
        6 => ops::append(path, &own(path)?, b & 1 == 1, &LIMITS).map(drop),
        7 => ops::replace(path, &own(path)?, &LIMITS).map(drop),
        _ => {
            let file = File::open(path, &LIMITS)?;
            let mut out = Vec::new();
            if file.array()?.shape().count().is_some_and(|count| count < 1 << 12) {
                ops::export(&file, &mut out)?;
            }
            file.read(&Selection::all()).map(drop)
        }
    }
}

/// A copy of the array of the file.
fn own(path: &Path) -> Result<spile::Array> {
    let bytes = std::fs::read(path)?;
    File::from_source(Source::memory(bytes), &LIMITS)?.array()
}
