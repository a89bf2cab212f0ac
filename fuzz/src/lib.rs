//! The operations that every fuzz target runs on its input.
//!
//! The target of a format is a file `src/bin/<format>_open.rs` and a line in `Cargo.toml`. `cargo xtask fuzz` uses
//! the files in `tests/golden/<format>` and `tests/bad/<format>` as seeds.

mod budget;

use std::sync::Once;

use spile_core::error::{Error, Result};
use spile_core::format::{Folder, Format, HEAD_BYTES, Head, OpenOptions};
use spile_core::read::{Array, Axes};
use spile_core::select::{Selection, Slice};
use spile_core::shape::Order;
use spile_core::{Dataset, Limits, Source};

/// Small, so that the use of an unchecked length is detected.
const LIMITS: Limits = Limits { memory: 8 << 20, nodes: 10_000, depth: 64 };

/// Only a part of larger arrays is read: a few bytes can encode very many equal elements.
const READ_ENTIRELY: u64 = 1 << 20;

/// Frames that are read in one file.
const FRAMES: u64 = 16;

/// Opens `data` as a file of `format` and runs all operations on it. Errors are expected; a panic, a hang or a large
/// allocation is a failure.
pub fn drive(format: &dyn Format, data: &[u8]) {
    use_one_thread();
    let source = Source::memory(data);
    let head = Head { bytes: &data[..data.len().min(HEAD_BYTES)], len: data.len() as u64 };
    assert!(format.probe(head) <= 100, "expected a score of at most 100");
    if let Some(checker) = format.abilities().checker {
        for strict in [false, true] {
            if let Ok(report) = checker.check(&source, &LIMITS, strict) {
                let _ = format!("{:?} {report:?}", report.worst());
            }
        }
    }
    for derived in [false, true] {
        let options = OpenOptions::with_limits(LIMITS).with_derived(derived);
        read_opened(Dataset::open(format, source.clone(), &options).map(Some));
    }
}

/// Opens a folder with these files as a dataset of `format` and runs all operations on it.
pub fn drive_folder(format: &dyn Format, files: &[(&str, &[u8])]) {
    use_one_thread();
    let Ok(folder) = tempfile::tempdir() else { return };
    for (name, data) in files {
        let path = folder.path().join(name);
        let _ = path.parent().map(std::fs::create_dir_all);
        let _ = std::fs::write(path, data);
    }
    let Ok(folder) = Folder::open(folder.path()) else { return };
    read_opened(Dataset::open_folder(format, &folder, &OpenOptions::with_limits(LIMITS)));
}

/// Reads everything of a dataset, or formats the error from opening it.
fn read_opened(opened: Result<Option<Dataset>>) {
    match opened {
        Ok(Some(dataset)) => read_all(&dataset),
        Ok(None) => {}
        Err(error) => show(&error),
    }
}

fn show(error: &Error) {
    let _ = format!("{error} {error:?}");
}

/// Reads all regions, objects and arrays; errors of single arrays are ignored.
fn read_all(dataset: &Dataset) {
    let _ = format!("{:?} {:?}", dataset.summary(), dataset.warnings());
    let len = dataset.source().len();
    let _ = dataset.regions(&mut |region| {
        let end = region.offset.checked_add(region.len);
        assert!(end.is_some_and(|end| end <= len), "region outside of the file: {region:?}");
        Ok(())
    });
    let _ = dataset.objects(&mut |object| {
        let _ = dataset.open_array(&object.array).and_then(|array| read(&array));
        Ok(())
    });
    let frames = dataset.tree().frames().map_or(0, |axis| axis.len()).min(FRAMES);
    for (id, _, _) in dataset.arrays() {
        if let Err(error) = dataset.array_at(id).and_then(|array| read(&array)) {
            show(&error);
        }
        for frame in 0..frames {
            if let Ok(Some(array)) = dataset.array_in_frame(id, frame) {
                let _ = read(&array);
            }
        }
    }
}

fn read(array: &Array) -> Result<()> {
    for dim in array.dims() {
        let _ = array.coord(dim).and_then(|coord| coord.read());
    }
    if array.shape().bytes(array.dtype().size())? <= READ_ENTIRELY {
        let mut seen = 0;
        array.all()?.stream(|block, _| {
            seen += block.count;
            Ok(())
        })?;
        assert_eq!(Some(seen), array.shape().count(), "expected every element once");
        for order in [Order::C, Order::F] {
            array.read_bytes(&Selection::all(), Axes::Order(order))?;
        }
    }
    // The rank is limited, because a few elements per dimension are many if there are very many dimensions.
    let few = Slice::Range { start: Some(-1), stop: None, step: -2 };
    let few = Selection(vec![few; array.shape().rank().min(16)]);
    array.read_bytes(&few, Axes::Stored).map(drop)
}

/// Inputs are small: distributing blocks to threads would cost more than reading them.
fn use_one_thread() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    });
}
