//! `spile convert`.

mod many;

use std::time::{Duration, Instant};

use spile::error::human_bytes;
use spile::format::{Compression, Format, Loss, LossKind, WriteOptions};
use spile::os;
use spile::sink::Sink;
use spile_ops::convert::{self, LossGroup, LossRow, Plan, convert};
use spile_ops::diff::Row;
use spile_ops::subset::subset;

use super::{diff, not_standard_output, overwrite};
use crate::cmd::prelude::*;

/// Minimum duration for which the throughput is reported.
const MIN_DURATION: Duration = Duration::from_millis(700);

/// Up to this number of losses with the same reason are listed one by one.
const FEW: usize = 3;

/// Convert a file to another format.
///
/// The output format is determined by the extension or by -t. Metadata that the target cannot express is
/// stored as JSON next to the arrays and restored on reading. Everything that cannot be written is reported;
/// --dry-run only reports, --strict fails. Writes are atomic. --verify compares the output with the
/// source, including values.
///
/// With --into, several files are converted in parallel to FOLDER/STEM.EXTENSION; the format is given by -t.
/// Outputs that exist are complete and are skipped, unless --overwrite is given, so a command that was
/// interrupted can be repeated. Folders are searched recursively. Exit status: 0 all files were converted or
/// skipped, 3 some failed, 2 all failed.
#[derive(Debug, Args)]
#[command(override_usage = "spile convert [OPTIONS] INPUT OUTPUT\n       \
    spile convert [OPTIONS] INPUT -o OUTPUT\n       \
    spile convert [OPTIONS] -t FORMAT --into FOLDER INPUT...")]
pub(crate) struct ConvertArgs {
    /// Input file and output path; - is standard input or output. With --into: files, patterns and folders
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Output path, instead of the second argument
    #[arg(short = 'o', long, value_name = "OUTPUT", conflicts_with = "into")]
    output: Option<PathBuf>,
    /// Output folder for several files
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
    #[command(flatten)]
    write: WriteArgs,
}

/// Options for writing a file.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Flags of the command line.
pub(super) struct WriteArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT")]
    to: Option<String>,
    /// Report what would be written or lost, without writing
    #[arg(long)]
    dry_run: bool,
    /// Fail if anything would be lost
    #[arg(long)]
    strict: bool,
    /// Read the output and compare it with the source
    #[arg(long)]
    verify: bool,
    /// Replace the output if it exists
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    pick: PickArgs,
    /// Select a part of a named dimension: X=0:100, 'Y=::2'
    #[arg(long, value_name = "DIM=A:B:C")]
    slice: Vec<String>,
    /// Write stored numbers instead of physical values
    #[arg(long)]
    stored: bool,
    /// Compress values: zstd, zstd:3, gzip, gzip:9, snappy, lz4 or none, where the format has it
    #[arg(long, value_name = "METHOD[:LEVEL]")]
    compress: Option<Compression>,
    /// Chunk lengths of named dimensions, for formats with chunks: x=64,y=64
    #[arg(long, value_name = "DIM=N", value_delimiter = ',', value_parser = parse_length)]
    chunks: Vec<(String, u64)>,
    /// Shard lengths of named dimensions, for Zarr: x=1024,y=1024
    #[arg(long, value_name = "DIM=N", value_delimiter = ',', value_parser = parse_length)]
    shards: Vec<(String, u64)>,
}

/// Parses `DIM=N`.
fn parse_length(text: &str) -> std::result::Result<(String, u64), String> {
    let length = |text: &str| text.parse().ok().filter(|length| *length > 0);
    let parsed = text.split_once('=').and_then(|(dim, n)| Some((dim.to_string(), length(n)?)));
    parsed.ok_or_else(|| "expected NAME=LENGTH with a positive length".to_string())
}

pub(crate) fn run(args: &ConvertArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    if let Some(folder) = &args.into {
        return many::run(&args.files, folder, &args.write, context, out);
    }
    let (from, to) = args.paths()?;
    let format = args.write.target(to)?;
    let opened = context.open(from).map_err(|e| e.with_path(from))?;
    let job = Job { from, to, format, write: &args.write };
    if to == Path::new("-") {
        return job.stream(&opened, context);
    }
    job.run(&opened, context, out)
}

impl ConvertArgs {
    /// Input and output.
    fn paths(&self) -> Result<(&Path, &Path)> {
        match (self.files.as_slice(), &self.output) {
            ([from], Some(to)) | ([from, to], None) => Ok((from, to)),
            ([_], None) => Err(Error::argument("required arguments were not provided: OUTPUT")
                .hint("spile convert INPUT OUTPUT, or -o OUTPUT, or --into FOLDER")),
            (_, Some(_)) => Err(Error::argument("-o OUTPUT cannot be used with several paths")
                .hint("--into FOLDER writes FOLDER/STEM.EXTENSION for each file")),
            _ => Err(Error::argument("several input files need an output folder")
                .hint("--into FOLDER writes FOLDER/STEM.EXTENSION for each file")),
        }
    }
}

