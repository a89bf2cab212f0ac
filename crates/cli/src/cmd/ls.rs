//! `spile ls`.

use std::collections::HashMap;

use spile::error::human_bytes;
use spile::shape::Shape;
use spile_ops::list::{ArrayRow, CoordRow, Row};

use crate::cmd::prelude::*;

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// Files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print type, shape and size; with -v also dimensions, scaling and attributes
    #[arg(short, long)]
    long: bool,
    /// Print a tree
    #[arg(long, conflicts_with = "long")]
    tree: bool,
    /// Maximum depth
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    #[command(flatten)]
    pick: PickArgs,
}

pub(crate) fn run(args: &LsArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    context.each_dataset(&args.files, out, |entry, file, out| {
        let pick = args.pick.pick_of(&file)?;
        let rows = spile_ops::list(file.tree(), &pick, args.depth)?;
        if context.json {
            let mut document = out.document_of(entry, &file)?;
            document.field("objects", &rows)?;
            return document.end();
        }
        if args.tree {
            return tree(entry, &rows, out);
        }
        out.heading(entry)?;
        if args.long { long(&rows, context.verbose, out) } else { short(&rows, out) }
    })
}

fn short(rows: &[Row], out: &mut Output) -> Result<()> {
    for row in rows {
        let (name, style) = name(row, &row.path);
        let name = out.paint(style, &text::one_line(&name));
        writeln!(out, "{name}")?;
    }
    Ok(())
}

/// The displayed name and its style; groups are bold and end with a slash.
fn name(row: &Row, name: &str) -> (String, Style) {
    match row.array {
        Some(_) => (name.to_string(), Style::new()),
        None => (format!("{name}/"), style::NAME),
    }
}

fn shape(array: &ArrayRow) -> String {
    let shape = Shape::new(array.shape.clone()).to_string();
    match array.frames {
        Some(frames) => format!("{shape}, {}", text::count(frames, "frame")),
        None => shape,
    }
}

pub(super) fn long(rows: &[Row], verbose: bool, out: &mut Output) -> Result<()> {
    let mut columns = vec![("type", Align::Left), ("shape", Align::Right), ("size", Align::Right)];
    // Native ids, which can be used instead of paths.
    let ids = rows.iter().any(|row| row.id.is_some());
    columns.extend(ids.then_some(("id", Align::Right)));
    columns.push(("name", Align::Left));
    let mut table = Table::new(&columns);
    for row in rows {
        let plain = Style::new();
        let mut cells = match &row.array {
            Some(a) => {
                vec![(a.dtype.clone(), plain), (shape(a), plain), (human_bytes(a.bytes), plain)]
            }
            None => {
                vec![("group".into(), style::FAINT), (String::new(), plain), (String::new(), plain)]
            }
        };
        if ids {
            cells.push((row.id.clone().unwrap_or_default(), plain));
        }
        cells.push(name(row, &row.path));
        table.styled(cells, out)?;
        if verbose {
            table.print(out)?;
            details(row, out)?;
        }
    }
    table.print(out)
}

fn details(row: &Row, out: &mut Output) -> Result<()> {
    let mut fields: Vec<(String, String)> = Vec::new();
    if let Some(id) = &row.id {
        fields.push(("id".into(), id.clone()));
    }
    if let Some(array) = &row.array {
        for ((dim, coord), length) in array.dims.iter().zip(&array.coords).zip(&array.shape) {
            let points = match coord {
                CoordRow::None => format!("{length} points"),
                CoordRow::Uniform { start, step } => {
                    format!(
                        "{length} points, {} + k * {}",
                        text::short(start.0),
                        text::short(step.0)
                    )
                }
                CoordRow::Array { path } => format!("{length} points, at \"{path}\""),
            };
            fields.push((dim.clone(), points));
        }
        if let Some(map) = array.map {
            let (a, b) = (text::short(map.intercept.0), text::short(map.slope.0));
            fields.push(("scaling".into(), format!("{a} + {b} * stored")));
        }
    }
    fields.extend(row.attrs.0.iter().map(|(name, value)| (name.into(), value.to_string())));
    text::fields(&fields, usize::MAX, out)
}

fn tree(entry: Entry<'_>, rows: &[Row], out: &mut Output) -> Result<()> {
    if entry.number > 0 {
        writeln!(out)?;
    }
    let root = out.paint(style::NAME, &text::one_line(&entry.name()));
    writeln!(out, "{root}")?;
    let mut table = Table::new(&[("", Align::Left), ("", Align::Left), ("", Align::Right)]);
    for (branch, path, row) in branches(rows) {
        let name = path.rsplit('/').next().unwrap_or(path);
        let cells = match row.and_then(|row| row.array.as_ref()) {
            Some(array) => [format!("{branch}{name}"), array.dtype.clone(), shape(array)],
            None => [format!("{branch}{name}/"), String::new(), String::new()],
        };
        table.row(cells, out)?;
    }
    table.print(out)
}

/// Tree lines: the branch characters, the path, and the row. Each group is followed by its content. Groups
/// without a row of their own are added above selected objects.
fn branches(rows: &[Row]) -> Vec<(String, &str, Option<&Row>)> {
    // Sorted by the first occurrence of each path component, which is the order of the file.
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut nodes: Vec<(Vec<usize>, &str, Option<&Row>)> = Vec::new();
    for row in rows {
        let ends = row.path.match_indices('/').map(|(end, _)| end).chain([row.path.len()]);
        let mut key = Vec::new();
        for end in ends {
            let path = &row.path[..end];
            let next = seen.len();
            let position = *seen.entry(path).or_insert(next);
            key.push(position);
            if position == next {
                let own = (end == row.path.len()).then_some(row);
                nodes.push((key.clone(), path, own));
            }
        }
    }
    nodes.sort_by(|a, b| a.0.cmp(&b.0));
    // From the end: the levels that have a further entry below.
    let mut continues: Vec<bool> = Vec::new();
    let mut lines = Vec::with_capacity(nodes.len());
    for (key, path, row) in nodes.into_iter().rev() {
        continues.resize(key.len(), false);
        let (last, above) = continues.split_last_mut().unzip();
        let above = above.unwrap_or_default().iter();
        let mut branch: String = above.map(|on| if *on { "\u{2502}   " } else { "    " }).collect();
        let corner = last.as_ref().is_some_and(|on| !**on);
        branch.push_str(if corner {
            "\u{2514}\u{2500}\u{2500} "
        } else {
            "\u{251c}\u{2500}\u{2500} "
        });
        if let Some(on) = last {
            *on = true;
        }
        lines.push((branch, path, row));
    }
    lines.reverse();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_ops::json::Pairs;

    fn draw(paths: &[&str]) -> Vec<String> {
        let row = |path: &&str| Row {
            path: (*path).into(),
            id: None,
            kind: "group",
            array: None,
            attrs: Pairs::default(),
        };
        let rows: Vec<Row> = paths.iter().map(row).collect();
        let name = |path: &str| path.rsplit('/').next().unwrap().to_string();
        branches(&rows).into_iter().map(|(b, path, _)| b + &name(path)).collect()
    }

    #[test]
    fn branches_end_where_their_group_does() {
        assert_eq!(
            draw(&["a", "b", "a/x", "b/z", "a/y", "a/x/deep"]),
            ["├── a", "│   ├── x", "│   │   └── deep", "│   └── y", "└── b", "    └── z"]
        );
    }

    #[test]
    fn groups_above_a_selected_array_are_included() {
        assert_eq!(draw(&["a/b/c"]), ["└── a", "    └── b", "        └── c"]);
    }
}
