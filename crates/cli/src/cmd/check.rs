//! `spile check`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use spile::error::Result;
use spile_ops::check::{Check, Row};

use crate::context::{Context, Entry};
use crate::exit::Exit;
use crate::print::{Output, style, text};

/// Look for everything that is wrong with a file.
///
/// Exit status: 0 when there is nothing of severity error, 1 when there is, 2 when a file cannot
/// be examined at all.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Tell also what readers need not mind
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: &CheckArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    context.each_file(&args.files, out, |entry, out| {
        let source = context.source(entry.path)?;
        let check = spile_ops::check(&spile::REGISTRY, &source, &context.limits, args.strict)?;
        if context.json {
            #[derive(Serialize)]
            struct Body<'a> {
                file: String,
                #[serde(flatten)]
                check: &'a Check,
            }
            out.json(&Body { file: entry.name(), check: &check })?;
        } else if !context.quiet {
            show(entry, &check, out)?;
        }
        Ok(if check.ok { Exit::Yes } else { Exit::No })
    })
}

fn show(entry: Entry<'_>, check: &Check, out: &mut Output) -> Result<()> {
    let name = text::clean(&entry.name()).into_owned();
    for finding in &check.findings {
        let colour = match finding.severity {
            "error" => style::BAD,
            "warning" => style::WARN,
            _ => style::CALM,
        };
        let severity = out.paint(colour, finding.severity);
        writeln!(out, "{name}: {severity}: {}", text::clean(&sentence(finding)))?;
        if let Some(hint) = &finding.hint {
            writeln!(out, "  hint: {}", text::clean(hint))?;
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

/// `object, frame 3, at byte 80: message (code)`, as errors have it.
fn sentence(finding: &Row) -> String {
    let mut place: Vec<String> = finding.object.iter().cloned().collect();
    place.extend(finding.frame.map(|frame| format!("frame {frame}")));
    let mut place = place.join(", ");
    if let Some(offset) = finding.offset {
        let space = if place.is_empty() { "" } else { " " };
        place = format!("{place}{space}at byte {offset}");
    }
    let colon = if place.is_empty() { "" } else { ": " };
    format!("{place}{colon}{} ({})", finding.message, finding.code)
}
