//! XTC files are read by molly, DCD files by their records.

use std::path::PathBuf;

use spile_core::format::{FormatWriter as _, WriteOptions};
use spile_core::semantics::Quantity;
use spile_core::{
    ArrayDesc, DType, Dataset, FrameAxis, FrameCell, FrameTable, Layout, Limits, Order, Overwrite,
    ROOT, Result, Role, Semantics, Shape, Sink, Source, Tree,
};
use spile_xtc::{Dcd, Xtc};

/// Frames with some atoms each.
struct Frames(Vec<u64>);

impl FrameAxis for Frames {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn step(&self, frame: u64) -> Result<Option<u64>> {
        Ok(Some(100 * frame))
    }

    fn time(&self, frame: u64) -> Result<Option<f64>> {
        Ok(Some(0.5 * frame as f64))
    }
}

fn position(frame: u64, k: u64) -> f64 {
    (k * 37 % 101) as f64 * 0.25 - 12.0 + frame as f64
}

impl FrameTable for Frames {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let Some(atoms) = self.0.get(frame as usize) else {
            return Ok(None);
        };
        let bytes = (0..3 * atoms).flat_map(|k| position(frame, k).to_le_bytes());
        let layout = Layout::Inline(bytes.collect::<Vec<u8>>().into(), Order::C);
        Ok(Some(FrameCell { shape: Shape::new([*atoms, 3]), layout }))
    }
}

/// Frames of atoms in a triclinic cell; lengths in `units`.
fn content(atoms: &[u64], units: Option<&str>) -> Result<Dataset> {
    let mut tree = Tree::new(&Limits::default());
    let table = std::sync::Arc::new(Frames(atoms.to_vec()));
    let shape = Shape::new([atoms.first().copied().unwrap_or(0), 3]);
    let mut meaning = Semantics::role(Role::Points);
    meaning.quantity = Some(Quantity::Position);
    let desc = ArrayDesc::new(DType::F64, shape, Layout::PerFrame(table));
    let id = tree.add_array(ROOT, "positions", desc.with_semantics(meaning))?;
    let cell = [20.0_f64, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 0.0, 30.0];
    let bytes: Vec<u8> = cell.iter().flat_map(|x| x.to_le_bytes()).collect();
    let layout = Layout::Inline(bytes.into(), Order::C);
    let desc = ArrayDesc::new(DType::F64, Shape::new([3, 3]), layout);
    let cell = tree.add_array(ROOT, "cell", desc.with_semantics(Semantics::role(Role::Cell)))?;
    if let Some(units) = units {
        tree.push_attr(id, "units", units)?;
        tree.push_attr(cell, "units", units)?;
    }
    tree.set_frames(std::sync::Arc::new(Frames(atoms.to_vec())));
    Ok(Dataset::new(Source::memory(Vec::new()), tree))
}

/// Writes all frames and returns the bytes and the losses found while writing.
fn write(
    format: &dyn spile_core::format::FormatWriter,
    content: &Dataset,
) -> Result<(Vec<u8>, usize)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    let mut sink = Sink::create(&path, Overwrite::Never)?;
    let found = format.write(content, &mut sink, &WriteOptions::default())?;
    sink.commit()?;
    Ok((std::fs::read(path).unwrap(), found.len()))
}

#[test]
fn xtc_files_have_rounded_positions_cells_and_steps() {
    for (units, scale) in [(None, 1.0), (Some("angstrom"), 0.1), (Some("nm"), 1.0)] {
        for atoms in [0, 1, 9, 10, 1000] {
            let content = content(&[atoms; 3], units).unwrap();
            let losses = Xtc.losses(&content, &PathBuf::new()).unwrap();
            assert!(losses.iter().any(|loss| loss.reason.contains("three decimals")));
            let (bytes, found) = write(&Xtc, &content).unwrap();
            assert_eq!(found, 0);
            let mut reader = molly::XTCReader::new(std::io::Cursor::new(bytes));
            for number in 0..3_u64 {
                let mut frame = molly::Frame::default();
                reader.read_frame(&mut frame).unwrap();
                assert_eq!(u64::from(frame.step), 100 * number);
                assert_eq!(f64::from(frame.time), 0.5 * number as f64);
                assert!((f64::from(frame.boxvec[3]) - 3.0 * scale).abs() < 1e-5);
                assert_eq!(frame.positions.len() as u64, 3 * atoms);
                for (k, value) in frame.positions.iter().enumerate() {
                    let expected = position(number, k as u64) * scale;
                    assert!((f64::from(*value) - expected).abs() < 6e-4, "{value} {expected}");
                }
            }
        }
    }
}

#[test]
fn dcd_files_have_positions_in_single_precision() {
    let (bytes, found) = write(&Dcd, &content(&[5; 4], Some("nm")).unwrap()).unwrap();
    assert_eq!(found, 0);
    let mut records = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let len = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let end = at + 4 + len(at);
        assert_eq!(len(end), len(at));
        records.push(&bytes[at + 4..end]);
        at = end + 4;
    }
    assert_eq!(records.len(), 3 + 4 * 4);
    let number = |k: usize| i32::from_le_bytes(records[0][4 * k..4 * k + 4].try_into().unwrap());
    assert!(records[0].starts_with(b"CORD") && records[0].len() == 84);
    assert_eq!((number(1), number(2), number(3), number(20)), (4, 0, 100, 24));
    assert_eq!((records[1].len(), records[2]), (84, &5_u32.to_le_bytes()[..]));
    let cell: Vec<f64> =
        records[3].chunks(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
    let wanted = [200.0, 0.6, 50.0, 0.0, 0.0, 300.0];
    assert!(cell.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9), "{cell:?}");
    for frame in 0..4_u64 {
        for axis in 0..3_u64 {
            let record = records[4 * (frame as usize + 1) + axis as usize];
            for (k, value) in (0_u64..).zip(record.chunks(4)) {
                let value = f32::from_le_bytes(value.try_into().unwrap());
                assert_eq!(value, (position(frame, 3 * k + axis) * 10.0) as f32);
            }
        }
    }
}

#[test]
fn what_cannot_be_written_is_refused() {
    for format in [&Xtc as &dyn spile_core::format::FormatWriter, &Dcd] {
        let error = write(format, &content(&[3, 4], None).unwrap()).unwrap_err();
        assert_eq!((error.code(), error.frame()), ("xtc-003", Some(1)));
        let empty = Dataset::new(Source::memory(Vec::new()), Tree::new(&Limits::default()));
        assert_eq!(write(format, &empty).unwrap_err().code(), "xtc-002");
    }
    // 1e10 ångström are more than XTC can store.
    let error = write(&Xtc, &content(&[3], Some("m")).unwrap()).unwrap_err();
    assert_eq!(error.code(), "xtc-004");
}
