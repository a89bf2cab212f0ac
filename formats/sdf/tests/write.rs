//! The native writer and salvage, in all revisions and byte orders.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use spile_core::Dataset;
use spile_core::error::ErrorKind;
use spile_core::format::{FormatWriter as _, RegionKind, Salvage};
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;
use spile_core::testkit::{assert_same_content, differences, object_hashes};
use spile_core::tree::Value;
use spile_core::wire::ByteOrder;
use spile_sdf::wire::{DataType, FileHeader};
use spile_sdf::{BlockType, Meta, Sdf, Station, write_file};

#[path = "support/blocks.rs"]
mod blocks;
#[path = "support/everything.rs"]
mod everything;
use everything::{everything, header};
#[path = "support/opened.rs"]
mod opened;
use opened::{Opened, check, salvage_to};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/sdf").join(name)
}

#[test]
fn all_block_types_round_trip_in_all_revisions_and_byte_orders() {
    let folder = tempfile::tempdir().unwrap();
    for revision in 0..=4 {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let path = folder.path().join(format!("{revision}{order:?}.sdf"));
            everything(&path, &header(revision, order));
            let file = Opened::open(&path).unwrap();
            assert_eq!((file.header().revision, file.header().order), (revision, order));
            assert_eq!(file.blocks().len(), 40);
            let report = check(file.source(), false);
            assert_eq!(report.findings, [], "{revision} {order:?}");
            let ex = file.array("Things/ex").unwrap().read_f64(&Selection::all(), Axes::Stored);
            assert_eq!(ex.unwrap(), [-2.5, -1.25, 0.0, 1.25, 2.5, 3.75]);
            let species = file.blocks().iter().find_map(|b| match &b.meta {
                Meta::PointVariable(v) => Some(v.species_id.as_str()),
                _ => None,
            });
            assert_eq!(species, Some(if revision >= 3 { "e" } else { "" }));
        }
    }
}

#[test]
fn a_file_that_was_not_closed_is_detected_and_salvaged_completely() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("open.sdf");
    everything(&path, &header(4, ByteOrder::Little));
    let original = Opened::open(&path).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // State before the last three writes.
    bytes.truncate(original.header().summary_location as usize);
    bytes[56..72].fill(0);
    let truncated = folder.path().join("truncated.sdf");
    std::fs::write(&truncated, &bytes).unwrap();
    let error = Opened::open(&truncated).err().unwrap();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Truncated, "sdf-006"));
    let saved = folder.path().join("saved.sdf");
    let Salvage { kept, lost } = salvage(&truncated, &saved);
    assert_eq!((kept.len(), lost.len()), (40, 0), "{lost:?}");
    assert_same_content(&original, &Opened::open(&saved).unwrap());
}

fn salvage(from: &Path, to: &Path) -> Salvage {
    salvage_to(&Source::open(from).unwrap(), to)
}

#[test]
fn salvage_keeps_every_complete_block_of_a_truncated_file() {
    let folder = tempfile::tempdir().unwrap();
    let (truncated, saved) = (folder.path().join("truncated.sdf"), folder.path().join("saved.sdf"));
    for name in ["hand_rev1_1.sdf", "hand_nosummary.sdf", "hand_bigendian_all.sdf"] {
        let bytes = std::fs::read(golden(name)).unwrap();
        let original = Opened::open(golden(name)).unwrap();
        let blocks = original.blocks();
        // Offset of each block.
        let mut heads = Vec::new();
        original
            .regions(&mut |region| {
                let own = region.kind == RegionKind::Header && !region.name.ends_with("(summary)");
                if own && region.offset > 0 {
                    heads.push(region.offset as usize);
                }
                Ok(())
            })
            .unwrap();
        assert_eq!(heads.len(), blocks.len());
        for k in (1..blocks.len()).step_by(5) {
            std::fs::write(&truncated, &bytes[..heads[k]]).unwrap();
            assert!(Opened::open(&truncated).is_err());
            let Salvage { kept, lost } = salvage(&truncated, &saved);
            assert_eq!(kept.len(), k, "{name}: {lost:?}");
            assert!(!lost.is_empty());
            let found = Opened::open(&saved).unwrap();
            for (a, b) in blocks.iter().zip(found.blocks()) {
                assert_eq!((&a.header.id, &a.meta), (&b.header.id, &b.meta), "{name}");
                let read = |file: &Opened, block| {
                    file.raw(block).unwrap().read_bytes(&Selection::all(), Axes::Stored).unwrap()
                };
                assert_eq!(read(&original, a), read(&found, b), "{name} {}", a.header.id);
            }
        }
    }
}

