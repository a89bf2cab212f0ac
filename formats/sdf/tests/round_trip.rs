//! Unusual files keep their content when they are written again.

use std::path::Path;

use spile_core::OpenOptions;
use spile_core::error::ErrorKind;
use spile_core::format::FormatWriter as _;
use spile_core::layout::Coord;
use spile_core::read::Axes;
use spile_core::report::Severity;
use spile_core::select::Selection;
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;
use spile_core::tree::Value;
use spile_core::wire::ByteOrder;
use spile_sdf::wire::{DataType, FileHeader};
use spile_sdf::{
    BlockType, Mesh, Meta, PointMesh, PointVariable, Sdf, Station, Writer, write_file,
};

#[path = "support/blocks.rs"]
mod blocks;
use blocks::{doubles, mesh};
#[path = "support/opened.rs"]
mod opened;
use opened::{Opened, check};

fn view(bytes: &[u8]) -> Opened {
    Opened::from_source(Source::memory(bytes), &OpenOptions::default()).unwrap()
}

/// A file with the blocks of `body` and without a summary, so that tests can change the headers.
fn file_bytes(header: &FileHeader, body: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sdf");
    write_file(&path, header, Overwrite::Never, |file| {
        body(file);
        Ok(())
    })
    .unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[56..68].fill(0);
    bytes
}

fn rewrite(file: &Opened) -> spile_core::error::Result<Opened> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("again.sdf");
    let mut sink = Sink::create(&path, Overwrite::Never)?;
    Sdf.write(file, &mut sink, &spile_core::format::WriteOptions::default())?;
    sink.commit()?;
    Opened::open(&path)
}

fn codes(bytes: &[u8]) -> Vec<String> {
    let report = check(&Source::memory(bytes), false);
    report.findings.iter().map(|f| f.code.to_string()).collect()
}

/// Codes of the errors that `check` finds.
fn check_errors(bytes: &[u8]) -> Vec<&'static str> {
    let findings = check(&Source::memory(bytes), false).findings;
    findings.iter().filter(|f| f.severity == Severity::Error).map(|f| f.code).collect()
}

/// Codes of objects that cannot be read.
fn errors(file: &Opened) -> Vec<&'static str> {
    let errors = file.warnings().iter().filter(|f| f.severity == Severity::Error);
    errors.map(|f| f.code).collect()
}

fn station(file: &Opened) -> &Station {
    let Meta::Station(station) = &file.blocks()[0].meta else { panic!() };
    station
}

/// Two stations with two variables each, names that are not valid in a tree, and one variable of no
/// station.
fn stations() -> Vec<u8> {
    let strings = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let meta = Meta::Station(Box::new(Station {
        nelements: 2,
        entry_len: 48,
        station_ids: strings(&["a", "b"]),
        station_names: strings(&["Same", "Same"]),
        station_nvars: vec![2, 2],
        station_move: vec![0, 1],
        station_x0: vec![0.5, 1.5],
        variable_ids: strings(&["time", "p", "q", "r", "s", "t"]),
        variable_names: strings(&["Time", "P/x", "", "P/x", "P/x", "More"]),
        variable_types: vec![DataType::Real8; 6],
        variable_units: vec![String::new(); 6],
        ..Station::default()
    }));
    let header = FileHeader { station: true, ..FileHeader::default() };
    file_bytes(&header, |file| {
        let data = doubles(12);
        let kind = BlockType::Station;
        file.block("st", "St", kind, DataType::Other, &meta, &data).unwrap();
    })
}

#[test]
fn names_and_variables_of_stations_are_kept() {
    let bytes = stations();
    let file = view(&bytes);
    assert_eq!(file.array("St/More").unwrap().shape().lengths(), [2]);
    let copy = rewrite(&file).unwrap();
    assert_eq!(station(&copy), station(&file));
    let raw = |file: &Opened| {
        let array = file.raw(&file.blocks()[0]).unwrap();
        array.read_bytes(&Selection::all(), Axes::Stored).unwrap()
    };
    assert_eq!(raw(&copy), raw(&file));
    assert!(!codes(&bytes).contains(&"sdf-044".to_string()));
}

#[test]
fn station_variables_after_an_unknown_type_are_reported() {
    let mut bytes = stations();
    let file = view(&bytes);
    let block = &file.blocks()[0];
    // Type of the third variable.
    let types = block.meta_offset + block.meta_length - 6 * 32 - 6 * 4;
    bytes[types as usize + 2 * 4] = 0;
    assert_eq!(station(&view(&bytes)).variable_types[2], DataType::Null);
    assert_eq!(check_errors(&bytes), ["sdf-044"]);
    assert_eq!(errors(&view(&bytes)), ["sdf-044"]);
}

