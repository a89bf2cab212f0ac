//! Arrays that cannot be read, and the memory budget.

use spile_core::error::{ErrorKind, Result};
use spile_core::format::Checker as _;
use spile_core::limits::Limits;
use spile_core::source::Source;
use spile_core::{Axes, Dataset, Order, Selection};
use spile_vtk::Vtk;

/// An image of three points with these point arrays.
fn image(arrays: &str) -> Source {
    Source::memory(format!(
        "<VTKFile type=\"ImageData\"><ImageData WholeExtent=\"0 2 0 0 0 0\"><Piece><PointData>{arrays}\
         </PointData></Piece></ImageData></VTKFile>"
    ))
}

fn open(source: Source, limits: &Limits) -> Result<Dataset> {
    Dataset::open(&Vtk, source, &limits.into())
}

fn findings(file: &Dataset) -> Vec<(&str, &str, &str)> {
    let findings = file.warnings().iter();
    findings.map(|f| (f.object.as_deref().unwrap(), f.severity.name(), f.code)).collect()
}

#[test]
fn an_array_that_cannot_be_read_is_reported_and_hides_no_other() {
    let array = |kind: &str, name: &str, format: &str, text: &str| {
        format!("<DataArray type=\"{kind}\" Name=\"{name}\" format=\"{format}\">{text}</DataArray>")
    };
    let bad = [
        array("Variant", "names", "ascii", "97 0"),
        array("Int8", "future", "chunked", ""),
        array("Int8", "short", "ascii", "1"),
        array("Int8", "broken", "binary", "????"),
        array("Int8", "lost", "appended", ""),
    ];
    let good = array("Int16", "t", "ascii", "7 8 9");
    let file = open(image(&(bad.concat() + &good)), &Limits::default()).unwrap();
    let expected = [
        ("\"PointData/names\"", "error", "vtk-010"),
        ("\"PointData/future\"", "error", "vtk-006"),
        ("\"PointData/short\"", "error", "vtk-005"),
        ("\"PointData/broken\"", "error", "vtk-007"),
        ("\"PointData/lost\"", "error", "vtk-002"),
    ];
    assert_eq!(findings(&file), expected);
    let paths: Vec<_> = file.tree().arrays().map(|(_, node, _)| node.path.clone()).collect();
    assert_eq!(paths, ["PointData/t"]);
    // Without a valid array opening fails.
    let error = open(image(&bad[2..].concat()), &Limits::default()).err().unwrap();
    assert_eq!(error.code(), "vtk-005");
}

#[test]
fn arrays_of_texts_are_padded_to_the_longest() {
    let array = |text: &str| {
        image(&format!("<Array type=\"String\" Name=\"names\" format=\"ascii\">{text}</Array>"))
    };
    let file = open(array("97 98 0 0 195 188 99 0"), &Limits::default()).unwrap();
    let texts = file.array("PointData/names").unwrap();
    assert_eq!(texts.dtype(), spile_core::DType::text(3));
    let bytes = texts.read_bytes(&Selection::all(), Axes::Order(Order::C)).unwrap();
    assert_eq!(bytes, "ab\0\0\0\0üc".as_bytes());
    // Four texts are not tuples of three.
    let text = "<Array type=\"String\" Name=\"names\" NumberOfComponents=\"3\" format=\"ascii\">97 0 98 0 99 0 100 0</Array>";
    assert!(open(image(text), &Limits::default()).map_or(true, |file| !findings(&file).is_empty()));
    for wrong in ["97 0", "97 0 0 0 0", "97 0 98 0 99"] {
        let found = open(array(wrong), &Limits::default()).map(|file| findings(&file).len());
        let is_complete = wrong.ends_with("99");
        assert_eq!(found.is_ok_and(|found| found == 0), is_complete, "{wrong}");
    }
}

#[test]
fn arrays_are_charged_to_the_memory_budget() {
    let array = |k: u32| {
        format!("<DataArray type=\"Int8\" Name=\"a{k}\" format=\"ascii\">1 2 3</DataArray>")
    };
    let source = image(&(0..100_000).map(array).collect::<String>());
    let file = open(source.clone(), &Limits::default()).unwrap();
    assert_eq!(file.tree().arrays().count(), 100_000);
    let small = Limits::default().with_memory(64 << 20);
    for result in [open(source.clone(), &small).err(), Vtk.check(&source, &small, true).err()] {
        assert_eq!(result.unwrap().kind(), ErrorKind::Limit);
    }
}
