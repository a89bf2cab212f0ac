//! `spile formats`.

use spile::format::{FormatInfo, Grade};

use crate::cmd::prelude::*;

#[derive(Debug, Args)]
pub(crate) struct FormatsArgs {
    /// Print a Markdown table
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

pub(crate) fn run(args: &FormatsArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let rows = spile_ops::formats(&spile::REGISTRY);
    if context.json {
        out.object(&[("formats", json!(rows))])?;
    } else if args.markdown {
        markdown(&rows, out)?;
    } else {
        // Short words, to fit the title into 80 columns.
        let columns = ["name", "read", "write", "check", "salvage", "title and files"];
        let mut table = Table::new(&columns.map(|name| (name, Align::Left)));
        for row in &rows {
            let [read, write, check, salvage] = [row.read, row.write, row.check, row.salvage]
                .map(|grade| abbreviate(grade).to_string());
            let title = format!("{} {}", row.title, extensions(row));
            table.row([row.name.into(), read, write, check, salvage, title], out)?;
        }
        table.print(out)?;
    }
    Ok(Exit::Yes)
}

/// Abbreviation of an extent of support.
fn abbreviate(grade: Grade) -> &'static str {
    match grade {
        Grade::Complete => "all",
        Grade::Partial => "part",
        Grade::None => "-",
    }
}

fn extensions(row: &FormatInfo) -> String {
    row.extensions.iter().map(|e| format!(".{e}")).collect::<Vec<_>>().join(" ")
}

fn markdown(rows: &[&FormatInfo], out: &mut Output) -> Result<()> {
    writeln!(out, "| format | files | used by | read | write | check | salvage | specification |")?;
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
            row.read.name(),
            row.write.name(),
            row.check.name(),
            row.salvage.name(),
            row.specification
        )?;
    }
    Ok(())
}
