//! The writer, conversion of random files, kinds, links, search.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
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
use spile_iotk::record::{Framing, Records, SUBRECORD};
use spile_iotk::wire::{Tag, Type};
use spile_iotk::{File, Form, Iotk, Style, Target, Writer, convert};

fn limits() -> Limits {
    Limits::default()
}

fn array(dtype: DType, lengths: &[u64], bytes: &[u8]) -> Array {
    let layout = Layout::Inline(bytes.into(), Order::F);
    let desc = ArrayDesc::new(dtype, Shape::new(lengths), layout);
    Array::open(&Source::memory([]), &Tree::new(&limits()), &desc, &limits()).unwrap()
}

fn converted(bytes: &[u8], target: Target) -> Vec<u8> {
    let mut out = Vec::new();
    let done = convert(&Source::memory(bytes), target, Style::Exact, &mut out, &limits()).unwrap();
    assert_eq!(done.lost, [""; 0]);
    out
}

fn read(bytes: &[u8]) -> File {
    File::from_source(Source::memory(bytes), &limits()).unwrap()
}

/// Something to write.
#[derive(Clone, Debug)]
enum Step {
    Begin(String, String),
    End,
    Empty(String),
    Comment(String),
    Data(String, Type, u64, Vec<u8>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = "[A-Za-z_][A-Za-z0-9_.:-]{0,8}";
    let words = "[ -~\u{e9}\n]{0,60}";
    let data = |kind: Type, numbers: &'static [u64]| {
        (name, proptest::sample::select(numbers), proptest::collection::vec(any::<u8>(), 0..200))
            .prop_map(move |(name, number, bytes)| Step::Data(name, kind, number, bytes))
    };
    let step = prop_oneof![
        3 => (name, words).prop_map(|(n, w)| Step::Begin(n, w)),
        3 => Just(Step::End),
        1 => name.prop_map(Step::Empty),
        1 => "[ -,.-~]{0,200}".prop_map(Step::Comment),
        2 => data(Type::Integer, &[1, 2, 4, 8]),
        2 => data(Type::Real, &[4, 8, 16]),
        1 => data(Type::Complex, &[4, 8, 16]),
        1 => data(Type::Logical, &[1, 2, 4, 8]),
        2 => data(Type::Character, &[0, 1, 3, 7, 50]),
    ];
    proptest::collection::vec(step, 0..30)
}

fn write(steps: &[Step], qe_syntax: bool, target: Target) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), target, Style::Exact).unwrap();
    writer.head("1.0", qe_syntax).unwrap();
    writer.begin(&Tag::new("Root")).unwrap();
    for step in steps {
        match step {
            Step::Begin(name, words) => {
                let mut text = name.clone().into_bytes();
                spile_iotk::wire::write_attribute("a", words.as_bytes(), &mut text);
                writer.begin(&Tag::new(text)).unwrap();
            }
            Step::End if writer.level() > 1 => writer.end().unwrap(),
            Step::End => {}
            Step::Empty(name) => writer.empty(&Tag::new(name.as_bytes())).unwrap(),
            Step::Comment(text) => writer.comment(text).unwrap(),
            Step::Data(name, kind, number, bytes) => {
                let dtype = kind.dtype(*number, ByteOrder::Little).unwrap();
                let count = bytes.len().checked_div(dtype.size()).unwrap_or(2);
                let bytes = &bytes[..count * dtype.size()];
                let units = [("units".into(), Value::Float(0.1))];
                if qe_syntax {
                    // A single value has no rank, an even number of them two.
                    let lengths = match count as u64 {
                        1 => vec![],
                        n if n.is_multiple_of(2) => vec![2, n / 2],
                        n => vec![n],
                    };
                    writer.dat_qe(name, &units, &array(dtype, &lengths, bytes)).unwrap();
                } else {
                    let array = array(dtype, &[count as u64], bytes);
                    writer.dat(name, &units, &array).unwrap();
                }
            }
        }
    }
    while writer.level() > 0 {
        writer.end().unwrap();
    }
    writer.finish().unwrap()
}

