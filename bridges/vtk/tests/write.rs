//! Trees of other formats written as VTK and read back.

use std::path::Path;

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::ErrorKind;
use spile_core::format::{OpenOptions, write_file};
use spile_core::frames::{Cells, FrameCell, Moments};
use spile_core::layout::{ArrayDesc, Coord, Extents, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::semantics::{Centring, Role, Semantics};
use spile_core::shape::{Order, Shape};
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_core::testkit::{assert_same_content, differences};
use spile_core::tree::{Attrs, NodeId, ROOT, Tree};
use spile_vtk::Vtk;

fn doubles(shape: &[u64], order: Order) -> ArrayDesc {
    let count: u64 = shape.iter().product();
    let bytes: Vec<u8> = (0..count).flat_map(|k| (k as f64 * 0.25 - 3.0).to_le_bytes()).collect();
    ArrayDesc::new(DType::F64, Shape::new(shape), Layout::Inline(bytes.into(), order))
}

fn dataset(tree: Tree) -> Dataset {
    Dataset::new(Source::memory(Vec::new()), tree)
}

/// Writes `content` as `name` and opens the file.
fn again(content: &Dataset, folder: &Path, name: &str) -> Dataset {
    let path = folder.join(name);
    write_file(&Vtk, content, &path, Overwrite::Never).unwrap();
    Dataset::open_path(&Vtk, &path, &OpenOptions::default()).unwrap()
}

fn refused(content: &Dataset, name: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let error = write_file(&Vtk, content, &path, Overwrite::Never).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(!path.exists());
    format!(
        "{} {}",
        error.message(),
        error.suggestion().map(ToString::to_string).unwrap_or_default()
    )
}

/// A field on the nodes of a rectilinear grid, attributes, a scalar.
fn rectilinear() -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    tree.node_mut(ROOT).attrs =
        Attrs::from([("code -- name", "EPOCH".into()), ("time", 0.5.into())]);
    let grid = tree.group_at("Grid/Grid").unwrap();
    let mut axes = Vec::new();
    for (name, count) in [("X", 5_u64), ("Y", 4)] {
        let bytes: Vec<u8> = (0..count).flat_map(|k| ((k * k) as f64).to_le_bytes()).collect();
        let source = Layout::Inline(bytes.into(), Order::F);
        let mut axis = ArrayDesc::new(DType::F64, Shape::new([count]), source);
        axis.dims = vec![name.into()];
        axes.push(tree.add_array(grid, name, axis).unwrap());
    }
    let field = tree.group_at("Electric Field").unwrap();
    let add = |tree: &mut Tree, parent, name: &str, shape: &[u64], coords: Vec<Coord>| -> NodeId {
        let mut desc = doubles(shape, Order::F);
        (desc.dims, desc.coords) = (vec!["X".into(), "Y".into()], coords);
        tree.add_array(parent, name, desc).unwrap()
    };
    let nodes: Vec<Coord> = axes.iter().map(|id| Coord::Node(*id)).collect();
    let on = add(&mut tree, field, "potential & <more>", &[5, 4], nodes);
    tree.node_mut(on).attrs = Attrs::from([("units", "V/m".into()), ("stagger", 7_i64.into())]);
    tree.node_mut(on).id = Some("ey".into());
    let scalar = doubles(&[], Order::C);
    tree.add_array(ROOT, "Wall-time", scalar).unwrap();
    dataset(tree)
}

#[test]
fn a_rectilinear_grid_round_trips_with_its_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let content = rectilinear();
    let back = again(&content, folder.path(), "x.vtr");
    // Cell centres are computed from the nodes.
    let found = differences(&content, &back).unwrap();
    let centres = ["Grid/Grid/X_mid: new", "Grid/Grid/Y_mid: new"];
    assert_eq!(found, centres);
    let again = again(&back, folder.path(), "again.vtr");
    assert_same_content(&back, &again);
    assert!(refused(&content, "x.vti").contains("write .vtr"));
    assert!(refused(&content, "x.vtu").contains("no points"));
    assert!(refused(&content, "x.vts").contains(".vti"));
}

