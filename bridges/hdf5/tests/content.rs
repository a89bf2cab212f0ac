//! Content of the golden files.

use std::path::{Path, PathBuf};

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::ErrorKind;
use spile_core::format::{Checker as _, OpenOptions, Region, write_file};
use spile_core::layout::{ArrayDesc, Coord, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::report::Severity;
use spile_core::select::Selection;
use spile_core::semantics::{Missing, Role};
use spile_core::shape::{Order, Shape};
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;
use spile_core::tree::{Node, ROOT, Tree, Value};
use spile_hdf5::{Hdf5, NetCdf, write_index};

fn path(name: &str) -> PathBuf {
    let folder = if name == "weather.nc" { "netcdf" } else { "hdf5" };
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(folder).join(name)
}

fn open(name: &str) -> Dataset {
    Dataset::open_path(&Hdf5, path(name), &OpenOptions::default()).unwrap()
}

fn node<'a>(file: &'a Dataset, path: &str) -> &'a Node {
    file.tree().node(file.tree().find(path).unwrap())
}

fn bytes(file: &Dataset, path: &str) -> Vec<u8> {
    file.array(path).unwrap().read_bytes(&Selection::all(), Axes::Order(Order::C)).unwrap()
}

fn attr(node: &Node, name: &str) -> Value {
    node.attrs.get(name).unwrap_or_else(|| panic!("no attribute {name}")).clone()
}

#[test]
fn attributes_of_every_type_are_decoded() {
    for version in ["old", "new"] {
        let file = open(&format!("attributes_{version}.h5"));
        let data = node(&file, "group/data");
        for of in [data, node(&file, "group")] {
            assert_eq!(attr(of, "units"), "m/s".into());
            assert_eq!(attr(of, "fixed"), "fixed text".into());
            assert_eq!(attr(of, "long text"), "ä".repeat(300).into());
            assert_eq!(attr(of, "one"), Value::Int(1));
            assert_eq!(attr(of, "pi"), Value::Float("3.14159".parse().unwrap()));
            assert_eq!(attr(of, "yes"), Value::Bool(true));
            assert_eq!(attr(of, "z"), Value::Complex(1.5, -2.0));
            let row = |r: [i64; 3]| Value::List(r.map(Value::Int).into());
            assert_eq!(attr(of, "numbers"), Value::List(vec![row([0, 1, 2]), row([3, 4, 5])]));
            let names = ["alpha", "beta", ""].map(Value::from);
            assert_eq!(attr(of, "names"), Value::List(names.into()));
            assert_eq!(attr(of, "nothing"), Value::List(Vec::new()));
        }
        // Scaling attributes are removed from the attributes.
        let map = data.array.as_ref().unwrap().map.unwrap();
        assert_eq!((map.intercept, map.slope), (-1.0, 0.5));
        assert!(!data.attrs.contains("scale_factor"));
    }
}

#[test]
fn links_and_attributes_in_fractal_heaps_are_found() {
    for (version, count) in [("old", 500), ("new", 5000)] {
        let file = open(&format!("many_{version}.h5"));
        assert_eq!(file.tree().len(), 40);
        assert!((0..40).all(|k| file.tree().find(&format!("group {k:02}")).is_ok()));
        let root = file.tree().attrs();
        assert_eq!(root.len(), 21);
        let Some(Value::List(huge)) = root.get("huge") else { panic!("{root:?}") };
        assert_eq!(huge.len(), count);
    }
}

#[test]
fn every_object_is_listed_once_and_cycles_end() {
    for version in ["old", "new"] {
        let file = open(&format!("links_{version}.h5"));
        let same = |path: &str| {
            matches!(node(&file, path).array.as_ref().unwrap().layout, Layout::Same(_))
        };
        let names = ["a/b/c/data", "a/again", "soft"];
        assert_eq!(names.iter().filter(|name| same(name)).count(), 2);
        assert!(names.iter().all(|name| bytes(&file, name) == bytes(&file, "soft")));
        let objects: Vec<&str> =
            file.warnings().iter().map(|f| f.object.as_deref().unwrap()).collect();
        assert_eq!(objects.len(), 3, "{objects:?}");
        // Only the external link hides data.
        let lost = file.warnings().iter().filter(|f| f.severity == Severity::Error);
        assert_eq!(lost.map(|f| f.object.as_deref()).collect::<Vec<_>>(), [Some("\"outside\"")]);
        let expected = ["\"a/circle\"", "\"dangling\"", "\"outside\""];
        assert!(expected.iter().all(|name| objects.contains(name)), "{objects:?}");
    }
}

