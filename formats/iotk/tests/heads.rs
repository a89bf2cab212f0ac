//! Headers of 8 bytes, heads that are added, numbers too large for their kind.

use spile_core::format::{Checker as _, Salvager as _};
use spile_core::{ByteOrder, Dataset, Limits, Overwrite, Sink, Source};
use spile_iotk::wire::record::{Framing, RecordWriter, SUBRECORD};
use spile_iotk::{File, Heads, Iotk, Style, Target, convert, convert_with};

fn limits() -> Limits {
    Limits::default()
}

fn converted(source: &[u8], target: Target, heads: Heads) -> Vec<u8> {
    let source = Source::memory(source.to_vec());
    let mut out = Vec::new();
    convert_with(&source, target, Style::Exact, heads, &mut out, &limits()).unwrap();
    out
}

const LONG: Heads = Heads { add_head: false, long_headers: true };

const TEXT: &str = "<?xml version=\"1.0\"?>\n<?iotk version=\"1.2.0\"?>\n<?iotk file_version=\"1.0\"?>\n\
    <?iotk binary=\"F\"?>\n<?iotk qe_syntax=\"F\"?>\n<Root>\n  <a type=\"real\" size=\"3\" kind=\"8\">\n 1.5\n -2.0\n \
    3.25\n  </a>\n  <b type=\"integer\" size=\"2\" kind=\"4\">\n 7\n 8\n  </b>\n</Root>\n";

/// Records as a library with `selected_int_kind(18)` headers writes them.
fn written_by_hand(framing: Framing) -> Vec<u8> {
    let order = framing.order;
    let number = move |value: i64| match order {
        ByteOrder::Little => value.to_le_bytes(),
        ByteOrder::Big => value.to_be_bytes(),
    };
    let real = |value: f64| number(i64::from_le_bytes(value.to_le_bytes()));
    let mut records = RecordWriter::new(Vec::new(), framing, SUBRECORD).unwrap();
    let mut tag = |control: i64, text: &str| {
        let len = text.len() as i64 + 2;
        records.record(&[&number(control + 256 * len)]).unwrap();
        records.record(&[&number(128 + 256 * len), b"\n", text.as_bytes(), b"\n"]).unwrap();
        if text.starts_with("<a") {
            let values = [real(1.5), real(-2.0), real(3.25)].concat();
            records.record(&[&number(0), &values]).unwrap();
        }
    };
    tag(5, "<?iotk version=\"1.2.0\"?>");
    tag(1, "<Root>");
    tag(1, "<a type=\"real\" size=\"3\" kind=\"8\">");
    tag(2, "</a>");
    tag(2, "</Root>");
    records.into_inner()
}

#[test]
fn files_with_headers_of_8_bytes_are_read() {
    for (marker, order) in
        [4, 8].into_iter().flat_map(|m| [(m, ByteOrder::Little), (m, ByteOrder::Big)])
    {
        let framing = Framing { marker, order };
        let bytes = written_by_hand(framing);
        let file = File::from_source(Source::memory(bytes.clone()), &limits()).unwrap();
        assert_eq!(file.read_f64("Root/a").unwrap(), Some(vec![1.5, -2.0, 3.25]), "{framing:?}");
        let report = Iotk.check(&Source::memory(bytes.clone()), &limits(), false).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        // To text and back with the same headers, the bytes are the same.
        let text = converted(&bytes, Target::Text, Heads::default());
        assert_eq!(
            converted(&text, Target::Binary(framing, SUBRECORD), LONG),
            bytes,
            "{framing:?}"
        );
        // With headers of 4 bytes, the content is the same.
        let short = converted(&bytes, Target::Binary(framing, SUBRECORD), Heads::default());
        let short = File::from_source(Source::memory(short), &limits()).unwrap();
        assert_eq!(short.read_f64("Root/a").unwrap(), Some(vec![1.5, -2.0, 3.25]));
    }
}

