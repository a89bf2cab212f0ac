//! A flattened and restored tree equals the original.

use std::sync::{Arc, Mutex};

use super::*;
use spile_core::frames::{Cells, Moments};
use spile_core::metadata::{StoredMetadata, restore};
use spile_core::testkit::{assert_same_content, differences};
use spile_core::{Attrs, Extents, Limits, Linear, Source};

/// A tree with every kind of layout, over distinct bytes.
fn content() -> Dataset {
    let source = Source::memory((0..=255).collect::<Vec<u8>>());
    let mut tree = Tree::new(&Limits::default());
    tree.node_mut(ROOT).attrs = Attrs::from([("code", "Epoch".into()), ("x", 2.5.into())]);
    let plain = |offset, len| Layout::contiguous(offset, len, Order::C);
    let cell = |shape: &[u64], offset: u64| {
        let bytes = 4 * shape.iter().product::<u64>();
        Some(FrameCell { shape: Shape::new(shape), layout: plain(offset, bytes) })
    };
    let frames = |cells: Vec<Option<FrameCell>>| {
        let shape = cells.iter().flatten().next().unwrap().shape.clone();
        let layout = Layout::PerFrame(Arc::new(Cells(cells)));
        ArrayDesc::new("float32".parse().unwrap(), shape, layout)
    };
    let group = tree.add_group(ROOT, "a group").unwrap();
    let x = ArrayDesc::new(DType::I16, Shape::new([3]), plain(7, 6));
    let x = tree.add_array(group, "x", x).unwrap();
    let fortran = Layout::contiguous(13, 12, Order::F);
    let mut field = ArrayDesc::new("int16-be".parse().unwrap(), Shape::new([3, 2]), fortran);
    field.coords = vec![Coord::Node(x), Coord::Uniform { start: -1.0, step: 0.25 }];
    field.dims = vec!["x".into(), "y".into()];
    field.map = Some(Linear::new(1.0, 0.1));
    let field = tree.add_array(group, "field", field).unwrap();
    tree.node_mut(field).attrs = Attrs::from([("units", "V/m".into())]);
    tree.node_mut(field).id = Some("ex".into());
    let mut same = tree.node(field).array.clone().unwrap();
    same.layout = Layout::Same(field);
    tree.add_array(ROOT, "same", same).unwrap();
    let even = frames(vec![cell(&[2, 3], 0), cell(&[2, 3], 100), cell(&[2, 3], 50)]);
    tree.add_array(ROOT, "even", even).unwrap();
    let rows = frames(vec![None, cell(&[2, 2], 30), cell(&[0, 2], 9)]);
    tree.add_array(ROOT, "rows", rows).unwrap();
    let lone = frames(vec![cell(&[], 3), None, cell(&[], 90)]);
    tree.add_array(group, "lone", lone).unwrap();
    let starts: Arc<[u64]> = [0, 5, 5, 9].into();
    let ragged = Layout::Ragged { starts, data: Extents::one(200, 9) };
    let ragged = ArrayDesc::new(DType::opaque(1), Shape::new([3]), ragged);
    tree.add_array(ROOT, "ragged", ragged).unwrap();
    let text = ArrayDesc::new("text[4]".parse().unwrap(), Shape::new([2]), plain(64, 8));
    tree.add_array(ROOT, "text", text).unwrap();
    let moment = |k: u64| (Some(10 * k), Some(k as f64 / 3.0));
    tree.set_frames(Arc::new(Moments((0..3).map(moment).collect())));
    Dataset::new(source, tree)
}

