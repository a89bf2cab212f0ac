//! `spile convert`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use spile::Dataset;
use spile::error::{Error, Result, human_bytes};
use spile::format::{Format, Loss};
use spile_ops::convert::{self, LossRow, Plan, convert};
use spile_ops::diff::Row;
use spile_ops::subset::subset;

use super::{diff, not_standard_output, overwrite};
use crate::args::{OutputArgs, PickArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::{Output, style, text};

/// Minimum duration for which the throughput is reported.
const MIN_DURATION: Duration = Duration::from_millis(700);

/// Convert a file to another format.
///
/// The output format is determined by the extension or by -t. Metadata that the target cannot express is
/// stored as JSON next to the arrays and restored on reading. Everything that cannot be written is reported;
/// --dry-run only reports, --strict fails. Writes are atomic. --verify compares the output with the
/// source, including values.
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
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
    /// Replace the output file if it exists
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    pick: PickArgs,
    /// Select a part of a named dimension: X=0:100, 'Y=::2'
    #[arg(long, value_name = "DIM=A:B:C")]
    slice: Vec<String>,
}

pub(crate) fn run(args: &ConvertArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let format = args.write.target(args.output.path())?;
    let opened = context.open(&args.file).map_err(|e| e.with_path(&args.file))?;
    let job = Job { from: &args.file, to: args.output.path(), format, write: &args.write };
    job.run(&opened, context, out)
}

impl WriteArgs {
    /// The format of the output.
    pub(super) fn target(&self, output: &Path) -> Result<&'static dyn Format> {
        convert::target(&spile::REGISTRY, self.to.as_deref(), output)
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

impl Job<'_> {
    /// Plans, writes, verifies and reports.
    pub(super) fn run(
        &self,
        content: &Dataset,
        context: &Context,
        out: &mut Output,
    ) -> Result<Exit> {
        not_standard_output(self.to, "the output")?;
        let pick = self.write.pick.pick()?.with_slices(&self.write.slice)?;
        if pick.is_all() {
            return self.write(content, context, out);
        }
        let part = subset(content, &pick);
        self.write(&part.map_err(|e| e.with_path(self.from))?, context, out)
    }

    fn write(&self, content: &Dataset, context: &Context, out: &mut Output) -> Result<Exit> {
        let Self { from, to, format, write } = *self;
        let with_path = |e: Error| e.with_path(from);
        let mut plan = convert::plan(format, content, to).map_err(with_path)?;
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
        let mut differences = Vec::new();
        let mut took = Duration::ZERO;
        if !write.dry_run {
            let replace = overwrite(write.overwrite);
            let start = Instant::now();
            let found =
                convert(format, content, &plan, to, replace, write.strict).map_err(with_path)?;
            plan.losses.extend(found);
            took = start.elapsed();
            if write.verify {
                let found = convert::verify(format, content, &plan, to)?;
                differences = found.differences;
            }
        }
        self.report(&plan, &differences, took, context, out)?;
        Ok(if differences.is_empty() { Exit::Yes } else { Exit::No })
    }

    fn report(
        &self,
        plan: &Plan,
        differences: &[Row],
        took: Duration,
        context: &Context,
        out: &mut Output,
    ) -> Result<()> {
        let Self { from, to, format, write } = *self;
        let bytes = convert::size(to).ok();
        if context.json {
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
            document.field("differences", differences)?;
            return document.end();
        }
        for loss in &plan.losses {
            context.warn(from, &format!("not written: {}", loss_text(loss)));
        }
        for difference in differences {
            let word = out.paint(style::BAD, "differs:");
            writeln!(out, "{word} {}", text::one_line(&difference_text(difference)))?;
        }
        if !context.quiet {
            let name = display(to);
            let what = text::count(plan.arrays, "array");
            let title = format.info().name;
            let described = if plan.flattened { ", with metadata as JSON" } else { "" };
            match (write.dry_run, bytes) {
                (false, Some(bytes)) => {
                    let checked =
                        if write.verify && differences.is_empty() { ", verified" } else { "" };
                    let size = text::size(bytes);
                    let rate = if took > MIN_DURATION {
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

/// A loss as text: `Electric Field/Ex: coordinates (VTK has no ...)`.
fn loss_text(loss: &Loss) -> String {
    let Loss { path, kind, name, reason } = loss;
    let path = if path.is_empty() { "the file" } else { path };
    let what = match name {
        Some(name) => format!("{} {name}", kind.name()),
        None => kind.name().to_string(),
    };
    text::one_line(&format!("{path}: {what} ({reason})")).into_owned()
}

fn difference_text(row: &Row) -> String {
    let path = if row.path.is_empty() { "the file" } else { &row.path };
    format!("{path}: {}", diff::describe(row))
}

fn display(path: &Path) -> String {
    text::one_line(&path.to_string_lossy()).into_owned()
}
