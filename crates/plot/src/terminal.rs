//! Terminal output: a figure as lines of text.

mod braille;
mod heatmap;

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

use crate::colour;
use crate::colourbar::Colourbar;
use crate::figure::{Axis, ColourMode, Figure};
use crate::figure_layout::{Rect, axis_label, label_with_note};
use crate::font;
use crate::geometry::View;
use crate::range::{self, Range};
use crate::ticks::Ticks;

use braille::BrailleCanvas;
use heatmap::HeatMapCells;

/// Maximum number of columns and rows.
const MAX_SIZE: usize = 1000;

/// Draws a figure as `rows` lines of at most `columns` characters.
pub(crate) fn draw(figure: &Figure, columns: usize, rows: usize, mode: ColourMode) -> String {
    let colour = mode != ColourMode::Plain;
    let (columns, rows) = (columns.min(MAX_SIZE), rows.min(MAX_SIZE));
    if columns == 0 || rows == 0 {
        return String::new();
    }
    let (x_range, y_range) = range::ranges(figure);

    // With few rows, title, labels and axis are omitted in this order.
    let title = Some(figure.title.trim()).filter(|t| !t.is_empty() && rows >= 10);
    let mut head: Vec<String> = title.map(|t| centred(t, 0, columns)).into_iter().collect();
    // Unit and note rarely depend on the number of ticks; this estimate decides which rows are needed.
    let y_estimate = y_range.map(|r| Ticks::of(&figure.y, r, (rows / 4).clamp(1, 10)));
    if rows >= 7 {
        let y_name =
            label_with_note(&axis_label(&figure.y, y_estimate.as_ref()), y_estimate.as_ref());
        let map = figure.map.as_ref().and_then(|m| Colourbar::new(m, (rows / 4).clamp(1, 10)));
        head.extend(match map {
            Some(bar) => between(&y_name, &bar.label(), columns),
            None => heading(figure, &y_name, columns, (rows / 8).max(1), colour),
        });
    }
    let axis = if rows >= 4 { 2 } else { 0 };
    let has_x_label =
        rows >= 8 && !(figure.x.label.trim().is_empty() && figure.x.unit.trim().is_empty());
    let has_note = |t: &Ticks| !t.note.is_empty();
    let x_estimate = x_range.map(|r| Ticks::of(&figure.x, r, (columns / 12).clamp(1, 12)));
    let foot = usize::from(has_x_label || (rows >= 8 && x_estimate.as_ref().is_some_and(has_note)));
    head.truncate(rows.saturating_sub(axis + foot + 1));
    let plot_rows = rows - head.len() - axis - foot;

    let y_ticks = y_range.map(|r| Ticks::of(&figure.y, r, (plot_rows / 3).clamp(1, 10)));
    let labels = y_ticks.iter().flat_map(|t| &t.marks);
    let label_columns = labels.map(|t| text_columns(&t.label)).max().unwrap_or(0) + 1;
    let label_columns = if label_columns + 12 > columns { 0 } else { label_columns };
    let map = figure.map.as_ref();
    let bar = map.and_then(|m| Colourbar::new(m, (plot_rows / 3).clamp(1, 10)));
    let bar = bar.filter(|bar| label_columns > 0 && columns >= label_columns + bar.columns() + 16);
    let beside = bar.as_ref().map_or(0, Colourbar::columns);
    let plot_columns = columns.saturating_sub(label_columns + 1 + beside).max(1);

    let view = x_range.zip(y_range).map(|(x, y)| View {
        x,
        y,
        log: [figure.x.log, figure.y.log],
        frame: Rect {
            width: (plot_columns * 2 - 1) as f64,
            height: (plot_rows * 4 - 1) as f64,
            ..Rect::default()
        },
    });
    let mut dots = BrailleCanvas::new(plot_columns, plot_rows);
    if let Some(view) = &view {
        for (i, series) in figure.series.iter().enumerate() {
            dots.trace(view.trace(&series.points), i);
        }
    }

    let coloured = map
        .zip(view.as_ref())
        .and_then(|(map, view)| HeatMapCells::new(map, view, plot_columns, plot_rows, mode));
    let empty = range::is_empty(figure);
    let mut lines = head;
    for row in 0..plot_rows {
        let tick = view
            .as_ref()
            .zip(y_ticks.as_ref())
            .and_then(|(view, t)| t.marks.iter().find(|t| dots.row_of(view.py(t.value)) == row));
        let mut line = String::new();
        if label_columns > 0 {
            let label = tick.map_or("", |t| t.label.as_str());
            line.push_str(&" ".repeat(label_columns.saturating_sub(1 + text_columns(label))));
            line.push_str(label);
            line.push(' ');
        }
        if columns > 1 {
            line.push(if tick.is_some() && label_columns > 0 { '┤' } else { '│' });
        }
        if empty && row == plot_rows / 2 {
            line.push_str(&centred(range::empty_message(figure), 0, plot_columns));
        } else if let Some(coloured) = &coloured {
            coloured.write_row(row, &mut line);
            if let Some(bar) = &bar {
                bar.write_row(row, plot_rows, mode, &mut line);
            }
        } else {
            dots.write_row(row, colour, &mut line);
        }
        lines.push(line);
    }
    let mut x_ticks = None;
    if axis > 0 {
        let fitted =
            x_range.map(|r| fitting_ticks(&figure.x, r, plot_columns, label_columns, columns));
        let (ticks, tick_labels) = fitted.unzip();
        lines.extend(axis_lines(
            &tick_labels.unwrap_or_default(),
            label_columns,
            plot_columns,
            columns,
        ));
        x_ticks = ticks;
    }
    if foot > 0 {
        let text = label_with_note(&axis_label(&figure.x, x_ticks.as_ref()), x_ticks.as_ref());
        lines.push(centred(&text, label_columns + 1, columns.saturating_sub(label_columns + 1)));
    }
    lines.truncate(rows);
    lines.iter().map(|l| l.trim_end()).collect::<Vec<_>>().join("\n")
}

