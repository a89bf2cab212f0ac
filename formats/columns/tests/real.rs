//! CSV files of oscilloscopes have one array per channel with its time base.

use std::path::Path;

use spile_columns::Columns;
use spile_core::format::{Format as _, Head};
use spile_core::{Coord, Dataset, OpenOptions, Source};

/// Name of a file, number of channels, samples, start and step in seconds, first value of the first channel.
const FILES: [(&str, usize, u64, f64, f64, f64); 7] = [
    ("DS1052E.csv", 2, 8192, 0.0, 2e-9, 1.72),
    ("DS1054Z-A.csv", 4, 1200, -3e-7, 5e-10, 3.28),
    ("DS1102D-A.csv", 2, 1024, -0.004_688, 1.000_977e-5, 8.08),
    ("DS1102E-B.csv", 1, 600, -6e-6, 2e-8, 4.4),
    ("DS2072A-1.csv", 2, 1400, -3.5e-3, 5e-6, 0.024),
    ("DS4024-A.csv", 2, 1356, -1.356e-3, 2e-6, 0.03125),
    ("tek_digital.csv", 8, 2500, -4.996_203_12e-8, 4e-11, 1.0),
];

#[test]
fn real_files_have_channels_with_a_time_base() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/real/scope");
    if !folder.exists() {
        println!("skipped: no real files in {}", folder.display());
        return;
    }
    for (name, channels, samples, start, step, value) in FILES {
        let source = Source::open(folder.join(name)).unwrap();
        let bytes = source.read_vec(0, source.len().min(4096)).unwrap();
        let score = Columns.probe(Head { bytes: &bytes, len: source.len() });
        assert_eq!(score, 90, "{name}");
        let file = Dataset::open(&Columns, source, &OpenOptions::default()).unwrap();
        assert_eq!(file.tree().arrays().count(), channels, "{name}");
        for (_, node, desc) in file.tree().arrays() {
            assert_eq!(
                (desc.shape.lengths(), &desc.dims[0][..]),
                (&[samples][..], "time"),
                "{name}"
            );
            let Coord::Uniform { start: s, step: d } = desc.coords[0] else { panic!("{name}") };
            assert!((s - start).abs() <= 1e-3 * step, "{name}: {s} {start}");
            assert!((d - step).abs() <= 1e-5 * step, "{name}: {d} {step}");
            let units = node.attrs.get_str("units");
            assert_eq!(units, if name.starts_with("tek") { None } else { Some("V") }, "{name}");
        }
        let (id, ..) = file.arrays().next().unwrap();
        let values: Vec<f64> = file.array_at(id).unwrap().read("...").unwrap();
        assert!((values[0] - value).abs() < 1e-12 && values.len() as u64 == samples, "{name}");
    }
}
