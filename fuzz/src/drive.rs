//! The operations that the targets of formats run on their input.

use std::sync::Once;

use spile_core::error::{Error, Result};
use spile_core::format::{Format, HEAD_BYTES, Head, OpenOptions};
use spile_core::read::{Array, Axes};
use spile_core::select::{Selection, Slice};
use spile_core::shape::Order;
use spile_core::{Dataset, Limits, Source};

/// Small, so that the use of an unchecked length is detected.
pub const LIMITS: Limits = Limits { memory: 8 << 20, nodes: 10_000, depth: 64 };

/// Only a part of larger arrays is read: a few bytes can encode very many equal elements.
const READ_ENTIRELY: u64 = 256 << 10;

/// Frames that are read in one file.
const FRAMES: u64 = 4;

/// Opens `data` as a file of `format` and runs all operations on it. Errors are expected; a panic, a hang or a large
/// allocation is a failure.
///
/// The last byte selects variants: running all of them would take several times as long per input, and the fuzzer
/// tries other bytes anyway.
pub fn drive(format: &dyn Format, data: &[u8]) {
    use_one_thread();
    let variant = data.last().copied().unwrap_or(0);
    let source = Source::memory(data);
    let head = Head { bytes: &data[..data.len().min(HEAD_BYTES)], len: data.len() as u64 };
    assert!(format.probe(head) <= 100, "expected a score of at most 100");
    if let Some(checker) = format.abilities().checker
        && let Ok(report) = checker.check(&source, &LIMITS, variant & 1 == 1)
    {
        let _ = format!("{:?} {report:?}", report.worst());
    }
    let options = OpenOptions::with_limits(LIMITS).with_derived(variant & 2 == 2);
    match Dataset::open(format, source, &options) {
        Ok(dataset) => read_all(&dataset),
        Err(error) => show(&error),
    }
}

/// Opens a zip archive with these members, stored, as a file of `format` and runs all operations on it.
pub fn drive_members(format: &dyn Format, members: &[(&[u8], &[u8])]) {
    drive(format, &zip(members));
}

/// A store of one array: its metadata up to the first zero byte, then its first chunk.
pub fn one_array(data: &[u8]) -> [(&[u8], &[u8]); 4] {
    let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (meta, chunk) = data.split_at(end);
    let chunk = chunk.get(1..).unwrap_or_default();
    [(b"zarr.json", meta), (b".zarray", meta), (b"c/0", chunk), (b"0", chunk)]
}

/// The members of a store: after each `\n@` a key, the end of the line, and the value.
pub fn members(data: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut found = Vec::new();
    let starts: Vec<usize> =
        data.windows(2).enumerate().filter(|(_, w)| *w == b"\n@").map(|(k, _)| k).collect();
    for (k, start) in starts.iter().enumerate() {
        let member = &data[start + 2..starts.get(k + 1).copied().unwrap_or(data.len())];
        let line = member.iter().position(|byte| *byte == b'\n').unwrap_or(member.len());
        found.push((&member[..line], member.get(line + 1..).unwrap_or_default()));
    }
    found
}

/// A zip archive with stored members. Its checksums are 0.
fn zip(members: &[(&[u8], &[u8])]) -> Vec<u8> {
    let (mut file, mut directory, mut count) = (Vec::new(), Vec::new(), 0_u16);
    for (name, value) in members {
        let Ok(length) = u16::try_from(name.len()) else { continue };
        let (at, size) = (file.len() as u32, value.len() as u32);
        let common = |out: &mut Vec<u8>| {
            // Version, flags, method, time, date, checksum.
            out.extend([20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            out.extend(size.to_le_bytes());
            out.extend(size.to_le_bytes());
            out.extend(length.to_le_bytes());
            out.extend([0, 0]);
        };
        directory.extend(b"PK\x01\x02\x14\0");
        common(&mut directory);
        directory.extend([0; 10]);
        directory.extend(at.to_le_bytes());
        directory.extend(*name);
        file.extend(b"PK\x03\x04");
        common(&mut file);
        file.extend(*name);
        file.extend(*value);
        count = count.saturating_add(1);
    }
    let at = file.len() as u32;
    file.extend(&directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend(count.to_le_bytes());
    file.extend(count.to_le_bytes());
    file.extend((directory.len() as u32).to_le_bytes());
    file.extend(at.to_le_bytes());
    file.extend([0, 0]);
    file
}

/// Formats an error.
pub fn show(error: &Error) {
    let _ = format!("{error} {error:?}");
}

/// Reads all regions, objects and arrays; errors of single arrays are ignored.
pub fn read_all(dataset: &Dataset) {
    let _ = format!("{:?} {:?}", dataset.summary(), dataset.warnings());
    let len = dataset.source().len();
    let _ = dataset.regions(&mut |region| {
        let end = region.offset.checked_add(region.len);
        assert!(end.is_some_and(|end| end <= len), "region outside of the file: {region:?}");
        Ok(())
    });
    let _ = dataset.objects(&mut |object| {
        let _ = dataset.open_array(&object.array).and_then(|array| read(&array, 0));
        Ok(())
    });
    let frames = dataset.tree().frames().map_or(0, |axis| axis.len()).min(FRAMES);
    for (number, (id, _, _)) in dataset.arrays().enumerate() {
        if let Err(error) = dataset.array_at(id).and_then(|array| read(&array, number)) {
            show(&error);
        }
        for frame in 0..frames {
            if let Ok(Some(array)) = dataset.array_in_frame(id, frame) {
                let _ = read(&array, frame as usize);
            }
        }
    }
}

/// Reads an array in one of several ways.
fn read(array: &Array, way: usize) -> Result<()> {
    for dim in array.dims() {
        let _ = array.coord(dim).and_then(|coord| coord.read());
    }
    if array.shape().bytes(array.dtype().size())? <= READ_ENTIRELY {
        match way % 3 {
            0 => {
                let mut seen = 0;
                array.all()?.stream(|block, _| {
                    seen += block.count;
                    Ok(())
                })?;
                assert_eq!(Some(seen), array.shape().count(), "expected every element once");
            }
            1 => drop(array.read_bytes(&Selection::all(), Axes::Order(Order::C))?),
            _ => drop(array.read_bytes(&Selection::all(), Axes::Order(Order::F))?),
        }
    } else {
        array.all()?.check()?;
    }
    // The rank is limited, because a few elements per dimension are many if there are very many dimensions.
    let few = Slice::Range { start: Some(-1), stop: None, step: -2 };
    let few = Selection(vec![few; array.shape().rank().min(16)]);
    array.read_bytes(&few, Axes::Stored).map(drop)
}

/// Inputs are small: distributing blocks to threads would cost more than reading them.
pub fn use_one_thread() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    });
}
