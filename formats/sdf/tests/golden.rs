//! The golden files, compared block by block with their manifest.

use std::path::PathBuf;

use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use spile_core::Dataset;
use spile_core::error::ErrorKind;
use spile_core::layout::Coord;
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::report::Severity;
use spile_core::select::Selection;
use spile_core::source::Source;
use spile_core::testkit::{assert_same_content, manifest};
use spile_core::tree::Value;
use spile_core::wire::ByteOrder;
use spile_sdf::{Block, Meta};

#[path = "support/opened.rs"]
mod opened;
use opened::{Opened, check, derived};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/sdf")
}

fn files() -> Vec<(String, Json)> {
    let all = manifest(folder().join("manifest.json"));
    let files = all["files"].as_array().unwrap();
    files.iter().map(|f| (f["file"].as_str().unwrap().to_string(), f.clone())).collect()
}

fn open(name: &str) -> Opened {
    Opened::open(folder().join(name)).unwrap_or_else(|e| panic!("{e}"))
}

fn codes(name: &str, strict: bool) -> Vec<(&'static str, String)> {
    let source = Source::open(folder().join(name)).unwrap();
    let report = check(&source, strict);
    report.findings.iter().map(|f| (f.code, f.object.clone().unwrap_or_default())).collect()
}

/// Files that a reader must refuse: kind, code and offset of the error.
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

fn strings(json: &Json) -> Vec<&str> {
    json.as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect()
}

