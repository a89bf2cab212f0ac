//! The writer, conversion of random files, kinds, links, search.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::ErrorKind;
use spile_core::format::{Checker as _, FormatWriter as _, Salvager as _};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::shape::{Order, Shape};
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;
use spile_core::testkit::assert_same_content;
use spile_core::tree::{Attrs, Tree};
use spile_core::wire::ByteOrder;
use spile_iotk::wire::record::{Framing, SUBRECORD};
use spile_iotk::wire::{Tag, Type};
use spile_iotk::{File, Form, Iotk, Style, Target, Writer, convert};

fn limits() -> Limits {
    Limits::default()
}

fn array(dtype: DType, lengths: &[u64], bytes: &[u8]) -> Array {
    let layout = Layout::Inline(bytes.into(), Order::F);
    let desc = ArrayDesc::new(dtype, Shape::new(lengths), layout);
    Dataset::new(Source::memory([]), Tree::new(&limits())).open_array(&desc).unwrap()
}

fn dataset(bytes: &[u8]) -> Dataset {
    Dataset::open(&Iotk, Source::memory(bytes), &(&limits()).into()).unwrap()
}

fn open(path: impl AsRef<Path>) -> Dataset {
    Dataset::open_path(&Iotk, path, &(&limits()).into()).unwrap()
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

/// A call of the writer.
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
                let units = Attrs::from([("units", 0.1.into())]);
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

#[test]
fn a_string_that_begins_with_a_line_end_keeps_it() {
    for text in [&b"\nabc"[..], b"\r\nab", b"\n\n\n\n", b"a\nb\n"] {
        let steps = [Step::Data("A".into(), Type::Character, 4, text.to_vec())];
        for qe_syntax in [true, false] {
            let binary = write(&steps, qe_syntax, Target::Binary(Framing::default(), SUBRECORD));
            let text = converted(&binary, Target::Text);
            assert_eq!(converted(&text, Target::default()), binary, "{}", text.escape_ascii());
            assert_eq!(write(&steps, qe_syntax, Target::Text), text);
        }
    }
}

proptest! {
    #[test]
    fn any_file_survives_conversion_to_text_byte_for_byte(
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
        // The writer gives the same text as the conversion.
        prop_assert_eq!(&write(&steps, qe_syntax, Target::Text), &text);
        assert_same_content(&dataset(&binary), &dataset(&text));
        let cut = converted(&binary, Target::Binary(Framing::default(), limit));
        assert_same_content(&dataset(&binary), &dataset(&cut));
        prop_assert_eq!(&converted(&cut, Target::Binary(framing, SUBRECORD)), &binary);
    }
}

proptest! {
    #[test]
    fn eighty_bit_numbers_survive_conversion_to_text(bits in proptest::collection::vec(any::<u128>(), 1..9)) {
        // Any pattern of 80 bits, valid or not; the padding is zero.
        let bytes: Vec<u8> = bits.iter().flat_map(|b| (b >> 48).to_le_bytes()).collect();
        for kind in [Type::Real, Type::Complex] {
            let dtype = kind.dtype(10, ByteOrder::Little).unwrap();
            let count = bytes.len() / dtype.size();
            let array = array(dtype, &[count as u64], &bytes[..count * dtype.size()]);
            let mut writer = Writer::new(Vec::new(), Target::default(), Style::Exact).unwrap();
            writer.dat("x", &Attrs::new(), &array).unwrap();
            let binary = writer.finish().unwrap();
            let text = converted(&binary, Target::Text);
            prop_assert_eq!(converted(&text, Target::default()), binary);
        }
    }
}

#[test]
fn special_values_of_every_kind_survive_conversion_to_text() {
    let mut writer = Writer::new(Vec::new(), Target::default(), Style::Exact).unwrap();
    let mut put = |name: &str, kind: Type, number: u64, values: &[u128]| {
        let dtype = kind.dtype(number, ByteOrder::Little).unwrap();
        let word = dtype.word();
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()[..word].to_vec()).collect();
        let count = bytes.len() / dtype.size();
        let array = array(dtype, &[count as u64], &bytes[..count * dtype.size()]);
        writer.dat(name, &Attrs::new(), &array).unwrap();
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
    // Other byte order and markers.
    let big = Framing { marker: 8, order: ByteOrder::Big };
    let swapped = converted(&binary, Target::Binary(big, 64));
    assert!(converted(&swapped, Target::Text) == text);
    assert!(converted(&swapped, Target::default()) == binary);
    assert!(converted(&text, Target::Binary(big, 64)) == swapped);
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
        writer.dat_qe("m", &Attrs::new(), &array(DType::I32, &[2, 3], &bytes)).unwrap();
        writer.dat_qe("s", &Attrs::new(), &array(DType::F64, &[], &1.5_f64.to_le_bytes())).unwrap();
        writer.dat_qe("t", &Attrs::new(), &array(DType::text(4), &[], b"a <b")).unwrap();
        writer.end().unwrap();
        let made = writer.finish().unwrap();
        let file = dataset(&made);
        let shape = |path: &str| file.array(path).unwrap().shape().lengths().to_vec();
        assert_eq!((shape("Root/m"), shape("Root/s")), (vec![2, 3], vec![]));
        out.push(made);
    }
    assert_same_content(&dataset(&out[0]), &dataset(&out[1]));
    // Through the tree.
    let path = folder.path().join("a.dat");
    let mut sink = Sink::create(&path, Overwrite::Never).unwrap();
    Iotk.write(&dataset(&out[0]), &mut sink, &spile_core::format::WriteOptions::default()).unwrap();
    sink.commit().unwrap();
    assert_same_content(&open(&path), &dataset(&out[0]));
}

