//! Invalid structures with valid checksums.

use std::path::{Path, PathBuf};

use spile_core::Dataset;
use spile_core::error::{Error, ErrorKind};
use spile_core::limits::Limits;
use spile_core::source::Source;

use crate::Hdf5;
use crate::wire::checksum;

/// Signatures of structures that end with a checksum.
const CHECKED: [&[u8; 4]; 11] = [
    b"OHDR", b"OCHK", b"BTHD", b"BTLF", b"BTIN", b"FRHP", b"FHIB", b"FAHD", b"FADB", b"EAHD",
    b"EAIB",
];

/// Opens the file and reads all arrays. Returns whether it opened. Panics on errors that are not about the
/// file.
fn exercise(bytes: Vec<u8>, limits: &Limits) -> bool {
    let assert_about_file = |error: Error| {
        let about_file = !matches!(error.kind(), ErrorKind::Io | ErrorKind::Argument);
        assert!(about_file && !error.code().is_empty(), "{error:?}");
    };
    let file = match Dataset::open(&Hdf5, Source::memory(bytes), &limits.into()) {
        Ok(file) => file,
        Err(error) => {
            assert_about_file(error);
            return false;
        }
    };
    for (_, _, desc) in file.tree().arrays() {
        // An invalid header may declare any number of fill values.
        let small = desc.bytes().is_ok_and(|bytes| bytes < 1 << 20);
        let read = file.open_array(desc);
        let read =
            read.and_then(|array| if small { array.all()?.stream(|_, _| Ok(())) } else { Ok(()) });
        let _ = read.map_err(assert_about_file);
    }
    true
}

#[test]
fn invalid_structures_with_valid_checksums_do_not_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/hdf5");
    let limits = Limits { memory: 16 << 20, nodes: 10_000, depth: 100 };
    let names = ["many_new", "chunks_new", "links_new", "attributes_new", "scales_new", "long_new"];
    let (mut cases, mut opened) = (0, 0);
    for name in names {
        let path: PathBuf = folder.join(name).with_extension("h5");
        let good = std::fs::read(&path).unwrap();
        let file = Dataset::open(&Hdf5, Source::memory(good.clone()), &(&limits).into()).unwrap();
        let mut regions = Vec::new();
        let mut keep = |region: spile_core::format::Region| {
            regions.push((region.offset as usize, region.len as usize));
            Ok(())
        };
        file.regions(&mut keep).unwrap();
        for (offset, len) in regions {
            let signature = &good[offset..offset + len.min(4)];
            if len < 8 || !CHECKED.iter().any(|known| &known[..] == signature) {
                continue;
            }
            let end = offset + len - 4;
            // Every byte of short structures, a sample of long ones.
            for at in (offset + 4..end).step_by(1 + len / 50) {
                for value in [0, 1, 0xff, good[at] ^ 0x10] {
                    let mut bad = good.clone();
                    bad[at] = value;
                    let sum = checksum(&bad[offset..end]).to_le_bytes();
                    bad[end..end + 4].copy_from_slice(&sum);
                    opened += u32::from(exercise(bad, &limits));
                    cases += 1;
                }
            }
        }
    }
    assert!(cases > 2000 && opened > cases / 2, "{opened} of {cases} opened");
}

#[test]
fn fields_of_all_ones_do_not_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let limits = Limits { memory: 16 << 20, nodes: 10_000, depth: 100 };
    for name in ["hdf5/attributes_old.h5", "keysight/keysight_i16_bigendian.h5"] {
        let good = std::fs::read(folder.join(name)).unwrap();
        let mut opened = 0;
        for at in 0..good.len() - 1 {
            let mut bad = good.clone();
            bad[at..at + 2].fill(0xff);
            opened += u32::from(exercise(bad, &limits));
        }
        assert!(opened > 1000, "{name}: {opened}");
    }
}
