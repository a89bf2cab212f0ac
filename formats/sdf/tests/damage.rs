//! Files with many wrong bytes: reading fails or succeeds without a panic, and salvage writes valid
//! files.

use std::path::PathBuf;

use proptest::prelude::*;
use spile_core::error::ErrorKind;
use spile_core::format::{Checker as _, Salvager as _};
use spile_core::sink::{Overwrite, Sink};
use spile_core::{Dataset, Limits, OpenOptions, Source};
use spile_sdf::Sdf;

#[path = "support/opened.rs"]
mod opened;
use opened::Opened;

const FILES: [&str; 6] = [
    "drv_station.sdf",
    "drv_strlen64.sdf",
    "hand_rev1_0.sdf",
    "hand_nosummary.sdf",
    "hand_bigendian_all.sdf",
    "sdfr_written.sdf",
];

fn golden(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/sdf");
    std::fs::read(folder.join(name)).unwrap()
}

/// Reads all arrays; only I/O and argument errors fail the test.
fn read_all(file: &Dataset) {
    for (id, ..) in file.arrays() {
        let read = file.array_at(id).and_then(|array| array.all()?.stream(|_, _| Ok(())));
        if let Err(error) = read {
            assert!(!matches!(error.kind(), ErrorKind::Io | ErrorKind::Argument), "{error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn wrong_bytes_never_panic(
        file in 0..FILES.len(),
        // Mostly in headers, where wrong bytes have the largest effect.
        wrong in prop::collection::vec((0_usize..2000, prop::option::of(any::<u8>())), 1..30),
        far in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        keep in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = golden(FILES[file]);
        for (at, value) in wrong {
            // Zeros and ones are valid flags and counts.
            let at = at % bytes.len();
            bytes[at] = value.unwrap_or(u8::from(at.is_multiple_of(2)));
        }
        for (at, value) in far {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(keep) = keep {
            bytes.truncate(keep.index(bytes.len()).max(112));
        }
        bytes[..8].copy_from_slice(&golden(FILES[file])[..8]);
        let limits = Limits::default().with_memory(64 << 20);
        let source = Source::memory(bytes);
        let _ = Sdf.check(&source, &limits, true);
        let options = OpenOptions::with_limits(limits).with_derived(true);
        if let Ok(file) = Dataset::open(&Sdf, source.clone(), &options) {
            file.regions(&mut |_| Ok(())).unwrap();
            read_all(&file);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("saved.sdf");
        let mut sink = Sink::create(&path, Overwrite::Never).unwrap();
        if let Ok(saved) = Sdf.salvage(&source, &mut sink, &limits) {
            sink.commit().unwrap();
            let again = Opened::open(&path).unwrap();
            prop_assert_eq!(again.blocks().len(), saved.kept.len());
            read_all(&again);
        }
    }
}