proptest! {
    #[test]
    fn any_file_goes_to_text_and_back_byte_for_byte(
        steps in steps(),
        qe_syntax in any::<bool>(),
        eight in any::<bool>(),
        big in any::<bool>(),
        limit in 9_u64..400,
    ) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let framing = Framing { marker: if eight { 8 } else { 4 }, order };
        let binary = write(&steps, qe_syntax, Target::Binary(framing, SUBRECORD));
        let text = converted(&binary, Target::Text);
        prop_assert_eq!(&converted(&text, Target::Binary(framing, SUBRECORD)), &binary);
        // The writer itself makes the same text, but for what the conversion keeps of the tags.
        prop_assert_eq!(&write(&steps, qe_syntax, Target::Text), &text);
        assert_same_content(&read(&binary), &read(&text));
        let cut = converted(&binary, Target::Binary(Framing::default(), limit));
        assert_same_content(&read(&binary), &read(&cut));
        prop_assert_eq!(&converted(&cut, Target::Binary(framing, SUBRECORD)), &binary);
    }
}

proptest! {
    #[test]
    fn eighty_bit_numbers_go_to_text_and_back(bits in proptest::collection::vec(any::<u128>(), 1..9)) {
        // Any pattern of 80 bits, valid or not; the padding has no meaning.
        let bytes: Vec<u8> = bits.iter().flat_map(|b| (b >> 48).to_le_bytes()).collect();
        for kind in [Type::Real, Type::Complex] {
            let dtype = kind.dtype(10, ByteOrder::Little).unwrap();
            let count = bytes.len() / dtype.size();
            let array = array(dtype, &[count as u64], &bytes[..count * dtype.size()]);
            let mut writer = Writer::new(Vec::new(), Target::default(), Style::Exact).unwrap();
            writer.dat("x", &[], &array).unwrap();
            let binary = writer.finish().unwrap();
            let text = converted(&binary, Target::Text);
            prop_assert_eq!(converted(&text, Target::default()), binary);
        }
    }
}

#[test]
fn special_values_of_every_kind_go_to_text_and_back() {
    let mut writer = Writer::new(Vec::new(), Target::default(), Style::Exact).unwrap();
    let mut put = |name: &str, kind: Type, number: u64, values: &[u128]| {
        let dtype = kind.dtype(number, ByteOrder::Little).unwrap();
        let word = dtype.word();
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()[..word].to_vec()).collect();
        let count = bytes.len() / dtype.size();
        let array = array(dtype, &[count as u64], &bytes[..count * dtype.size()]);
        writer.dat(name, &[], &array).unwrap();
    };
    for size in [1_u32, 2, 4, 8] {
        let lowest = 1_u128 << (8 * size - 1);
        let values = [0, 1, lowest, lowest - 1, u128::MAX, lowest + 1];
        put(&format!("i{size}"), Type::Integer, size.into(), &values);
        // Only 0 and 1 are usual; other compilers have minus one for true.
        put(&format!("l{size}"), Type::Logical, size.into(), &values);
    }
    // Bits of exponent and fraction; the leading bit is part of the latter for 80 bits.
    for (number, exponent, fraction) in [(4, 8, 23), (8, 11, 52), (16, 15, 112), (10, 15, 64)] {
        let (all, sign) = (((1_u128 << exponent) - 1) << fraction, 1_u128 << (exponent + fraction));
        let one = if number == 10 { 1 << 63 } else { 0 };
        let quiet = if number == 10 { 3 << 62 } else { 1 << (fraction - 1) };
        let largest = all - (1 << fraction) + ((1 << fraction) - 1);
        let smallest = (1 << fraction) | one;
        let values = [
            0,
            sign,
            1,
            sign | 1,
            smallest,
            largest,
            sign | largest,
            all | one,
            sign | all | one,
            all | quiet,
            sign | all | quiet,
            all | quiet | 7,
            all | one | 1,
            all | ((1 << fraction) - 1),
        ];
        put(&format!("r{number}"), Type::Real, number, &values);
        put(&format!("c{number}"), Type::Complex, number, &values);
    }
    let binary = writer.finish().unwrap();
    let text = converted(&binary, Target::Text);
    assert!(converted(&text, Target::default()) == binary, "{}", String::from_utf8_lossy(&text));
    for word in ["-9223372036854775808", "-128", "NaN_7f800001", "-0.0", "-Infinity", "T_ff"] {
        assert!(String::from_utf8_lossy(&text).contains(word), "{word}");
    }
    // In the other byte order and with other markers, too.
    let big = Framing { marker: 8, order: ByteOrder::Big };
    let swapped = converted(&binary, Target::Binary(big, 64));
    assert!(converted(&swapped, Target::Text) == text);
    assert!(converted(&swapped, Target::default()) == binary);
    assert!(converted(&text, Target::Binary(big, 64)) == swapped);
}