fn numbers(json: &Json) -> Vec<f64> {
    json.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn counts(json: &Json) -> Vec<u64> {
    json.as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect()
}

#[test]
fn every_good_file_matches_the_manifest() {
    let mut blocks = 0;
    for (name, want) in good() {
        let file = open(&name);
        let (header, expected) = (file.header(), &want["header"]);
        let big = expected["endian"] == "big";
        assert_eq!(header.order == ByteOrder::Big, big, "{name}");
        assert_eq!(header.code_name, expected["code_name"], "{name}");
        assert_eq!(i64::from(header.revision), expected["revision"], "{name}");
        assert_eq!(i64::from(header.step), expected["step"], "{name}");
        assert_eq!(header.time, expected["time"].as_f64().unwrap(), "{name}");
        let jobid = (i64::from(header.jobid.0), i64::from(header.jobid.1));
        assert_eq!(
            jobid,
            (expected["jobid1"].as_i64().unwrap(), expected["jobid2"].as_i64().unwrap())
        );
        assert_eq!(header.string_length, expected["string_length"], "{name}");
        assert_eq!(header.block_header_length, expected["block_header_length"], "{name}");
        assert_eq!(i64::from(header.code_io_version), expected["code_io_version"], "{name}");
        assert_eq!(header.restart, expected["restart_flag"] == 1, "{name}");
        assert_eq!(header.station, expected["station_file"] == 1, "{name}");
        let expected = want["blocks"].as_array().unwrap();
        assert_eq!(file.blocks().len(), expected.len(), "{name}");
        for (block, want) in file.blocks().iter().zip(expected) {
            compare(&file, block, want, &format!("{name} {}", want["id"]));
            blocks += 1;
        }
    }
    assert!(blocks > 1000, "{blocks}");
}

fn compare(file: &Opened, block: &Block, want: &Json, context: &str) {
    let header = &block.header;
    assert_eq!(header.id, want["id"], "{context}");
    assert_eq!(header.name, want["name"], "{context}");
    assert_eq!(header.ndims, want["ndims"], "{context}");
    assert_eq!(header.data_location, want["data_location"], "{context}");
    assert_eq!(header.data_length, want["data_length"], "{context}");
    assert_eq!(block.kind().name(), want["blocktype_name"], "{context}");
    assert_eq!(header.datatype.name(), want["datatype_name"], "{context}");
    if let Some(length) = header.info_length {
        assert_eq!(length, want["info_length"], "{context}");
    }
    match &block.meta {
        Meta::Mesh(mesh) => {
            assert_eq!(mesh.mults, numbers(&want["mults"]), "{context}");
            assert_eq!(mesh.labels, strings(&want["labels"]), "{context}");
            assert_eq!(mesh.units, strings(&want["units"]), "{context}");
            assert_eq!(i64::from(mesh.geometry), want["geometry"], "{context}");
            assert_eq!(mesh.minval, numbers(&want["minval"]), "{context}");
            assert_eq!(mesh.maxval, numbers(&want["maxval"]), "{context}");
            assert_eq!(mesh.dims, counts(&want["dims"]), "{context}");
        }
        Meta::PointMesh(points) => {
            assert_eq!(points.mesh.labels, strings(&want["labels"]), "{context}");
            assert_eq!(points.mesh.minval, numbers(&want["minval"]), "{context}");
            assert_eq!(points.np, want["npoints"], "{context}");
            assert_eq!(points.species_id, want["species_id"].as_str().unwrap_or(""), "{context}");
        }
        Meta::PlainVariable(v) => {
            assert_eq!(v.mult, want["mult"].as_f64().unwrap(), "{context}");
            assert_eq!(v.units, want["units"], "{context}");
            assert_eq!(v.mesh_id, want["mesh_id"], "{context}");
            assert_eq!(v.dims, counts(&want["dims"]), "{context}");
            assert_eq!(i64::from(v.stagger), want["stagger"], "{context}");
        }
        Meta::PointVariable(v) => {
            assert_eq!(v.mult, want["mult"].as_f64().unwrap(), "{context}");
            assert_eq!(v.units, want["units"], "{context}");
            assert_eq!(v.mesh_id, want["mesh_id"], "{context}");
            assert_eq!(v.np, want["npoints"], "{context}");
            assert_eq!(v.species_id, want["species_id"].as_str().unwrap_or(""), "{context}");
        }
        Meta::Array(dims) => assert_eq!(*dims, counts(&want["dims"]), "{context}"),
        Meta::CpuSplit { split_type, dims } => {
            assert_eq!(i64::from(*split_type), want["split_type"], "{context}");
            assert_eq!(*dims, counts(&want["dims"]), "{context}");
        }
        Meta::RunInfo(info) => {
            assert_eq!(i64::from(info.code_version), want["code_version"], "{context}");
            assert_eq!(info.commit_id, want["commit_id"], "{context}");
            assert_eq!(info.compile_flags, want["compile_flags"], "{context}");
            assert_eq!(info.defines, want["defines"], "{context}");
            assert_eq!(i64::from(info.io_date), want["io_date"], "{context}");
            assert_eq!(i64::from(info.minor_rev), want["minor_rev"].as_i64().unwrap_or(0));
        }
        Meta::Stitched(group) => {
            let ids = want["variable_ids"].as_array().map(|_| strings(&want["variable_ids"]));
            assert_eq!(group.ids, ids.unwrap_or_default(), "{context}");
            assert_eq!(i64::from(group.stagger), want["stagger"], "{context}");
            let mesh = want["mesh_id"].as_str().or(want["obstacle_id"].as_str());
            assert_eq!(group.mesh_id, mesh.unwrap(), "{context}");
            let material = want["material_id"].as_str().or(want["vfm_id"].as_str());
            assert_eq!(group.material_id, material.unwrap_or(""), "{context}");
            assert_eq!(group.material_name, want["material_name"].as_str().unwrap_or(""));
            for names in ["material_names", "species_names", "obstacle_names"] {
                if want[names].is_array() {
                    assert_eq!(group.names, strings(&want[names]), "{context}");
                }
            }
        }
        Meta::Station(s) => {
            assert_eq!((s.nelements, s.entry_len), (10, 32));
            assert_eq!(s.station_ids, strings(&want["station_ids"]));
            assert_eq!(s.station_x0, numbers(&want["station_x0"]));
            assert_eq!(s.station_nvars, counts(&want["station_nvars"]));
            assert_eq!(s.variable_names, strings(&want["variable_names"]));
            assert_eq!(s.variable_units, strings(&want["variable_units"]));
        }
        Meta::Datablock { mimetype, checksum_type, checksum } => {
            assert_eq!(mimetype, want["mimetype"].as_str().unwrap(), "{context}");
            assert_eq!(checksum_type, want["checksum_type"].as_str().unwrap(), "{context}");
            assert_eq!(checksum, want["checksum"].as_str().unwrap(), "{context}");
        }
        Meta::NameValue { names, values } => {
            assert_eq!(*names, strings(&want["names"]), "{context}");
            for (value, want) in values.iter().zip(want["values"].as_array().unwrap()) {
                let same = match value {
                    Value::Int(v) => want == v,
                    Value::Float(v) => want.as_f64() == Some(*v),
                    Value::Bool(v) => want == i32::from(*v),
                    Value::Text(v) => want == v,
                    other => panic!("{context}: {other:?}"),
                };
                assert!(same, "{context}: {value:?} {want}");
            }
        }
        Meta::Constant(_) | Meta::Source => {}
        Meta::Other(_) => panic!("{context}: unknown metadata"),
    }
    if let Some(sum) = want["sha256"].as_str() {
        let raw = file.raw(block).unwrap().read_bytes(&Selection::all(), Axes::Stored).unwrap();
        assert_eq!(raw.len() as u64, want["nbytes"], "{context}");
        assert_eq!(hex(&Sha256::digest(&raw)), sum, "{context}");
    }
}

#[test]
fn every_bad_file_gives_the_right_error_at_the_right_byte() {
    for (name, kind, code, offset) in BAD {
        let path = folder().join(name);
        let error = Opened::open(&path).err().unwrap();
        let got = (error.kind(), error.code(), error.offset());
        assert_eq!(got, (kind, code, Some(offset)), "{name}: {error}");
        assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
        assert!(error.suggestion().is_some(), "{name}");
        let source = Source::open(&path).unwrap();
        let report = check(&source, false);
        assert_eq!(report.worst(), Some(Severity::Error), "{name}");
        assert_eq!(report.findings[0].code, code, "{name}");
    }
    let failed = Opened::open(folder().join("hand_nblocks_minus.sdf"));
    assert!(failed.err().unwrap().message().contains("block 3, error 43"));
}

#[test]
fn byte_order_does_not_change_the_content() {
    assert_same_content(&open("hand_bigendian_all.sdf"), &open("hand_littleendian_all.sdf"));
}

#[test]
fn check_reports_known_defects_of_writers() {
    let findings = codes("drv_all_blocks.sdf", false);
    let has = |code: &str, object: &str| {
        assert!(
            findings.iter().any(|(c, o)| *c == code && o.contains(object)),
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
    // EPOCH dumps have no findings; only strict mode notes that staggered fields are one point short.
    for name in ["epoch1d_normal_0003.sdf", "epoch2d_restart_cpml_deck.sdf", "epoch3d_0001.sdf"] {
        assert_eq!(codes(name, false), [], "{name}");
        assert!(codes(name, true).iter().all(|f| f.0 == "sdf-045"), "{name}");
        assert!(!codes(name, true).is_empty(), "{name}");
    }
}

/// Paths of the coordinates of an array.
fn coordinates(file: &Dataset, path: &str) -> Vec<String> {
    let tree = file.tree();
    let array = tree.node(tree.find(path).unwrap()).array.as_ref().unwrap();
    let path = |coord: &Coord| match coord {
        Coord::Node(id) => tree.node(*id).path.clone(),
        other => panic!("{path}: {other:?}"),
    };
    array.coords.iter().map(path).collect()
}

#[test]
fn a_field_has_units_and_the_cell_centres_as_coordinates() {
    let file = open("epoch3d_0000.sdf");
    let tree = file.tree();
    let node = tree.node(tree.find("Electric Field/Ey").unwrap());
    assert_eq!(node.id.as_deref(), Some("ey"));
    assert_eq!(node.attrs.get_str("units"), Some("V/m"));
    // Staggered along y, which does not change the coordinates.
    assert_eq!(node.attrs.get_i64("stagger"), Some(2));
    let array = node.array.as_ref().unwrap();
    assert_eq!(array.dims, ["X", "Y", "Z"]);
    let centres = ["Grid/Grid/X_mid", "Grid/Grid/Y_mid", "Grid/Grid/Z_mid"];
    assert_eq!(coordinates(&file, "Electric Field/Ey"), centres);
    let read =
        |path: &str| file.array(path).unwrap().read_f64(&Selection::all(), Axes::Stored).unwrap();
    let (nodes, mid) = (read("Grid/Grid/X"), read("Grid/Grid/X_mid"));
    assert_eq!(mid.len() + 1, nodes.len());
    assert!(mid.iter().zip(nodes.windows(2)).all(|(m, w)| *m == 0.5 * (w[0] + w[1])));
    assert!(tree.find("Grid/Grid/Y_face").is_err());
}

/// Dump, variable, dimensions of sdf-xarray, first and last coordinate of each.
type Case = (&'static str, &'static str, &'static [&'static str], Vec<(f64, f64)>);

/// First and last coordinate of every dimension, as `xarray.open_dataset` shows them with sdf-xarray
/// 0.9.0 (`ds[name][dim][[0, -1]]`).
#[test]
fn coordinates_are_those_of_sdf_xarray() {
    let x1 = (-3.9375e-06, 3.9375e-06);
    let (x2, y2) = ((-5.375e-06, 5.374_999_999_999_999e-06), (-4.375e-06, 4.375e-06));
    let x3 = (-3.666_666_666_666_666_6e-06, 3.666_666_666_666_666e-06);
    let (y3, z3) = ((-2.7e-06, 2.7e-06), (-1.75e-06, 1.75e-06));
    let (d1, d2, d3) =
        ("epoch1d_normal_0003.sdf", "epoch2d_restart_cpml_deck.sdf", "epoch3d_0000.sdf");
    let cases: [Case; 9] = [
        (d1, "Electric Field/Ex", &["X_Grid_mid"], vec![x1]),
        (d1, "Magnetic Field/By", &["X_Grid_mid"], vec![x1]),
        (d1, "Derived/Charge_Density", &["X_Grid_mid"], vec![x1]),
        // As long as the nodes.
        (
            d1,
            "dist_fn/x_px/electron",
            &["X_x_px_electron", "Px_x_px_electron"],
            vec![x1, (-9.5e-23, 9.5e-23)],
        ),
        (d2, "Electric Field/Ex", &["X_Grid_mid", "Y_Grid_mid"], vec![x2, y2]),
        (d2, "Electric Field/Ey", &["X_Grid_mid", "Y_Grid_mid"], vec![x2, y2]),
        (d2, "Magnetic Field/Bz", &["X_Grid_mid", "Y_Grid_mid"], vec![x2, y2]),
        (d3, "Electric Field/Ez", &["X_Grid_mid", "Y_Grid_mid", "Z_Grid_mid"], vec![x3, y3, z3]),
        (d3, "Magnetic Field/Bz", &["X_Grid_mid", "Y_Grid_mid", "Z_Grid_mid"], vec![x3, y3, z3]),
    ];
    for (dump, name, dims, ends) in cases {
        let file = open(dump);
        let paths = coordinates(&file, name);
        // sdf-xarray: the label, then the name of the mesh without its first group; our paths have
        // the label last.
        let theirs: Vec<String> = paths
            .iter()
            .map(|path| {
                let (mesh, label) = path.rsplit_once('/').unwrap();
                let (label, mid) = label.strip_suffix("_mid").map_or((label, ""), |l| (l, "_mid"));
                let (_, mesh) = mesh.split_once('/').unwrap();
                format!("{label}_{mesh}{mid}").replace('/', "_")
            })
            .collect();
        assert_eq!(theirs, dims, "{dump} {name}");
        for (path, (first, last)) in paths.iter().zip(&ends) {
            let points = file.array(path).unwrap();
            let points = points.read_f64(&Selection::all(), Axes::Stored).unwrap();
            let near =
                |found: f64, expected: f64| (found - expected).abs() <= 1e-15 * expected.abs();
            let (a, b) = (points[0], points[points.len() - 1]);
            assert!(near(a, *first) && near(b, *last), "{dump} {name} {path}: {a} {b}");
        }
    }
}

#[test]
fn true_positions_of_staggered_fields_are_computed_on_request() {
    let file = derived(&folder().join("epoch2d_restart_cpml_deck.sdf"), Limits::default());
    let read =
        |path: &str| file.array(path).unwrap().read_f64(&Selection::all(), Axes::Stored).unwrap();
    for axis in ["X", "Y"] {
        let (nodes, faces) = (read(&format!("Grid/Grid/{axis}")), format!("Grid/Grid/{axis}_face"));
        assert_eq!(read(&faces), nodes[1..], "{axis}");
    }
    let faces = file.tree().node(file.tree().find("Grid/Grid/X_face").unwrap());
    assert_eq!(faces.attrs.get_str("derived"), Some("upper faces of the cells"));
    assert_eq!(faces.attrs.get_str("units"), Some("m"));
    // They do not replace the coordinates.
    assert_eq!(coordinates(&file, "ex"), ["Grid/Grid/X_mid", "Grid/Grid/Y_mid"]);
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
    // The identifier was truncated, in lower case in one block and in upper case in the other.
    assert_eq!(dims("px/carbon_ions_with_a_long_name"), want);
}

#[test]
fn a_normalisation_factor_is_a_linear_scaling() {
    let file = open("drv_all_blocks.sdf");
    let stored = file.raw(file.find("grid2").next().unwrap()).unwrap();
    let stored = stored.read_f64(&Selection::all(), Axes::Stored).unwrap();
    let scaled = file.array("Grid/2d/R").unwrap();
    let scaled = scaled.read_f64(&Selection::all(), Axes::Stored).unwrap();
    assert!(scaled.iter().zip(&stored).all(|(a, b)| *a == 0.0 + 0.001 * b));
    assert_ne!(scaled[0], stored[0]);
}

#[test]
fn stitched_blocks_refer_to_their_members() {
    let file = open("drv_all_blocks.sdf");
    let tree = file.tree();
    let read =
        |path: &str| file.array(path).unwrap().read_bytes(&Selection::all(), Axes::Stored).unwrap();
    let part = tree.node(tree.find("v3_r8").unwrap());
    assert_eq!(read(&format!("Stitched tensor/{}", part.name)), read("v3_r8"));
    // The members of a contiguous block are inside its data and have paths in its group.
    let owner = file.find("cmat").next().unwrap();
    let all = file.raw(owner).unwrap().read_bytes(&Selection::all(), Axes::Stored).unwrap();
    let parts = [read("CMaterial/Steel"), read("CMaterial/Water")].concat();
    assert_eq!(parts, all);
    assert!(tree.find("CMaterial/Steel~2").is_err());
}

#[test]
fn stations_are_tables() {
    let file = open("drv_station.sdf");
    let read =
        |path: &str| file.array(path).unwrap().read_f64(&Selection::all(), Axes::Stored).unwrap();
    let rows =
        file.raw(&file.blocks()[0]).unwrap().read_bytes(&Selection::all(), Axes::Stored).unwrap();
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
fn an_array_below_another_array_is_found_by_the_name_of_its_block() {
    // The reduced field is stored before the field, the densities of the species after the total.
    let file = open("epoch1d_single_subsets_0002.sdf");
    let names = [
        ("Electric Field/Ey", "ey"),
        ("Electric Field/Ey/Reduced_r_skip", "ey/r_r_skip"),
        ("Derived/Number_Density", "number_density"),
        ("Derived/Number_Density/electron", "number_density/electron"),
        ("Derived/Number_Density/proton", "number_density/proton"),
    ];
    let tree = file.tree();
    for (name, id) in names {
        let node = tree.node(tree.find(name).unwrap());
        assert_eq!((node.path.as_str(), node.id.as_deref()), (name, Some(id)));
        let block = file.find(id).next().unwrap();
        let read = |array: Array| array.read_bytes(&Selection::all(), Axes::Stored).unwrap();
        assert_eq!(read(file.array(name).unwrap()), read(file.raw(block).unwrap()), "{name}");
    }
    assert!(tree.iter().all(|(_, node)| !node.path.contains('~')));
}

#[test]
fn derived_arrays_are_added_on_request() {
    let path = folder().join("epoch2d_restart_cpml_deck.sdf");
    let derived = |path: &PathBuf| derived(path, Limits::default());
    let file = derived(&path);
    assert!(open("epoch2d_restart_cpml_deck.sdf").tree().find("CPUs/Original rank_map").is_err());
    let read =
        |path: &str| file.array(path).unwrap().read_f64(&Selection::all(), Axes::Stored).unwrap();
    // Four ranks along y.
    let map = file.array("CPUs/Original rank_map").unwrap();
    assert_eq!(map.shape().lengths(), [1, 4]);
    assert_eq!(read("CPUs/Original rank_map"), [0.0, 1.0, 2.0, 3.0]);
    let (split, nodes) = (read("cpu_rank"), read("Grid/Grid/Y"));
    let mut boundaries: Vec<f64> = split.iter().map(|node| nodes[*node as usize]).collect();
    boundaries.insert(0, nodes[0]);
    boundaries.push(nodes[nodes.len() - 1]);
    assert_eq!(read("CPUs/Original rank_grid/Y"), boundaries);
    assert_eq!(read("CPUs/Original rank_grid/Y_mid")[3], 0.5 * (boundaries[3] + boundaries[4]));
    assert_eq!(read("CPUs/Original rank_grid/X").len(), 2);

    let file = derived(&folder().join("drv_all_blocks.sdf"));
    let mut averaged = 0;
    for (_, node, desc) in file.tree().arrays().filter(|(_, n, _)| n.name.ends_with("_centred")) {
        let field = file.array(node.path.strip_suffix("_centred").unwrap()).unwrap();
        let read = |part: &str| field.read_f64(&part.parse().unwrap(), Axes::Stored).unwrap();
        let centred = file.array(&node.path).unwrap();
        let centred = centred.read_f64(&Selection::all(), Axes::Stored).unwrap();
        let lengths = desc.shape.lengths().iter().zip(field.shape().lengths());
        let on: Vec<bool> = lengths.map(|(a, b)| a < b).collect();
        // The first cell is the mean of its corners.
        let corners: Vec<&str> = on.iter().map(|on| if *on { "0:2" } else { "0" }).collect();
        let corners = read(&corners.join(","));
        let mean = corners.iter().sum::<f64>() / corners.len() as f64;
        let error = (centred[0] - mean).abs();
        assert!(error <= 1e-6 * mean.abs(), "{}: {} {mean}", node.path, centred[0]);
        averaged += 1;
    }
    assert!(averaged >= 3, "{averaged}");
}