/// The dataset as written by a format with plain arrays only.
fn written(flat: &Flat, limits: &Limits) -> Dataset {
    let mut bytes = Vec::new();
    let mut tree = Tree::new(limits);
    for (id, node, array) in flat.tree().arrays() {
        let start = bytes.len();
        let order = flat.order(id);
        flat.stream(id, order, |block| {
            bytes.extend_from_slice(block);
            Ok(())
        })
        .unwrap();
        // The same in parallel.
        let again = Mutex::new(vec![0; bytes.len() - start]);
        let size = array.dtype.size();
        flat.for_each(id, order, |first, block| {
            let at = first as usize * size;
            again.lock().unwrap()[at..at + block.len()].copy_from_slice(block);
            Ok(())
        })
        .unwrap();
        assert_eq!(*again.lock().unwrap(), bytes[start..], "{}", node.path);
        let extents = Extents::one(start as u64, (bytes.len() - start) as u64);
        let dtype = match array.dtype.kind() {
            spile_core::dtype::Kind::Text => DType::opaque(size as u32),
            _ => array.dtype.with_order(spile_core::wire::ByteOrder::Little),
        };
        let desc = ArrayDesc::new(dtype, array.shape.clone(), Layout::Plain { extents, order });
        let (parent, name) = node.path.rsplit_once('/').unwrap_or(("", &node.path));
        let parent = tree.group_at(parent).unwrap();
        tree.add_array(parent, name, desc).unwrap();
    }
    Dataset::new(Source::memory(bytes), tree)
}

/// The tree of `flat` restored on plain arrays.
fn restored(flat: &Flat, plain: Dataset) -> Dataset {
    let text = flat.metadata.text(plain.limits()).unwrap();
    restore(plain, Some(StoredMetadata::new(text, "test"))).unwrap()
}

#[test]
fn a_tree_is_restored_from_plain_arrays_and_its_metadata() {
    let limits = Limits::default();
    let content = content();
    let flat = Flat::new(&content).unwrap();
    let shape = |path: &str| {
        let id = flat.tree().at(path).unwrap_or_else(|| panic!("{path}"));
        flat.tree().array(id).unwrap().shape.to_string()
    };
    assert_eq!((shape("even"), shape("rows")), ("3 x 2 x 3".into(), "2 x 2".into()));
    assert_eq!((shape("a group/lone"), shape("rows.rows")), ("2".into(), "3".into()));
    assert_eq!((shape("ragged"), shape("ragged.sizes")), ("9".into(), "3".into()));
    assert!(flat.tree().at("same").is_none());
    let plain = written(&flat, &limits);
    let back = restored(&flat, plain);
    assert_same_content(&content, &back);
    let again = Flat::new(&back).unwrap();
    assert_eq!(again.metadata, flat.metadata);
}

#[test]
fn arrays_that_do_not_fit_the_metadata_stay_as_they_are() {
    let limits = Limits::default();
    let content = content();
    let flat = Flat::new(&content).unwrap();
    let plain = written(&flat, &limits);
    let mut tree = plain.tree().clone();
    // Another program has extended one array, changed the type of another, and added one.
    for (path, dtype, shape) in [("even", "float32", 4), ("text", "float32", 2), ("new", "int8", 3)]
    {
        let bytes = Layout::Fill(vec![0; 4].into());
        let desc = ArrayDesc::new(dtype.parse().unwrap(), Shape::new([shape]), bytes);
        match tree.at(path) {
            Some(id) => tree.node_mut(id).array = Some(desc),
            None => drop(tree.add_array(ROOT, path, desc).unwrap()),
        }
    }
    let back = restored(&flat, plain.with_tree(tree));
    let found = differences(&content, &back).unwrap();
    let mut named: Vec<&str> = found.iter().filter_map(|line| line.split(':').next()).collect();
    named.dedup();
    assert_eq!(named, ["new", "even", "text"], "{found:?}");
}

#[test]
fn frames_without_bytes_are_limited_in_number() {
    let limits = Limits::default();
    let mut tree = Tree::new(&limits);
    let none = Layout::Inline([].into(), Order::C);
    tree.add_array(ROOT, "x", ArrayDesc::new(DType::U8, Shape::new([0]), none)).unwrap();
    for own in ["true", "false"] {
        let text = format!(
            r#"{{"spile":1,"frames":{{"count":1152921504606846976,"own":{own}}},"nodes":[{{"path":"x",
               "array":{{"dtype":"|u1","dims":["n"],"held":"frames","cast":{{"shape":[0]}}}}}}]}}"#
        );
        let plain = Dataset::new(Source::memory([]), tree.clone());
        let back = restore(plain, Some(StoredMetadata::new(text, "test"))).unwrap();
        assert!(back.tree().frames().is_none());
        let [warning] = back.warnings() else { panic!("{:?}", back.warnings()) };
        assert!(warning.message.contains("the frames need"), "{}", warning.message);
    }
}