#[test]
fn the_packed_file_of_two_gigabytes_is_read_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/iotk");
    let unpacked = Command::new("tar")
        .args(["--sparse", "-xJf"])
        .arg(golden.join("big_2GiB_sparse.tar.xz"))
        .current_dir(folder.path())
        .output();
    match unpacked {
        Ok(done) if done.status.success() => {}
        Ok(done) => return skipped(&format!("tar: {}", String::from_utf8_lossy(&done.stderr))),
        Err(why) => return skipped(&format!("no tar: {why}")),
    }
    let small = limits().with_memory(1 << 20);
    let file = File::open(folder.path().join("big.dat"), &small).unwrap();
    assert_eq!(file.read::<i32>("Root/before").unwrap(), Some(vec![1]));
    assert_eq!(file.read::<i32>("Root/after").unwrap(), Some(vec![2]));
    let element = file.index().find("Root/big").unwrap();
    assert_eq!(file.index().elements()[element].data[0].parts.count(), 2);
    let array = file.array(element).unwrap().unwrap();
    assert_eq!(array.shape().lengths(), [268_436_456]);
    // Its numbers are 0 but for these; the third lies in both sub-records.
    let mut found = Vec::new();
    array
        .all()
        .unwrap()
        .stream(|block, bytes| {
            if bytes.iter().any(|byte| *byte != 0) {
                let numbers = bytes.chunks(8).map(|b| f64::from_le_bytes(b.try_into().unwrap()));
                let others = numbers.enumerate().filter(|(_, x)| *x != 0.0);
                found.extend(others.map(|(k, x)| (block.first + k as u64, x)));
            }
            Ok(())
        })
        .unwrap();
    let values: Vec<f64> = found.iter().map(|(_, x)| *x).collect();
    assert_eq!(values, [1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!((found[0].0, found[4].0), (0, 268_436_455));
}

#[test]
fn a_record_over_two_gigabytes_is_read_where_it_lies() {
    use std::os::unix::fs::FileExt as _;
    let count = SUBRECORD / 8 + 1_000;
    let open = format!("x type=\"real\" size=\"{count}\" kind=\"8\"");
    let mut writer = Writer::new(Vec::new(), Target::default(), Style::Exact).unwrap();
    writer.begin(&Tag::new(open.as_bytes())).unwrap();
    let begin = writer.level();
    writer.end().unwrap();
    let tags = writer.finish().unwrap();
    // The begin tag has two records: four bytes and markers, then what the header says.
    let len = 12 + 8 + u64::from(tags[12]);
    let (first, second) = tags.split_at(len as usize);
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut at = 0;
    let mut put = |bytes: &[u8], skip: u64| {
        file.as_file().write_all_at(bytes, at).unwrap();
        at += bytes.len() as u64 + skip;
        at
    };
    let rest = 4 + 8 * count - SUBRECORD;
    put(first, 0);
    put(&(-(SUBRECORD as i32)).to_le_bytes(), SUBRECORD);
    put(&(SUBRECORD as i32).to_le_bytes(), 0);
    let end = put(&(rest as i32).to_le_bytes(), rest);
    put(&(-(rest as i32)).to_le_bytes(), 0);
    put(second, 0);
    file.as_file().write_all_at(&2.5_f64.to_le_bytes(), end - 8).unwrap();
    // An element that lies in both sub-records: its last bytes are the first of the second.
    assert_eq!((begin, (SUBRECORD - 4) % 8), (1, 3));
    let small = limits().with_memory(1 << 20);
    let opened = File::open(file.path(), &small).unwrap();
    let array = opened.array(0).unwrap().unwrap();
    let read = |part: &str| array.read_f64(&part.parse().unwrap(), Axes::Stored).unwrap();
    assert_eq!(read("-2:"), [0.0, 2.5]);
    let split = (SUBRECORD - 4) / 8;
    file.as_file().write_all_at(&1.5_f64.to_le_bytes()[3..], end - rest).unwrap();
    assert_eq!(read(&format!("{}:{}", split - 1, split + 2)), [0.0, 1.5, 0.0]);
}

#[test]
fn shapes_are_kept_with_qe_syntax_in_both_forms() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..6_i32).flat_map(i32::to_le_bytes).collect();
    let mut out = Vec::new();
    for target in [Target::Text, Target::default()] {
        let mut writer = Writer::new(Vec::new(), target, Style::Exact).unwrap();
        writer.head("1.0", true).unwrap();
        writer.begin(&Tag::new("Root")).unwrap();
        writer.dat_qe("m", &[], &array(DType::I32, &[2, 3], &bytes)).unwrap();
        writer.dat_qe("s", &[], &array(DType::F64, &[], &1.5_f64.to_le_bytes())).unwrap();
        writer.dat_qe("t", &[], &array(DType::text(4), &[], b"a <b")).unwrap();
        writer.end().unwrap();
        let made = writer.finish().unwrap();
        let file = read(&made);
        let shape = |path: &str| {
            let node = file.tree().node(file.tree().find(path).unwrap());
            node.array.as_ref().unwrap().shape.lengths().to_vec()
        };
        assert_eq!((shape("Root/m"), shape("Root/s")), (vec![2, 3], vec![]));
        out.push(made);
    }
    assert_same_content(&read(&out[0]), &read(&out[1]));
    // Through the common tree, too.
    let path = folder.path().join("a.dat");
    let mut sink = Sink::create(&path, Overwrite::Never).unwrap();
    Iotk.write(&read(&out[0]), &mut sink, &limits()).unwrap();
    sink.commit().unwrap();
    assert_same_content(&File::open(&path, &limits()).unwrap(), &read(&out[0]));
}

