//! Damaged and malicious files with the expected errors, and unusual valid files.

use std::path::Path;

use spile_core::Dataset;
use spile_core::error::ErrorKind;
use spile_core::format::{Checker as _, Format as _, Salvager as _};
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;
use spile_core::tree::Value;
use spile_iotk::wire::record::{Framing, RecordWriter, Records, SUBRECORD};
use spile_iotk::{File, Iotk, Style, Target, convert};

fn limits() -> Limits {
    Limits::default()
}

fn open(text: &str) -> Result<File, spile_core::error::Error> {
    File::from_source(Source::memory(text), &limits())
}

/// The dataset of the same bytes.
fn dataset(file: &File) -> Dataset {
    Dataset::open(&Iotk, file.source().clone(), &(&limits()).into()).unwrap()
}

fn binary(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    convert(&Source::memory(text), Target::default(), Style::Exact, &mut out, &limits()).unwrap();
    out
}

#[test]
fn malformed_text_gives_an_error_with_code_and_offset() {
    let deep = "<a>".repeat(2_000);
    for (text, code, offset) in [
        ("<R><a></b></R>", "iotk-008", 6),
        ("<R></R></R>", "iotk-008", 7),
        ("<R><a>", "iotk-009", 6),
        ("<R><a", "iotk-007", 3),
        ("<R><!-- x </R>", "iotk-007", 3),
        ("<R>< /R>", "iotk-009", 8),
        ("<R></></R>", "iotk-006", 3),
        (deep.as_str(), "core-limit", 3_000),
    ] {
        let error = open(text).err().unwrap_or_else(|| panic!("{text}"));
        assert_eq!((error.code(), error.offset()), (code, Some(offset)), "{text}: {error}");
    }
}

#[test]
fn invalid_values_are_reported_by_check_and_on_reading() {
    for (inside, code) in [
        ("type='real' size='2'>1.0", "iotk-013"),
        ("type='real' size='1'>1.0 2.0", "iotk-013"),
        ("type='integer' size='1'>1.5", "iotk-012"),
        ("type='integer' size='1' kind='1'>300", "iotk-012"),
        ("type='integer' size='1'>\n***\n", "iotk-012"),
        ("type='real' size='3'>3*1.0", "iotk-012"),
        ("type='real' size='2'>3*1.0", "iotk-012"),
        ("type='real' size='2' kind='8'>3*1.0", "iotk-012"),
        ("type='real' size='2' kind='8' fmt='(2f5.1)'>\n  1.0*****\n", "iotk-012"),
        ("type='real' size='1' kind='8'>1.922057152033675E+999", "iotk-012"),
        ("type='real' size='1' kind='4'>1.0E+300", "iotk-012"),
        ("type='complex' size='1' kind='8'>1.0,-1.0D+400", "iotk-012"),
        ("type='real' size='1' kind='16'>1.0E+9999", "iotk-012"),
        ("type='logical' size='1'>yes", "iotk-012"),
        ("type='real' size='99999999999999'>1", "iotk-013"),
        ("type='real' rank='2' n1='9999999999' n2='9999999999'>1", "iotk-010"),
        ("type='character' size='1' len='5000000000'>1", "iotk-010"),
        ("type='character' size='2' len='3'>\nab\n", "iotk-013"),
        ("type='character' size='2' len='3'>\nab\ncd\nef\n", "iotk-013"),
        ("type='character' size='1' len='3'>\nabcd\n", "iotk-014"),
    ] {
        let text = format!("<R><a {inside}</a></R>");
        let file = open(&text).unwrap();
        let error = file.array(1).err().unwrap_or_else(|| panic!("{text}"));
        assert_eq!((error.code(), error.kind()), (code, ErrorKind::Malformed), "{text}");
        let report = Iotk.check(&Source::memory(text.as_bytes()), &limits(), false).unwrap();
        assert_eq!(report.findings[0].code, code, "{text}");
        let mut out = Vec::new();
        let failed = convert(
            &Source::memory(text.as_bytes()),
            Target::default(),
            Style::Exact,
            &mut out,
            &limits(),
        );
        assert_eq!(failed.unwrap_err().code(), code, "{text}");
    }
}