#[test]
fn a_tag_of_more_than_8_mib_needs_headers_of_8_bytes() {
    let text = format!("<Root><a note=\"{}\"/></Root>", "x".repeat(9 << 20));
    let source = Source::memory(text.clone());
    let error =
        convert(&source, Target::default(), Style::Exact, Vec::new(), &limits()).unwrap_err();
    assert_eq!(error.code(), "iotk-016");
    let bytes = converted(text.as_bytes(), Target::default(), LONG);
    let file = File::from_source(Source::memory(bytes), &limits()).unwrap();
    let note = file.index().elements()[1].tag.get_text("note").unwrap();
    assert_eq!(note.len(), 9 << 20);
}

#[test]
fn a_damaged_file_with_headers_of_8_bytes_is_salvaged() {
    let mut bytes = converted(TEXT.as_bytes(), Target::default(), LONG);
    // The data record of `a`.
    let at = bytes.windows(8).position(|w| w == 1.5_f64.to_le_bytes()).unwrap();
    bytes[at - 12] ^= 1;
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("out.dat");
    let mut sink = Sink::create(&path, Overwrite::Never).unwrap();
    Iotk.salvage(&Source::memory(bytes), &mut sink, &limits()).unwrap();
    sink.commit().unwrap();
    let file = File::open(&path, &limits()).unwrap();
    assert_eq!(file.read::<i64>("Root/b").unwrap(), Some(vec![7, 8]));
}

#[test]
fn a_head_is_added_only_to_files_without_one() {
    let bare =
        "<?xml version=\"1.0\"?>\n<Root>\n  <a type=\"integer\" size=\"1\">\n 7\n  </a>\n</Root>\n";
    let add = Heads { add_head: true, ..Heads::default() };
    let head =
        "<?xml version=\"1.0\"?>\n<?iotk version=\"1.2.0\"?>\n<?iotk file_version=\"1.0\"?>\n";
    for source in [bare, &bare[22..], TEXT] {
        let text = String::from_utf8(converted(source.as_bytes(), Target::Text, add)).unwrap();
        assert!(text.starts_with(head), "{text}");
        assert_eq!(text.matches("<?").count(), 5, "{text}");
        let bytes = converted(source.as_bytes(), Target::default(), add);
        let file = File::from_source(Source::memory(bytes), &limits()).unwrap();
        assert_eq!(file.index().head("version").as_deref(), Some("1.2.0"));
        assert_eq!(file.index().head("binary").as_deref(), Some("T"));
    }
}

#[test]
fn a_real_that_is_too_large_costs_itself_only() {
    let text = "<Root><a type='real' size='3' kind='4'>1.5 -1e99 3.0</a><b type='complex' size='1'>1e999,2.0</b>\
                <d type='real' size='2' kind='8'>*** 2.0</d>\
                <c type='integer' size='2' kind='4'>1 5000000000</c></Root>";
    let source = Source::memory(text);
    let dataset = Dataset::open(&Iotk, source.clone(), &(&limits()).into()).unwrap();
    let a = dataset.array("Root/a").unwrap().read::<Vec<f64>>("...").unwrap();
    assert_eq!(a, [1.5, f64::NEG_INFINITY, 3.0]);
    let b = dataset.array("Root/b").unwrap();
    let b = b.read_bytes(&spile_core::Selection::all(), spile_core::Axes::Stored).unwrap();
    assert_eq!(b[..8], f64::INFINITY.to_le_bytes());
    assert_eq!(b[8..], 2.0_f64.to_le_bytes());
    let d = dataset.array("Root/d").unwrap().read::<Vec<f64>>("...").unwrap();
    assert!(d[0].is_nan() && d[1] == 2.0, "{d:?}");
    // There is no integer for it.
    let c = dataset.array("Root/c").and_then(|c| c.read::<Vec<i64>>("..."));
    assert_eq!(c.unwrap_err().code(), "iotk-012");
    // It is reported, and not converted in silence.
    let report = Iotk.check(&source, &limits(), false).unwrap();
    let codes: Vec<&str> = report.findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["iotk-012"; 4]);
    let error =
        convert(&source, Target::default(), Style::Exact, Vec::new(), &limits()).unwrap_err();
    assert_eq!(error.code(), "iotk-012");
}
