//! `spile diff`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use spile::error::{Error, Result};
use spile_ops::Pick;
use spile_ops::diff::{Apart, Diff, Row, Rules, renaming};

use crate::args::PickArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::{Output, style, text};

/// Compare two files, of any formats.
///
/// Prints what differs, and only that: what is in one of them only, types, shapes, attributes, and
/// values, those that are furthest apart for their size first, with their place. Exit status: 0 when
/// there is no difference, 1 when there is, 2 when a file cannot be read.
///
/// Values may differ by --atol + --rtol * |second|, or by --ulp numbers. Byte order, element order and
/// compression are no differences.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The first file
    #[arg(value_name = "FIRST")]
    first: PathBuf,
    /// The second file
    #[arg(value_name = "SECOND")]
    second: PathBuf,
    /// Allow a distance
    #[arg(long, value_name = "X", default_value = "0", hide_default_value = true, value_parser = tolerance)]
    atol: f64,
    /// Allow a distance that is this part of the second value
    #[arg(long, value_name = "X", default_value = "0", hide_default_value = true, value_parser = tolerance)]
    rtol: f64,
    /// Allow N numbers of the less precise type between two values
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    ulp: u64,
    /// NaN differs from everything, from NaN too
    #[arg(long)]
    nan_differs: bool,
    /// Compare values and shapes only: no types, attributes, dimensions, coordinates
    #[arg(long)]
    values: bool,
    /// Leave out objects whose path, or a group above them, matches
    #[arg(long, value_name = "GLOB")]
    ignore: Vec<String>,
    /// An object, or a group and all in it, that has another name in the second file
    #[arg(long, value_name = "OLD=NEW", value_parser = |text: &str| renaming(text).map_err(|e| e.message().to_string()))]
    map: Vec<(String, String)>,
    #[command(flatten)]
    pick: PickArgs,
}

fn tolerance(text: &str) -> std::result::Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|x| x.is_finite() && *x >= 0.0);
    number.ok_or_else(|| "write a number from 0 on, for example 1e-9".into())
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
        #[derive(Serialize)]
        struct Body<'a> {
            first: String,
            second: String,
            same: bool,
            #[serde(flatten)]
            diff: &'a Diff,
        }
        let [first, second] = [&args.first, &args.second].map(|p| p.to_string_lossy().into_owned());
        out.json(&Body { first, second, same, diff: &diff })?;
    } else if !context.quiet {
        for row in &diff.differences {
            let colour = if row.values.is_some() { style::WARN } else { style::BAD };
            let path = if row.path.is_empty() { "the file" } else { &row.path };
            let path = out.paint(colour, &text::clean(path));
            writeln!(out, "{path}: {}", text::clean(&sentence(row)))?;
        }
    }
    Ok(if same { Exit::Yes } else { Exit::No })
}

pub(super) fn sentence(row: &Row) -> String {
    let frame = row.frame.map_or(String::new(), |frame| format!(" in frame {frame}"));
    let side = |value: &Option<String>| value.as_deref().unwrap_or("nothing").to_string();
    let both = format!("{} | {}", side(&row.first), side(&row.second));
    match (&row.values, row.name.as_deref()) {
        (Some(values), _) => format!("{}{frame}: {both}", apart(values)),
        (None, Some(name)) => format!("attribute {name}: {both}"),
        (None, None) if row.first.is_none() && row.second.is_none() => {
            format!("in the {}{frame}", row.what)
        }
        (None, None) => format!("{}{frame}: {both}", row.what),
    }
}

fn apart(values: &Apart) -> String {
    let mut words = format!("{} of {} differ", values.differ, values.count);
    if let Some(distance) = values.distance {
        words = format!("{words}, by {} at most", text::short(distance.0));
        if let Some(relative) = values.relative.filter(|r| r.0.is_finite()) {
            words = format!("{words} ({} of it)", text::short(relative.0));
        }
    }
    if !values.index.is_empty() {
        let index: Vec<String> = values.index.iter().map(ToString::to_string).collect();
        words = format!("{words}, at [{}]", index.join(", "));
    }
    if values.at.iter().any(Option::is_some) {
        let point =
            |at: &Option<spile_ops::json::Real>| at.map_or("-".into(), |r| text::short(r.0));
        let at: Vec<String> = values.at.iter().map(point).collect();
        words = format!("{words} = ({})", at.join(", "));
    }
    words
}
