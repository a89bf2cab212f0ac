//! Conversion of datasets with arrays that cannot be read.

use std::path::Path;

use spile_core::Dataset;
use spile_core::error::Result;
use spile_core::format::{
    Abilities, Format, FormatInfo, FormatWriter, Grade, Head, Loss, LossKind, OpenOptions, Parsed,
    Score, WriteOptions,
};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::sink::Sink;
use spile_core::source::Source;
use spile_core::tree::Tree;
use spile_ops::convert::plan;

/// A format that keeps everything.
struct Any;

static INFO: FormatInfo = FormatInfo {
    name: "any",
    title: "any",
    users: "",
    specification: "",
    extensions: &["any"],
    read: Grade::None,
    write: Grade::Complete,
    check: Grade::None,
    salvage: Grade::None,
};

impl Format for Any {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, _: Head<'_>) -> Score {
        0
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        Ok(Parsed::new(source, Tree::new(&options.limits)))
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self)
    }
}

impl FormatWriter for Any {
    fn losses(&self, _: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        Ok(Vec::new())
    }

    fn write(&self, _: &Dataset, _: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        Ok(Vec::new())
    }
}

/// A dataset with `arrays` arrays, and three objects that could not be read.
fn dataset(arrays: usize) -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    for k in 0..arrays {
        let layout = spile_core::layout::Layout::Fill([0; 8].into());
        let shape = spile_core::shape::Shape::new([1]);
        let desc = spile_core::layout::ArrayDesc::new("float64".parse().unwrap(), shape, layout);
        tree.add_array(spile_core::tree::ROOT, &format!("a{k}"), desc).unwrap();
    }
    let mut report = Report::default();
    report.error("x-001", "type timestamp is not supported").in_object("\"t\"");
    report.error("x-002", "unknown type").in_object("attribute \"time\" of \"g/a\"");
    report.error("x-003", "unexpected end of file");
    report.warn("x-004", "not a loss").in_object("\"w\"");
    Dataset::new(Source::memory([]), tree).with_warnings(report.findings)
}

#[test]
fn unreadable_objects_are_losses_of_the_right_kind() {
    let plan = plan(&Any, &dataset(1), Path::new("x.any"), &WriteOptions::default()).unwrap();
    assert_eq!((plan.arrays, plan.unreadable), (1, 3));
    let found: Vec<_> = plan
        .losses
        .iter()
        .map(|loss| (loss.path.as_str(), loss.kind, loss.name.as_deref()))
        .collect();
    let expected = [
        ("t", LossKind::Array, None),
        ("g/a", LossKind::Attribute, Some("time")),
        ("", LossKind::Values, None),
    ];
    assert_eq!(found, expected);
    assert_eq!(plan.losses[0].reason, "cannot be read: type timestamp is not supported");
}

#[test]
fn nothing_is_planned_when_no_array_can_be_read() {
    let Err(error) = plan(&Any, &dataset(0), Path::new("x.any"), &WriteOptions::default()) else {
        panic!("planned")
    };
    assert!(error.message().starts_with("no array can be converted: \"t\""), "{error}");
}
