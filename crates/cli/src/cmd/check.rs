//! `spile check`.

use spile::format::Format;
use spile::report::{Finding, Severity};
use spile_ops::check::{Check, check_folder};

use crate::batch::{Batch, Words};
use crate::cmd::prelude::*;
use crate::hint;

/// Check files for damage and violations of the format.
///
/// Exit status: 0 no errors, 1 errors, 2 a file cannot be examined, 3 only some of several files could be
/// examined. A folder that is not a dataset is searched recursively for files of known formats, and the
/// result is a table with a row per file.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Files or folders; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Report also deviations that readers tolerate
    #[arg(long)]
    strict: bool,
    /// Print a table with a row per file instead of the findings; with -v both
    #[arg(long)]
    summary: bool,
}

pub(crate) fn run(args: &CheckArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let options = context.options();
    let batch = Batch::new(&args.files, &options);
    if args.summary || batch.searched {
        return table(args, batch, context, out);
    }
    context.each_file(&args.files, out, |entry, out| {
        let folder = spile::REGISTRY.folder_format(entry.path, &options)?;
        let check = examine(args, entry.path, folder, context)?;
        if context.json {
            out.json_of(entry, &check)?;
        } else if !context.quiet {
            show(entry, &check, out)?;
        }
        Ok(if check.ok { Exit::Yes } else { Exit::No })
    })
}

/// Checks a file, or a folder that is a dataset.
fn examine(
    args: &CheckArgs,
    path: &Path,
    folder: Option<&'static dyn Format>,
    context: &Context,
) -> Result<Check> {
    if let Some(format) = folder {
        return check_folder(format, path, &context.options());
    }
    let source = context.source(path)?;
    spile_ops::check(&spile::REGISTRY, &source, &context.limits, args.strict)
}

/// Checks several files and prints a table.
fn table(args: &CheckArgs, batch: Batch, context: &Context, out: &mut Output) -> Result<Exit> {
    let columns = [
        ("errors", Align::Right),
        ("warnings", Align::Right),
        ("format", Align::Left),
        ("file", Align::Left),
        ("first error", Align::Left),
    ];
    let words = Words { ok: "ok", not_ok: "not ok", others: "of unknown format" };
    batch.run(columns, &words, (style::BAD, Exit::No), context, out, |item, entry, out| {
        let check = examine(args, &item.path, item.folder, context)?;
        if context.json {
            out.json_of(entry, &check)?;
        } else if context.verbose {
            show(entry, &check, out)?;
        }
        let first = check.findings.iter().find(|finding| finding.severity == Severity::Error);
        let first = first.map(describe).unwrap_or_default();
        let (errors, warnings) = (check.errors.to_string(), check.warnings.to_string());
        Ok(Some((check.ok, [errors, warnings, check.format.to_string(), entry.name(), first])))
    })
}

fn show(entry: Entry<'_>, check: &Check, out: &mut Output) -> Result<()> {
    let name = text::one_line(&entry.name()).into_owned();
    for finding in &check.findings {
        let colour = match finding.severity {
            Severity::Error => style::BAD,
            Severity::Warning => style::WARN,
            Severity::Note => style::CALM,
        };
        let severity = out.paint(colour, finding.severity.name());
        writeln!(out, "{name}: {severity}: {}", text::one_line(&describe(finding)))?;
        if let Some(hint) = &finding.hint {
            writeln!(out, "  hint: {}", text::one_line(&hint::render(hint, Some(entry.path))))?;
        }
    }
    let counts: Vec<String> =
        [(check.errors, "error"), (check.warnings, "warning"), (check.notes, "note")]
            .into_iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, word)| text::count(n, word))
            .collect();
    let (colour, verdict) = if check.ok { (style::GOOD, "ok") } else { (style::BAD, "not ok") };
    let verdict = out.paint(colour, verdict);
    let counts = if counts.is_empty() { String::new() } else { format!(", {}", counts.join(", ")) };
    writeln!(out, "{name}: {verdict} ({}{counts})", check.format)?;
    Ok(())
}

/// A finding as text, in the form of errors: `object, frame 3 at byte 80: message (code)`.
fn describe(finding: &Finding) -> String {
    let mut location: Vec<String> = finding.object.iter().cloned().collect();
    location.extend(finding.frame.map(|frame| format!("frame {frame}")));
    let mut location = location.join(", ");
    if let Some(offset) = finding.offset {
        let space = if location.is_empty() { "" } else { " " };
        location = format!("{location}{space}at byte {offset}");
    }
    let colon = if location.is_empty() { "" } else { ": " };
    format!("{location}{colon}{} ({})", finding.message, finding.code)
}