#[test]
fn numbers_of_kinds_that_are_not_told_get_the_kind_they_need() {
    let text = "<R><a type='integer' size='2'>1 -2</a><b type='integer' size='1'>5000000000</b>\
                <c type='real' size='1'>0.1</c><d type='real'>1.23456789012345678901 1e400</d>\
                <e type='real' size='1'>1.0D0</e><f type='character'>x &lt; y</f></R>";
    let binary = converted(text.as_bytes(), Target::default());
    let file = read(&binary);
    let tag = |path: &str| {
        let tag = &file.index().elements()[file.index().find(path).unwrap()].tag;
        (tag.count("size"), tag.count("kind"), tag.count("len"))
    };
    assert_eq!(tag("R/a"), (Some(2), Some(4), None));
    assert_eq!(tag("R/b"), (Some(1), Some(8), None));
    assert_eq!(tag("R/c"), (Some(1), Some(8), None));
    assert_eq!(tag("R/d"), (Some(2), Some(16), None));
    assert_eq!(tag("R/f"), (Some(1), None, Some(5)));
    assert_eq!(file.read_f64("R/b").unwrap(), Some(vec![5e9]));
    assert_eq!(file.read_f64("R/c").unwrap(), Some(vec![0.1]));
    assert_eq!(file.read_strings("R/f").unwrap(), Some(vec!["x < y".to_string()]));
    assert_eq!(file.read_f64("R/missing").unwrap(), None);
}