#[test]
fn text_that_exceeds_a_small_memory_limit_is_refused() {
    let small = limits().with_memory(64 << 10);
    let comments = format!("<R type='real' size='1'>{}1.0</R>", "<!--c-->".repeat(20_000));
    let many = format!("<R>{}</R>", "<a/>".repeat(2_000));
    let long = format!("<R a='{}'/>", "x".repeat(100_000));
    for text in [&comments, &many, &long] {
        let error = File::from_source(Source::memory(text.as_bytes()), &small).err().unwrap();
        assert_eq!((error.kind(), error.offset().is_some()), (ErrorKind::Limit, true), "{error}");
    }
}

#[test]
fn text_longer_than_the_memory_limit_is_checked_and_converted() {
    let numbers = "1.25 ".repeat(200_000);
    let words = "words ".repeat(200_000);
    let text = format!("<R><a type='real' size='200000'>{numbers}</a><b>{words}</b></R>");
    let small = limits().with_memory(512 << 10);
    let file = File::from_source(Source::memory(text.as_bytes()), &small).unwrap();
    let report = Iotk.check(file.source(), &small, false).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let mut read = vec![0.0; 200_000];
    assert!(file.read_into("R/a", &mut read).unwrap() && read.iter().all(|x| *x == 1.25));
    let mut out = Vec::new();
    // Only text without a type must fit in memory.
    let done = convert(file.source(), Target::default(), Style::Exact, &mut out, &small);
    assert_eq!(done.unwrap_err().kind(), ErrorKind::Limit);
    let typed = Source::memory(text.replace(&words, "words"));
    out.clear();
    convert(&typed, Target::default(), Style::Exact, &mut out, &small).unwrap();
    let back = File::from_source(Source::memory(out), &small).unwrap();
    let mut again = vec![0.0; 200_000];
    assert!(back.read_into("R/a", &mut again).unwrap() && again == read);
    let short = text.replace("'200000'", "'200001'");
    let report = Iotk.check(&Source::memory(short), &small, false).unwrap();
    assert_eq!(report.findings[0].code, "iotk-013");
    assert_eq!(report.findings[0].message, "expected 200001 numbers, found 200000");
}

#[test]
fn malformed_records_give_an_error_with_code_and_offset() {
    let good = binary("<R><a type='real' size='2'>1.0 2.0</a></R>");
    let data = good.windows(8).position(|w| w == [20, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    let verdict = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        let error = File::from_source(Source::memory(bytes), &limits()).err().unwrap();
        (error.code(), error.offset())
    };
    assert_eq!(verdict(&|b| b.truncate(data + 10)), ("iotk-003", Some(data as u64)));
    assert_eq!(verdict(&|b| b[data] = 19), ("iotk-004", Some(data as u64 + 23)));
    assert_eq!(verdict(&|b| b[data + 4] = 9), ("iotk-005", Some(data as u64 + 4)));
    // A record of 12 bytes where 16 are needed.
    let short = |b: &mut Vec<u8>| {
        b.drain(data + 20..data + 24);
        b[data] = 16;
        b[data + 20] = 16;
    };
    let mut bytes = good.clone();
    short(&mut bytes);
    let file = File::from_source(Source::memory(bytes.clone()), &limits()).unwrap();
    assert_eq!(file.array(1).err().unwrap().code(), "iotk-011");
    let report = Iotk.check(&Source::memory(bytes), &limits(), false).unwrap();
    assert_eq!((report.findings.len(), report.findings[0].code), (1, "iotk-011"));
    // A wrong second header is a warning.
    let mut wrong = good.clone();
    wrong[16] ^= 1;
    let report = Iotk.check(&Source::memory(wrong), &limits(), false).unwrap();
    assert_eq!(report.findings[0].code, "iotk-031");
}

#[test]
fn wrong_tag_headers_are_reported_and_the_tag_is_read() {
    let good = binary("<R><a type='real' size='2'>1.0 2.0</a></R>");
    // The first tag: 4 | header | 4, then the second header and its text.
    let header = i32::from_le_bytes(good[4..8].try_into().unwrap());
    for (wrong, code) in [
        (header + 256, Some("iotk-031")),
        (header - 256, Some("iotk-031")),
        (header + 65_536 * 256, Some("iotk-031")),
        (header + 1, None),
        (header | i32::MIN, None),
        (7 + 256, None),
        (0, None),
    ] {
        let mut bytes = good.clone();
        bytes[4..8].copy_from_slice(&wrong.to_le_bytes());
        let found = File::from_source(Source::memory(bytes.clone()), &limits());
        let report = Iotk.check(&Source::memory(bytes), &limits(), false).unwrap();
        if let Some(code) = code {
            assert_eq!(found.unwrap().read_f64("R/a").unwrap(), Some(vec![1.0, 2.0]));
            assert_eq!((report.findings[0].code, report.findings[0].offset), (code, Some(0)));
        } else {
            // Another kind of tag, or none.
            let error = found.err().unwrap_or_else(|| panic!("{wrong}"));
            let known = ["iotk-005", "iotk-006", "iotk-008"].contains(&error.code());
            assert!(known && error.offset().is_some(), "{wrong}: {error}");
        }
    }
}

#[test]
fn a_truncated_record_is_reported_with_its_offset() {
    let good = binary("<R><a type='real' size='2'>1.0 2.0</a></R>");
    let starts: Vec<u64> = {
        let framing = Framing::default();
        let mut records = Records::new(Source::memory(good.clone()), framing, &limits());
        let mut starts = Vec::new();
        while let Some(record) = records.next().unwrap() {
            starts.push(record.offset);
        }
        starts
    };
    for len in 9..good.len() {
        let error = File::from_source(Source::memory(&good[..len]), &limits()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Truncated, "{len}: {error}");
        let last = starts.iter().rev().find(|start| **start <= len as u64).copied().unwrap();
        let at = error.offset().unwrap();
        assert!(at >= last && at <= len as u64, "{len}: {at}");
    }
}

#[test]
fn nesting_beyond_the_depth_limit_is_refused_at_the_first_excess_level() {
    let deep = "<a>".repeat(1_000_000);
    let error = open(&deep).err().unwrap();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Limit, Some(3_000)));
    let mut records = RecordWriter::new(Vec::new(), Framing::default(), SUBRECORD).unwrap();
    let header = |control: i32| (control + 256 * 5).to_le_bytes();
    for _ in 0..1_000_000 {
        records.record(&[&header(1)]).unwrap();
        records.record(&[&header(128), b"\n<a>\n"]).unwrap();
    }
    let bytes = records.into_inner();
    let error = File::from_source(Source::memory(bytes), &limits()).err().unwrap();
    // Each level has two records, of 12 and of 17 bytes.
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Limit, Some(29 * 1_000)));
    let mut out = Vec::new();
    for end in ["", &"</a>".repeat(1_000_000)] {
        let text = Source::memory(format!("{deep}{end}"));
        let done = convert(&text, Target::default(), Style::Exact, &mut out, &limits());
        assert_eq!(done.unwrap_err().kind(), ErrorKind::Limit);
        assert!(Iotk.check(&text, &limits(), true).is_err_and(|e| e.kind() == ErrorKind::Limit));
    }
}