#[test]
fn salvage_completes_files_that_were_not_closed() {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved.sdf");
    for (name, blocks) in [
        ("drv_unfinished.sdf", 3),
        ("hand_nblocks_minus.sdf", 26),
        ("hand_nblocks0_summary.sdf", 26),
    ] {
        let Salvage { kept, lost } = salvage(&golden(name), &saved);
        assert_eq!((kept.len(), lost), (blocks, vec![]), "{name}");
        let file = Opened::open(&saved).unwrap();
        assert_eq!(file.blocks().len(), blocks, "{name}");
        assert!(file.header().summary_size > 0);
    }
    let Salvage { kept, lost } = salvage(&golden("hand_truncated.sdf"), &saved);
    assert!(!kept.is_empty() && !lost.is_empty());
    assert_eq!(Opened::open(&saved).unwrap().blocks().len(), kept.len());
}

#[test]
fn a_damaged_header_or_summary_loses_nothing_if_the_other_is_intact() {
    let folder = tempfile::tempdir().unwrap();
    let (bad, saved) = (folder.path().join("bad.sdf"), folder.path().join("saved.sdf"));
    let path = golden("drv_strlen64.sdf");
    let original = Opened::open(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let summary = original.header().summary_location as usize;
    for (at, code) in [(112, "sdf-024"), (summary, "sdf-023")] {
        let mut damaged = bytes.clone();
        damaged[at..at + 8].fill(0xff);
        std::fs::write(&bad, &damaged).unwrap();
        let file = Opened::open(&bad).unwrap();
        assert_same_content(&original, &file);
        let report = check(file.source(), false);
        assert!(report.findings.iter().any(|f| f.code == code), "{:?}", report.findings);
        let Salvage { kept, .. } = salvage(&bad, &saved);
        assert_eq!(kept.len(), original.blocks().len());
        let again = Opened::open(&saved).unwrap();
        assert_eq!(differences(&original, &again).unwrap(), [""; 0]);
    }
}

#[test]
fn salvage_finds_the_blocks_after_a_damaged_header() {
    let folder = tempfile::tempdir().unwrap();
    let (bad, saved) = (folder.path().join("bad.sdf"), folder.path().join("saved.sdf"));
    let original = Opened::open(golden("hand_nosummary.sdf")).unwrap();
    let bytes = std::fs::read(golden("hand_nosummary.sdf")).unwrap();
    let blocks = original.blocks();
    for k in [0, 7, blocks.len() - 2] {
        let mut damaged = bytes.clone();
        let at = blocks[k].offset as usize;
        damaged[at..at + 72].fill(0xee);
        std::fs::write(&bad, &damaged).unwrap();
        assert!(Opened::open(&bad).is_err());
        let Salvage { kept, lost } = salvage(&bad, &saved);
        let found = Opened::open(&saved).unwrap();
        let ids = |file: &Opened| -> Vec<String> {
            file.blocks().iter().map(|b| b.header.id.clone()).collect()
        };
        let mut want = ids(&original);
        want.remove(k);
        assert_eq!(ids(&found), want, "{lost:?}");
        assert_eq!(kept.len(), want.len());
        assert!(!lost.is_empty());
    }
}

#[test]
fn a_name_with_very_many_levels_is_refused_quickly() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.sdf");
    let name = "a/".repeat(99_999);
    let header = FileHeader { string_length: 200_000, ..FileHeader::default() };
    write_file(&path, &header, Overwrite::Never, |file| {
        for _ in 0..10 {
            let value = Meta::Constant(vec![0; 4]);
            file.block("a", &name, BlockType::Constant, DataType::Integer4, &value, &[])?;
        }
        Ok(())
    })
    .unwrap();
    let began = std::time::Instant::now();
    let error = Opened::open(&path).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(began.elapsed().as_secs() < 5);
}

