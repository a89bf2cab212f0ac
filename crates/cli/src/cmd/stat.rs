//! `spile stat`.

use std::path::PathBuf;

use clap::Args;
use spile::error::Result;
use spile_ops::json::Real;
use spile_ops::stat::Row;

use crate::args::PickArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::{Align, Output, Table, text};

/// Count, minimum, maximum, mean and deviation of every array.
///
/// Values are mapped where the array has a linear map. NaN and infinities are counted and left
/// out of everything else; the deviation is that of a sample (n - 1). Text shows six digits,
/// --json all of them.
#[derive(Debug, Args)]
pub(crate) struct StatArgs {
    /// Files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    pick: PickArgs,
}

pub(crate) fn run(args: &StatArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let pick = args.pick.pick()?;
    context.each_file(&args.files, out, |entry, out| {
        let file = context.open(entry.path)?;
        let reader = &*file.reader;
        if context.json {
            let mut document = out.document()?;
            document.field("file", &entry.name())?;
            document.field("format", file.format.info().name)?;
            document.list("arrays", |add| spile_ops::stat(reader, &pick, &context.limits, add))?;
            document.end()?;
            return Ok(Exit::Yes);
        }
        let columns = [
            ("count", Align::Right),
            ("min", Align::Right),
            ("max", Align::Right),
            ("mean", Align::Right),
            ("std", Align::Right),
            ("name", Align::Left),
        ];
        let mut table = Table::new(&columns);
        out.heading(entry)?;
        spile_ops::stat(reader, &pick, &context.limits, &mut |row| table.row(cells(&row), out))?;
        table.print(out)?;
        Ok(Exit::Yes)
    })
}

fn cells(row: &Row) -> [String; 6] {
    let number = |value: Option<Real>| value.map_or("-".to_string(), |v| text::short(v.0));
    let mut name = row.path.clone();
    if let Some(frame) = row.frame {
        name = format!("{name} [{frame}]");
    }
    let Some(n) = &row.numbers else {
        let dash = || "-".to_string();
        return [
            row.count.to_string(),
            dash(),
            dash(),
            dash(),
            dash(),
            format!("{name} ({})", row.dtype),
        ];
    };
    let odd =
        [(n.nan, "NaN"), (n.positive_infinity, "+Infinity"), (n.negative_infinity, "-Infinity")];
    let odd: Vec<String> =
        odd.iter().filter(|o| o.0 > 0).map(|o| format!("{} {}", o.0, o.1)).collect();
    if !odd.is_empty() {
        name = format!("{name} (without {})", odd.join(", "));
    }
    [row.count.to_string(), number(n.min), number(n.max), number(n.mean), number(n.std), name]
}