#[test]
fn variable_length_strings_are_strings_and_numbers_are_items_and_sizes() {
    for version in ["old", "new"] {
        let file = open(&format!("text_{version}.h5"));
        let words = node(&file, "words").array.as_ref().unwrap();
        assert_eq!(
            (words.dtype.to_string(), words.shape.to_string()),
            ("text[8]".into(), "4".into())
        );
        assert_eq!(
            bytes(&file, "words"),
            "one\0\0\0\0\0\0\0\0\0\0\0\0\0three\0\0\0größer".as_bytes()
        );
        assert_eq!(bytes(&file, "word"), b"alone");
        assert_eq!(bytes(&file, "chunked words"), b"a\0bc");
        let lists = node(&file, "lists").array.as_ref().unwrap();
        assert_eq!(
            (lists.dtype.to_string(), lists.shape.to_string()),
            ("int16".into(), "4".into())
        );
        assert_eq!(bytes(&file, "lists"), [1, 0, 2, 0, 3, 0, 4, 0]);
        let sizes: Vec<u64> = file.array("lists.sizes").unwrap().read("").unwrap();
        assert_eq!(sizes, [3, 0, 1]);
    }
}

#[test]
fn compound_datasets_are_groups_of_columns() {
    for version in ["old", "new"] {
        let file = open(&format!("table_{version}.h5"));
        let ids: Vec<u8> = (0..4_i32).flat_map(i32::to_le_bytes).collect();
        assert_eq!(bytes(&file, "particles/id"), ids);
        let x: Vec<u8> = (1..=4).flat_map(|k| f64::from(k).to_le_bytes()).collect();
        assert_eq!(bytes(&file, "particles/x"), x);
        assert_eq!(bytes(&file, "particles/name"), b"abc\0\0".repeat(4));
        assert_eq!(bytes(&file, "one/x"), 3_f64.to_le_bytes());
    }
}

#[test]
fn scales_are_names_and_coordinates_of_dimensions() {
    for version in ["old", "new"] {
        let file = open(&format!("scales_{version}.h5"));
        let field = node(&file, "field").array.as_ref().unwrap();
        assert_eq!(field.dims, ["x", "y"]);
        let at = |path: &str| Coord::Node(file.tree().find(path).unwrap());
        assert_eq!(field.coords, [at("x"), at("grid/y")]);
        assert_eq!(field.semantics().role, Role::Field);
        assert_eq!(node(&file, "x").array.as_ref().unwrap().semantics().role, Role::Data);
        assert_eq!(node(&file, "labelled").array.as_ref().unwrap().dims, ["row", "dim2"]);
        assert!(node(&file, "x").attrs.is_empty(), "{:?}", node(&file, "x").attrs);
    }
    let file = Dataset::open_path(&NetCdf, path("weather.nc"), &OpenOptions::default()).unwrap();
    let t = node(&file, "t2m");
    let array = t.array.as_ref().unwrap();
    assert_eq!(array.dims, ["time", "lat", "lon"]);
    // The last dimension has no variable.
    assert_eq!(array.coords[2], Coord::None);
    assert!(array.map.is_some() && attr(t, "units") == "K".into());
    let station = node(&file, "station").array.as_ref().unwrap();
    assert_eq!(
        (station.dtype.to_string(), station.dims.clone()),
        ("text[6]".into(), vec!["lat".into()])
    );
    assert_eq!(attr(node(&file, "model"), "levels"), Value::List([0, 1, 2].map(Value::Int).into()));
}

