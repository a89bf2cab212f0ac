//! `spile diff`.

use spile_ops::Pick;
use spile_ops::diff::{Apart, Row, Rules, renaming};

use crate::cmd::prelude::*;

/// Compare two files, also of different formats.
///
/// Prints the differences: objects in one file only, types, shapes, attributes, and values, with the index of
/// the largest relative difference of each array. Exit status: 0 no differences, 1 differences, 2 a file
/// cannot be read.
///
/// Values are equal within --atol + --rtol * |second|, or within --ulp units in the last place. Byte order,
/// element order and compression are ignored.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// First file
    #[arg(value_name = "FIRST")]
    first: PathBuf,
    /// Second file
    #[arg(value_name = "SECOND")]
    second: PathBuf,
    /// Absolute tolerance
    #[arg(long, value_name = "X", default_value = "0", hide_default_value = true, value_parser = tolerance)]
    atol: f64,
    /// Relative tolerance
    #[arg(long, value_name = "X", default_value = "0", hide_default_value = true, value_parser = tolerance)]
    rtol: f64,
    /// Tolerance in units in the last place of the less precise type
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    ulp: u64,
    /// Treat NaN as different from NaN
    #[arg(long)]
    nan_differs: bool,
    /// Compare only values and shapes, not types, attributes, dimensions, coordinates
    #[arg(long)]
    values: bool,
    /// Ignore objects by path; a group includes its content
    #[arg(long, value_name = "GLOB")]
    ignore: Vec<String>,
    /// Name of an object or group in the first and in the second file
    #[arg(long, value_name = "OLD=NEW", value_parser = |text: &str| renaming(text).map_err(|e| e.message().to_string()))]
    map: Vec<(String, String)>,
    #[command(flatten)]
    pick: PickArgs,
}

fn tolerance(text: &str) -> std::result::Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|x| x.is_finite() && *x >= 0.0);
    number.ok_or_else(|| "expected a number >= 0, for example 1e-9".into())
}

pub(crate) fn run(args: &DiffArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let rules = Rules {
        atol: args.atol,
        rtol: args.rtol,
        ulp: args.ulp,
        nan_equal: !args.nan_differs,
        values_only: args.values,
        pick: args.pick.pick()?,
        ignore: if args.ignore.is_empty() { None } else { Some(Pick::new(&args.ignore)?) },
        renamed: args.map.clone(),
    };
    let open = |path: &PathBuf| context.open(path).map_err(|e: Error| e.with_path(path));
    let (first, second) = (open(&args.first)?, open(&args.second)?);
    let diff = spile_ops::diff(&first, &second, &rules)?;
    let same = diff.differences.is_empty();
    if context.json {
        let mut document = out.document()?;
        document.field("first", &args.first.to_string_lossy())?;
        document.field("second", &args.second.to_string_lossy())?;
        document.field("same", &same)?;
        document.field("arrays", &diff.arrays)?;
        document.field("differences", &diff.differences)?;
        document.end()?;
    } else if !context.quiet {
        for row in &diff.differences {
            let colour = if row.values.is_some() { style::WARN } else { style::BAD };
            let path = if row.path.is_empty() { "the file" } else { &row.path };
            let path = out.paint(colour, &text::one_line(path));
            writeln!(out, "{path}: {}", text::one_line(&describe(row)))?;
        }
    }
    Ok(if same { Exit::Yes } else { Exit::No })
}

pub(super) fn describe(row: &Row) -> String {
    let frame = row.frame.map_or(String::new(), |frame| format!(" in frame {frame}"));
    let side = |value: &Option<String>| value.as_deref().unwrap_or("nothing").to_string();
    let both = format!("{} | {}", side(&row.first), side(&row.second));
    match (&row.values, row.name.as_deref()) {
        (Some(values), _) => format!("{}{frame}: {both}", describe_values(values)),
        (None, Some(name)) => format!("attribute {name}: {both}"),
        (None, None) if row.first.is_none() && row.second.is_none() => {
            format!("in the {}{frame}", row.what)
        }
        (None, None) => format!("{}{frame}: {both}", row.what),
    }
}

fn describe_values(values: &Apart) -> String {
    let mut text = format!("{} of {} values differ", values.differ, values.count);
    if let Some(distance) = values.distance {
        text = format!("{text}, max difference {}", text::short(distance.0));
        if let Some(relative) = values.relative.filter(|r| r.0.is_finite()) {
            text = format!("{text} (relative {})", text::short(relative.0));
        }
    }
    if !values.index.is_empty() {
        let index: Vec<String> = values.index.iter().map(ToString::to_string).collect();
        text = format!("{text} at [{}]", index.join(", "));
    }
    if values.at.iter().any(Option::is_some) {
        let point =
            |at: &Option<spile_ops::json::Real>| at.map_or("-".into(), |r| text::short(r.0));
        let at: Vec<String> = values.at.iter().map(point).collect();
        text = format!("{text} = ({})", at.join(", "));
    }
    text
}