#[test]
fn reading_a_part_of_fifty_gigabytes_is_fast_and_needs_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.sdf");
    let limits = Limits::default().with_memory(8 << 20);
    write_file(&path, &FileHeader::default(), Overwrite::Never, |file| {
        let meta = Meta::Array(vec![1, 1]);
        file.block("a", "A", BlockType::Array, DataType::Real8, &meta, &[0; 8])?;
        Ok(())
    })
    .unwrap();
    // The same block with 50 000 x 125 000 elements in a sparse file.
    let data = 112 + 136 + 8;
    let (rows, columns) = (50_000_u64, 125_000_u64);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let put = |at: u64, bytes: &[u8]| file.write_all_at(bytes, at).unwrap();
    put(64, &0_u32.to_le_bytes());
    put(112 + 48, &(8 * rows * columns).to_le_bytes());
    put(112 + 136, &(rows as u32).to_le_bytes());
    put(112 + 140, &(columns as u32).to_le_bytes());
    file.set_len(data + 8 * rows * columns).unwrap();
    put(data + 8 * (rows * columns - 1), &7.5_f64.to_le_bytes());

    let began = std::time::Instant::now();
    let file = Dataset::open_path(&Sdf, &path, &(&limits).into()).unwrap();
    let array = file.array("A").unwrap();
    assert_eq!(array.shape().lengths(), [rows, columns]);
    let read = |part: &str| array.read_f64(&part.parse().unwrap(), Axes::Stored).unwrap();
    assert_eq!(read("-1, -1"), [7.5]);
    assert_eq!(read("-1, -3:"), [0.0, 0.0, 7.5]);
    assert_eq!(read(":, -1").len(), 50_000);
    assert!(began.elapsed().as_secs() < 5);
    // The complete array exceeds the memory limit.
    let all = array.read_f64(&Selection::all(), Axes::Stored).unwrap_err();
    assert_eq!(all.kind(), ErrorKind::Limit);
}

#[test]
fn salvage_copies_every_good_file_without_loss() {
    let folder = tempfile::tempdir().unwrap();
    let mut copied = 0;
    for entry in std::fs::read_dir(golden("")).unwrap() {
        let path = entry.unwrap().path();
        let Ok(original) = Opened::open(&path) else { continue };
        let copy = folder.path().join("copy.sdf");
        let Salvage { lost, .. } = salvage(&path, &copy);
        assert_eq!(lost, [""; 0], "{}", path.display());
        let again = Opened::open(&copy).unwrap();
        assert_same_content(&original, &again);
        let hashes = |file: &Opened| object_hashes(file).unwrap();
        assert_eq!(hashes(&original), hashes(&again), "{}", path.display());
        copied += 1;
    }
    assert!(copied >= 26, "{copied}");
}

#[test]
fn identifiers_are_truncated_and_made_unique_as_in_the_fortran_library() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ids.sdf");
    let long = "abcdefghijklmnopqrstuvwxyz0123456789";
    write_file(&path, &FileHeader::default(), Overwrite::Never, |file| {
        for id in [long, long, long, "dup", "dup"] {
            let value = Meta::Constant(vec![1, 0, 0, 0]);
            file.block(id, id, BlockType::Constant, DataType::Integer4, &value, &[])?;
        }
        Ok(())
    })
    .unwrap();
    let file = Opened::open(&path).unwrap();
    let ids: Vec<&str> = file.blocks().iter().map(|b| b.header.id.as_str()).collect();
    let start = "abcdefghijklmnopqrstuvwxyz01234";
    let want = [format!("{start}5"), format!("{start}1"), format!("{start}2")];
    assert_eq!(ids[..3], want);
    assert_eq!(ids[3..], ["dup", "dup1"]);
}

