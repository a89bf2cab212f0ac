//! Everything that writing loses is declared before, and everything that is declared is lost.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use spile_core::dtype::DType;
use spile_core::format::{FormatWriter as _, Loss, LossKind, write_file};
use spile_core::layout::{ArrayDesc, Coord, Extents, Layout, Linear};
use spile_core::read::Coordinate;
use spile_core::semantics::{Centring, Component, Role, Semantics};
use spile_core::shape::{Order, Shape};
use spile_core::sink::Overwrite;
use spile_core::testkit::files;
use spile_core::tree::{Attrs, NodeId, ROOT, Tree, Value};
use spile_core::wire::ByteOrder;
use spile_core::{Dataset, Limits, OpenOptions, Source};
use spile_sdf::Sdf;

#[path = "support/blocks.rs"]
mod blocks;
#[path = "support/everything.rs"]
mod everything;
#[path = "support/opened.rs"]
mod opened;
#[allow(dead_code)] // This format adds attributes; its comparison is below.
#[path = "../../../tests/support/losses.rs"]
mod shared;

/// Path, what is lost, and the name of an attribute.
type Lost = (String, &'static str, String);

/// What is declared. An array that is not written and one with another name are both missing.
fn declared(losses: &[Loss]) -> BTreeSet<Lost> {
    let word = |loss: &Loss| match loss.kind {
        LossKind::Array | LossKind::Group | LossKind::Name => "missing",
        kind => kind.name(),
    };
    losses.iter().map(|l| (l.path.clone(), word(l), l.name.clone().unwrap_or_default())).collect()
}

/// What is not the same in the copy.
fn lost(content: &Dataset, copy: &Dataset) -> BTreeSet<Lost> {
    let mut found = BTreeSet::new();
    let mut add = |path: &str, what, name: &str| found.insert((path.into(), what, name.into()));
    let number = |value: &Value| i64::try_from(value).ok();
    let same = |a: &Value, b: &Value| a == b || (number(a).is_some() && number(a) == number(b));
    if content.tree().frames().is_some() {
        add("", "frames", "");
    }
    let nodes = std::iter::once((ROOT, content.tree().node(ROOT))).chain(content.tree().iter());
    for (id, node) in nodes {
        let path = node.path.as_str();
        let Some(other) = copy.tree().at(path) else {
            add(path, "missing", "");
            continue;
        };
        for (name, value) in &node.attrs {
            let kept =
                copy.tree().node(other).attrs.iter().any(|(n, v)| n == name && same(value, v));
            if !kept {
                add(path, "attribute", name);
            }
        }
        let (Some(old), Some(new)) = (&node.array, &copy.tree().node(other).array) else {
            continue;
        };
        let (a, b) = (content.array_at(id).unwrap(), copy.array_at(other).unwrap());
        let mut differs = |what, differs: bool| {
            if differs {
                add(path, what, "");
            }
        };
        let little = |dtype: DType| dtype.with_order(ByteOrder::Little);
        differs("type", little(old.dtype) != little(b.dtype()));
        differs("shape", old.shape != *b.shape());
        let named = old.dims != ArrayDesc::default_dims(old.dims.len());
        differs("dimensions", named && old.dims != new.dims);
        let points = |array: &spile_core::Array, k| {
            array.coord_at(k).ok().filter(Coordinate::is_known).map(|c| c.read().unwrap())
        };
        let moved = |k| points(&a, k).is_some() && points(&a, k) != points(&b, k);
        differs("coordinates", (0..old.dims.len()).any(moved));
        let scaled = |array: &spile_core::Array| array.map().unwrap_or(Linear::new(0.0, 1.0));
        differs("scaling", scaled(&a) != scaled(&b));
        let (x, y) = (old.semantics(), new.semantics());
        let mesh = |dataset: &Dataset, id: Option<NodeId>| {
            id.map(|id| dataset.tree().node(id).path.clone())
        };
        let mut meaning = x.role != Role::Data && x.role != y.role;
        meaning |= x.mesh.is_some() && mesh(content, x.mesh) != mesh(copy, y.mesh);
        meaning |= x.centring.is_some() && x.centring != y.centring;
        meaning |= x.component.is_some() && x.component != y.component;
        meaning |= x.point_set.is_some() && x.point_set != y.point_set;
        meaning |= !x.missing.is_none() && x.missing != y.missing;
        differs("meaning", meaning);
    }
    found
}

fn compare(content: &Dataset, name: &str) -> Vec<Loss> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.sdf");
    let losses = Sdf.losses(content, &path).unwrap();
    assert!(!path.exists());
    assert_eq!(write_file(&Sdf, content, &path, Overwrite::Never).unwrap(), []);
    let copy = Dataset::open_path(&Sdf, &path, &OpenOptions::default()).unwrap();
    assert_eq!(declared(&losses), lost(content, &copy), "{name}");
    losses
}