#[test]
fn large_and_small_frames_are_streamed_in_order() {
    let limits = Limits::default();
    let numbers: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let cells = |lengths: &[u64]| {
        let mut first = 0;
        let cell = |n: &u64| {
            let extents = Extents::one(4 * first, 4 * n);
            first += n;
            let layout = Layout::Plain { extents, order: Order::C };
            Some(FrameCell { shape: Shape::new([*n]), layout })
        };
        Layout::PerFrame(Arc::new(Cells(lengths.iter().map(cell).collect())))
    };
    for lengths in [vec![1_000_000, 0, 1_500_000, 3, 499_997], vec![3_000; 1_000], vec![7; 20_000]]
    {
        let mut tree = Tree::new(&limits);
        let desc = ArrayDesc::new(DType::U32, Shape::new([lengths[0]]), cells(&lengths));
        tree.add_array(ROOT, "n", desc).unwrap();
        let content = Dataset::new(Source::memory(numbers.clone()), tree);
        let flat = Flat::new(&content).unwrap();
        let plain = written(&flat, &limits);
        let id = plain.tree().at("n").unwrap();
        let array = plain.tree().array(id).unwrap();
        let all = 4 * lengths.iter().sum::<u64>();
        assert_eq!(array.bytes().unwrap(), all);
        let read = plain.array_at(id).unwrap();
        let read = read.bytes().unwrap();
        assert!(read == numbers[..all as usize], "{} frames", lengths.len());
    }
}

#[test]
fn an_array_below_an_array_is_restored_from_a_group_beside_it() {
    let limits = Limits::default();
    let mut tree = Tree::new(&limits);
    let array = |k: u8| ArrayDesc::inline(DType::U8, Shape::new([2]), [k, k]);
    let group = tree.add_group(ROOT, "Derived").unwrap();
    let density = tree.add_array(group, "Density", array(1)).unwrap();
    tree.add_array(density, "electron", array(2)).unwrap();
    tree.add_array(density, "ion", array(3)).unwrap();
    let content = Dataset::new(Source::memory([]), tree);
    let flat = Flat::new(&content).unwrap();
    let paths: Vec<&str> = flat.tree().iter().map(|(_, node)| node.path.as_str()).collect();
    let below = ["Derived/Density~2", "Derived/Density~2/electron", "Derived/Density~2/ion"];
    assert_eq!(paths, [&["Derived", "Derived/Density"][..], &below].concat());
    let back = restored(&flat, written(&flat, &limits));
    assert_same_content(&content, &back);
}

#[test]
fn children_of_an_array_that_is_not_in_the_file_are_restored_below_a_group() {
    let limits = Limits::default();
    let array = |k: u8| ArrayDesc::inline(DType::U8, Shape::new([2]), [k, k]);
    let mut tree = Tree::new(&limits);
    let density = tree.add_array(ROOT, "Density", array(1)).unwrap();
    let mut electron = array(2);
    electron.coords = vec![Coord::Node(density)];
    let electron = tree.add_array(density, "electron", electron).unwrap();
    tree.node_mut(electron).attrs = Attrs::from([("units", "1/m^3".into())]);
    let content = Dataset::new(Source::memory([]), tree);
    let metadata = Metadata::of(content.tree());
    // Only the child was written.
    let mut tree = Tree::new(&limits);
    let group = tree.add_group(ROOT, "Density").unwrap();
    tree.add_array(group, "electron", array(2)).unwrap();
    let plain = Dataset::new(Source::memory([]), tree);
    let text = metadata.text(&limits).unwrap();
    let back = restore(plain, Some(StoredMetadata::new(text, "test"))).unwrap();
    assert!(back.warnings().is_empty(), "{:?}", back.warnings());
    let node = |path: &str| back.tree().node(back.tree().at(path).unwrap()).clone();
    assert!(node("Density").array.is_none());
    let child = node("Density/electron");
    assert_eq!(child.attrs.get_str("units"), Some("1/m^3"));
    // A group is not a coordinate.
    assert_eq!(child.array.unwrap().coords, [Coord::None]);
}