#[test]
fn recursive_entities_are_not_expanded() {
    let mut bomb = "<!DOCTYPE l [ <!ENTITY l0 \"ha\">".to_string();
    for k in 1..20 {
        let before = format!("&l{};", k - 1).repeat(10);
        bomb.extend([&format!("<!ENTITY l{k} \""), &before, "\">"]);
    }
    bomb.push_str(
        "]><R x='&l19;'><a type='character' size='1' len='6'>\n&l19;\n</a><b>&l19;</b></R>",
    );
    let file = open(&bomb).unwrap();
    assert_eq!(file.read_strings("R/a").unwrap().unwrap(), ["&l19;"]);
    assert_eq!(file.read_strings("R/b").unwrap().unwrap(), ["&l19;"]);
    let dataset = dataset(&file);
    let root = dataset.tree().node(dataset.tree().find("R").unwrap());
    assert_eq!(root.attrs.get_str("x"), Some("&l19;"));
    let cut = &bomb[..bomb.find("]>").unwrap()];
    let error = open(cut).err().unwrap();
    assert_eq!((error.code(), error.offset()), ("iotk-007", Some(0)));
}

#[test]
fn salvage_keeps_every_complete_element() {
    let folder = tempfile::tempdir().unwrap();
    let text = "<R>\n<a type=\"real\" size=\"1\">\n1.5\n</a>\n<g>\n<b type=\"integer\" size=\"2\" kind=\"4\">\n\
        1 2\n</b>\n<c type=\"real\" size=\"3\">\n1.0 2.0 3.0\n</c>\n</g>\n</R>\n";
    let records = binary(text);
    for (name, bytes, cut) in [("a.xml", text.as_bytes(), "3.0"), ("a.dat", &records[..], "</c>")] {
        let at = bytes.windows(cut.len()).position(|w| w == cut.as_bytes()).unwrap();
        // In records the data of c are complete and kept; in text this is unknown.
        for len in [at, at - 40] {
            let source = Source::memory(&bytes[..len]);
            let path = folder.path().join(format!("{len}{name}"));
            let mut sink = Sink::create(&path, Overwrite::Never).unwrap();
            let saved = Iotk.salvage(&source, &mut sink, &limits()).unwrap();
            sink.commit().unwrap();
            assert!(!saved.lost.is_empty(), "{name} {len}");
            let file = File::open(&path, &limits()).unwrap();
            assert_eq!(file.read_f64("R/a").unwrap(), Some(vec![1.5]), "{name} {len}");
            assert_eq!(
                file.read_f64("R/g/b").unwrap().is_some(),
                saved.kept.contains(&"R/g/b".into())
            );
            assert!(Iotk.check(file.source(), &limits(), false).unwrap().findings.is_empty());
        }
    }
    // One damaged element in the middle is lost, the others are kept.
    let bad = text.replace("1 2\n", "1 x\n");
    let path = folder.path().join("middle.xml");
    let mut sink = Sink::create(&path, Overwrite::Never).unwrap();
    let saved = Iotk.salvage(&Source::memory(bad), &mut sink, &limits()).unwrap();
    sink.commit().unwrap();
    assert_eq!((saved.lost, saved.kept.len()), (vec!["R/g/b".to_string()], 2));
    assert_eq!(File::open(&path, &limits()).unwrap().read_f64("R/g/c").unwrap().unwrap().len(), 3);
}

