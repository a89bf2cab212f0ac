//! `spile map`.

use spile::error::human_bytes;
use spile_ops::map::Part;

use crate::cmd::prelude::*;

#[derive(Debug, Args)]
pub(crate) struct MapArgs {
    /// File; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &MapArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    context.each_file(std::slice::from_ref(&args.file), out, |entry, out| {
        let file = context.open(entry.path)?;
        if context.json {
            let mut document = out.document_of(entry, &file)?;
            let totals = document.list("parts", |add| spile_ops::map(&file, add))?;
            document.field("bytes", &totals.bytes)?;
            document.field("roles", &totals.roles)?;
            document.field("overlapping", &totals.overlapping)?;
            document.field("past_end", &totals.past_end)?;
            return document.end();
        }
        let columns = [
            ("offset", Align::Right),
            ("bytes", Align::Right),
            ("role", Align::Left),
            ("name", Align::Left),
            ("value", Align::Left),
        ];
        let mut table = Table::new(&columns);
        let totals = spile_ops::map(&file, &mut |part| table.styled(cells(part), out))?;
        table.print(out)?;
        if context.quiet {
            return Ok(());
        }
        let shares: Vec<String> =
            totals.roles.iter().map(|s| format!("{} {:.1} %", s.role, s.percent)).collect();
        writeln!(out, "\n{}: {}", human_bytes(totals.bytes), shares.join(", "))?;
        for (bytes, what) in [
            (totals.overlapping, "in overlapping regions"),
            (totals.past_end, "after the end of the file"),
        ] {
            if bytes > 0 {
                let line = format!("{} {what}", text::count(bytes, "byte"));
                let line = out.paint(style::BAD, &line);
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    })
}

fn cells(part: Part) -> [(String, Style); 5] {
    let plain = Style::new();
    let colour = match part.role {
        "header" => style::CALM,
        "data" => style::GOOD,
        "padding" => style::FAINT,
        "gap" | "unknown" => style::WARN,
        _ => plain,
    };
    let name = match (part.role, part.overlap) {
        ("gap", _) => "(unused)".to_string(),
        (_, 0) => part.name,
        (_, overlap) => format!("{} (overlaps {overlap})", part.name),
    };
    [
        (part.offset.to_string(), plain),
        (part.bytes.to_string(), plain),
        (part.role.to_string(), colour),
        (name, plain),
        (text::truncate(&part.value, usize::MAX).into_owned(), plain),
    ]
}
