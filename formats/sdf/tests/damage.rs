//! Files with many wrong bytes at once: an error or an answer, never a panic, and what salvage
//! makes of them is sound.

use std::path::PathBuf;

use proptest::prelude::*;
use spile_core::error::ErrorKind;
use spile_core::format::{Format as _, Reader as _};
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;
use spile_sdf::{File, Options, Sdf, View};

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

/// Reads everything; a file's own fault is no failure.
fn drain(file: &View, limits: &Limits) {
    for (_, _, desc) in file.tree().arrays() {
        let opened = Array::open(file.source(), file.tree(), desc, limits);
        let read = opened.and_then(|array| array.all()?.stream(|_, _| Ok(())));
        if let Err(error) = read {
            assert!(!matches!(error.kind(), ErrorKind::Io | ErrorKind::Argument), "{error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn many_wrong_bytes_are_survived(
        file in 0..FILES.len(),
        // Mostly in headers: that is where wrong bytes hurt.
        wrong in prop::collection::vec((0_usize..2000, prop::option::of(any::<u8>())), 1..30),
        far in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        keep in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = golden(FILES[file]);
        for (at, value) in wrong {
            // Flags and counts of headers are small numbers: zero and one go furthest.
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
        let file = File::from_source(source.clone(), &limits);
        if let Ok(file) = file.and_then(|file| View::new(file, Options { derived: true })) {
            file.regions(&mut |_| Ok(())).unwrap();
            drain(&file, &limits);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("saved.sdf");
        let mut sink = Sink::create(&path, Overwrite::Never).unwrap();
        if let Ok(saved) = Sdf.salvage(&source, &mut sink, &limits) {
            sink.commit().unwrap();
            let again = View::open(&path, &limits).unwrap();
            prop_assert_eq!(again.blocks().len(), saved.kept.len());
            drain(&again, &limits);
        }
    }
}