/// The recovered file, and the messages about lost content.
fn saved(bytes: &[u8]) -> (File, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("saved");
    let mut sink = Sink::create(&path, Overwrite::Never).unwrap();
    let saved = Iotk.salvage(&Source::memory(bytes), &mut sink, &limits()).unwrap();
    sink.commit().unwrap();
    let left = Source::memory(std::fs::read(&path).unwrap());
    let report = Iotk.check(&left, &limits(), false).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let file = File::from_source(left, &limits()).unwrap();
    for path in &saved.kept {
        assert!(file.index().find(path).is_some(), "{path}");
    }
    (file, saved.lost)
}

#[test]
fn salvage_continues_after_a_damage_where_the_tags_nest_again() {
    let planes =
        |k: u32| format!("<z.{k} type=\"real\" size=\"2\" kind=\"8\">\n{k}.5 {k}.0\n</z.{k}>\n");
    let planes: String = (1..=5).map(planes).collect();
    let text = format!(
        "<R>\n<C>\n<INFO n=\"5\"/>\n{planes}</C>\n<d type=\"integer\" size=\"1\">\n7\n</d>\n</R>\n"
    );
    let records = binary(&text);
    let left = |bytes: &[u8], gone: &[u32]| {
        let (file, lost) = saved(bytes);
        for k in 1..=5 {
            let plane = file.read_f64(&format!("R/C/z.{k}")).unwrap();
            let wanted = Some(vec![f64::from(k) + 0.5, f64::from(k)]);
            assert_eq!(plane, wanted.filter(|_| !gone.contains(&k)), "{k} {lost:?}");
        }
        assert_eq!(file.read_f64("R/d").unwrap(), Some(vec![7.0]), "{lost:?}");
        assert!(!lost.is_empty());
        lost
    };
    let find =
        |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).position(|w| w == what).unwrap();

    // A bit of the first or second marker of the data of two planes.
    let data = |k: f64| find(&records, &(k + 0.5).to_le_bytes());
    for (at, also) in [(data(2.0) - 8, data(4.0) + 16), (data(2.0) + 16, data(4.0) - 7)] {
        let mut bytes = records.clone();
        bytes[at] ^= 1;
        bytes[also] ^= 1;
        let lost = left(&bytes, &[2, 4]);
        assert!(lost.contains(&"R/C/z.2".to_string()) && lost.contains(&"R/C/z.4".to_string()));
    }
    // A byte in the name or the delimiter of a begin or end tag.
    for (tag, letter) in [("<z.2", 1), ("</z.2", 4), ("<z.2", 0), ("</z.2", 0)] {
        for bytes in [text.as_bytes(), &records[..]] {
            let at = find(bytes, tag.as_bytes()) + letter;
            let mut bytes = bytes.to_vec();
            bytes[at] = b'q';
            // Without its delimiter the end tag of z.2 is text.
            if letter == 0 && tag == "</z.2" && bytes[0] == b'<' {
                continue;
            }
            let gone: &[u32] = if letter == 0 && tag == "</z.2" { &[] } else { &[2] };
            left(&bytes, gone);
        }
    }
    // Which elements are open after a lost begin tag of a group is unknown: its content is lost.
    let at = find(&records, b"<C>");
    let mut bytes = records.clone();
    bytes[at] = b'q';
    let (file, lost) = saved(&bytes);
    assert_eq!(file.read_f64("R/d").unwrap(), Some(vec![7.0]), "{lost:?}");
    assert!(lost.iter().any(|what| what.starts_with("bytes ") && what.ends_with(" in R")));
}

