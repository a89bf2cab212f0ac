//! The golden files, block by block against their manifest.

use std::path::PathBuf;

use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use spile_core::error::ErrorKind;
use spile_core::format::{Format as _, Reader as _};
use spile_core::layout::Coord;
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::report::Severity;
use spile_core::select::Selection;
use spile_core::source::Source;
use spile_core::testkit::{assert_same_content, manifest};
use spile_core::tree::Value;
use spile_core::wire::ByteOrder;
use spile_sdf::{Block, File, Meta, Options, Sdf, View};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/sdf")
}

fn files() -> Vec<(String, Json)> {
    let all = manifest(folder().join("manifest.json"));
    let files = all["files"].as_array().unwrap();
    files.iter().map(|f| (f["file"].as_str().unwrap().to_string(), f.clone())).collect()
}

fn open(name: &str) -> View {
    View::open(folder().join(name), &Limits::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn codes(name: &str, strict: bool) -> Vec<(&'static str, String)> {
    let source = Source::open(folder().join(name)).unwrap();
    let report = Sdf.check(&source, &Limits::default(), strict).unwrap();
    report.findings.iter().map(|f| (f.code, f.object.clone().unwrap_or_default())).collect()
}

/// Files that a reader must refuse, with what it says.
const BAD: [(&str, ErrorKind, &str, u64); 5] = [
    ("hand_bad_version2.sdf", ErrorKind::Unsupported, "sdf-004", 8),
    ("hand_truncated.sdf", ErrorKind::Truncated, "sdf-008", 3000),
    ("drv_unfinished.sdf", ErrorKind::Truncated, "sdf-006", 68),
    ("hand_nblocks0_summary.sdf", ErrorKind::Truncated, "sdf-006", 68),
    ("hand_nblocks_minus.sdf", ErrorKind::Truncated, "sdf-007", 68),
];

fn good() -> impl Iterator<Item = (String, Json)> {
    files().into_iter().filter(|(name, _)| BAD.iter().all(|bad| bad.0 != name))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, b| text + &format!("{b:02x}"))
}

fn texts(json: &Json) -> Vec<&str> {
    json.as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect()
}

fn numbers(json: &Json) -> Vec<f64> {
    json.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn counts(json: &Json) -> Vec<u64> {
    json.as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect()
}

#[test]
fn every_good_file_reads_as_the_manifest_says() {
    let mut blocks = 0;
    for (name, want) in good() {
        let file = open(&name);
        let (header, say) = (file.header(), &want["header"]);
        let big = say["endian"] == "big";
        assert_eq!(header.order == ByteOrder::Big, big, "{name}");
        assert_eq!(header.code_name, say["code_name"], "{name}");
        assert_eq!(i64::from(header.revision), say["revision"], "{name}");
        assert_eq!(i64::from(header.step), say["step"], "{name}");
        assert_eq!(header.time, say["time"].as_f64().unwrap(), "{name}");
        let jobid = (i64::from(header.jobid.0), i64::from(header.jobid.1));
        assert_eq!(jobid, (say["jobid1"].as_i64().unwrap(), say["jobid2"].as_i64().unwrap()));
        assert_eq!(header.string_length, say["string_length"], "{name}");
        assert_eq!(header.block_header_length, say["block_header_length"], "{name}");
        assert_eq!(i64::from(header.code_io_version), say["code_io_version"], "{name}");
        assert_eq!(header.restart, say["restart_flag"] == 1, "{name}");
        assert_eq!(header.station, say["station_file"] == 1, "{name}");
        let wanted = want["blocks"].as_array().unwrap();
        assert_eq!(file.blocks().len(), wanted.len(), "{name}");
        for (block, want) in file.blocks().iter().zip(wanted) {
            compare(&file, block, want, &format!("{name} {}", want["id"]));
            blocks += 1;
        }
    }
    assert!(blocks > 1000, "{blocks}");
}

fn compare(file: &View, block: &Block, want: &Json, place: &str) {
    let header = &block.header;
    assert_eq!(header.id, want["id"], "{place}");
    assert_eq!(header.name, want["name"], "{place}");
    assert_eq!(header.ndims, want["ndims"], "{place}");
    assert_eq!(header.data_location, want["data_location"], "{place}");
    assert_eq!(header.data_length, want["data_length"], "{place}");
    assert_eq!(block.kind().name(), want["blocktype_name"], "{place}");
    assert_eq!(header.datatype.name(), want["datatype_name"], "{place}");
    if let Some(length) = header.info_length {
        assert_eq!(length, want["info_length"], "{place}");
    }
    match &block.meta {
        Meta::Mesh(mesh) => {
            assert_eq!(mesh.mults, numbers(&want["mults"]), "{place}");
            assert_eq!(mesh.labels, texts(&want["labels"]), "{place}");
            assert_eq!(mesh.units, texts(&want["units"]), "{place}");
            assert_eq!(i64::from(mesh.geometry), want["geometry"], "{place}");
            assert_eq!(mesh.minval, numbers(&want["minval"]), "{place}");
            assert_eq!(mesh.maxval, numbers(&want["maxval"]), "{place}");
            assert_eq!(mesh.dims, counts(&want["dims"]), "{place}");
        }
        Meta::PointMesh(points) => {
            assert_eq!(points.mesh.labels, texts(&want["labels"]), "{place}");
            assert_eq!(points.mesh.minval, numbers(&want["minval"]), "{place}");
            assert_eq!(points.np, want["npoints"], "{place}");
            assert_eq!(points.species_id, want["species_id"].as_str().unwrap_or(""), "{place}");
        }
        Meta::PlainVariable(v) => {
            assert_eq!(v.mult, want["mult"].as_f64().unwrap(), "{place}");
            assert_eq!(v.units, want["units"], "{place}");
            assert_eq!(v.mesh_id, want["mesh_id"], "{place}");
            assert_eq!(v.dims, counts(&want["dims"]), "{place}");
            assert_eq!(i64::from(v.stagger), want["stagger"], "{place}");
        }
        Meta::PointVariable(v) => {
            assert_eq!(v.mult, want["mult"].as_f64().unwrap(), "{place}");
            assert_eq!(v.units, want["units"], "{place}");
            assert_eq!(v.mesh_id, want["mesh_id"], "{place}");
            assert_eq!(v.np, want["npoints"], "{place}");
            assert_eq!(v.species_id, want["species_id"].as_str().unwrap_or(""), "{place}");
        }
        Meta::Array(dims) => assert_eq!(*dims, counts(&want["dims"]), "{place}"),
        Meta::CpuSplit { split_type, dims } => {
            assert_eq!(i64::from(*split_type), want["split_type"], "{place}");
            assert_eq!(*dims, counts(&want["dims"]), "{place}");
        }
        Meta::RunInfo(info) => {
            assert_eq!(i64::from(info.code_version), want["code_version"], "{place}");
            assert_eq!(info.commit_id, want["commit_id"], "{place}");
            assert_eq!(info.compile_flags, want["compile_flags"], "{place}");
            assert_eq!(info.defines, want["defines"], "{place}");
            assert_eq!(i64::from(info.io_date), want["io_date"], "{place}");
            assert_eq!(i64::from(info.minor_rev), want["minor_rev"].as_i64().unwrap_or(0));
        }
        Meta::Stitched(group) => {
            let ids = want["variable_ids"].as_array().map(|_| texts(&want["variable_ids"]));
            assert_eq!(group.ids, ids.unwrap_or_default(), "{place}");
            assert_eq!(i64::from(group.stagger), want["stagger"], "{place}");
            let mesh = want["mesh_id"].as_str().or(want["obstacle_id"].as_str());
            assert_eq!(group.mesh_id, mesh.unwrap(), "{place}");
            let material = want["material_id"].as_str().or(want["vfm_id"].as_str());
            assert_eq!(group.material_id, material.unwrap_or(""), "{place}");
            assert_eq!(group.material_name, want["material_name"].as_str().unwrap_or(""));
            for names in ["material_names", "species_names", "obstacle_names"] {
                if want[names].is_array() {
                    assert_eq!(group.names, texts(&want[names]), "{place}");
                }
            }
        }
        Meta::Station(s) => {
            assert_eq!((s.nelements, s.entry_len), (10, 32));
            assert_eq!(s.station_ids, texts(&want["station_ids"]));
            assert_eq!(s.station_x0, numbers(&want["station_x0"]));
            assert_eq!(s.station_nvars, counts(&want["station_nvars"]));
            assert_eq!(s.variable_names, texts(&want["variable_names"]));
            assert_eq!(s.variable_units, texts(&want["variable_units"]));
        }
        Meta::Datablock { mimetype, checksum_type, checksum } => {
            assert_eq!(mimetype, want["mimetype"].as_str().unwrap(), "{place}");
            assert_eq!(checksum_type, want["checksum_type"].as_str().unwrap(), "{place}");
            assert_eq!(checksum, want["checksum"].as_str().unwrap(), "{place}");
        }
        Meta::NameValue { names, values } => {
            assert_eq!(*names, texts(&want["names"]), "{place}");
            for (value, want) in values.iter().zip(want["values"].as_array().unwrap()) {
                let same = match value {
                    Value::Int(v) => want == v,
                    Value::Float(v) => want.as_f64() == Some(*v),
                    Value::Bool(v) => want == i32::from(*v),
                    Value::Text(v) => want == v,
                    other => panic!("{place}: {other:?}"),
                };
                assert!(same, "{place}: {value:?} {want}");
            }
        }
        Meta::Constant(_) | Meta::Source => {}
        Meta::Other(_) => panic!("{place}: not understood"),
    }
    if let Some(sum) = want["sha256"].as_str() {
        let raw = file.raw(block).unwrap().read(&Selection::all(), Axes::Stored).unwrap();
        assert_eq!(raw.len() as u64, want["nbytes"], "{place}");
        assert_eq!(hex(&Sha256::digest(&raw)), sum, "{place}");
    }
}

#[test]
fn every_bad_file_gives_the_right_error_at_the_right_byte() {
    for (name, kind, code, offset) in BAD {
        let path = folder().join(name);
        let error = View::open(&path, &Limits::default()).err().unwrap();
        let got = (error.kind(), error.code(), error.offset());
        assert_eq!(got, (kind, code, Some(offset)), "{name}: {error}");
        assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
        assert!(error.hint_text().is_some(), "{name}");
        let source = Source::open(&path).unwrap();
        let report = Sdf.check(&source, &Limits::default(), false).unwrap();
        assert_eq!(report.worst(), Some(Severity::Error), "{name}");
        assert_eq!(report.findings[0].code, code, "{name}");
    }
    let failed = View::open(folder().join("hand_nblocks_minus.sdf"), &Limits::default());
    assert!(failed.err().unwrap().message().contains("block 3, error 43"));
}

#[test]
fn byte_order_does_not_change_the_content() {
    assert_same_content(&open("hand_bigendian_all.sdf"), &open("hand_littleendian_all.sdf"));
}

#[test]
fn check_tells_what_the_writers_are_known_for() {
    let findings = codes("drv_all_blocks.sdf", false);
    let has = |code: &str, word: &str| {
        assert!(
            findings.iter().any(|(c, o)| *c == code && o.contains(word)),
            "{code}: {findings:?}"
        );
    };
    has("sdf-032", "\"a1_i8\"");
    has("sdf-032", "\"pv_log\"");
    has("sdf-030", "\"nomesh\"");
    has("sdf-043", "\"db_char\"");
    has("sdf-026", "\"st\"");
    has("sdf-026", "\"stt\"");
    let revision = codes("hand_future_rev1_9_extra_meta_padded_headers.sdf", false);
    assert_eq!(revision[0].0, "sdf-020");
    assert_eq!(codes("hand_nosummary.sdf", false)[0].0, "sdf-022");
    assert_eq!(codes("drv_noblocks_closed.sdf", false)[0].0, "sdf-021");
    // Real dumps have nothing to warn of; that EPOCH's faces are one short is told to the strict.
    for name in ["epoch1d_normal_0003.sdf", "epoch2d_restart_cpml_deck.sdf", "epoch3d_0001.sdf"] {
        assert_eq!(codes(name, false), [], "{name}");
        assert!(codes(name, true).iter().all(|f| f.0 == "sdf-045"), "{name}");
        assert!(!codes(name, true).is_empty(), "{name}");
    }
}

#[test]
fn a_field_knows_its_unit_and_where_its_points_are() {
    let file = open("epoch3d_0000.sdf");
    let tree = file.tree();
    let node = tree.node(tree.find("Electric Field/Ey").unwrap());
    assert_eq!(node.id.as_deref(), Some("ey"));
    assert!(node.attrs.contains(&("units".into(), "V/m".into())));
    let array = node.array.as_ref().unwrap();
    assert_eq!(array.dims, ["X", "Y", "Z"]);
    let paths: Vec<&str> = array
        .coords
        .iter()
        .map(|c| match c {
            Coord::Node(id) => tree.node(*id).path.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    // In the middle of the cells, except along y, where stagger 2 puts it on the faces.
    assert_eq!(paths, ["Grid/Grid/X_mid", "Grid/Grid/Y_face", "Grid/Grid/Z_mid"]);
    let read =
        |path: &str| file.array(path).unwrap().read_f64(&Selection::all(), Axes::Stored).unwrap();
    let (nodes, mid) = (read("Grid/Grid/X"), read("Grid/Grid/X_mid"));
    assert_eq!(mid.len() + 1, nodes.len());
    assert!(mid.iter().zip(nodes.windows(2)).all(|(m, w)| *m == 0.5 * (w[0] + w[1])));
    assert_eq!(read("Grid/Grid/Y_face"), read("Grid/Grid/Y")[1..]);
}

#[test]
fn particles_share_the_dimension_of_their_mesh() {
    let file = open("epoch2d_restart_cpml_deck.sdf");
    let tree = file.tree();
    let dims = |path: &str| {
        let array = tree.node(tree.find(path).unwrap()).array.as_ref().unwrap();
        (array.dims.clone(), array.shape.lengths().to_vec())
    };
    let species = "Carbon_ions_with_a_long_name";
    let want = (vec![species.to_string()], vec![730]);
    assert_eq!(dims(&format!("Grid/Particles/{species}/X")), want);
    assert_eq!(dims(&format!("Particles/Px/{species}")), want);
    // The identifier was cut, in small letters in one place and in capitals in the other.
    assert_eq!(dims("px/carbon_ions_with_a_long_name"), want);
}

#[test]
fn a_normalisation_factor_is_a_linear_map() {
    let file = open("drv_all_blocks.sdf");
    let stored = file.raw(file.find("grid2").next().unwrap()).unwrap();
    let stored = stored.read_f64(&Selection::all(), Axes::Stored).unwrap();
    let meant = file.array("Grid/2d/R").unwrap();
    let meant = meant.read_f64(&Selection::all(), Axes::Stored).unwrap();
    assert!(meant.iter().zip(&stored).all(|(m, s)| *m == 0.0 + 0.001 * s) && meant[0] != stored[0]);
}

#[test]
fn stitched_blocks_refer_to_their_parts() {
    let file = open("drv_all_blocks.sdf");
    let tree = file.tree();
    let read =
        |path: &str| file.array(path).unwrap().read(&Selection::all(), Axes::Stored).unwrap();
    let part = tree.node(tree.find("v3_r8").unwrap());
    assert_eq!(read(&format!("Stitched tensor/{}", part.name)), read("v3_r8"));
    // The parts of a contiguous block lie inside its data, and under its name already.
    let owner = file.find("cmat").next().unwrap();
    let all = file.raw(owner).unwrap().read(&Selection::all(), Axes::Stored).unwrap();
    let parts = [read("CMaterial/Steel"), read("CMaterial/Water")].concat();
    assert_eq!(parts, all);
    assert!(tree.find("CMaterial/Steel~2").is_err());
}

#[test]
fn stations_are_tables() {
    let file = open("drv_station.sdf");
    let read =
        |path: &str| file.array(path).unwrap().read_f64(&Selection::all(), Axes::Stored).unwrap();
    let rows = file.raw(&file.blocks()[0]).unwrap().read(&Selection::all(), Axes::Stored).unwrap();
    let column = |k: usize| -> Vec<f64> {
        let cell = |row: &[u8]| f64::from_le_bytes(row[8 * k..8 * k + 8].try_into().unwrap());
        rows.chunks(32).map(cell).collect()
    };
    assert_eq!(read("Stations/Time"), column(0));
    assert_eq!(read("Stations/Station 1/Pressure"), column(1));
    assert_eq!(read("Stations/Station 1/Density"), column(2));
    assert_eq!(read("Stations/Station 2/Pressure"), column(3));
}

#[test]
fn an_array_keeps_its_name_beside_a_group_of_the_same_name() {
    let file = open("epoch1d_single_subsets_0002.sdf");
    let tree = file.tree();
    let field = tree.node(tree.find("Electric Field/Ey").unwrap());
    assert_eq!(field.id.as_deref(), Some("ey"));
    let reduced = tree.node(tree.find("ey/r_r_skip").unwrap());
    assert_eq!(reduced.path, "Electric Field/Ey~2/Reduced_r_skip");
}

#[test]
fn derived_arrays_are_there_when_asked_for() {
    let path = folder().join("epoch2d_restart_cpml_deck.sdf");
    let derived = |path: &PathBuf| {
        let source = Source::open(path).unwrap();
        View::new(File::from_source(source, &Limits::default()).unwrap(), Options { derived: true })
            .unwrap()
    };
    let file = derived(&path);
    assert!(open("epoch2d_restart_cpml_deck.sdf").tree().find("CPUs/Original rank_map").is_err());
    let read =
        |path: &str| file.array(path).unwrap().read_f64(&Selection::all(), Axes::Stored).unwrap();
    // Four ranks, one above the other.
    let map = file.array("CPUs/Original rank_map").unwrap();
    assert_eq!(map.shape().lengths(), [1, 4]);
    assert_eq!(read("CPUs/Original rank_map"), [0.0, 1.0, 2.0, 3.0]);
    let (split, nodes) = (read("cpu_rank"), read("Grid/Grid/Y"));
    let mut borders: Vec<f64> = split.iter().map(|node| nodes[*node as usize]).collect();
    borders.insert(0, nodes[0]);
    borders.push(nodes[nodes.len() - 1]);
    assert_eq!(read("CPUs/Original rank_grid/Y"), borders);
    assert_eq!(read("CPUs/Original rank_grid/Y_mid")[3], 0.5 * (borders[3] + borders[4]));
    assert_eq!(read("CPUs/Original rank_grid/X").len(), 2);

    let file = derived(&folder().join("drv_all_blocks.sdf"));
    let mut averaged = 0;
    for (_, node, desc) in file.tree().arrays().filter(|(_, n, _)| n.name.ends_with("_centred")) {
        let whole = file.array(node.path.strip_suffix("_centred").unwrap()).unwrap();
        let read = |part: &str| whole.read_f64(&part.parse().unwrap(), Axes::Stored).unwrap();
        let mine = file.array(&node.path).unwrap();
        let mine = mine.read_f64(&Selection::all(), Axes::Stored).unwrap();
        let lengths = desc.shape.lengths().iter().zip(whole.shape().lengths());
        let on: Vec<bool> = lengths.map(|(a, b)| a < b).collect();
        // The first cell is the mean of its corners.
        let corners: Vec<&str> = on.iter().map(|on| if *on { "0:2" } else { "0" }).collect();
        let corners = read(&corners.join(","));
        let mean = corners.iter().sum::<f64>() / corners.len() as f64;
        assert!((mine[0] - mean).abs() <= 1e-6 * mean.abs(), "{}: {} {mean}", node.path, mine[0]);
        averaged += 1;
    }
    assert!(averaged >= 3, "{averaged}");
}