#[test]
fn the_grid_with_the_most_fields_is_written_even_if_another_has_more_dimensions() {
    let folder = tempfile::tempdir().unwrap();
    let mut tree = Tree::new(&Limits::default());
    for (name, shape) in [("ex", &[4, 3][..]), ("ey", &[4, 3]), ("distribution", &[4, 3, 5])] {
        let mut desc = doubles(shape, Order::C).with_semantics(Semantics::role(Role::Field));
        desc.coords = vec![Coord::Uniform { start: 0.0, step: 1.0 }; shape.len()];
        tree.add_array(ROOT, name, desc).unwrap();
    }
    let back = again(&dataset(tree), folder.path(), "x.vti");
    let found: Vec<&str> = back.arrays().map(|(_, node, _)| node.path.as_str()).collect();
    assert_eq!(found, ["ex", "ey"]);
}

#[test]
fn a_uniform_grid_round_trips_in_its_element_order_and_exactly() {
    for order in [Order::C, Order::F] {
        let folder = tempfile::tempdir().unwrap();
        let mut tree = Tree::new(&Limits::default());
        let mut desc = doubles(&[3, 4, 5], order);
        for (k, coord) in desc.coords.iter_mut().enumerate() {
            *coord = Coord::Uniform { start: 0.1 * k as f64, step: 1.0 / 3.0 };
        }
        desc.dims = vec!["t".into(), "u".into(), "v".into()];
        let id = tree.add_array(ROOT, "data", desc).unwrap();
        tree.node_mut(id).attrs = Attrs::from([("units", "K".into())]);
        let content = dataset(tree);
        for name in ["x.vti", "x.vtr"] {
            let back = again(&content, folder.path(), name);
            assert_same_content(&content, &back);
        }
    }
}

#[test]
fn scaled_numbers_are_written_as_physical_values() {
    let folder = tempfile::tempdir().unwrap();
    let mut tree = Tree::new(&Limits::default());
    let mut desc = doubles(&[6], Order::C);
    desc.map = Some(Linear::new(1.0, 2.0));
    tree.add_array(ROOT, "signal", desc).unwrap();
    let back = again(&dataset(tree), folder.path(), "x.vti");
    let array = back.array("signal").unwrap();
    assert_eq!(array.map(), None);
    let found: Vec<f64> = array.read(":").unwrap();
    assert_eq!(found, [-5.0, -4.5, -4.0, -3.5, -3.0, -2.5]);
}

/// Particles as in SDF (one array per axis) or HOOMD (one array of positions).
fn particles(columns: bool) -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    if columns {
        let mesh = tree.group_at("Grid/Particles/electron").unwrap();
        let values = tree.group_at("Particles/Px").unwrap();
        for name in ["X", "Y"] {
            let mut desc = doubles(&[7], Order::F);
            desc.dims = vec!["electron".into()];
            let id = tree.add_array(mesh, name, desc).unwrap();
            tree.node_mut(id).attrs = Attrs::from([("units", "m".into())]);
        }
        let mut desc = doubles(&[7], Order::F);
        desc.dims = vec!["electron".into()];
        tree.add_array(values, "electron", desc).unwrap();
    } else {
        let group = tree.group_at("particles").unwrap();
        for (name, each) in [("position", 3), ("velocity", 3), ("orientation", 4)] {
            tree.add_array(group, name, doubles(&[5, each], Order::C)).unwrap();
        }
        tree.add_array(group, "mass", doubles(&[5], Order::C)).unwrap();
    }
    dataset(tree)
}

#[test]
fn particles_round_trip_as_rows_and_as_columns() {
    for columns in [true, false] {
        for name in ["x.vtp", "x.vtu"] {
            let folder = tempfile::tempdir().unwrap();
            let content = particles(columns);
            let back = again(&content, folder.path(), name);
            assert_same_content(&content, &back);
        }
    }
}

#[test]
fn surfaces_round_trip_as_faces() {
    let folder = tempfile::tempdir().unwrap();
    let mut tree = Tree::new(&Limits::default());
    let group = tree.group_at("Surface Values/Wall").unwrap();
    tree.add_array(group, "vertices", doubles(&[6, 3], Order::C)).unwrap();
    let corners: Vec<u8> =
        [0_i32, 1, 2, 3, 2, 3, 4, 5].iter().flat_map(|k| k.to_le_bytes()).collect();
    let layout = Layout::Inline(corners.into(), Order::C);
    let faces = ArrayDesc::new(DType::I32, Shape::new([2, 4]), layout);
    tree.add_array(group, "faces", faces).unwrap();
    let below = tree.group_at("Surface Values/Wall/Derived").unwrap();
    tree.add_array(below, "ne", doubles(&[2], Order::C)).unwrap();
    let content = dataset(tree);
    for name in ["x.vtp", "x.vtu"] {
        assert_same_content(&content, &again(&content, folder.path(), name));
    }
}