#[test]
fn numbers_without_a_kind_get_the_kind_they_need() {
    let text = "<R><a type='integer' size='2'>1 -2</a><b type='integer' size='1'>5000000000</b>\
                <c type='real' size='1'>0.1</c><d type='real'>1.23456789012345678901 1e400</d>\
                <e type='real' size='1'>1.0D0</e><f type='character'>x &lt; y</f></R>";
    let binary = converted(text.as_bytes(), Target::default());
    let file = read(&binary);
    let tag = |path: &str| {
        let tag = &file.index().elements()[file.index().find(path).unwrap()].tag;
        (tag.get_u64("size"), tag.get_u64("kind"), tag.get_u64("len"))
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
fn kinds_are_converted_to_the_requested_type() {
    let text = "<R><i type='integer' size='3' kind='8'>-1 300 9007199254740993</i>\
                <r type='real' size='2' kind='8'>0.1 1e300</r><s type='real' size='1' kind='4'>0.1</s>\
                <q type='real' size='1' kind='16'>0.1</q><c type='complex' size='2' kind='4'>1.5,2 -3,4</c>\
                <l type='logical' size='3' kind='1'>T .false. true</l></R>";
    for bytes in [text.as_bytes().to_vec(), converted(text.as_bytes(), Target::default())] {
        let file = read(&bytes);
        // Integers that a double cannot represent are exact.
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
        // Other types are errors, missing elements are `None`.
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
    // Both ways of reading report invalid text.
    for inside in ["1.0", "1.0 2.0 3.0", "1.0 x"] {
        let file = read(format!("<R><a type='real' size='2'>{inside}</a></R>").as_bytes());
        let code = if inside.ends_with('x') { "iotk-012" } else { "iotk-013" };
        assert_eq!(file.read_into("R/a", &mut [0.0; 2]).unwrap_err().code(), code);
        assert_eq!(file.read_f64("R/a").unwrap_err().code(), code);
    }
}

#[test]
fn a_slice_is_written_like_an_array() {
    let numbers: Vec<f64> = (0..20_000).map(|k| f64::from(k) / 7.0).collect();
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    let big = Framing { marker: 8, order: ByteOrder::Big };
    for target in [Target::Text, Target::default(), Target::Binary(big, 1000)] {
        let mut writers = [(); 2].map(|()| Writer::new(Vec::new(), target, Style::Exact).unwrap());
        writers[0].dat("x", &Attrs::new(), &array(DType::F64, &[20_000], &bytes)).unwrap();
        writers[0].dat("n", &Attrs::new(), &array(DType::F64, &[0], &[])).unwrap();
        writers[1].dat_slice("x", &Attrs::new(), &numbers).unwrap();
        writers[1].dat_slice::<f64>("n", &Attrs::new(), &[]).unwrap();
        let [a, b] = writers.map(|writer| writer.finish().unwrap());
        assert!(a == b, "{target:?}");
        assert_eq!(read(&a).read::<f64>("x").unwrap().unwrap(), numbers);
    }
}

#[test]
fn a_comment_does_not_separate_digits() {
    let text = "<R><a type='integer' size='2'>1<!-- a -->2 3</a></R>";
    assert_eq!(read(text.as_bytes()).read_f64("R/a").unwrap(), Some(vec![12.0, 3.0]));
    assert_eq!(read(text.as_bytes()).read::<i32>("R/a").unwrap(), Some(vec![12, 3]));
    let binary = converted(text.as_bytes(), Target::default());
    assert_eq!(read(&binary).read::<i32>("R/a").unwrap(), Some(vec![12, 3]));
}

#[test]
fn the_record_length_decides_the_kind_of_another_compiler() {
    // NAG numbers kinds 1, 2, 3; kind 2 is an 8-byte real there.
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
    let number = |id: usize| file.index().elements()[id].tag.get_u64("n");
    let mut cursor = file.cursor();
    assert!(cursor.scan("a").is_none() && cursor.begin("R").is_some());
    assert_eq!(cursor.scan("c").map(number), Some(None));
    // Forward first, then backward to the nearest, not inside others; a miss does not move.
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
fn planes_and_bands_are_assembled_to_arrays() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/iotk/qe54_si/si.save");
    let file = File::open(folder.join("charge-density.dat"), &limits()).unwrap();
    let array =
        open(folder.join("charge-density.dat")).array("Root/CHARGE-DENSITY/density").unwrap();
    assert_eq!(array.shape().lengths(), [12, 12, 12]);
    let plane = array.read_f64(&":, :, 4".parse().unwrap(), Axes::Stored).unwrap();
    assert_eq!(Some(plane), file.read_f64("Root/CHARGE-DENSITY/z.5").unwrap());
    // Eight electrons in a cell of a^3 / 4.
    let all = array.read_f64(&":, :, :".parse().unwrap(), Axes::Stored).unwrap();
    let electrons = all.iter().sum::<f64>() / 1728.0 * 10.2_f64.powi(3) / 4.0;
    assert!((electrons - 8.0).abs() < 1e-6, "{electrons}");
    let array = open(folder.join("K00002/evc.dat")).array("WFC/wavefunctions").unwrap();
    let band = array.read_bytes(&":, 2".parse().unwrap(), Axes::Stored).unwrap();
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
        let (file, other) = (dataset(&bytes), dataset(&converted(&bytes, target)));
        assert_same_content(&file, &other);
        let types = |file: &Dataset| -> Vec<(String, String)> {
            let shown = |d: DType| d.with_order(ByteOrder::Little).to_string();
            file.arrays().map(|(_, node, desc)| (node.path.clone(), shown(desc.dtype))).collect()
        };
        assert_eq!(types(&file), types(&other), "{name}");
    }
    let file = read(b"<R><a type='integer' size='2'>1 5000000000</a></R>");
    assert_eq!(file.read_f64("R/a").unwrap(), Some(vec![1.0, 5e9]));
}

#[test]
fn a_density_with_missing_planes_is_reported() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/golden/iotk/qe54_si/si.save/charge-density.dat");
    let mut bytes = std::fs::read(path).unwrap();
    let file = read(&bytes);
    let incomplete = "charge density, incomplete";
    assert!(!dataset(&bytes).summary().contains(incomplete));
    let plane = file.index().find("Root/CHARGE-DENSITY/z.5").unwrap();
    let data = file.index().elements()[plane].data[0].offset();
    // A bit of the first record marker, four bytes before the header of zeros.
    bytes[data as usize - 8] ^= 1;
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved.dat");
    let mut sink = Sink::create(&saved, Overwrite::Never).unwrap();
    let done = Iotk.salvage(&Source::memory(bytes), &mut sink, &limits()).unwrap();
    sink.commit().unwrap();
    assert_eq!((done.kept.len(), &*done.lost[0]), (11, "Root/CHARGE-DENSITY/z.5"));
    let file = open(&saved);
    assert_eq!(file.summary().get_str(incomplete), Some("11 of 12 planes"));
    assert!(file.tree().find("Root/CHARGE-DENSITY/density").is_err());
    let report = Iotk.check(file.source(), &limits(), false).unwrap();
    assert_eq!((report.findings.len(), report.findings[0].code), (1, "iotk-038"));
}
