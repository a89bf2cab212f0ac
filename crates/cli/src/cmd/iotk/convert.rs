//! `spile iotk convert`.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use spile::error::{Error, Result};
use spile::sink::Sink;
use spile::wire::ByteOrder;
use spile_iotk::record::{Framing, SUBRECORD};
use spile_iotk::{Form, Style, Target};

use super::super::overwrite;
use crate::args::OutputArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Output;

#[derive(Debug, Args)]
pub(super) struct ConvertArgs {
    /// The file; - is standard input
    file: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
    /// The form to write [default: the other one]
    #[arg(long, value_name = "FORM")]
    to: Option<To>,
    /// Write the bytes that the original library writes, with the digits it has
    #[arg(long)]
    compat: bool,
    /// Byte order of a binary file [default: that of the input, or little]
    #[arg(long, value_name = "ORDER")]
    endian: Option<Endian>,
    /// Bytes of the record markers: 4 or 8 [default: those of the input, or 4]
    #[arg(long, value_name = "N")]
    marker: Option<u64>,
    /// The longest sub-record, in bytes [default: 2147483639]
    #[arg(long, value_name = "N")]
    subrecord: Option<u64>,
    /// Replace the output file if it exists
    #[arg(long)]
    overwrite: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    /// XML
    Text,
    /// Fortran records
    Binary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Endian {
    Little,
    Big,
}

pub(super) fn run(args: &ConvertArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let source = context.source(&args.file)?;
    let place = |e: Error| e.with_path(&args.file).with_format("iotk");
    let form = Form::detect(&source).map_err(place)?;
    let form = form.ok_or_else(|| {
        place(Error::not_this_format("iotk-001", "neither Fortran records nor tags").at(0))
    })?;
    let mut framing = match form {
        Form::Binary(framing) => framing,
        Form::Text => Framing::default(),
    };
    framing.marker = match args.marker {
        Some(bytes @ (4 | 8)) => bytes,
        Some(bytes) => return Err(Error::argument(format!("--marker is 4 or 8, not {bytes}"))),
        None => framing.marker,
    };
    framing.order = match args.endian {
        Some(Endian::Little) => ByteOrder::Little,
        Some(Endian::Big) => ByteOrder::Big,
        None => framing.order,
    };
    let other = if form == Form::Text { To::Binary } else { To::Text };
    let records = args.endian.is_some() || args.marker.is_some() || args.subrecord.is_some();
    let target = match args.to.unwrap_or(other) {
        To::Text if records => {
            let message = "a text has no byte order and no records";
            return Err(Error::argument(message).hint("--to binary writes records"));
        }
        To::Text => Target::Text,
        To::Binary => Target::Binary(framing, args.subrecord.unwrap_or(SUBRECORD)),
    };
    let style = if args.compat { Style::Library } else { Style::Exact };
    let done = if args.output.path() == Path::new("-") {
        let done = spile_iotk::convert(&source, target, style, &mut *out, &context.limits);
        let done = done.map_err(place)?;
        out.flush()?;
        done
    } else {
        let mut sink = Sink::create(args.output.path(), overwrite(args.overwrite))?;
        let buffer = BufWriter::with_capacity(1 << 18, &mut sink);
        let done = spile_iotk::convert(&source, target, style, buffer, &context.limits);
        let done = done.map_err(place)?;
        sink.commit()?;
        done
    };
    if context.json && args.output.path() != Path::new("-") {
        let mut document = out.document()?;
        document.field("file", &args.file.to_string_lossy())?;
        document.field("output", &args.output.path().to_string_lossy())?;
        document.field("elements", &done.elements)?;
        document.field("lost", &done.lost)?;
        document.end()?;
    } else {
        done.lost.iter().for_each(|what| context.warn(&args.file, &format!("lost: {what}")));
    }
    Ok(if done.lost.is_empty() { Exit::Yes } else { Exit::Partial })
}
