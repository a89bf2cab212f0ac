//! Compares the declared losses of a writer with what arrives in the written file.

use std::path::Path;
use std::sync::Arc;

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::format::{
    Format, Loss, LossKind, OpenOptions, WriteOptions, write_file, writer_of,
};
use spile_core::frames::{Cells, FrameCell, Moments};
use spile_core::layout::{ArrayDesc, Coord, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::semantics::{Centring, Role, Semantics};
use spile_core::shape::{Order, Shape};
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_core::testkit::differences;
use spile_core::tree::{Attrs, NodeId, ROOT, Tree};
use spile_interchange::midpoints::midpoints;

/// Writes `content` as a file called `name` and reads it back. Every difference must be a declared loss
/// and every declared loss a difference. Where the content cannot be written, planning and writing must
/// fail with the same error.
///
/// # Panics
/// If they do not agree.
pub(crate) fn assert_losses_are_declared(format: &dyn Format, content: &Dataset, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let options = WriteOptions::default();
    let planned = writer_of(format).unwrap().losses(format, content, &path, &options);
    assert!(!path.exists(), "planning creates no file");
    let written = write_file(format, content, &path, Overwrite::Never);
    let (mut losses, found) = match (planned, written) {
        (Ok(losses), Ok(found)) => (losses, found),
        (Err(planned), Err(written)) => {
            assert_eq!((planned.message(), planned.code()), (written.message(), written.code()));
            return;
        }
        (planned, written) => panic!("{name}: planned {planned:?}, written {written:?}"),
    };
    losses.extend(found);
    let back = Dataset::open_path(format, &path, &OpenOptions::default()).unwrap();
    let differences = differences(content, &back).unwrap();
    let undeclared: Vec<_> =
        differences.iter().filter(|d| !is_declared(content, &back, d, &losses)).collect();
    let kept: Vec<_> = losses.iter().filter(|loss| is_kept(content, &back, loss)).collect();
    let agree = undeclared.is_empty() && kept.is_empty();
    assert!(
        agree,
        "{name}: not declared {undeclared:#?}\ndeclared and kept {kept:#?}\n{losses:#?}"
    );
}

/// The parts of a difference: path and description.
fn parts(difference: &str) -> (&str, &str) {
    match difference.split_once(": ") {
        Some(("the file", what)) => ("", what),
        Some(parts) => parts,
        None => ("", "frames"),
    }
}

/// The array at `path` in both datasets.
fn both(content: &Dataset, back: &Dataset, path: &str) -> Option<(ArrayDesc, ArrayDesc)> {
    let find = |dataset: &Dataset| {
        dataset.tree().at(path).and_then(|id| dataset.tree().node(id).array.clone())
    };
    find(content).zip(find(back))
}

/// Whether only dimensions without a name got one.
fn only_names_dimensions(a: &ArrayDesc, b: &ArrayDesc) -> bool {
    let unnamed = ArrayDesc::default_dims(a.dims.len());
    let same = |k: usize| a.dims[k] == b.dims[k] || a.dims[k] == unnamed[k];
    a.dims.len() == b.dims.len() && (0..a.dims.len()).all(same)
}

/// Whether only dimensions without a coordinate got one, or uniform points became an array of these points.
fn only_adds_coordinates(content: &Dataset, back: &Dataset, a: &ArrayDesc, b: &ArrayDesc) -> bool {
    let same = |k: usize| {
        let points = |dataset: &Dataset, array: &ArrayDesc| {
            dataset.points(&array.coords[k], array.shape.lengths()[k]).unwrap()
        };
        match (&a.coords[k], &b.coords[k]) {
            (Coord::None, _) => true,
            (Coord::Uniform { .. }, Coord::Node(_)) => points(content, a) == points(back, b),
            (Coord::Node(x), Coord::Node(y)) => {
                content.tree().node(*x).path == back.tree().node(*y).path
                    || points(content, a) == points(back, b)
            }
            (x, y) => x == y,
        }
    };
    a.coords.len() == b.coords.len() && (0..a.coords.len()).all(same)
}

fn is_declared(content: &Dataset, back: &Dataset, difference: &str, losses: &[Loss]) -> bool {
    use LossKind as K;
    let (path, what) = parts(difference);
    let below =
        |loss: &Loss| loss.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    let node = content.tree().at(path).map(|id| content.tree().node(id));
    let array = node.and_then(|node| node.array.as_ref());
    let is = |kinds: &[K]| losses.iter().any(|l| l.path == path && kinds.contains(&l.kind));
    match what.split(' ').next().unwrap_or_default() {
        // More than before is no loss.
        "new" => true,
        _ if difference.starts_with("None frames became") => true,
        "missing" => {
            let gone = |loss: &Loss| matches!(loss.kind, K::Array | K::Name | K::Group);
            losses.iter().any(|loss| gone(loss) && (loss.path == path || below(loss)))
        }
        "semantics" => {
            is(&[K::Meaning]) || array.is_none_or(|a| *a.semantics() == Semantics::default())
        }
        "attributes" => is(&[K::Attribute]),
        "dimensions" => {
            let pair = both(content, back, path);
            is(&[K::Dimensions, K::Shape])
                || pair.is_some_and(|(a, b)| only_names_dimensions(&a, &b))
        }
        "coordinates" => {
            let pair = both(content, back, path);
            let adds =
                |(a, b): (ArrayDesc, ArrayDesc)| only_adds_coordinates(content, back, &a, &b);
            is(&[K::Coordinates, K::Shape]) || pair.is_some_and(adds)
        }
        "scaling" => is(&[K::Scaling]),
        "element" => is(&[K::Type, K::Scaling]),
        "shape" => is(&[K::Shape]),
        "values" => is(&[K::Values, K::Scaling, K::Type, K::Shape]),
        _ => is(&[K::Frames]),
    }
}

fn is_kept(content: &Dataset, back: &Dataset, loss: &Loss) -> bool {
    let find =
        |dataset: &Dataset| dataset.tree().at(&loss.path).map(|id| dataset.tree().node(id).clone());
    let (Some(old), Some(new)) = (find(content), find(back)) else { return false };
    if let Some(name) = &loss.name {
        return old.attrs.get(name) == new.attrs.get(name);
    }
    let (Some(a), Some(b)) = (&old.array, &new.array) else {
        let count = |dataset: &Dataset| dataset.tree().frames().map(|axis| axis.len());
        let steps = |dataset: &Dataset| {
            dataset.tree().frames().map(|axis| (axis.step(0).unwrap(), axis.time(0).unwrap()))
        };
        let same = count(content) == count(back) && steps(content) == steps(back);
        return loss.kind != LossKind::Frames || same;
    };
    let per_frame = |array: &ArrayDesc| matches!(array.layout, Layout::PerFrame(_));
    match loss.kind {
        LossKind::Dimensions => a.dims == b.dims,
        LossKind::Coordinates => !b.coords.contains(&Coord::None),
        LossKind::Scaling => a.map == b.map,
        LossKind::Meaning => a.semantics() == b.semantics(),
        LossKind::Frames => per_frame(a) == per_frame(b),
        LossKind::Type => a.dtype == b.dtype,
        LossKind::Shape => a.shape == b.shape,
        _ => true,
    }
}

/// An array of `dtype` with small positive numbers.
fn numbers(dtype: DType, shape: &[u64]) -> ArrayDesc {
    let count: u64 = shape.iter().product();
    let values: Vec<f64> = (0..count).map(|k| (k % 50) as f64).collect();
    let mut bytes = Vec::new();
    spile_core::convert::from_f64(dtype, None, &values, &mut bytes);
    ArrayDesc::new(dtype, Shape::new(shape), Layout::Inline(bytes.into(), Order::C))
}

fn dataset(build: impl FnOnce(&mut Tree)) -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    build(&mut tree);
    Dataset::new(Source::memory([]), tree)
}