#[test]
fn a_constant_of_an_unknown_type_keeps_its_bytes() {
    let mut bytes = file_bytes(&FileHeader::default(), |file| {
        let meta = Meta::Constant(7.5_f64.to_le_bytes().to_vec());
        let kind = BlockType::Constant;
        file.block("c", "C", kind, DataType::Real8, &meta, &[]).unwrap();
    });
    bytes[112 + 60] = 99;
    let file = view(&bytes);
    let copy = rewrite(&file).unwrap();
    assert_eq!(copy.blocks()[0].meta, Meta::Other(7.5_f64.to_le_bytes().to_vec()));
    assert_eq!(copy.blocks()[0].header.datatype, DataType::Unknown(99));
}

#[test]
fn quadruple_values_are_stored_in_the_byte_order_of_the_file() {
    let number: Vec<u8> = (0..16).collect();
    let meta =
        Meta::NameValue { names: vec!["q".into()], values: vec![Value::Bytes(number.clone())] };
    let header = FileHeader { order: ByteOrder::Big, ..FileHeader::default() };
    let bytes = file_bytes(&header, |file| {
        let kind = BlockType::NameValue;
        file.block("n", "N", kind, DataType::Real16, &meta, &[]).unwrap();
    });
    let reversed: Vec<u8> = number.iter().rev().copied().collect();
    assert!(bytes.windows(16).any(|w| w == reversed));
    let file = view(&bytes);
    assert_eq!(file.blocks()[0].meta, meta);
    assert_eq!(rewrite(&file).unwrap().blocks()[0].meta, meta);
}

#[test]
fn a_mesh_with_missing_coordinates_is_not_written_as_a_smaller_one() {
    let mut bytes = file_bytes(&FileHeader::default(), |file| {
        let meta = Meta::Mesh(mesh(&[3, 2]));
        let data = doubles(5);
        let kind = BlockType::PlainMesh;
        file.block("g", "G", kind, DataType::Real8, &meta, &data).unwrap();
    });
    bytes[112 + 48] = 24;
    let file = view(&bytes);
    assert_eq!(errors(&file), ["sdf-031"]);
    assert_eq!(check_errors(&bytes), ["sdf-031"]);
    let error = rewrite(&file).err().unwrap();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unsupported, "sdf-050"));
    let planned = Sdf.losses(&file, Path::new("again.sdf")).unwrap_err();
    assert_eq!(planned.to_string(), error.to_string());
}

#[test]
fn species_with_equal_truncated_identifiers_keep_their_own_mesh() {
    // EPOCH truncates identifiers.
    let names = ["ions_with_a_very_long_name_of_A", "ions_with_a_very_long_name_of_B"];
    let bytes = file_bytes(&FileHeader::default(), |file| {
        for (k, name) in names.iter().enumerate() {
            let np = 2 + k as u64;
            let points = PointMesh { mesh: mesh(&[0]), np, species_id: name.to_string() };
            let points = PointMesh { mesh: Mesh { dims: vec![], ..points.mesh }, ..points };
            let (id, data, real) = (format!("grid/{name}"), doubles(np), DataType::Real8);
            let meta = Meta::PointMesh(points);
            let kind = BlockType::PointMesh;
            file.block(&id, &format!("Grid/{name}"), kind, real, &meta, &data).unwrap();
            let meta = Meta::PointVariable(PointVariable {
                mult: 1.0,
                mesh_id: id,
                np,
                species_id: name.to_string(),
                ..PointVariable::default()
            });
            let kind = BlockType::PointVariable;
            file.block(&format!("w{k}"), name, kind, real, &meta, &data).unwrap();
        }
    });
    let file = view(&bytes);
    assert_ne!(file.blocks()[0].header.id, file.blocks()[2].header.id);
    for name in names {
        let desc = file.tree().node(file.tree().find(name).unwrap()).array.as_ref().unwrap();
        let Coord::Node(axis) = desc.coords[0] else { panic!("{name} has no coordinates") };
        assert_eq!(file.tree().node(axis).path, format!("Grid/{name}/X"));
        assert_eq!(desc.dims, [name]);
    }
    assert_eq!(codes(&bytes), ["sdf-022"]);
}

#[test]
fn checksum_algorithms_ignore_case_and_titles_are_one_line() {
    let deck = |kind: &str| {
        let (mimetype, checksum_type) = ("text/plain".into(), kind.into());
        let meta = Meta::Datablock { mimetype, checksum_type, checksum: "00".into() };
        file_bytes(&FileHeader::default(), |file| {
            let data = b"deck";
            let kind = BlockType::Datablock;
            file.block("d", "a\nb", kind, DataType::Character, &meta, data).unwrap();
        })
    };
    for (kind, wrong) in [("MD5", true), ("md5", true), ("SHA256", true), ("other", false)] {
        assert_eq!(codes(&deck(kind)).contains(&"sdf-043".to_string()), wrong, "{kind}");
    }
    assert_eq!(view(&deck("md5")).blocks()[0].title(), "block \"d\" (a\\nb)");
}
