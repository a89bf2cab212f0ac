//! Datasets of other formats, written as IOTK files.

use spile_core::dtype::{DType, Kind};
use spile_core::error::{ErrorKind, Result};
use spile_core::format::{Format as _, Object, Reader, Region};
use spile_core::layout::{ArrayDesc, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;
use spile_core::testkit::assert_same_content;
use spile_core::tree::{ROOT, Tree, Value};
use spile_core::wire::ByteOrder;
use spile_iotk::{File, Iotk, Style, Target, Writer};

fn limits() -> Limits {
    Limits::default()
}

/// A tree of another format, in memory.
struct Foreign(Tree, Source);

impl Reader for Foreign {
    fn tree(&self) -> &Tree {
        &self.0
    }

    fn source(&self) -> &Source {
        &self.1
    }

    fn summary(&self) -> Vec<(String, Value)> {
        Vec::new()
    }

    fn regions(&self, _: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        Ok(())
    }

    fn objects(&self, _: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        Ok(())
    }
}

fn foreign(arrays: &[(&str, ArrayDesc)]) -> Foreign {
    let mut tree = Tree::new(&limits());
    let group = tree.add_group(ROOT, "g").unwrap();
    // Names with another meaning in IOTK.
    let attrs =
        [("type", Value::from("real")), ("", Value::from(1_u64)), ("a b", Value::from(2_u64))];
    tree.node_mut(group).attrs = attrs.map(|(name, value)| (name.to_string(), value)).to_vec();
    for (name, desc) in arrays {
        let node = tree.add_array(group, name, desc.clone()).unwrap();
        tree.node_mut(node).attrs.push(("size".into(), Value::from("large")));
    }
    Foreign(tree, Source::memory([]))
}

#[test]
fn trees_of_other_formats_keep_their_values() {
    let inline = |dtype, lengths: &[u64], bytes: &[u8], order| {
        ArrayDesc::new(dtype, Shape::new(lengths), Layout::Inline(bytes.into(), order))
    };
    let half = DType::new(Kind::Float, 2, ByteOrder::Little).unwrap();
    let mut mapped = inline(DType::I16, &[2], &[1, 0, 2, 0], Order::C);
    mapped.map = Some(Linear::new(0.5, 2.0));
    let high: Vec<u8> = [u32::MAX, 7].iter().flat_map(|n| n.to_le_bytes()).collect();
    let rows: Vec<u8> = (0..6_i32).flat_map(i32::to_le_bytes).collect();
    let content = foreign(&[
        ("u8", inline(DType::U8, &[3], &[0, 127, 255], Order::C)),
        ("u32", inline(DType::U32, &[2], &high, Order::C)),
        ("u64", inline(DType::U64, &[1], &(i64::MAX as u64).to_le_bytes(), Order::C)),
        ("half", inline(half, &[2], &[0x00, 0x3c, 0xff, 0x7b], Order::C)),
        ("mapped", mapped),
        ("opaque", inline(DType::opaque(3), &[2], b"abcdef", Order::C)),
        // Row-major in the source, column-major in the file.
        ("rows", inline(DType::I32, &[2, 3], &rows, Order::C)),
    ]);
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.dat", "a.xml"] {
        let path = folder.path().join(name);
        let mut sink = Sink::create(&path, Overwrite::Never).unwrap();
        Iotk.write(&content, &mut sink, &limits()).unwrap();
        sink.commit().unwrap();
        let file = File::open(&path, &limits()).unwrap();
        let report = Iotk.check(file.source(), &limits(), false).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        let array = |path: &str| {
            let node = file.tree().node(file.tree().find(path).unwrap());
            let desc = node.array.as_ref().unwrap();
            Array::open(file.source(), file.tree(), desc, &limits()).unwrap()
        };
        let read =
            |path: &str| array(path).read_f64(&Selection::all(), Axes::Order(Order::C)).unwrap();
        assert_eq!(read("g/u8"), [0.0, 127.0, 255.0], "{name}");
        assert_eq!(read("g/u32"), [f64::from(u32::MAX), 7.0]);
        assert_eq!(file.read::<i64>("g/u64/integer").unwrap(), Some(vec![i64::MAX]));
        assert_eq!(read("g/half"), [1.0, 65504.0]);
        assert_eq!(read("g/mapped"), [2.5, 4.5]);
        assert_eq!(read("g/rows"), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(
            (array("g/opaque").dtype(), array("g/opaque").shape().lengths()),
            (DType::opaque(3), &[2][..])
        );
        assert_eq!(array("g/opaque").read(&Selection::all(), Axes::Stored).unwrap(), b"abcdef");
        let attrs = |path: &str| file.tree().node(file.tree().find(path).unwrap()).attrs.clone();
        let names: Vec<String> = attrs("g").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["type_", "_", "a_b"]);
        assert_eq!(attrs("g/u8"), [("size_".to_string(), Value::from("large"))]);
        // Again, from an IOTK file.
        let again = folder.path().join(format!("again-{name}"));
        let mut sink = Sink::create(&again, Overwrite::Never).unwrap();
        Iotk.write(&file, &mut sink, &limits()).unwrap();
        sink.commit().unwrap();
        assert_same_content(&file, &File::open(&again, &limits()).unwrap());
    }
    let refused = |desc| {
        let mut sink = Sink::create(folder.path().join("no.dat"), Overwrite::Never).unwrap();
        Iotk.write(&foreign(&[("x", desc)]), &mut sink, &limits()).unwrap_err()
    };
    let error = refused(inline(DType::U64, &[1], &u64::MAX.to_le_bytes(), Order::C));
    assert!(error.to_string().contains("does not fit"), "{error}");
    let error = refused(inline(DType::U8, &[1; 8], &[1], Order::C));
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unsupported, "iotk-017"));
    // From a slice in memory.
    let mut writer = Writer::new(Vec::new(), Target::Text, Style::Exact).unwrap();
    writer.dat_slice("x", &[], &[200_u8, 3]).unwrap();
    let bytes = writer.finish().unwrap();
    let file = File::from_source(Source::memory(bytes), &limits()).unwrap();
    assert_eq!(file.read::<u8>("x").unwrap(), Some(vec![200, 3]));
}