#[test]
fn frames_are_files_of_a_collection() {
    let folder = tempfile::tempdir().unwrap();
    let mut tree = Tree::new(&Limits::default());
    let group = tree.group_at("particles").unwrap();
    let frames = |each: &[u64]| {
        let cell = |rows: u64| {
            let shape: Vec<u64> = std::iter::once(rows).chain(each.iter().copied()).collect();
            let layout = doubles(&shape, Order::C).layout;
            Some(FrameCell { shape: Shape::new(shape), layout })
        };
        Layout::PerFrame(std::sync::Arc::new(Cells(vec![cell(3), cell(5), cell(0)])))
    };
    let position = ArrayDesc::new(DType::F64, Shape::new([3, 3]), frames(&[3]));
    tree.add_array(group, "position", position).unwrap();
    tree.add_array(group, "mass", ArrayDesc::new(DType::F64, Shape::new([3]), frames(&[])))
        .unwrap();
    let moments = vec![(Some(10), Some(0.5)), (Some(20), Some(1.5)), (Some(30), Some(2.5))];
    tree.set_frames(std::sync::Arc::new(Moments(moments)));
    let content = dataset(tree);
    assert!(refused(&content, "x.vtp").contains(".pvd"));
    let back = again(&content, folder.path(), "run.pvd");
    assert_same_content(&content, &back);
    let pieces = std::fs::read_dir(folder.path().join("run")).unwrap().count();
    assert_eq!(pieces, 3);
    let list = std::fs::read_to_string(folder.path().join("run.pvd")).unwrap();
    assert!(list.contains("timestep=\"1.5\"") && list.contains("file=\"run/run_0001.vtp\""));
    // A collection is replaced with its files, unless the folder has others.
    let path = folder.path().join("run.pvd");
    let write = || write_file(&Vtk, &content, &path, Overwrite::Replace);
    let names = || {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        names.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(" ")
    };
    // The old collection is complete until the new one is: they have different folders.
    for expected in ["run-2 run.pvd", "run run.pvd", "run-2 run.pvd"] {
        write().unwrap();
        assert_eq!(names(), expected);
        let back = Dataset::open_path(&Vtk, &path, &OpenOptions::default()).unwrap();
        assert_same_content(&content, &back);
    }
    std::fs::write(folder.path().join("run-2/mine"), "x").unwrap();
    assert!(write().unwrap_err().to_string().contains("not replaced"));
    assert!(folder.path().join("run-2/mine").exists());
    std::fs::remove_file(folder.path().join("run-2/mine")).unwrap();
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(|| write().unwrap()))));
    assert_eq!(names().matches("run").count(), 2, "{}", names());
    // Nothing remains of a failed write.
    let mut broken = content.tree().clone();
    let id = broken.find("particles/mass").unwrap();
    let nowhere = Layout::Plain { extents: Extents::one(0, 40), order: Order::C };
    let cells = [(3, doubles(&[3], Order::C).layout), (5, nowhere.clone()), (0, nowhere)];
    let cell = |(rows, layout)| Some(FrameCell { shape: Shape::new([rows]), layout });
    broken.node_mut(id).array.as_mut().unwrap().layout =
        Layout::PerFrame(std::sync::Arc::new(Cells(cells.map(cell).to_vec())));
    let broken = dataset(broken);
    let path = folder.path().join("broken.pvd");
    write_file(&Vtk, &broken, &path, Overwrite::Never).unwrap_err();
    assert!(!path.exists() && !folder.path().join("broken").exists());
    // Files outside the folder of a collection are rejected, also if links lead there.
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::fs::create_dir_all(folder.path().join("run")).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("run/link.vtp")).unwrap();
    let path = folder.path().join("linked.pvd");
    std::fs::write(&path, list.replace("run/run_0001.vtp", "run/link.vtp")).unwrap();
    let error = Dataset::open_path(&Vtk, &path, &OpenOptions::default()).err().unwrap();
    assert!(error.message().contains("symbolic link"), "{error}");
    for bad in ["/etc/passwd", "../secret.vtp", ""] {
        let text = list.replace("run/run_0001.vtp", bad);
        let path = folder.path().join("bad.pvd");
        std::fs::write(&path, text).unwrap();
        let error = Dataset::open_path(&Vtk, &path, &OpenOptions::default()).err().unwrap();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Malformed, "vtk-004"));
    }
}

