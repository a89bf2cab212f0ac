//! `spile info`, and `spile FILE`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use spile::error::Result;
use spile_ops::info::{Info, Moment};

use crate::context::{Context, Entry};
use crate::exit::Exit;
use crate::print::{Output, text};

/// Lines of a long text that are shown without `-v`.
const LINES: usize = 8;

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// Files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(args: &InfoArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    context.each_file(&args.files, out, |entry, out| {
        let info = spile_ops::info(&context.open(entry.path)?)?;
        if context.json {
            #[derive(Serialize)]
            struct Body<'a> {
                file: String,
                #[serde(flatten)]
                info: &'a Info,
            }
            out.json(&Body { file: entry.name(), info: &info })?;
        } else {
            show(entry, &info, context, out)?;
        }
        Ok(Exit::Yes)
    })
}

fn show(entry: Entry<'_>, info: &Info, context: &Context, out: &mut Output) -> Result<()> {
    out.heading(entry)?;
    let mut content = text::count(info.arrays, "array");
    if info.groups > 0 {
        content = format!("{content} in {}", text::count(info.groups, "group"));
    }
    let mut fields = vec![
        ("format".to_string(), format!("{} ({})", info.title, info.format)),
        ("file size".to_string(), text::size(info.bytes)),
        ("content".to_string(), content),
    ];
    if let Some(frames) = &info.frames {
        let moments: Vec<String> =
            [&frames.first, &frames.last].into_iter().flatten().filter_map(moment).collect();
        let range = match moments[..] {
            [] => String::new(),
            _ => format!(" ({})", moments.join(" to ")),
        };
        fields.push(("frames".to_string(), format!("{}{range}", frames.count)));
    }
    fields.extend(info.summary.0.iter().map(|(name, value)| (name.clone(), value.to_string())));
    text::fields(&fields, if context.verbose { usize::MAX } else { LINES }, out)
}

/// The step, or else the time.
pub(super) fn moment(moment: &Moment) -> Option<String> {
    match (moment.step, moment.time) {
        (Some(step), _) => Some(format!("step {step}")),
        (None, Some(time)) => Some(format!("time {}", text::short(time.0))),
        (None, None) => None,
    }
}
