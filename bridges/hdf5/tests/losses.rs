//! Every loss of the writers is declared, and nothing else.

#[path = "../../../tests/support/losses.rs"]
mod losses;
#[path = "../../../tests/support/plain_arrays.rs"]
mod plain_arrays;

use std::path::Path;

use spile_core::format::{Format, LossKind, OpenOptions, Writer, write_file, writer_of};
use spile_core::sink::Overwrite;
use spile_core::testkit::differences;
use spile_core::{Dataset, Limits};
use spile_hdf5::{Hdf5, NetCdf};

fn planned(format: &dyn Format, content: &Dataset) -> Vec<(String, LossKind)> {
    let Ok(Writer::File(writer)) = writer_of(format) else { panic!("no writer") };
    let losses = writer.losses(content, Path::new("x")).unwrap();
    losses.into_iter().map(|loss| (loss.path, loss.kind)).collect()
}

#[test]
fn losses_of_hdf5_are_declared() {
    losses::suite(&Hdf5, &["x.h5"], plain_arrays::samples());
}

#[test]
fn losses_of_netcdf_are_declared() {
    losses::suite(&NetCdf, &["x.nc"], plain_arrays::samples());
}

#[test]
fn only_netcdf_changes_half_precision() {
    let content = plain_arrays::half();
    assert_eq!(planned(&Hdf5, &content), []);
    let types = ["field", "frames"].map(|path| (path.to_string(), LossKind::Type));
    assert_eq!(planned(&NetCdf, &content), types);
}

#[test]
fn an_array_of_too_many_dimensions_is_the_same_error_when_planning_and_writing() {
    let content = plain_arrays::of_rank(32);
    for format in [&Hdf5 as &dyn Format, &NetCdf] {
        let Ok(Writer::File(writer)) = writer_of(format) else { panic!("no writer") };
        assert_eq!(writer.losses(&content, Path::new("x")).unwrap_err().code(), "hdf5-030");
        losses::assert_losses_are_declared(format, &content, "x.h5");
    }
}

#[test]
fn thousands_of_attributes_come_back_within_the_default_limits() {
    let content = plain_arrays::many_attributes();
    let folder = tempfile::tempdir().unwrap();
    for (format, name) in [(&Hdf5 as &dyn Format, "x.h5"), (&NetCdf, "x.nc")] {
        let path = folder.path().join(name);
        write_file(format, &content, &path, Overwrite::Never).unwrap();
        let back = Dataset::open_path(format, &path, &OpenOptions::default()).unwrap();
        assert_eq!(back.limits(), &Limits::default());
        assert_eq!(back.warnings(), []);
        assert!(differences(&content, &back).unwrap().is_empty());
    }
}