/// Width of a text in columns.
fn text_columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

fn char_columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// `text` shortened to `max_columns`.
fn shorten(text: &str, max_columns: usize) -> String {
    font::shorten(text, max_columns as f64, |c| char_columns(c) as f64)
}

/// `text` centred in `max_columns`, after `indent`.
fn centred(text: &str, indent: usize, max_columns: usize) -> String {
    let text = shorten(text, max_columns);
    format!("{}{text}", " ".repeat(indent + (max_columns.saturating_sub(text_columns(&text))) / 2))
}

/// Two texts, left and right aligned on one line, or on separate lines if they do not fit.
fn between(left: &str, right: &str, columns: usize) -> Vec<String> {
    let (left, right) = (shorten(left, columns), shorten(right, columns));
    let used = text_columns(&left) + text_columns(&right);
    let at_end = |max_columns: usize, text: &str| {
        format!("{}{text}", " ".repeat(max_columns - text_columns(text)))
    };
    match (left.is_empty(), right.is_empty()) {
        (true, true) => Vec::new(),
        (false, true) => vec![left],
        (true, false) => vec![at_end(columns, &right)],
        _ if used + 3 <= columns => {
            let rest = at_end(columns - text_columns(&left), &right);
            vec![format!("{left}{rest}")]
        }
        _ => vec![at_end(columns, &right), left],
    }
}

/// Label of y and legend of up to `max_lines` lines, on one line if they fit.
fn heading(
    figure: &Figure,
    name: &str,
    columns: usize,
    max_lines: usize,
    colour: bool,
) -> Vec<String> {
    let name = shorten(name, columns);
    let left = text_columns(&name);
    // Narrow terminals have no legend.
    let listed = figure.series.len() > 1 && columns >= 16;
    let mut lines = if listed { legend(figure, columns, max_lines, colour) } else { Vec::new() };
    if left == 0 {
        return lines.into_iter().map(|l| l.0).collect();
    }
    if let [(line, width)] = &mut lines[..]
        && left + 3 + *width <= columns
    {
        return vec![format!("{name}{}{line}", " ".repeat(columns - left - *width))];
    }
    lines.into_iter().map(|l| l.0).chain([name]).collect()
}

