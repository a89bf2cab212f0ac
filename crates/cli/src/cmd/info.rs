//! `spile info`, and `spile FILE`, which also lists the arrays.

use spile_ops::Pick;
use spile_ops::info::{Info, Moment};

use super::ls;
use crate::cmd::prelude::*;

/// Lines of a value that are printed without `-v`.
const LINES: usize = 8;

/// Arrays listed by `spile FILE` without `-v`.
const ARRAYS: usize = 40;

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// Files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// List the arrays too, like `spile FILE`
    #[arg(short, long)]
    arrays: bool,
}

pub(crate) fn run(args: &InfoArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    context.each_dataset(&args.files, out, |entry, file, out| {
        let info = spile_ops::info(&file)?;
        if context.json {
            return out.json_of(entry, &info);
        }
        show(entry, &info, context, out)?;
        if args.arrays {
            let rows = spile_ops::list(file.tree(), &Pick::default(), None)?;
            let arrays: Vec<_> = rows.into_iter().filter(|row| row.array.is_some()).collect();
            let shown = if context.verbose { arrays.len() } else { ARRAYS.min(arrays.len()) };
            writeln!(out)?;
            ls::long(&arrays[..shown], false, out)?;
            if shown < arrays.len() {
                let more = text::count((arrays.len() - shown) as u64, "more array");
                writeln!(out, "({more}; -v or `spile ls -l` lists all)")?;
            }
        }
        Ok(())
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
    fields.extend(info.summary.0.iter().map(|(name, value)| (name.into(), value.to_string())));
    text::fields(&fields, if context.verbose { usize::MAX } else { LINES }, out)
}

/// The step of a frame, or its time if it has no step.
pub(super) fn moment(moment: &Moment) -> Option<String> {
    match (moment.step, moment.time) {
        (Some(step), _) => Some(format!("step {step}")),
        (None, Some(time)) => Some(format!("time {}", text::short(time.0))),
        (None, None) => None,
    }
}
