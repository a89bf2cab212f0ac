//! The operations that every fuzz target runs on its input.
//!
//! The target of a format is a file `src/bin/<format>_open.rs` and a line in `Cargo.toml`. `cargo xtask fuzz` uses
//! the files in `tests/golden/<format>` and `tests/bad/<format>` as seeds.

mod budget;

use std::sync::Once;

use spile_core::error::Result;
use spile_core::format::{Folder, Format, HEAD_BYTES, Head, Reader};
use spile_core::layout::ArrayDesc;
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::{Selection, Slice};
use spile_core::shape::Order;
use spile_core::source::Source;
use spile_core::tree::Tree;

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
    for strict in [false, true] {
        if let Ok(report) = format.check(&source, &LIMITS, strict) {
            let _ = format!("{:?} {report:?}", report.worst());
        }
    }
    match format.open(source, &LIMITS) {
        Ok(reader) => {
            let _ = read_all(&*reader, data.len() as u64);
        }
        Err(error) => {
            let _ = format!("{error} {:?}", error.hint_text());
        }
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
    match format.open_folder(&folder, &LIMITS) {
        Ok(Some(reader)) => {
            let len = reader.source().len();
            let _ = read_all(&*reader, len);
        }
        Ok(None) => {}
        Err(error) => {
            let _ = format!("{error} {:?}", error.hint_text());
        }
    }
}

/// Reads all regions, objects and arrays; errors of single arrays are ignored.
fn read_all(reader: &dyn Reader, len: u64) -> Result<()> {
    let _ = format!("{:?}", reader.summary());
    let _ = reader.regions(&mut |region| {
        let end = region.offset.checked_add(region.len);
        assert!(end.is_some_and(|end| end <= len), "region outside of the file: {region:?}");
        Ok(())
    });
    let tree = reader.tree();
    let _ = reader.objects(&mut |object| {
        let _ = read(reader.source(), tree, &object.array, None);
        Ok(())
    });
    let frames = tree.frames().map_or(0, |axis| axis.len()).min(FRAMES);
    for (_, _, array) in tree.arrays() {
        let _ = read(reader.source(), tree, array, None);
        for frame in 0..frames {
            let _ = read(reader.source(), tree, array, Some(frame));
        }
    }
    Ok(())
}

fn read(source: &Source, tree: &Tree, desc: &ArrayDesc, frame: Option<u64>) -> Result<()> {
    let array = match frame {
        Some(frame) => match Array::open_frame(source, tree, desc, frame, &LIMITS)? {
            Some(array) => array,
            None => return Ok(()),
        },
        None => Array::open(source, tree, desc, &LIMITS)?,
    };
    if array.shape().bytes(array.dtype().size())? <= READ_ENTIRELY {
        let mut seen = 0;
        array.all()?.stream(|block, _| {
            seen += block.count;
            Ok(())
        })?;
        assert_eq!(Some(seen), array.shape().count(), "expected every element once");
        for order in [Order::C, Order::F] {
            array.read(&Selection::all(), Axes::Order(order))?;
        }
    }
    // The rank is limited, because a few elements per dimension are many if there are very many dimensions.
    let few = Slice::Range { start: Some(-1), stop: None, step: -2 };
    array.read(&Selection(vec![few; array.shape().rank().min(16)]), Axes::Stored).map(drop)
}

/// Inputs are small: distributing blocks to threads would cost more than reading them.
fn use_one_thread() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    });
}