fn add(tree: &mut Tree, path: &str, array: ArrayDesc) -> NodeId {
    let (group, name) = path.rsplit_once('/').unwrap_or(("", path));
    let group = tree.group_at(group).unwrap();
    tree.add_array(group, name, array).unwrap()
}

/// Frames of these numbers of rows; none where the array does not exist.
fn frames(rows: &[Option<u64>], tail: &[u64]) -> ArrayDesc {
    let shape = |rows: u64| std::iter::once(rows).chain(tail.iter().copied()).collect::<Vec<_>>();
    let cell = |rows: &Option<u64>| {
        let array = numbers(DType::F64, &shape((*rows)?));
        Some(FrameCell { shape: array.shape, layout: array.layout })
    };
    let first = numbers(DType::F64, &shape(rows.iter().flatten().next().copied().unwrap_or(0)));
    ArrayDesc {
        layout: Layout::PerFrame(Arc::new(Cells(rows.iter().map(cell).collect()))),
        ..first
    }
}

/// Small datasets with everything that the model has.
pub(crate) fn samples() -> Vec<Dataset> {
    let uniform = Coord::Uniform { start: 0.5, step: 0.25 };
    let one = dataset(|tree| {
        add(tree, "data", numbers(DType::F64, &[4]));
    });
    let signal = dataset(|tree| {
        tree.node_mut(ROOT).attrs =
            Attrs::from([("title", "a shot".into()), ("shot", 7_u64.into())]);
        let mut array = numbers(DType::I16, &[4]);
        (array.dims, array.coords) = (vec!["t".into()], vec![uniform.clone()]);
        array.map = Some(Linear::new(1.0, 0.5));
        array.semantics_mut().role = Role::Trace;
        array.semantics_mut().missing.values = vec![3.0];
        let id = add(tree, "channels/C1", array);
        tree.node_mut(id).attrs =
            Attrs::from([("units", "V".into()), ("gain", 2.0.into()), ("t_units", "s".into())]);
    });
    let table = dataset(|tree| {
        tree.group_at("empty").unwrap();
        let id = add(tree, "log/energy", numbers(DType::F32, &[5]));
        tree.node_mut(id).attrs = Attrs::from([("units", "J".into()), ("n", 3_i64.into())]);
        let group = tree.at("log").unwrap();
        tree.node_mut(group).attrs = Attrs::from([("about", "a log".into())]);
        let mut rows = numbers(DType::I32, &[5, 3]);
        rows.dims = vec!["particle".into(), "axis".into()];
        rows.semantics_mut().role = Role::Points;
        rows.semantics_mut().point_set = Some("electron".into());
        add(tree, "log/position", rows);
        let text = Layout::Inline(b"ab\0\0cde\0fgh\0ij\0\0k\0\0\0".to_vec().into(), Order::C);
        add(tree, "names", ArrayDesc::new(DType::text(4), Shape::new([5]), text));
        add(tree, "x[1]", numbers(DType::I64, &[5]).with_semantics(Semantics::role(Role::Table)));
        add(tree, "nothing", numbers(DType::I64, &[5, 0]));
    });
    let grid = dataset(|tree| {
        let axes = ["X", "Y"].map(|name| {
            let mut axis = numbers(DType::F64, &[if name == "X" { 4 } else { 3 }]);
            axis.dims = vec![name.into()];
            axis.semantics_mut().role = Role::Mesh;
            add(tree, &format!("Grid/{name}"), axis)
        });
        let mut field = numbers(DType::F64, &[4, 3]);
        field.dims = vec!["X".into(), "Y".into()];
        field.coords = axes.map(Coord::Node).to_vec();
        field.semantics_mut().role = Role::Field;
        field.semantics_mut().mesh = tree.at("Grid");
        field.semantics_mut().centring = Some(Centring::Node);
        field.map = Some(Linear::new(0.0, 2.0));
        let same = Layout::Same(add(tree, "Ex", field.clone()));
        add(tree, "Ey", ArrayDesc { layout: same, ..field });
        add(tree, "wall", numbers(DType::F64, &[]));
        add(tree, "other", numbers(DType::U8, &[2, 2, 2, 2, 2]));
    });
    let cells = dataset(|tree| {
        let coords = ["X", "Y"].map(|name| {
            let mut axis = numbers(DType::F64, &[4]);
            axis.dims = vec![name.into()];
            let nodes = add(tree, &format!("Grid/{name}"), axis);
            Coord::Node(midpoints(tree, nodes).unwrap().unwrap())
        });
        let mut field = numbers(DType::F32, &[3, 3]);
        (field.dims, field.coords) = (vec!["X".into(), "Y".into()], coords.to_vec());
        field.semantics_mut().role = Role::Field;
        field.semantics_mut().centring = Some(Centring::Cell);
        add(tree, "density", field);
    });
    let beam = dataset(|tree| {
        for (name, dtype) in [("x", DType::F32), ("y", DType::F64)] {
            let mut axis = numbers(dtype, &[6]);
            axis.dims = vec!["electron".into()];
            let id = add(tree, &format!("beam/{name}"), axis);
            tree.node_mut(id).attrs = Attrs::from([("units", "m".into())]);
        }
        let mut charge = numbers(DType::F64, &[6]);
        charge.dims = vec!["electron".into()];
        charge.map = Some(Linear::new(0.0, 3.0));
        charge.semantics_mut().role = Role::Points;
        charge.semantics_mut().mesh = tree.at("beam");
        charge.semantics_mut().missing.min = Some(2.0);
        add(tree, "charge", charge);
    });
    let moments = |n: u64| (0..n).map(|k| (Some(10 * k), Some(k as f64 / 4.0))).collect::<Vec<_>>();
    let run = dataset(|tree| {
        add(tree, "particles/position", frames(&[Some(3), Some(2), Some(4)], &[3]));
        add(tree, "particles/mass", frames(&[Some(3), None, Some(4)], &[]));
        tree.set_frames(Arc::new(Moments(moments(3))));
    });
    let mixed = dataset(|tree| {
        add(tree, "a", frames(&[Some(2), Some(2)], &[]));
        add(tree, "b", numbers(DType::F64, &[2]));
        let mut all = moments(2);
        all[1].0 = None;
        tree.set_frames(Arc::new(Moments(all)));
    });
    let idle = dataset(|tree| {
        add(tree, "a", numbers(DType::F64, &[2]));
        tree.set_frames(Arc::new(Moments(moments(2))));
    });
    let scalars = dataset(|tree| {
        let id = add(tree, "run/energy", numbers(DType::F64, &[]));
        tree.node_mut(id).attrs = Attrs::from([("units", "J".into()), ("n", 3_i64.into())]);
        add(tree, "run/steps", numbers(DType::U32, &[]));
    });
    let changing = dataset(|tree| {
        let [a, b] = [&[2, 2][..], &[2, 3]].map(|shape| numbers(DType::F64, shape));
        let cell = |array: &ArrayDesc| {
            Some(FrameCell { shape: array.shape.clone(), layout: array.layout.clone() })
        };
        let layout = Layout::PerFrame(Arc::new(Cells(vec![cell(&a), cell(&b)])));
        add(tree, "changing", ArrayDesc { layout, ..a });
        add(tree, "same", frames(&[Some(2), Some(2)], &[]));
        tree.set_frames(Arc::new(Moments(moments(2))));
    });
    vec![one, signal, table, grid, cells, beam, run, mixed, idle, scalars, changing]
}

/// Tests a writer with the golden files of its format, with [`samples`] and with `more`; those are written
/// as files of all these `names`.
///
/// # Panics
/// If losses and differences do not agree.
pub(crate) fn suite(format: &dyn Format, names: &[&str], more: Vec<Dataset>) {
    for (name, content) in golden(format) {
        assert_losses_are_declared(format, &content, &name);
    }
    for content in samples().into_iter().chain(more) {
        for name in names {
            assert_losses_are_declared(format, &content, name);
        }
    }
}

/// The golden files of a format with one of its extensions, and their names.
fn golden(format: &dyn Format) -> Vec<(String, Dataset)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let files = spile_core::testkit::files(folder.join(format.info().name)).into_iter();
    let own = files.filter(|file| {
        let extension = file.extension().and_then(|e| e.to_str()).unwrap_or_default();
        format.info().extensions.contains(&extension)
    });
    let open = |file: std::path::PathBuf| {
        let dataset = Dataset::open_path(format, &file, &OpenOptions::default()).unwrap();
        (file.file_name().unwrap().to_string_lossy().into_owned(), dataset)
    };
    own.map(open).collect()
}
