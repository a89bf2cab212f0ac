//! IOTK to IOTK through the tree: comments, instructions and the spelling of attributes are kept.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use spile_core::Dataset;
use spile_core::format::write_file;
use spile_core::limits::Limits;
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_core::testkit::assert_same_content;
use spile_core::tree::Value;
use spile_iotk::wire::Control;
use spile_iotk::{Event, File, Iotk};

const TEXT: &str = r#"<?xml version="1.0" encoding="ISO-8859-1"?>
<?iotk version="1.2.0"?>
<?iotk file_version="2.10"?>
<?iotk binary="F"?>
<?iotk qe_syntax="F"?>
<?iotk run="0042"?>
<!-- before the root -->
<?style sheet="a.css"?>
<Root id="007" label="1.10" plus="+5" digits="123456789012345678901" n="3" x="0.5" pad="  12"
tau="0.100000000000000E+000 0.20" z="1.0,-2.50" big="1.000000000000000E+300" f="F">
  <!-- first child -->
  <a type="real" size="2" kind="8" weight=" 0.50">
 1.0
 2.0
  <!-- after the data -->
  </a>
  <!-- second: a &lt; b -->
  <?note in="between"?>
  <g>
    <!-- only a comment -->
  </g>
  <h>
    <i id="08"/>
    <!-- last in h -->
  </h>
  <!-- last -->
</Root>
<!-- after the root -->
"#;

fn limits() -> Limits {
    Limits::default()
}

fn open(source: Source, limits: &Limits) -> Dataset {
    Dataset::open(&Iotk, source, &limits.into()).unwrap()
}

/// Writes `dataset` to `path` and opens the result.
fn rewrite(dataset: &Dataset, path: &Path) -> Dataset {
    write_file(&Iotk, dataset, path, Overwrite::Never).unwrap();
    open(Source::open(path).unwrap(), &limits())
}

/// All tags in file order; those of the head without the form.
fn tags(dataset: &Dataset) -> Vec<String> {
    let file = File::from_source(dataset.source().clone(), &limits()).unwrap();
    let text = |kind: &str, bytes: &[u8]| format!("{kind} {}", String::from_utf8_lossy(bytes));
    let mut tags = Vec::new();
    let mut events = file.events();
    while let Some(item) = events.next().unwrap() {
        match item.event {
            Event::Tag(Control::Begin | Control::Empty, tag) => {
                tags.push(text("begin", tag.text()));
            }
            Event::Tag(Control::Comment, comment) => tags.push(text("comment", comment.text())),
            Event::Tag(Control::Instruction, tag) if tag.get_raw("binary").is_none() => {
                tags.push(text("instruction", tag.text()));
            }
            _ => {}
        }
    }
    tags
}

#[test]
fn comments_instructions_and_attribute_text_survive_the_tree() {
    let folder = tempfile::tempdir().unwrap();
    let original = open(Source::memory(TEXT), &limits());
    let text = rewrite(&original, &folder.path().join("a.xml"));
    let binary = rewrite(&original, &folder.path().join("a.dat"));
    let back = rewrite(&binary, &folder.path().join("b.xml"));
    // The writer puts `kind` before other attributes, and the head before other instructions.
    let sorted = |file: &Dataset| {
        let mut tags = tags(file);
        tags[..8].sort();
        tags
    };
    for file in [&text, &binary, &back] {
        assert_eq!(sorted(&original), sorted(file));
        assert_same_content(&original, file);
    }
}

#[test]
fn a_number_in_an_attribute_is_typed_only_if_its_text_can_be_restored() {
    let file = open(Source::memory(TEXT), &limits());
    let root = file.tree().node(file.tree().find("Root").unwrap());
    let value = |name: &str| root.attrs.get(name).unwrap().clone();
    for (name, text) in
        [("id", "007"), ("label", "1.10"), ("plus", "+5"), ("digits", "123456789012345678901")]
    {
        assert_eq!(value(name), Value::from(text), "{name}");
    }
    assert_eq!(value("n"), Value::Int(3));
    assert_eq!(value("x"), Value::Float(0.5));
    assert_eq!(value("pad"), Value::Int(12));
    assert_eq!(value("tau"), Value::List(vec![Value::Float(0.1), Value::Float(0.2)]));
    assert_eq!(value("z"), Value::Complex(1.0, -2.5));
    assert_eq!(value("big"), Value::Float(1e300));
}

#[test]
fn a_changed_value_is_not_written_with_its_old_text() {
    let folder = tempfile::tempdir().unwrap();
    let text = "<R a=\" 1.50\"><b type='integer' size='1'>7</b></R>";
    let file = open(Source::memory(text), &limits());
    let mut attrs = file.tree().node(file.tree().find("R").unwrap()).attrs.clone();
    assert_eq!(attrs.get_f64("a"), Some(1.5));
    attrs.set("a", 2.5);
    let mut writer =
        spile_iotk::Writer::new(Vec::new(), spile_iotk::Target::Text, spile_iotk::Style::Exact)
            .unwrap();
    writer.dat_slice("R", &attrs, &[1.0]).unwrap();
    let written = String::from_utf8(writer.finish().unwrap()).unwrap();
    assert!(written.contains("a=\"2.5\""), "{written}");
    let again = rewrite(&file, &folder.path().join("a.xml"));
    assert_same_content(&file, &again);
}

#[test]
fn the_comments_of_golden_files_survive_the_tree() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/iotk");
    let folder = tempfile::tempdir().unwrap();
    for (k, name) in
        ["golden/tags.dat", "golden/tags.xml", "golden/link_main.xml"].iter().enumerate()
    {
        let file = open(Source::open(golden.join(name)).unwrap(), &limits());
        let comments = |file: &Dataset| -> Vec<String> {
            tags(file).into_iter().filter(|tag| tag.starts_with("comment")).collect()
        };
        assert!(!comments(&file).is_empty(), "{name}");
        for extension in ["xml", "dat"] {
            let again = rewrite(&file, &folder.path().join(format!("{k}.{extension}")));
            assert_eq!(comments(&file), comments(&again), "{name}");
        }
    }
}

#[test]
fn a_million_attributes_of_one_element_take_seconds() {
    let start = Instant::now();
    let mut text = "<R".to_string();
    for k in 0..1_000_000 {
        write!(text, " a{k}=' {k}.50'").unwrap();
    }
    text.push_str("/>");
    let folder = tempfile::tempdir().unwrap();
    let limits = limits().with_memory(4 << 30);
    let file = open(Source::memory(text), &limits);
    let path = folder.path().join("a.xml");
    write_file(&Iotk, &file, &path, Overwrite::Never).unwrap();
    let again = open(Source::open(&path).unwrap(), &limits);
    // The last one is `iotk_spelling`.
    assert_eq!(again.tree().node(again.tree().find("R").unwrap()).attrs.len(), 1_000_001);
    assert!(start.elapsed() < Duration::from_mins(1), "{:?}", start.elapsed());
}
