use super::*;
use crate::semantics::Semantics;

/// A file with a field on a mesh; `before` groups come first and change the numbers of the nodes.
fn member(before: usize) -> Member {
    let mut tree = Tree::new(&Limits::default());
    for k in 0..before {
        tree.add_group(ROOT, &format!("group {before}.{k}")).unwrap();
    }
    let mesh = tree.add_group(ROOT, "mesh").unwrap();
    let layout = Layout::contiguous(0, 8, crate::shape::Order::C);
    let shape = crate::shape::Shape::new([1]);
    let mut field = ArrayDesc::new(DType::F64, shape, layout);
    field.meaning = Some(Box::new(Semantics { mesh: Some(mesh), ..Semantics::default() }));
    tree.add_array(ROOT, "field", field).unwrap();
    Member { len: 0, tree, summary: Attrs::new(), warnings: Vec::new(), coordinates: Vec::new() }
}

#[test]
fn the_mesh_of_an_array_is_found_by_its_path() {
    let mut union = Union::new(&Limits::default());
    for (file, before) in [(0, 2), (1, 0), (2, 5)] {
        union.add(file, 8 * file as u64, "file", member(before)).unwrap();
    }
    let tree = union.finish(Source::memory(vec![0; 24]), 3).unwrap().tree;
    let field = tree.array(tree.at("field").unwrap()).unwrap();
    assert_eq!(field.semantics().mesh, tree.at("mesh"));
}