fn golden() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/sdf");
    files(folder)
}

#[test]
fn sdf_files_are_written_without_loss() {
    let mut count = 0;
    for path in golden() {
        let opened = Dataset::open_path(&Sdf, &path, &OpenOptions::default());
        let Ok(content) = opened else { continue };
        assert_eq!(compare(&content, &path.display().to_string()), [], "{}", path.display());
        count += 1;
    }
    assert!(count >= 26, "{count}");
    let folder = tempfile::tempdir().unwrap();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let path = folder.path().join(format!("{order:?}.sdf"));
        everything::everything(&path, &everything::header(4, order));
        let content = Dataset::open_path(&Sdf, &path, &OpenOptions::default()).unwrap();
        assert_eq!(compare(&content, "all block types"), []);
    }
}

#[test]
fn computed_arrays_are_declared_as_lost() {
    let path = golden().into_iter().find(|p| p.ends_with("epoch2d_restart_cpml_deck.sdf")).unwrap();
    let content = opened::derived(&path, Limits::default());
    let losses = compare(&content, "derived");
    assert!(losses.iter().any(|loss| loss.path == "CPUs/Original rank_map"));
    assert!(losses.iter().all(|loss| loss.path != "Grid/Grid/X_mid"));
}

#[test]
fn datasets_of_every_kind_lose_what_is_declared_or_fail_as_planned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sdf");
    let mut failed = 0;
    for (k, content) in shared::samples().iter().enumerate() {
        let Err(planned) = Sdf.losses(content, &path) else {
            compare(content, &k.to_string());
            continue;
        };
        let written = write_file(&Sdf, content, &path, Overwrite::Never).unwrap_err();
        assert_eq!((planned.code(), planned.to_string()), (written.code(), written.to_string()));
        failed += 1;
    }
    // A scaling with an offset, and three with arrays per frame.
    assert_eq!(failed, 4);
}