#[test]
fn kinds_are_converted_to_what_a_program_asks_for() {
    let text = "<R><i type='integer' size='3' kind='8'>-1 300 9007199254740993</i>\
                <r type='real' size='2' kind='8'>0.1 1e300</r><s type='real' size='1' kind='4'>0.1</s>\
                <q type='real' size='1' kind='16'>0.1</q><c type='complex' size='2' kind='4'>1.5,2 -3,4</c>\
                <l type='logical' size='3' kind='1'>T .false. true</l></R>";
    for bytes in [text.as_bytes().to_vec(), converted(text.as_bytes(), Target::default())] {
        let file = read(&bytes);
        // Every integer, not only those that a double can hold.
        assert_eq!(file.read::<i64>("R/i").unwrap().unwrap(), [-1, 300, 9_007_199_254_740_993]);
        let misfit = file.read::<i16>("R/i").unwrap_err();
        assert!(misfit.to_string().contains("does not fit"), "{misfit}");
        assert_eq!(file.read::<f64>("R/r").unwrap().unwrap(), [0.1, 1e300]);
        assert!(file.read::<f32>("R/r").is_err());
        assert_eq!(file.read::<f64>("R/s").unwrap().unwrap(), [f64::from(0.1_f32)]);
        assert_eq!(file.read::<f32>("R/s").unwrap().unwrap(), [0.1]);
        assert_eq!(file.read::<f64>("R/q").unwrap().unwrap(), [0.1]);
        assert_eq!(file.read::<f32>("R/c").unwrap().unwrap(), [1.5, 2.0, -3.0, 4.0]);
        assert_eq!(file.read::<f64>("R/c").unwrap().unwrap(), [1.5, 2.0, -3.0, 4.0]);
        assert_eq!(file.read_logicals("R/l").unwrap().unwrap(), [true, false, true]);
        // A type is not converted, and what is not there is nothing.
        for path in ["R/r", "R/l", "R/c"] {
            assert_eq!(file.read::<i32>(path).unwrap_err().kind(), ErrorKind::Argument, "{path}");
        }
        assert!(file.read_logicals("R/i").is_err());
        assert_eq!(file.read::<f64>("R/none").unwrap(), None);
        assert_eq!(file.read_logicals("R/none").unwrap(), None);
        let mut two = [0.0; 2];
        assert!(file.read_into("R/r", &mut two).unwrap() && two == [0.1, 1e300]);
        assert!(!file.read_into("R/none", &mut two).unwrap());
        assert_eq!(file.read_into("R/q", &mut two).unwrap_err().kind(), ErrorKind::Argument);
    }
    // What the text has instead is told, whichever way it is read.
    for inside in ["1.0", "1.0 2.0 3.0", "1.0 x"] {
        let file = read(format!("<R><a type='real' size='2'>{inside}</a></R>").as_bytes());
        let code = if inside.ends_with('x') { "iotk-012" } else { "iotk-013" };
        assert_eq!(file.read_into("R/a", &mut [0.0; 2]).unwrap_err().code(), code);
        assert_eq!(file.read_f64("R/a").unwrap_err().code(), code);
    }
}

