//! What the arrays of golden files mean.

use std::path::{Path, PathBuf};

use spile_core::layout::{Coord, Linear};
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::shape::Order;
use spile_core::testkit::assert_same_content;
use spile_core::{Dataset, OpenOptions, Source};
use spile_netcdf::Classic;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/netcdf3").join(name)
}

fn open(bytes: Vec<u8>) -> Dataset {
    Dataset::open(&Classic, Source::memory(bytes), &OpenOptions::default()).unwrap()
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(golden(name)).unwrap()
}

#[test]
fn packed_variables_have_coordinates_scaling_and_missing_values() {
    let file = open(read("cdf1_weather.nc"));
    let packed = file.array("t2m").unwrap();
    let desc = file.tree().node(file.tree().find("t2m").unwrap()).array.as_ref().unwrap();
    assert_eq!(desc.dims, ["time", "lat", "lon"]);
    assert_eq!(desc.map, Some(Linear::new(270.0, 0.25)));
    assert_eq!(desc.semantics().missing.values, [-999.0]);
    let coords: Vec<bool> = desc.coords.iter().map(|c| matches!(c, Coord::Node(_))).collect();
    assert_eq!(coords, [true, true, false]);
    assert_eq!(packed.units(), Some("K"));
    let rows: Selection = "1:3".parse().unwrap();
    let texts = file.array("tag").unwrap();
    assert_eq!(texts.read_bytes(&rows, Axes::Order(Order::C)).unwrap(), b"bc\0\0\0\0def\0\0\0");
}

#[test]
fn the_three_versions_have_the_same_structure() {
    let [one, two] = ["cdf1_weather.nc", "cdf2_weather.nc"].map(|name| open(read(name)));
    let names = |file: &Dataset| {
        file.tree()
            .arrays()
            .map(|(_, node, a)| (node.path.clone(), a.shape.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&one), names(&two));
    assert_eq!(names(&one), names(&open(read("cdf5_weather.nc"))));
}

#[test]
fn an_unknown_number_of_records_follows_from_the_length_of_the_file() {
    let stored = read("cdf1_weather.nc");
    let mut streaming = stored.clone();
    streaming[4..8].fill(0xff);
    let streaming = open(streaming);
    assert_same_content(&streaming, &open(stored));
}

#[test]
fn variables_beyond_the_end_of_the_file_are_errors_and_the_others_are_read() {
    let mut bytes = read("cdf1_weather.nc");
    bytes.truncate(bytes.len() - 8);
    let file = open(bytes);
    assert!(!file.warnings().is_empty());
    for finding in file.warnings() {
        assert_eq!(finding.code, "netcdf3-009");
        assert!(file.array(finding.object.as_deref().unwrap().trim_matches('"')).is_err());
    }
    let lat: Vec<f64> = file.array("lat").unwrap().read("").unwrap();
    assert_eq!(lat, [10.0, 20.0, 30.0]);
}