#[test]
fn the_result_of_salvage_is_readable_for_a_damage_of_any_byte() {
    let text = "<R>\n<C>\n<a type=\"real\" size=\"1\" kind=\"8\">\n1.5\n</a>\n</C>\n<C>\n<i x=\"1\"/>\n\
        <b type=\"integer\" size=\"1\" kind=\"4\">\n7\n</b>\n</C>\n</R>\n";
    let records = binary(text);
    let folder = tempfile::tempdir().unwrap();
    for bytes in [text.as_bytes(), &records[..]] {
        for at in 0..bytes.len() {
            let mut bytes = bytes.to_vec();
            bytes[at] ^= 0x11;
            let path = folder.path().join("saved");
            let mut sink = Sink::create(&path, Overwrite::Replace).unwrap();
            if Iotk.salvage(&Source::memory(bytes), &mut sink, &limits()).is_err() {
                continue;
            }
            sink.commit().unwrap();
            let left = std::fs::read(&path).unwrap();
            let file = File::from_source(Source::memory(left), &limits());
            assert!(file.is_ok(), "byte {at}: {}", file.err().unwrap());
        }
    }
}

#[test]
fn unusual_valid_text_is_parsed() {
    let text = "\u{feff}\n<!DOCTYPE x [ <!ENTITY a \"b\"> <!ENTITY c \"&a;&a;\"> ]>\n\
        <R x = '1' y=\"a > b\" z=\"&a;&#65;\"\n><!-- a -- b --><a type='real' size='3'>1.0 <!-- in between --> \
        2.0,3.0</a ><b><![CDATA[a < b & c]]></b><c>1 < 2 <me@there.org></c>\
        <d type='character' size='3' len='4' fmt='(3a4)'>\na<b  &  x   \n</d>\
        <e type='real' size='3' fmt='(3F8.3)'>\n-123.456-123.456   1.000\n</e>\
        <f type='character' size='1' len='7' fmt='(a)'>\na</fu>b\n</f></R>";
    let file = open(text).unwrap();
    assert_eq!(file.read_f64("R/a").unwrap(), Some(vec![1.0, 2.0, 3.0]));
    assert_eq!(file.read_strings("R/b").unwrap().unwrap(), ["a < b & c"]);
    assert_eq!(file.read_strings("R/c").unwrap().unwrap(), ["1 < 2 <me@there.org>"]);
    assert_eq!(file.read_strings("R/d").unwrap().unwrap(), ["a<b", " &", "x"]);
    assert_eq!(file.read_f64("R/e").unwrap(), Some(vec![-123.456, -123.456, 1.0]));
    assert_eq!(file.read_strings("R/f").unwrap().unwrap(), ["a</fu>b"]);
    let dataset = dataset(&file);
    let root = dataset.tree().node(dataset.tree().find("R").unwrap());
    let wanted = [Value::Int(1), Value::Text("a > b".into()), Value::Text("&a;A".into())];
    assert_eq!(root.attrs.iter().take(3).map(|(_, v)| v.clone()).collect::<Vec<_>>(), wanted);
}

#[test]
fn escapes_are_resolved_outside_of_cdata_only() {
    let section = "<![CDATA[&lt;\n&#65;]]>";
    let text = format!(
        "<R><a>&lt;{section}&gt;{section}&amp;</a><b>\n&lt;{section}&gt;\n</b>\
         <c type='character' size='2' len='5'>\n<![CDATA[&amp;]]>\n&amp;\n</c></R>"
    );
    let file = open(&text).unwrap();
    assert_eq!(file.read_strings("R/a").unwrap().unwrap(), ["<&lt;\n&#65;>&lt;\n&#65;&"]);
    assert_eq!(file.read_strings("R/b").unwrap().unwrap(), ["<&lt;\n&#65;>"]);
    assert_eq!(file.read_strings("R/c").unwrap().unwrap(), ["&amp;", "&"]);
}