/// Everything that SDF has no place for.
#[test]
fn foreign_content_loses_what_is_declared() {
    let mut tree = Tree::new(&Limits::default());
    tree.set_attrs(
        ROOT,
        Attrs::from([("step", 7_u64.into()), ("title", "run".into()), ("time", 0.5.into())]),
    )
    .unwrap();
    let inline = |dtype: DType, shape: &[u64]| {
        let shape = Shape::new(shape);
        let bytes = vec![1; shape.bytes(dtype.size()).unwrap() as usize];
        ArrayDesc::new(dtype, shape, Layout::Inline(bytes.into(), Order::C))
    };
    let group = tree.add_group(ROOT, "group").unwrap();
    tree.push_attr(group, "purpose", "test").unwrap();
    tree.add_group(ROOT, "empty").unwrap();
    let grid = tree.add_group(ROOT, "grid").unwrap();
    let time = tree.add_array(grid, "time", inline(DType::F64, &[4])).unwrap();

    let mut field = inline(DType::F32, &[4, 3]);
    field.dims = vec!["t".into(), "x".into()];
    field.coords = vec![Coord::Node(time), Coord::Uniform { start: 1.0, step: 0.5 }];
    field.map = Some(Linear::new(0.0, 2.0));
    let semantics = field.semantics_mut();
    (semantics.role, semantics.mesh) = (Role::Field, Some(grid));
    semantics.centring = Some(Centring::Cell);
    semantics.component = Some(Component { vector: "E".into(), index: 0 });
    let field = tree.add_array(group, "Ex", field).unwrap();
    let attrs = [("units", "V/m".into()), ("long_name", "field".into())];
    tree.set_attrs(field, Attrs::from(attrs)).unwrap();

    let mut missing = inline(DType::I16, &[4]);
    missing.dims = vec!["sample".into()];
    missing.semantics_mut().missing.values = vec![-1.0];
    tree.add_array(group, "samples", missing).unwrap();
    let mut nodes = inline(DType::F64, &[4]).with_semantics(Semantics::role(Role::Field));
    nodes.coords = vec![Coord::Node(time)];
    tree.add_array(ROOT, "on nodes", nodes).unwrap();
    tree.add_array(ROOT, " spaces ", inline(DType::F64, &[2])).unwrap();
    tree.add_array(ROOT, "constant", inline(DType::I32, &[])).unwrap();
    tree.add_array(ROOT, "bytes", inline(DType::opaque(1), &[5])).unwrap();
    let mut unscaled = inline(DType::F64, &[2]);
    unscaled.map = Some(Linear::new(0.0, 0.0));
    tree.add_array(ROOT, "zero", unscaled).unwrap();
    let labels = tree.add_array(ROOT, "labels", inline(DType::text(3), &[2])).unwrap();
    // Labels have no place for coordinates.
    let uniform = vec![Coord::Uniform { start: 0.0, step: 1.0 }];
    tree.node_mut(labels).array.as_mut().unwrap().coords = uniform;
    let starts = [0_u64, 2, 5];
    let data = Extents::one(0, 5);
    let ragged = Layout::Ragged { starts: starts.to_vec().into(), data };
    let ragged = ArrayDesc::new(DType::opaque(1), Shape::new([2]), ragged);
    tree.add_array(ROOT, "ragged", ragged).unwrap();
    let parent = tree.add_array(ROOT, "n", inline(DType::F64, &[2])).unwrap();
    tree.add_array(parent, "electron", inline(DType::F64, &[2])).unwrap();

    let content = Dataset::new(Source::memory([9; 16]), tree);
    let losses = compare(&content, "foreign");
    let has = |path: &str, kind| losses.iter().any(|l| l.path == path && l.kind == kind);
    assert!(has("empty", LossKind::Group) && has("group", LossKind::Attribute));
    assert!(has("group/samples", LossKind::Type) && has("group/samples", LossKind::Meaning));
    assert!(has("group/Ex", LossKind::Meaning) && !has("group/Ex", LossKind::Scaling));
    assert!(has("zero", LossKind::Scaling) && has("labels", LossKind::Coordinates));
    assert!(has(" spaces ", LossKind::Name) && !has("n/electron", LossKind::Name));
    assert!(!has("on nodes", LossKind::Meaning) && !has("on nodes", LossKind::Coordinates));
    let root: Vec<_> = losses.iter().filter(|l| l.path.is_empty()).collect();
    assert!(matches!(root[..], [one] if one.name.as_deref() == Some("title")), "{root:?}");
}

#[test]
fn planning_reads_no_values() {
    // The bytes do not exist.
    let mut tree = Tree::new(&Limits::default());
    let layout = Layout::Plain { extents: Extents::one(0, 800), order: Order::C };
    let points = ArrayDesc::new(DType::F64, Shape::new([100]), layout.clone());
    let axis = tree.add_array(ROOT, "x", points).unwrap();
    let mut values = ArrayDesc::new(DType::F64, Shape::new([100]), layout.clone());
    values.coords = vec![Coord::Node(axis)];
    tree.add_array(ROOT, "values", values).unwrap();
    tree.add_array(ROOT, "one", ArrayDesc::new(DType::F64, Shape::scalar(), layout)).unwrap();
    let content = Dataset::new(Source::memory([]), tree);
    assert_eq!(Sdf.losses(&content, Path::new("x.sdf")).unwrap(), []);
}
