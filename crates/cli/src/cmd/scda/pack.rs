//! `spile scda pack`.

use spile::comm::Serial;
use spile::sink::Sink;
use spile::source::Source;
use spile_scda::{Elements, Options, Writer};

use super::manifest::{Data, Form, Item, MANIFEST, Manifest};
use super::{Done, LineBreaks};
use crate::cmd::prelude::*;

const AFTER_HELP: &str = "\
A manifest is JSON, written by `spile scda unpack` or by hand:

  {
    \"user\": \"a run\",
    \"sections\": [
      {\"type\": \"B\", \"user\": \"parameters\", \"text\": \"dt = 0.1\\n\"},
      {\"type\": \"A\", \"user\": \"density\", \"E\": 8, \"file\": \"density.bin\", \"encoded\": true},
      {\"type\": \"V\", \"user\": \"names\", \"text\": [\"one\", \"three\"]}
    ]
  }

File names are relative to the manifest. FORMAT.md of scda describes every field.";

/// Create a file from a manifest and data files.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PackArgs {
    /// Manifest, or folder with a manifest.json; - is standard input
    manifest: PathBuf,
    #[command(flatten)]
    new: NewFileArgs,
    /// Vendor string, at most 20 bytes [default: as in the manifest, or spile]
    #[arg(long, value_name = "TEXT")]
    vendor: Option<String>,
    /// Line breaks [default: as in the manifest, or unix]
    #[arg(long, value_name = "STYLE")]
    breaks: Option<LineBreaks>,
    /// Compression level, 0 to 12 [default: as in the manifest, or 9]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=12))]
    level: Option<u32>,
    /// Check the manifest and its files without writing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &PackArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let output = args.new.file()?;
    let mut path = args.manifest.clone();
    if path.is_dir() {
        path.push(MANIFEST);
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let manifest = Manifest::read(&context.source(&path)?, folder, &context.limits)
        .map_err(|e| e.with_path(&path))?;
    let standard = Options::default();
    let vendor = args.vendor.as_ref().map(|vendor| vendor.as_bytes().to_vec());
    let options = Options {
        vendor: vendor.or(manifest.vendor.clone()).unwrap_or(standard.vendor),
        breaks: args.breaks.map(Into::into).or(manifest.breaks).unwrap_or(standard.breaks),
        level: args.level.or(manifest.level).unwrap_or(standard.level),
        overwrite: args.new.overwrite(),
        index: manifest.index,
        checksums: manifest.checksums,
    };
    if args.dry_run {
        // Checks whether the file can be written.
        Sink::create(output, options.overwrite)?;
    } else {
        write(output, &manifest, options).map_err(|e| e.with_path(&path))?;
    }
    let done = Done {
        output: output.to_string_lossy().into_owned(),
        sections: manifest.sections.len() as u64,
        data_bytes: manifest.sections.iter().map(|item| item.data.len()).sum(),
        dry_run: args.dry_run,
        ..Done::default()
    };
    done.report(context, out)
}

fn write(path: &Path, manifest: &Manifest, options: Options) -> Result<()> {
    let mut writer = Writer::create(&Serial, path, &manifest.user, options)?;
    for (number, item) in manifest.sections.iter().enumerate() {
        let source = match &item.data {
            Data::Inline(bytes) => Source::memory(bytes.as_slice()),
            Data::File(path, _) => Source::open(path)?,
        };
        section(&mut writer, item, &source)
            .map_err(|e| e.in_object(format!("section {number}")))?;
    }
    writer.close()
}

fn section(writer: &mut Writer<'_>, item: &Item, source: &Source) -> Result<()> {
    let fetch = |at, buffer: &mut [u8]| source.read_exact_at(at, buffer);
    let data = Elements::Fetched(item.data.len(), &fetch);
    let (user, encode) = (&item.user, item.encoded);
    match &item.form {
        Form::Inline => {
            let mut bytes = [0; 32];
            fetch(0, &mut bytes)?;
            writer.inline(user, 0, Some(&bytes))
        }
        Form::Block => writer.block_from(user, 0, item.data.len(), Some(data), encode),
        Form::Array(number, size) => writer.array(user, &[*number], *size, data, encode),
        Form::Varray(sizes) => writer.varray(user, &[sizes.len() as u64], sizes, data, encode),
    }
}