impl WriteArgs {
    /// The format of the output.
    pub(super) fn target(&self, output: &Path) -> Result<&'static dyn Format> {
        convert::target(&spile::REGISTRY, self.to.as_deref(), output)
    }

    fn options(&self) -> WriteOptions {
        let mut options = WriteOptions::default();
        (options.stored, options.compression) = (self.stored, self.compress);
        (options.chunks, options.shards) = (self.chunks.clone(), self.shards.clone());
        options
    }
}

/// A conversion.
pub(super) struct Job<'a> {
    /// The input, or the first of several.
    pub(super) from: &'a Path,
    pub(super) to: &'a Path,
    pub(super) format: &'static dyn Format,
    pub(super) write: &'a WriteArgs,
}

/// The outcome of a conversion.
struct Done {
    plan: Plan,
    differences: Vec<Row>,
    took: Duration,
}

impl Job<'_> {
    /// Plans, writes, verifies and reports.
    pub(super) fn run(
        &self,
        content: &Dataset,
        context: &Context,
        out: &mut Output,
    ) -> Result<Exit> {
        not_standard_output(self.to)?;
        let done = self.convert(content)?;
        self.report(&done, context, out)?;
        Ok(if done.differences.is_empty() { Exit::Yes } else { Exit::No })
    }

    /// Writes to standard output. Only warnings and errors are reported.
    fn stream(&self, content: &Dataset, context: &Context) -> Result<Exit> {
        let WriteArgs { dry_run, verify, .. } = *self.write;
        if context.json || dry_run || verify {
            let message = "--json, --dry-run and --verify need an output file";
            return Err(Error::argument(message));
        }
        let content = self.selected(content)?;
        let plan = self.plan(&content)?;
        let stdout = os::standard_output().map_err(Error::from)?;
        let mut sink = Sink::stream(stdout, "standard output");
        let options = self.write.options();
        let found = convert::convert_stream(self.format, &content, &plan, &mut sink, &options);
        let found = found.map_err(|e| e.with_path(self.from))?;
        print_losses(self.from, plan.losses.iter().chain(&found), context);
        Ok(Exit::Yes)
    }

    /// The selected part of a dataset.
    fn selected(&self, content: &Dataset) -> Result<Dataset> {
        let pick = self.write.pick.pick_of(content).map_err(|e| e.with_path(self.from))?;
        let pick = pick.with_slices(&self.write.slice)?;
        if pick.is_all() {
            return Ok(content.clone());
        }
        subset(content, &pick).map_err(|e| e.with_path(self.from))
    }

    /// How the dataset is written. Fails if something is lost and --strict is given.
    fn plan(&self, content: &Dataset) -> Result<Plan> {
        let Self { from, to, format, write } = *self;
        let plan = convert::plan(format, content, to, &write.options());
        let plan = plan.map_err(|e| e.with_path(from))?;
        if write.strict && !plan.losses.is_empty() {
            let losses = &plan.losses;
            let name = format.info().name;
            let lost = text::count(losses.len() as u64, "object");
            return Err(Error::argument(format!(
                "{lost} cannot be written as {name}; the first is {}",
                loss_text(&losses[0])
            ))
            .with_path(from)
            .hint("--dry-run lists all of them; without --strict they are skipped"));
        }
        Ok(plan)
    }

    /// Plans, writes and verifies.
    fn convert(&self, content: &Dataset) -> Result<Done> {
        let Self { from, to, format, write } = *self;
        let content = &self.selected(content)?;
        let mut plan = self.plan(content)?;
        let options = &write.options();
        let mut differences = Vec::new();
        let mut took = Duration::ZERO;
        if !write.dry_run {
            let replace = overwrite(write.overwrite);
            let start = Instant::now();
            let found = convert(format, content, &plan, to, options, replace, write.strict);
            plan.losses.extend(found.map_err(|e| e.with_path(from))?);
            took = start.elapsed();
            if write.verify {
                let found = convert::verify(format, content, &plan, to, options)?;
                differences = found.differences;
            }
        }
        Ok(Done { plan, differences, took })
    }

    fn json(&self, done: &Done, out: &mut Output) -> Result<()> {
        let Self { from, to, format, write } = *self;
        let Done { plan, differences, took } = done;
        let mut document = out.document()?;
        document.field("file", &from.to_string_lossy())?;
        document.field("output", &to.to_string_lossy())?;
        document.field("format", format.info().name)?;
        document.field("written", &!write.dry_run)?;
        document.field("arrays", &plan.arrays)?;
        document.field("seconds", &took.as_secs_f64())?;
        document.field("described", &plan.flattened)?;
        let lost: Vec<LossRow<'_>> = plan.losses.iter().map(LossRow::from).collect();
        document.field("lost", &lost)?;
        document.field("contained", &plan.contained)?;
        document.field("differences", differences)?;
        document.end()
    }

    fn report(&self, done: &Done, context: &Context, out: &mut Output) -> Result<()> {
        let Self { from, to, format, write } = *self;
        let Done { plan, differences, took } = done;
        let bytes = convert::size(to).ok();
        if context.json {
            return self.json(done, out);
        }
        print_losses(from, &plan.losses, context);
        for difference in differences {
            let word = out.paint(style::BAD, "differs:");
            writeln!(out, "{word} {}", text::one_line(&difference_text(difference)))?;
        }
        if !context.quiet {
            let path = to.to_string_lossy();
            let name = text::one_line(&path);
            let what = text::count(plan.arrays, "array");
            let title = format.info().name;
            let described = if plan.flattened { ", with metadata as JSON" } else { "" };
            match (write.dry_run, bytes) {
                (false, Some(bytes)) => {
                    let checked =
                        if write.verify && differences.is_empty() { ", verified" } else { "" };
                    let size = text::size(bytes);
                    let rate = if *took > MIN_DURATION {
                        let rate = bytes as f64 / took.as_secs_f64();
                        format!(" at {}/s", human_bytes(rate as u64))
                    } else {
                        String::new()
                    };
                    writeln!(out, "{name}: {title}, {what}, {size}{rate}{described}{checked}")?;
                }
                _ => writeln!(out, "{name}: would be {title}, {what}{described}")?,
            }
        }
        Ok(out.flush()?)
    }
}