#[test]
fn every_dataset_that_cannot_be_read_is_a_finding_and_hides_no_other() {
    for version in ["old", "new"] {
        let file = open(&format!("unsupported_{version}.h5"));
        let mut found: Vec<(&str, &str)> =
            file.warnings().iter().map(|f| (f.object.as_deref().unwrap(), f.code)).collect();
        found.sort_unstable();
        let expected = [
            ("\"external\"", "hdf5-013"),
            ("\"group link\"", "hdf5-020"),
            ("\"plugin\"", "hdf5-010"),
            ("\"time\"", "hdf5-023"),
            ("\"too many strings\"", "hdf5-015"),
        ];
        assert_eq!(found, expected);
        // Opaque bytes and links to groups are readable elsewhere.
        let noted = file.warnings().iter().filter(|f| f.severity != Severity::Error);
        let mut noted: Vec<_> = noted.map(|f| f.object.as_deref().unwrap()).collect();
        noted.sort_unstable();
        assert_eq!(noted, ["\"group link\"", "\"time\""]);
        let message = |object: &str| {
            let finding = file.warnings().iter().find(|f| f.object.as_deref() == Some(object));
            finding.unwrap().message.clone()
        };
        let error = file.array("external").err().unwrap();
        assert_eq!(error.message(), message("\"external\""));
        assert_eq!(message("\"plugin\""), "filter 32123 is not supported");
        let data: Vec<u8> = (0..64_i32).flat_map(i32::to_le_bytes).collect();
        // Links are followed through other links.
        for path in
            ["good", "group/inner", "link", "second link", "through", "virtual", "to virtual"]
        {
            assert_eq!(bytes(&file, path), data, "{path}");
        }
        assert_eq!(bytes(&file, "table/id"), [0; 8]);
        assert_eq!(bytes(&file, "szip"), data);
        assert_eq!(bytes(&file, "scaleoffset"), data);
        assert_eq!(bytes(&file, "reference"), b"/good");
    }
}

#[test]
fn a_damaged_object_header_hides_no_other_object() {
    let name = "types_new.h5";
    let good = std::fs::read(path(name)).unwrap();
    let file = open(name);
    let count = file.tree().arrays().count();
    let mut headers = Vec::new();
    let mut keep = |region: Region| {
        headers.extend((region.name == "object header").then_some(region.offset as usize));
        Ok(())
    };
    file.regions(&mut keep).unwrap();
    let mut skipped = 0;
    for at in headers {
        let mut bad = good.clone();
        bad[at + 8] ^= 1;
        // A damaged root group is an error.
        let Ok(file) = Dataset::open(&Hdf5, Source::memory(bad), &OpenOptions::default()) else {
            continue;
        };
        let [finding] = file.warnings() else { panic!("{:?}", file.warnings()) };
        assert_eq!(finding.code, "hdf5-006");
        let path = finding.object.as_deref().unwrap().trim_matches('"');
        assert!(file.tree().at(path).is_none(), "{path}");
        assert_eq!(file.tree().arrays().count(), count - 1, "{path}");
        skipped += 1;
    }
    assert_eq!(skipped, count);
}

#[test]
fn metadata_json_that_does_not_fit_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.h5");
    let content = open("compact.h5");
    write_file(&Hdf5, &content, &path, Overwrite::Never).unwrap();
    let file = without_metadata(&path);
    assert_eq!(file.warnings().iter().map(|f| f.code).collect::<Vec<_>>(), ["core-metadata"]);
    assert_eq!(bytes(&file, "compact"), bytes(&content, "compact"));
}

/// The file at `path` without the metadata JSON that only spile reads.
fn without_metadata(path: &Path) -> Dataset {
    let mut bytes = std::fs::read(path).unwrap();
    let version = b"{\"spile\":1";
    let at = bytes.windows(version.len()).position(|w| w == version).unwrap();
    bytes[at + version.len() - 1] = b'9';
    Dataset::open(&Hdf5, Source::memory(bytes), &OpenOptions::default()).unwrap()
}