/// Legend of up to `max_lines` lines, each with its width in columns.
fn legend(figure: &Figure, columns: usize, max_lines: usize, colour: bool) -> Vec<(String, usize)> {
    let mut lines = vec![(String::new(), 0)];
    let count = figure.series.len();
    for (i, series) in figure.series.iter().enumerate() {
        let handle = if colour { 3 } else { 0 };
        let text = font::fit_middle(&series.name(i), 24.0, |c| char_columns(c) as f64);
        let needed = handle + text_columns(&text);
        let left = count - i - 1;
        // Reserve space for "+N more" on the last line.
        let last = lines.len() >= max_lines;
        let rest = if last && left > 0 { text_columns(&format!("  +{left} more")) } else { 0 };
        let used = lines.last().map_or(0, |l| l.1);
        let between = if used == 0 { 0 } else { 2 };
        let full = used + between + needed + rest > columns;
        if full && !last && used > 0 {
            lines.push((String::new(), 0));
        }
        let Some((line, used)) = lines.last_mut() else { break };
        let between = if *used == 0 { 0 } else { 2 };
        if full && last {
            let more = shorten(
                &format!("{}+{} more", " ".repeat(between), count - i),
                columns.saturating_sub(*used),
            );
            line.push_str(&more);
            *used += text_columns(&more);
            break;
        }
        // A single name can be wider than the terminal.
        let text = shorten(&text, columns.saturating_sub(*used + between + handle));
        line.push_str(&" ".repeat(between));
        if colour {
            let _ = write!(line, "\x1b[38;5;{}m━━\x1b[39m ", colour::ansi(i));
        }
        line.push_str(&text);
        *used += between + handle + text_columns(&text);
    }
    lines
}

/// A label along x: column of the tick, first column of the label, and text.
type TickLabel = (usize, usize, String);

/// Ticks along x, as many as possible without overlapping labels, and the label positions.
fn fitting_ticks(
    axis: &Axis,
    range: Range,
    plot_columns: usize,
    label_columns: usize,
    columns: usize,
) -> (Ticks, Vec<TickLabel>) {
    for max_count in (1..=(plot_columns / 9).clamp(1, 12)).rev() {
        let ticks = Ticks::of(axis, range, max_count);
        let mut tick_labels: Vec<TickLabel> = Vec::new();
        let mut end = 0;
        for tick in &ticks.marks {
            let column =
                (range.fraction(tick.value) * (plot_columns * 2 - 1) as f64).round() as usize / 2;
            let length = text_columns(&tick.label);
            let middle = label_columns + 1 + column;
            let begin = middle.saturating_sub(length / 2).min(columns.saturating_sub(length));
            if begin >= end && length <= columns {
                tick_labels.push((column, begin, tick.label.clone()));
                end = begin + length + 2;
            }
        }
        if tick_labels.len() == ticks.marks.len() || max_count == 1 {
            return (ticks, tick_labels);
        }
    }
    (Ticks::default(), Vec::new())
}

/// The axis line below the plot, and the tick labels below that.
fn axis_lines(
    tick_labels: &[TickLabel],
    label_columns: usize,
    plot_columns: usize,
    columns: usize,
) -> [String; 2] {
    let mut rule = " ".repeat(label_columns);
    if columns > 1 {
        rule.push('└');
    }
    rule.extend(
        (0..plot_columns).map(|c| if tick_labels.iter().any(|p| p.0 == c) { '┬' } else { '─' }),
    );
    let mut labels = String::new();
    let mut used = 0;
    for (_, begin, text) in tick_labels {
        labels.push_str(&" ".repeat(begin.saturating_sub(used)));
        labels.push_str(text);
        used = begin + text_columns(text);
    }
    [rule, labels]
}