#[test]
fn numbers_in_memory_are_written_as_those_of_a_file_are() {
    let numbers: Vec<f64> = (0..20_000).map(|k| f64::from(k) / 7.0).collect();
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    let big = Framing { marker: 8, order: ByteOrder::Big };
    for target in [Target::Text, Target::default(), Target::Binary(big, 1000)] {
        let mut writers = [(); 2].map(|()| Writer::new(Vec::new(), target, Style::Exact).unwrap());
        writers[0].dat("x", &[], &array(DType::F64, &[20_000], &bytes)).unwrap();
        writers[0].dat("n", &[], &array(DType::F64, &[0], &[])).unwrap();
        writers[1].dat_slice("x", &[], &numbers).unwrap();
        writers[1].dat_slice::<f64>("n", &[], &[]).unwrap();
        let [a, b] = writers.map(|writer| writer.finish().unwrap());
        assert!(a == b, "{target:?}");
        assert_eq!(read(&a).read::<f64>("x").unwrap().unwrap(), numbers);
    }
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
    // Names that mean something else here.
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
    mapped.map = Some(Linear { intercept: 0.5, slope: 2.0 });
    let high: Vec<u8> = [u32::MAX, 7].iter().flat_map(|n| n.to_le_bytes()).collect();
    let rows: Vec<u8> = (0..6_i32).flat_map(i32::to_le_bytes).collect();
    let content = foreign(&[
        ("u8", inline(DType::U8, &[3], &[0, 127, 255], Order::C)),
        ("u32", inline(DType::U32, &[2], &high, Order::C)),
        ("u64", inline(DType::U64, &[1], &(i64::MAX as u64).to_le_bytes(), Order::C)),
        ("half", inline(half, &[2], &[0x00, 0x3c, 0xff, 0x7b], Order::C)),
        ("mapped", mapped),
        ("opaque", inline(DType::opaque(3), &[2], b"abcdef", Order::C)),
        // Row by row there, column by column here.
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
        // Once more, now from a tree of our own.
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
    // The same from memory.
    let mut writer = Writer::new(Vec::new(), Target::Text, Style::Exact).unwrap();
    writer.dat_slice("x", &[], &[200_u8, 3]).unwrap();
    assert_eq!(read(&writer.finish().unwrap()).read::<u8>("x").unwrap(), Some(vec![200, 3]));
}

#[test]
fn digits_around_a_comment_belong_together_on_every_way() {
    let text = "<R><a type='integer' size='2'>1<!-- a -->2 3</a></R>";
    assert_eq!(read(text.as_bytes()).read_f64("R/a").unwrap(), Some(vec![12.0, 3.0]));
    assert_eq!(read(text.as_bytes()).read::<i32>("R/a").unwrap(), Some(vec![12, 3]));
    let binary = converted(text.as_bytes(), Target::default());
    assert_eq!(read(&binary).read::<i32>("R/a").unwrap(), Some(vec![12, 3]));
}

#[test]
fn a_kind_of_another_compiler_is_read_by_the_length_of_the_record() {
    // NAG numbers kinds 1, 2, 3; two 8-byte reals here, kind 2 there.
    let text = "<R><a type=\"real\" size=\"2\" kind=\"8\">1.5 2.5</a></R>";
    let mut binary = converted(text.as_bytes(), Target::default());
    let at = binary.windows(8).position(|w| w == b"kind=\"8\"").unwrap();
    binary[at + 6] = b'2';
    let file = read(&binary);
    assert_eq!(file.read_f64("R/a").unwrap(), Some(vec![1.5, 2.5]));
    let report = Iotk.check(&Source::memory(&binary[..]), &limits(), false).unwrap();
    assert_eq!(report.findings[0].code, "iotk-034");
    let text = converted(&binary, Target::Text);
    assert_eq!(converted(&text, Target::default()), binary);
}

#[test]
fn names_are_searched_by_the_rule_of_the_library() {
    let text = "<R><a><deep/></a><b n='1'/><c/><b n='2'/><d/></R>";
    let file = read(text.as_bytes());
    let number = |id: usize| file.index().elements()[id].tag.count("n");
    let mut cursor = file.cursor();
    assert!(cursor.scan("a").is_none() && cursor.begin("R").is_some());
    assert_eq!(cursor.scan("c").map(number), Some(None));
    // Forward first, then backward to the nearest; never into others; a miss moves nothing.
    assert_eq!(cursor.scan("b").map(number), Some(Some(2)));
    assert!(cursor.scan("d").is_some() && cursor.scan("deep").is_none());
    assert_eq!(cursor.scan("b").map(number), Some(Some(2)));
    assert!(cursor.scan("a").is_some());
    assert_eq!(cursor.scan("b").map(number), Some(Some(1)));
    assert!(cursor.begin("a").is_some() && cursor.scan("deep").is_some());
    assert!(cursor.end() && cursor.end() && !cursor.end());
}

#[test]
fn links_are_followed_inside_the_allowed_folder_only() {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/iotk/golden");
    let file = File::open(golden.join("link_main.xml"), &limits()).unwrap();
    let element = |name: &str| {
        let id = file.index().find(&format!("Root/{name}")).unwrap();
        file.index().elements()[id].clone()
    };
    let target = file.link_target(&element("txt"), &golden).unwrap().unwrap();
    assert!(File::open(target, &limits()).is_ok());
    let error = file.link_target(&element("dangling"), &golden).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    let outside = file.link_target(&element("txt"), &golden.join("../conv")).unwrap_err();
    assert_eq!((outside.kind(), outside.code()), (ErrorKind::Unsupported, "iotk-015"));
    assert_eq!(file.link_target(&element("before"), &golden).unwrap(), None);
}

#[test]
fn planes_are_one_density_and_bands_one_set_of_wavefunctions() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/iotk/qe54_si/si.save");
    let file = File::open(folder.join("charge-density.dat"), &limits()).unwrap();
    let density = file.tree().node(file.tree().find("Root/CHARGE-DENSITY/density").unwrap());
    let desc = density.array.as_ref().unwrap();
    assert_eq!(desc.shape.lengths(), [12, 12, 12]);
    let array = Array::open(file.source(), file.tree(), desc, &limits()).unwrap();
    let plane = array.read_f64(&":, :, 4".parse().unwrap(), Axes::Stored).unwrap();
    assert_eq!(Some(plane), file.read_f64("Root/CHARGE-DENSITY/z.5").unwrap());
    // Eight electrons in a cell of a^3 / 4.
    let all = array.read_f64(&":, :, :".parse().unwrap(), Axes::Stored).unwrap();
    let electrons = all.iter().sum::<f64>() / 1728.0 * 10.2_f64.powi(3) / 4.0;
    assert!((electrons - 8.0).abs() < 1e-6, "{electrons}");
    let file = File::open(folder.join("K00002/evc.dat"), &limits()).unwrap();
    let waves = file.tree().node(file.tree().find("WFC/wavefunctions").unwrap());
    let desc = waves.array.as_ref().unwrap();
    let array = Array::open(file.source(), file.tree(), desc, &limits()).unwrap();
    let band = array.read(&":, 2".parse().unwrap(), Axes::Stored).unwrap();
    // Normalised: the squares of a band add up to one.
    let norm: f64 = band.chunks(8).map(|b| f64::from_le_bytes(b.try_into().unwrap()).powi(2)).sum();
    assert!((norm - 1.0).abs() < 1e-9, "{norm}");
}

#[test]
fn both_forms_of_a_file_have_the_same_content() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/iotk/qe54_si/si.save");
    for name in ["charge-density.dat", "K00002/evc.dat", "data-file.xml"] {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let file = read(&bytes);
        let target = if file.form() == Form::Text { Target::default() } else { Target::Text };
        let other = read(&converted(&bytes, target));
        assert_same_content(&file, &other);
        let types = |file: &File| -> Vec<(String, String)> {
            let shown = |d: DType| d.with_order(ByteOrder::Little).to_string();
            let arrays = file.tree().arrays();
            arrays.map(|(_, node, desc)| (node.path.clone(), shown(desc.dtype))).collect()
        };
        assert_eq!(types(&file), types(&other), "{name}");
    }
    let file = read(b"<R><a type='integer' size='2'>1 5000000000</a></R>");
    assert_eq!(file.read_f64("R/a").unwrap(), Some(vec![1.0, 5e9]));
}

