//! What every fuzz target does with its bytes.
//!
//! A format gets its target by a file `src/bin/<format>_open.rs` of five lines and a line in
//! `Cargo.toml`. `cargo xtask fuzz` finds it there, and its seeds in `tests/golden/<format>` and
//! `tests/bad/<format>`.

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

/// Small, so that a length that is believed too early is soon noticed.
const LIMITS: Limits = Limits { memory: 8 << 20, nodes: 10_000, depth: 64 };

/// Larger arrays (a few bytes can stand for a great many equal elements) are only sampled.
const WHOLE: u64 = 1 << 20;

/// Frames looked at in one file.
const FRAMES: u64 = 16;

/// Takes `data` for a file of `format` and does all that a program could ask of it. An error is
/// a fine answer; a panic, a hang or a large allocation is not.
pub fn drive(format: &dyn Format, data: &[u8]) {
    on_this_thread();
    let source = Source::memory(data);
    let head = Head { bytes: &data[..data.len().min(HEAD_BYTES)], len: data.len() as u64 };
    assert!(format.probe(head) <= 100, "a score is at most 100");
    for strict in [false, true] {
        if let Ok(report) = format.check(&source, &LIMITS, strict) {
            let _ = format!("{:?} {report:?}", report.worst());
        }
    }
    match format.open(source, &LIMITS) {
        Ok(reader) => {
            let _ = everything(&*reader, data.len() as u64);
        }
        Err(error) => {
            let _ = format!("{error} {:?}", error.hint_text());
        }
    }
}

/// The same for a folder with these files.
pub fn drive_folder(format: &dyn Format, files: &[(&str, &[u8])]) {
    on_this_thread();
    let Ok(folder) = tempfile::tempdir() else { return };
    for (name, data) in files {
        let path = folder.path().join(name);
        let _ = path.parent().map(std::fs::create_dir_all);
        let _ = std::fs::write(path, data);
    }
    let Ok(listed) = Folder::open(folder.path()) else { return };
    match format.open_folder(&listed, &LIMITS) {
        Ok(Some(reader)) => {
            let len = reader.source().len();
            let _ = everything(&*reader, len);
        }
        Ok(None) => {}
        Err(error) => {
            let _ = format!("{error} {:?}", error.hint_text());
        }
    }
}

/// Reads all of an open file, as far as it goes.
fn everything(reader: &dyn Reader, len: u64) -> Result<()> {
    let _ = format!("{:?}", reader.summary());
    let _ = reader.regions(&mut |region| {
        let end = region.offset.checked_add(region.len);
        assert!(end.is_some_and(|end| end <= len), "outside the file: {region:?}");
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
    if array.shape().bytes(array.dtype().size())? <= WHOLE {
        let mut seen = 0;
        array.all()?.stream(|block, _| {
            seen += block.count;
            Ok(())
        })?;
        assert_eq!(Some(seen), array.shape().count(), "every element comes once");
        for order in [Order::C, Order::F] {
            array.read(&Selection::all(), Axes::Order(order))?;
        }
    }
    // Rank comes from the file; a selection of a few elements of each of very many is not small.
    let few = Slice::Range { start: Some(-1), stop: None, step: -2 };
    array.read(&Selection(vec![few; array.shape().rank().min(16)]), Axes::Stored).map(drop)
}

/// Inputs are tiny: handing blocks to other threads would cost more than reading them.
fn on_this_thread() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    });
}
