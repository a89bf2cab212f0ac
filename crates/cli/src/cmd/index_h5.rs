//! `spile index --h5`: a small HDF5 file whose datasets are bytes of the original.

use std::io::Write as _;
use std::path::Path;

use spile::error::Result;
use spile::index::{Indexed, write_h5};
use spile::sink::{Overwrite, Sink};

use crate::context::Context;
use crate::exit::Exit;
use crate::print::{Output, text};

pub(crate) fn run(
    file: &Path,
    output: &Path,
    overwrite: Overwrite,
    context: &Context,
    out: &mut Output,
) -> Result<Exit> {
    let opened = context.open(file).map_err(|e| e.with_path(file))?;
    let mut sink = Sink::create(output, overwrite)?;
    let Indexed { arrays, left } = write_h5(&*opened.reader, &mut sink, &context.limits)
        .map_err(|e| e.with_path(file).with_format(opened.format.info().name))?;
    sink.commit()?;
    if context.json {
        let mut document = out.document()?;
        document.field("file", &file.to_string_lossy())?;
        document.field("output", &output.to_string_lossy())?;
        document.field("arrays", &arrays)?;
        let rows: Vec<[&str; 2]> = left.iter().map(|l| [l.path.as_str(), l.why.as_str()]).collect();
        document.field("left", &rows)?;
        document.end()?;
    } else {
        for array in &left {
            context.warn(file, &format!("left out: {}: {}", array.path, array.why));
        }
        if !context.quiet {
            let name = text::clean(&output.to_string_lossy()).into_owned();
            let what = text::count(arrays as u64, "array");
            writeln!(out, "{name}: HDF5, {what} of {}", text::clean(&file.to_string_lossy()))?;
            out.flush()?;
        }
    }
    Ok(if left.is_empty() { Exit::Yes } else { Exit::Partial })
}