#[test]
fn a_density_without_all_its_planes_says_so() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/golden/iotk/qe54_si/si.save/charge-density.dat");
    let mut bytes = std::fs::read(path).unwrap();
    let file = read(&bytes);
    let incomplete =
        ("charge density, incomplete".to_string(), Value::Text("11 of 12 planes".into()));
    assert!(!file.summary().contains(&incomplete));
    let plane = file.index().find("Root/CHARGE-DENSITY/z.5").unwrap();
    let data = file.index().elements()[plane].data[0].parts.offset();
    // A bit of the record's first marker, which stands before a word of zeros.
    bytes[data as usize - 8] ^= 1;
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved.dat");
    let mut sink = Sink::create(&saved, Overwrite::Never).unwrap();
    let done = Iotk.salvage(&Source::memory(bytes), &mut sink, &limits()).unwrap();
    sink.commit().unwrap();
    assert_eq!((done.kept.len(), &*done.lost[0]), (11, "Root/CHARGE-DENSITY/z.5"));
    let file = File::open(&saved, &limits()).unwrap();
    assert!(file.summary().contains(&incomplete), "{:?}", file.summary());
    assert!(file.tree().find("Root/CHARGE-DENSITY/density").is_err());
    let report = Iotk.check(file.source(), &limits(), false).unwrap();
    assert_eq!((report.findings.len(), report.findings[0].code), (1, "iotk-038"));
}