#[test]
fn fields_on_upper_faces_are_on_cells_and_keep_their_coordinates() {
    let folder = tempfile::tempdir().unwrap();
    let mut tree = Tree::new(&Limits::default());
    let grid = tree.group_at("Grid").unwrap();
    let mut coords = Vec::new();
    for (name, ending) in [("X", "face"), ("Y", "mid")] {
        let line = |count: u64| {
            let mut desc = doubles(&[count], Order::F);
            desc.dims = vec![name.into()];
            desc
        };
        tree.add_array(grid, name, line(4)).unwrap();
        let id = tree.add_array(grid, &format!("{name}_{ending}"), line(3)).unwrap();
        coords.push(Coord::Node(id));
    }
    let mut field = doubles(&[3, 3], Order::F);
    field.coords = coords;
    tree.add_array(ROOT, "Ex", field).unwrap();
    let content = dataset(tree);
    let back = again(&content, folder.path(), "x.vtr");
    let text = std::fs::read(folder.path().join("x.vtr")).unwrap();
    let text = String::from_utf8_lossy(&text);
    let cells = text.split("<CellData>").nth(1).unwrap().split("</CellData>").next().unwrap();
    assert!(cells.contains("Name=\"Ex\""), "{cells}");
    let ex = back.tree().node(back.tree().find("Ex").unwrap()).array.clone().unwrap();
    let path = |coord: &Coord| match coord {
        Coord::Node(id) => back.tree().node(*id).path.clone(),
        _ => String::new(),
    };
    assert_eq!(ex.coords.iter().map(path).collect::<Vec<_>>(), ["Grid/X_face", "Grid/Y_mid"]);
}

#[test]
fn roles_decide_what_is_written_and_are_read_from_the_sections() {
    let folder = tempfile::tempdir().unwrap();
    let mut tree = Tree::new(&Limits::default());
    // Without roles the array of more dimensions is the grid, and nothing is a point.
    tree.add_array(ROOT, "histogram", doubles(&[2, 2, 2], Order::C)).unwrap();
    let field = doubles(&[4, 3], Order::C).with_semantics(Semantics::role(Role::Field));
    tree.add_array(ROOT, "field", field).unwrap();
    let mesh = tree.group_at("beam").unwrap();
    for axis in ["r", "phi"] {
        tree.add_array(mesh, axis, doubles(&[5], Order::C)).unwrap();
    }
    let mut weight = doubles(&[5], Order::C);
    (weight.semantics_mut().role, weight.semantics_mut().mesh) = (Role::Points, Some(mesh));
    tree.add_array(ROOT, "weight", weight).unwrap();
    let content = dataset(tree);
    let paths = |name: &str| {
        let back = again(&content, folder.path(), name);
        let all = back.arrays().map(|(_, node, desc)| (node.path.clone(), desc.semantics().role));
        all.collect::<Vec<_>>()
    };
    assert_eq!(paths("x.vti"), [("field".to_string(), Role::Field)]);
    let cloud = [("beam/r", Role::Data), ("beam/phi", Role::Data), ("weight", Role::Points)];
    assert_eq!(paths("x.vtp"), cloud.map(|(path, role)| (path.to_string(), role)));
}

#[test]
fn foreign_files_have_roles_meshes_and_centring() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/vtk");
    let meaning = |file: &str, path: &str| {
        let dataset = Dataset::open_path(&Vtk, golden.join(file), &OpenOptions::default()).unwrap();
        let node = dataset.tree().node(dataset.tree().find(path).unwrap());
        let meaning = node.array.as_ref().unwrap().semantics();
        let mesh = meaning.mesh.map(|id| dataset.tree().node(id).path.clone());
        (meaning.role, mesh, meaning.centring)
    };
    let (node, cell) = (Some(Centring::Node), Some(Centring::Cell));
    assert_eq!(meaning("image_raw.vti", "PointData/temperature"), (Role::Field, None, node));
    let grid = Some("Coordinates".to_string());
    assert_eq!(meaning("lines_raw.vtr", "CellData/energy"), (Role::Field, grid, cell));
    assert_eq!(meaning("lines_raw.vtr", "Coordinates/x"), (Role::Mesh, None, None));
}