#[test]
fn line_ends_of_a_single_string_are_part_of_it() {
    let text = "<R><a type='character' size='1' len='9'>\none\n two\n</a><b>\none\n\ntwo\n</b></R>";
    let file = open(text).unwrap();
    assert_eq!(file.read_strings("R/a").unwrap().unwrap(), ["one\n two"]);
    assert_eq!(file.read_strings("R/b").unwrap().unwrap(), ["one\n\ntwo"]);
}

#[test]
fn the_regions_of_a_text_cover_every_byte() {
    let odd = "\u{feff}\n<!DOCTYPE x [ <!ENTITY a \"b\"> ]>\n<R>\n  <!-- c -->\n  <a type='real' size='2'>1.0 <!-- in \
               between --> 2.0\n  </a>\n  <b>words</b>\n</R>\n\n";
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/iotk");
    let qe = std::fs::read_to_string(golden.join("qe54_si/si.save/data-file.xml")).unwrap();
    let hand = std::fs::read_to_string(golden.join("golden/hand_written.xml")).unwrap();
    for text in [odd, &qe, &hand, "\n <R/>", "<R/>"] {
        let file = open(text).unwrap();
        let mut end = 0;
        let mut names = Vec::new();
        dataset(&file)
            .regions(&mut |region| {
                assert_eq!(region.offset, end, "{names:?}");
                end += region.len;
                names.push(region.name);
                Ok(())
            })
            .unwrap();
        assert_eq!(end, text.len() as u64, "{names:?}");
        if text == odd {
            let report = Iotk.check(file.source(), &limits(), false).unwrap();
            assert!(report.findings.is_empty(), "{:?}", report.findings);
            assert_eq!(names[..3], ["declaration", "begin R", "comment"]);
        }
    }
}

#[test]
fn every_piece_of_mixed_content_is_in_the_tree() {
    let text = "<R><p>one<x/>two<x/>three</p><d type='real' size='1'>1.5<x/>2.5</d></R>";
    for file in
        [open(text).unwrap(), File::from_source(Source::memory(binary(text)), &limits()).unwrap()]
    {
        let dataset = dataset(&file);
        let words = |path: &str| {
            dataset.array(path).unwrap().read_bytes(&Selection::all(), Axes::Stored).unwrap()
        };
        assert_eq!(words("R/p/text"), b"one");
        assert_eq!(words("R/p/text~2"), b"two");
        assert_eq!(words("R/p/text~3"), b"three");
        assert_eq!(words("R/d/text"), 1.5_f64.to_le_bytes());
        assert_eq!(words("R/d/text~2"), b"2.5");
        let report = Iotk.check(file.source(), &limits(), false).unwrap();
        assert_eq!(report.findings.iter().map(|f| f.code).collect::<Vec<_>>(), ["iotk-037"]);
    }
}

#[test]
fn upf_pseudopotentials_are_read_and_converted() {
    let text = "<UPF version=\"2.0.1\">\n  <PP_INFO>\n    Generated by hand & foot\n    <PP_INPUTFILE>\n&input\n\
        /\n    </PP_INPUTFILE>\n  </PP_INFO>\n  <PP_HEADER\n   element=\"F \"\n   z_valence=\"   7.000\"\n\
        mesh_size=\"  3\"/>\n  <PP_MESH dx=\"1.25E-002\">\n    <PP_R type=\"real\"  size=\"3\" columns=\"4\">\n\
        1.0E-4 2.0E-4 3.0E-4\n    </PP_R>\n  </PP_MESH>\n</UPF>\n";
    let file = open(text).unwrap();
    assert_eq!(file.read_f64("UPF/PP_MESH/PP_R").unwrap(), Some(vec![1e-4, 2e-4, 3e-4]));
    let dataset = dataset(&file);
    let header = &dataset.tree().node(dataset.tree().find("UPF/PP_HEADER").unwrap()).attrs;
    assert_eq!((header.get_str("element"), header.get_i64("mesh_size")), (Some("F"), Some(3)));
    assert!(dataset.tree().find("UPF/PP_INFO/text").is_ok());
    assert_eq!(dataset.summary().get_str("element"), Some("F"));
    let score =
        Iotk.probe(spile_core::format::Head { bytes: text.as_bytes(), len: text.len() as u64 });
    assert!(score > 90);
    let there = binary(text);
    let mut back = Vec::new();
    convert(&Source::memory(there.clone()), Target::Text, Style::Exact, &mut back, &limits())
        .unwrap();
    let again = String::from_utf8(back).unwrap();
    assert_eq!(binary(&again), there, "{again}");
}