/// Tells `cargo xtask test` that a test could not run here.
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
    if let Some(list) = std::env::var_os("SPILE_SKIPPED") {
        let mut list = std::fs::OpenOptions::new().create(true).append(true).open(list).unwrap();
        writeln!(list, "{why}").unwrap();
    }
}

#[test]
fn a_fortran_program_reads_our_records_and_we_read_its() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let program = "program p\n integer :: h, k\n real(8) :: x(1000), y(1000)\n character(200) :: t\n\
        open(10, file='ours.dat', form='unformatted', status='old')\n\
        do k = 1, 6\n read(10) h\n if (h == 0) exit\n read(10) h, t(1:h/256)\n end do\n\
        backspace(10)\n read(10) h, x\n close(10)\n\
        open(11, file='theirs.dat', form='unformatted')\n y = -2 * x\n write(11) y\n write(11) 7\n\
        close(11)\n end program\n";
    std::fs::write(path("p.f90"), program).unwrap();
    for (flags, marker) in
        [(&["-fmax-subrecord-length=1024"][..], 4), (&["-frecord-marker=8"][..], 8)]
    {
        let mut compiler = Command::new("gfortran");
        compiler.args(flags).args(["p.f90", "-o", "p"]).current_dir(folder.path());
        match compiler.output() {
            Ok(done) => assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr)),
            Err(why) => return skipped(&format!("no gfortran: {why}")),
        }
        let bytes: Vec<u8> = (0..1000).flat_map(|k| (f64::from(k) / 3.0).to_le_bytes()).collect();
        let framing = Framing { marker, order: ByteOrder::NATIVE };
        let target = Target::Binary(framing, if marker == 4 { 1024 } else { SUBRECORD });
        let mut writer = Writer::new(Vec::new(), target, Style::Exact).unwrap();
        writer.dat("x", &[], &array(DType::F64, &[1000], &bytes)).unwrap();
        std::fs::write(path("ours.dat"), writer.finish().unwrap()).unwrap();
        let done = Command::new(path("p")).current_dir(folder.path()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let source = Source::open(path("theirs.dat")).unwrap();
        assert_eq!(Form::detect(&source).unwrap(), Some(Form::Binary(framing)));
        let mut records = Records::new(source, framing, &limits());
        let first = records.next().unwrap().unwrap();
        assert_eq!(first.parts.count() > 1, marker == 4);
        let mut found = Vec::new();
        records.beginning(&first, 8000, &mut found).unwrap();
        let wanted: Vec<u8> =
            (0..1000).flat_map(|k| (-2.0 * (f64::from(k) / 3.0)).to_ne_bytes()).collect();
        assert_eq!(found, wanted);
    }
}
