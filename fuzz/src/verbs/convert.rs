//! Conversion of a file to another format, which is then read and compared with the source.

use spile::format::WriteOptions;
use spile::sink::Overwrite;
use spile::{Dataset, Format};
use spile_ops::convert as ops;

use super::inputs;
use crate::drive::show;

pub fn run(data: &[u8]) {
    let (file, control) = inputs::split(data);
    let Ok(content) = inputs::open(file) else { return };
    convert(&content, inputs::target(control[0]), control[1] & 1 == 1);
}

/// Converts to `format`; the differences between source and result must be those that were announced.
pub(super) fn convert(content: &Dataset, format: &dyn Format, stored: bool) {
    let mut options = WriteOptions::default();
    options.stored = stored;
    let folder = inputs::folder();
    let path = folder.path().join(inputs::name(format));
    let plan = match ops::plan(format, content, &path, &options) {
        Ok(plan) => plan,
        Err(error) => return show(&error),
    };
    let written = ops::convert(format, content, &plan, &path, &options, Overwrite::Replace, false);
    match written {
        Ok(more) => {
            let verified = ops::verify(format, content, &plan, &path, &options);
            if let (Ok(verified), true) = (&verified, more.is_empty() && strict()) {
                let found = &verified.differences;
                assert!(found.is_empty(), "{}: not announced: {found:?}", format.info().name);
            }
            if let Err(error) = verified {
                show(&error);
            }
        }
        Err(error) => show(&error),
    }
}

/// Whether differences that were not announced are failures. They are not yet: see `docs/faults.md`.
fn strict() -> bool {
    std::env::var_os("SPILE_FUZZ_VERIFY").is_some()
}
