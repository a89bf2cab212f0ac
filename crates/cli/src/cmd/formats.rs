//! `spile formats`.

use std::io::Write as _;

use clap::Args;
use spile::error::Result;
use spile_ops::formats::Row;

use crate::context::Context;
use crate::exit::Exit;
use crate::print::{Align, Output, Table};

#[derive(Debug, Args)]
pub(crate) struct FormatsArgs {
    /// Print the table of the README
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

pub(crate) fn run(args: &FormatsArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let rows = spile_ops::formats(&spile::REGISTRY);
    if context.json {
        let mut document = out.document()?;
        document.field("formats", &rows)?;
        document.end()?;
    } else if args.markdown {
        markdown(&rows, out)?;
    } else {
        let left = Align::Left;
        let columns = ["name", "read", "write", "check", "salvage", "files", "title"];
        let mut table = Table::new(&columns.map(|name| (name, left)));
        for row in &rows {
            let grades = [row.read, row.write, row.check, row.salvage].map(String::from);
            let [read, write, check, salvage] = grades;
            let cells =
                [row.name.into(), read, write, check, salvage, endings(row), row.title.into()];
            table.row(cells, out)?;
        }
        table.print(out)?;
    }
    Ok(Exit::Yes)
}

fn endings(row: &Row) -> String {
    row.extensions.iter().map(|e| format!(".{e}")).collect::<Vec<_>>().join(" ")
}

fn markdown(rows: &[Row], out: &mut Output) -> Result<()> {
    writeln!(out, "| format | files | who has them | read | write | check | salvage | by |")?;
    writeln!(out, "|---|---|---|---|---|---|---|---|")?;
    for row in rows {
        let files: Vec<String> = row.extensions.iter().map(|e| format!("`.{e}`")).collect();
        writeln!(
            out,
            "| **{}** {} | {} | {} | {} | {} | {} | {} | {} |",
            row.name,
            row.title,
            files.join(" "),
            row.users,
            row.read,
            row.write,
            row.check,
            row.salvage,
            row.specification
        )?;
    }
    Ok(())
}