#[test]
fn scaling_and_missing_values_are_attributes_for_other_programs() {
    let folder = tempfile::tempdir().unwrap();
    let mut tree = Tree::new(&Limits::default());
    let array = |dtype: DType, values: &[u8]| {
        let shape = Shape::new([(values.len() / dtype.size()) as u64]);
        ArrayDesc::new(dtype, shape, Layout::Inline(values.into(), Order::C))
    };
    let x = tree.add_array(ROOT, "x", array(DType::U8, &[1, 2, 3])).unwrap();
    let mut field = array(DType::I16, &[1, 0, 2, 0, 3, 0]);
    (field.dims, field.coords) = (vec!["x".into()], vec![Coord::Node(x)]);
    field.map = Some(Linear { intercept: 5.0, slope: 0.5, origin: 2.0 });
    let missing = Missing { values: vec![3.0], min: Some(2.0), max: None };
    field.semantics_mut().missing = missing.clone();
    let other = tree.add_array(ROOT, "other", field.clone()).unwrap();
    tree.push_attr(other, "_FillValue", Value::Int(1)).unwrap();
    tree.add_array(ROOT, "field", field).unwrap();
    let content = Dataset::new(Source::memory([]), tree);
    let path = folder.path().join("x.h5");
    write_file(&Hdf5, &content, &path, Overwrite::Never).unwrap();
    let file = without_metadata(&path);
    let values: Vec<f64> = file.array("field").unwrap().read("").unwrap();
    assert!(values[0].is_nan() && values[1] == 5.0 && values[2].is_nan(), "{values:?}");
    assert_eq!(node(&file, "field").array.as_ref().unwrap().dtype, DType::F64);
    let path = folder.path().join("x.nc");
    write_file(&NetCdf, &content, &path, Overwrite::Never).unwrap();
    let file = without_metadata(&path);
    let found = node(&file, "field").array.as_ref().unwrap();
    assert_eq!((found.map, found.semantics().role), (Some(Linear::new(4.0, 0.5)), Role::Field));
    assert_eq!(found.semantics().missing, missing);
    let attrs: Vec<_> = node(&file, "field").attrs.iter().map(|(name, _)| name).collect();
    assert_eq!(attrs, ["missing_value", "valid_min"]);
    let values: Vec<f64> = file.array("field").unwrap().read("").unwrap();
    assert!(values[0].is_nan() && values[1] == 5.0 && values[2].is_nan(), "{values:?}");
    // Attributes of the source are written instead of others.
    let found = node(&file, "other").array.as_ref().unwrap();
    assert_eq!(found.semantics().missing.values, [1.0]);
}

#[test]
fn links_keep_their_creation_order() {
    let file = open("tracked.h5");
    let names: Vec<_> = file.tree().iter().map(|(_, node)| node.name.as_str()).collect();
    assert_eq!(names, ["zebra", "apple", "mango"]);
    let attrs: Vec<_> = file.tree().attrs().iter().map(|(name, _)| name).collect();
    assert_eq!(attrs, ["zebra", "apple", "mango"]);
}

#[test]
fn an_index_needs_one_file_and_lists_skipped_arrays() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("index.h5");
    let sink = || Sink::create(&target, Overwrite::Replace).unwrap();
    let memory = std::fs::read(path("scales_new.h5")).unwrap();
    let file = Dataset::open(&Hdf5, Source::memory(memory), &OpenOptions::default()).unwrap();
    let error = write_index(&file, &mut sink()).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unsupported, "hdf5-031"));

    let file = open("scales_new.h5");
    let mut new = sink();
    let indexed = write_index(&file, &mut new).unwrap();
    new.commit().unwrap();
    assert_eq!((indexed.arrays, indexed.skipped.len()), (4, 0));
    // Reading external data is not supported.
    let report = Hdf5.check(&Source::open(&target).unwrap(), &Limits::default(), false).unwrap();
    assert!(report.findings.iter().all(|f| f.code == "hdf5-013") && report.findings.len() == 4);
}
