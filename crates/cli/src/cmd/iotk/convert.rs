//! `spile iotk convert`.

use std::io::BufWriter;

use clap::ValueEnum;
use spile::sink::Sink;
use spile::wire::ByteOrder;
use spile_iotk::wire::record::{Framing, SUBRECORD};
use spile_iotk::{Form, Heads, Style, Target, is_text_name};

use crate::cmd::prelude::*;

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// Input file; - is standard input
    file: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
    /// Form of the output [default: text if it is named .xml, .upf, .txt or .html, else the opposite of the input]
    #[arg(long, value_name = "FORM")]
    to: Option<To>,
    /// Write the same bytes as the original library, with its number of digits
    #[arg(long)]
    compat: bool,
    /// Byte order of a binary file [default: as in the input, or little]
    #[arg(long, value_name = "ORDER")]
    endian: Option<Endian>,
    /// Size of the record markers: 4 or 8 bytes [default: as in the input, or 4]
    #[arg(long, value_name = "N")]
    marker: Option<u64>,
    /// Size of the integers before tags and data in a binary file: 4 or 8 bytes, the header kind of the library
    #[arg(long, value_name = "N", default_value_t = 4)]
    header_kind: u64,
    /// Add the head of the library if the file has none
    #[arg(long)]
    head: bool,
    /// Maximum length of a sub-record in bytes [default: 2147483639]
    #[arg(long, value_name = "N")]
    subrecord: Option<u64>,
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
    let locate = |e: Error| e.with_path(&args.file).with_format("iotk");
    let form = Form::detect(&source).map_err(locate)?;
    let mut framing = match form {
        Form::Binary(framing) => framing,
        Form::Text => Framing::default(),
    };
    framing.marker = match args.marker {
        Some(bytes @ (4 | 8)) => bytes,
        Some(bytes) => {
            return Err(Error::argument(format!("--marker: expected 4 or 8, found {bytes}")));
        }
        None => framing.marker,
    };
    framing.order = match args.endian {
        Some(Endian::Little) => ByteOrder::Little,
        Some(Endian::Big) => ByteOrder::Big,
        None => framing.order,
    };
    let other = match form {
        Form::Text if !is_text_name(args.output.path()) => To::Binary,
        _ => To::Text,
    };
    let records = args.endian.is_some() || args.marker.is_some() || args.subrecord.is_some();
    let target = match args.to.unwrap_or(other) {
        To::Text if records => {
            let message = "--endian, --marker and --subrecord require binary output";
            return Err(Error::argument(message).hint("add --to binary"));
        }
        To::Text => Target::Text,
        To::Binary => Target::Binary(framing, args.subrecord.unwrap_or(SUBRECORD)),
    };
    let style = if args.compat { Style::Library } else { Style::Exact };
    let long_headers = match args.header_kind {
        bytes @ (4 | 8) => bytes == 8,
        bytes => {
            return Err(Error::argument(format!("--header-kind: expected 4 or 8, found {bytes}")));
        }
    };
    let heads = Heads { add_head: args.head, long_headers };
    let done = if args.output.path() == Path::new("-") {
        let done =
            spile_iotk::convert_with(&source, target, style, heads, &mut *out, &context.limits);
        let done = done.map_err(locate)?;
        out.flush()?;
        done
    } else {
        let mut sink = Sink::create(args.output.path(), args.output.overwrite())?;
        let buffer = BufWriter::with_capacity(1 << 18, &mut sink);
        let done = spile_iotk::convert_with(&source, target, style, heads, buffer, &context.limits);
        let done = done.map_err(locate)?;
        sink.commit()?;
        done
    };
    if context.json && args.output.path() != Path::new("-") {
        out.object(&[
            ("file", json!(args.file.to_string_lossy())),
            ("output", json!(args.output.path().to_string_lossy())),
            ("elements", json!(done.elements)),
            ("lost", json!(done.lost)),
        ])?;
    } else {
        done.lost.iter().for_each(|what| context.warn(&args.file, &format!("not written: {what}")));
    }
    Ok(if done.lost.is_empty() { Exit::Yes } else { Exit::Partial })
}