/// Prints losses as warnings. Many losses of one kind with the same reason are one line, and so are objects that are
/// written with other names, unless details are requested.
pub(super) fn print_losses<'a>(
    path: &Path,
    losses: impl IntoIterator<Item = &'a Loss>,
    context: &Context,
) {
    for group in convert::group(losses) {
        let verb = verb(group.kind);
        let few = group.losses.len() <= if group.kind == LossKind::Name { 1 } else { FEW };
        if !few && !context.verbose {
            context.warn(path, &format!("{verb}: {}", group_text(&group)));
            continue;
        }
        for loss in &group.losses {
            context.warn(path, &format!("{verb}: {}", loss_text(loss)));
        }
    }
}

/// What happens to an object with a loss of this kind.
fn verb(kind: LossKind) -> &'static str {
    if kind == LossKind::Name { "renamed" } else { "not written" }
}

/// A group of losses as text: `12 arrays (not on the grid): a, b, c, ...`.
fn group_text(group: &LossGroup<'_>) -> String {
    let count = group.losses.len() as u64;
    let what = match group.kind {
        LossKind::Array | LossKind::Group | LossKind::Attribute => {
            text::count(count, group.kind.name())
        }
        LossKind::Name => text::count(count, "object"),
        kind => format!("{} of {}", kind.name(), text::count(count, "object")),
    };
    let name = |loss: &&Loss| {
        let path = if loss.path.is_empty() { "the file" } else { &loss.path };
        loss.name.as_ref().map_or_else(|| path.to_string(), |name| format!("{path}: {name}"))
    };
    let names: Vec<String> = group.losses.iter().take(FEW).map(name).collect();
    let more = if group.losses.len() > FEW { ", ..." } else { "" };
    let names = names.join(", ");
    let text = match group.kind {
        LossKind::Name => {
            let first = group.losses.first().map_or("", |loss| &loss.reason);
            format!("{what}: {names}{more} (the first: {first})")
        }
        _ => format!("{what} ({}): {names}{more}", group.reason),
    };
    text::one_line(&text).into_owned()
}

/// A loss as text: `Electric Field/Ex: coordinates (VTK has no ...)`.
fn loss_text(loss: &Loss) -> String {
    let Loss { path, kind, name, reason } = loss;
    let path = if path.is_empty() { "the file" } else { path };
    let what = match (name, kind) {
        (Some(name), _) => format!(": {} {name}", kind.name()),
        (None, LossKind::Name) => String::new(),
        (None, _) => format!(": {}", kind.name()),
    };
    text::one_line(&format!("{path}{what} ({reason})")).into_owned()
}

fn difference_text(row: &Row) -> String {
    let path = if row.path.is_empty() { "the file" } else { &row.path };
    format!("{path}: {}", diff::describe(row))
}