#[test]
fn data_that_do_not_fit_their_metadata_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sdf");
    let written = write_file(&path, &FileHeader::default(), Overwrite::Never, |file| {
        let meta = Meta::Array(vec![3]);
        file.block("a", "a", BlockType::Array, DataType::Real8, &meta, &[0; 16])?;
        Ok(())
    });
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Argument);
    let written = write_file(&path, &FileHeader::default(), Overwrite::Never, |file| {
        let meta = Meta::Array(vec![3]);
        file.block("a", "a", BlockType::Constant, DataType::Real8, &meta, &[]).map(drop)
    });
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Argument);
    let written = write_file(&path, &FileHeader::default(), Overwrite::Never, |file| {
        let meta = Meta::NameValue { names: vec!["a".into()], values: vec![Value::Int(1 << 40)] };
        file.block("a", "a", BlockType::NameValue, DataType::Integer4, &meta, &[]).map(drop)
    });
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Argument);
    assert!(!path.exists());
}

#[test]
fn stations_are_written_row_by_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stations.sdf");
    let station = Station {
        nelements: 5000,
        entry_len: 12,
        station_ids: vec!["s".into()],
        station_names: vec!["Station".into()],
        station_nvars: vec![1],
        station_move: vec![0],
        station_x0: vec![0.5, 1.5],
        variable_ids: vec!["time".into(), "p".into()],
        variable_names: vec!["Time".into(), "Pressure".into()],
        variable_types: vec![DataType::Real8, DataType::Real4],
        variable_units: vec!["s".into(), "Pa".into()],
        variable_mults: Some(vec![1.0, 10.0]),
        ..Station::default()
    };
    let row = |k: u32| [&f64::from(k).to_le_bytes()[..], &(k as f32).to_le_bytes()].concat();
    let rows: Vec<u8> = (0..5000).flat_map(row).collect();
    let header = FileHeader { station: true, ..FileHeader::default() };
    write_file(&path, &header, Overwrite::Never, |file| {
        let meta = Meta::Station(Box::new(station));
        file.block("st", "St", BlockType::Station, DataType::Other, &meta, &rows)?;
        Ok(())
    })
    .unwrap();
    let file = Opened::open(&path).unwrap();
    assert_eq!(file.header().summary_size, 0);
    let part = "4990:".parse().unwrap();
    let values = file.array("St/Station/Pressure").unwrap().read_f64(&part, Axes::Stored).unwrap();
    assert_eq!(values[..2], [49900.0, 49910.0]);
    // More rows than from_tree assembles at a time.
    let copy = folder.path().join("copy.sdf");
    let mut sink = Sink::create(&copy, Overwrite::Never).unwrap();
    Sdf.write(&file, &mut sink, &spile_core::format::WriteOptions::default()).unwrap();
    sink.commit().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(&copy).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_arrays_round_trip(
        arrays in prop::collection::vec(
            ("[ -~]{0,80}", prop::collection::vec(0_u64..6, 1..5), 0_usize..5), 0..12),
        string_length in 1_u64..200,
        revision in 0_u32..5,
        big in any::<bool>(),
    ) {
        use DataType as D;
        let types = [D::Integer4, D::Integer8, D::Real4, D::Real8, D::Real16];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sdf");
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let header = FileHeader { string_length, ..header(revision, order) };
        let bytes = |k: usize, dims: &[u64]| -> Vec<u8> {
            let n = dims.iter().product::<u64>() as usize * types[k].dtype(order).unwrap().size();
            (0..n).map(|b| (b * 37 + k) as u8).collect()
        };
        write_file(&path, &header, Overwrite::Never, |file| {
            for (name, dims, k) in &arrays {
                let meta = Meta::Array(dims.clone());
                let data = bytes(*k, dims);
                file.block(name, name, BlockType::Array, types[*k], &meta, &data)?;
            }
            Ok(())
        }).unwrap();
        let file = Opened::open(&path).unwrap();
        prop_assert_eq!(file.blocks().len(), arrays.len());
        for (block, (_, dims, k)) in file.blocks().iter().zip(&arrays) {
            prop_assert_eq!(&block.meta, &Meta::Array(dims.clone()));
            let read = file.raw(block).unwrap().read_bytes(&Selection::all(), Axes::Stored).unwrap();
            prop_assert_eq!(read, bytes(*k, dims));
        }
        let report = check(file.source(), true);
        prop_assert!(report.findings.iter().all(|f| f.code == "sdf-033" || f.code == "sdf-021"));
    }
}
