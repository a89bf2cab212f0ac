//! A figure as text: what goes on which line.

mod cells;
mod dots;

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

use crate::colour;
use crate::figure::{Axis, Figure, Screen};
use crate::font;
use crate::layout::{name, noted};
use crate::range::{self, Range};
use crate::ticks::Ticks;
use crate::trace::View;

use cells::{Bar, Cells};
use dots::Dots;

/// More columns or rows than any screen has.
const LARGEST: usize = 1000;

pub(crate) fn draw(figure: &Figure, columns: usize, rows: usize, screen: Screen) -> String {
    let colour = screen != Screen::Plain;
    let (columns, rows) = (columns.min(LARGEST), rows.min(LARGEST));
    if columns == 0 || rows == 0 {
        return String::new();
    }
    let (x_range, y_range) = range::ranges(figure);

    // What matters least goes first when rows are few.
    let title = Some(figure.title.trim()).filter(|t| !t.is_empty() && rows >= 10);
    let mut head: Vec<String> = title.map(|t| centred(t, 0, columns)).into_iter().collect();
    // The unit and the note hardly ever depend on the number of ticks; this is close enough to
    // know which rows there will be.
    let y_guess = y_range.map(|r| Ticks::of(&figure.y, r, (rows / 4).clamp(1, 10)));
    if rows >= 7 {
        let y_name = noted(&name(&figure.y, y_guess.as_ref()), y_guess.as_ref());
        let map = figure.map.as_ref().and_then(|m| Bar::new(m, (rows / 4).clamp(1, 10)));
        head.extend(match map {
            Some(bar) => between(&y_name, &bar.label, columns),
            None => heading(figure, &y_name, columns, (rows / 8).max(1), colour),
        });
    }
    let axis = if rows >= 4 { 2 } else { 0 };
    let named = rows >= 8 && !(figure.x.label.trim().is_empty() && figure.x.unit.trim().is_empty());
    let x_noted = |t: &Ticks| !t.note.is_empty();
    let x_guess = x_range.map(|r| Ticks::of(&figure.x, r, (columns / 12).clamp(1, 12)));
    let foot = usize::from(named || (rows >= 8 && x_guess.as_ref().is_some_and(x_noted)));
    head.truncate(rows.saturating_sub(axis + foot + 1));
    let plot_rows = rows - head.len() - axis - foot;

    let y_ticks = y_range.map(|r| Ticks::of(&figure.y, r, (plot_rows / 3).clamp(1, 10)));
    let labels = y_ticks.iter().flat_map(|t| &t.marks);
    let gutter = labels.map(|t| cells(&t.label)).max().unwrap_or(0) + 1;
    let gutter = if gutter + 12 > columns { 0 } else { gutter };
    let map = figure.map.as_ref();
    let bar = map.and_then(|m| Bar::new(m, (plot_rows / 3).clamp(1, 10)));
    let bar = bar.filter(|bar| gutter > 0 && columns >= gutter + bar.width() + 16);
    let beside = bar.as_ref().map_or(0, Bar::width);
    let plot_columns = columns.saturating_sub(gutter + 1 + beside).max(1);

    let view = x_range.zip(y_range).map(|(x, y)| View {
        x,
        y,
        log: [figure.x.log, figure.y.log],
        left: 0.0,
        top: 0.0,
        width: (plot_columns * 2 - 1) as f64,
        height: (plot_rows * 4 - 1) as f64,
    });
    let mut dots = Dots::new(plot_columns, plot_rows);
    if let Some(view) = &view {
        for (i, series) in figure.series.iter().enumerate() {
            dots.trace(view.trace(&series.points), i);
        }
    }

    let coloured = map
        .zip(view.as_ref())
        .and_then(|(map, view)| Cells::new(map, view, plot_columns, plot_rows, screen));
    let empty = range::is_empty(figure);
    let mut lines = head;
    for row in 0..plot_rows {
        let tick = view
            .as_ref()
            .zip(y_ticks.as_ref())
            .and_then(|(view, t)| t.marks.iter().find(|t| dots.row_of(view.py(t.value)) == row));
        let mut line = String::new();
        if gutter > 0 {
            let label = tick.map_or("", |t| t.label.as_str());
            line.push_str(&" ".repeat(gutter.saturating_sub(1 + cells(label))));
            line.push_str(label);
            line.push(' ');
        }
        if columns > 1 {
            line.push(if tick.is_some() && gutter > 0 { '┤' } else { '│' });
        }
        if empty && row == plot_rows / 2 {
            line.push_str(&centred(range::nothing(figure), 0, plot_columns));
        } else if let Some(coloured) = &coloured {
            coloured.write_row(row, &mut line);
            if let Some(bar) = &bar {
                bar.write_row(row, plot_rows, screen, &mut line);
            }
        } else {
            dots.write_row(row, colour, &mut line);
        }
        lines.push(line);
    }
    let mut x_ticks = None;
    if axis > 0 {
        let fitted = x_range.map(|r| fitting(&figure.x, r, plot_columns, gutter, columns));
        let (ticks, places) = fitted.unzip();
        lines.extend(axis_lines(&places.unwrap_or_default(), gutter, plot_columns, columns));
        x_ticks = ticks;
    }
    if foot > 0 {
        let text = noted(&name(&figure.x, x_ticks.as_ref()), x_ticks.as_ref());
        lines.push(centred(&text, gutter + 1, columns.saturating_sub(gutter + 1)));
    }
    lines.truncate(rows);
    lines.iter().map(|l| l.trim_end()).collect::<Vec<_>>().join("\n")
}

/// Columns that a text takes on the screen.
fn cells(text: &str) -> usize {
    text.chars().map(wide).sum()
}

fn wide(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// `text` cut to `room` columns.
fn cut(text: &str, room: usize) -> String {
    font::shorten(text, room as f64, |c| wide(c) as f64)
}

/// `text` in the middle of `room` columns, after `indent`.
fn centred(text: &str, indent: usize, room: usize) -> String {
    let text = cut(text, room);
    format!("{}{text}", " ".repeat(indent + (room.saturating_sub(cells(&text))) / 2))
}

/// One text at each end of a line, or the second on a line of its own.
fn between(left: &str, right: &str, columns: usize) -> Vec<String> {
    let (left, right) = (cut(left, columns), cut(right, columns));
    let used = cells(&left) + cells(&right);
    let at_end = |room: usize, text: &str| format!("{}{text}", " ".repeat(room - cells(text)));
    match (left.is_empty(), right.is_empty()) {
        (true, true) => Vec::new(),
        (false, true) => vec![left],
        (true, false) => vec![at_end(columns, &right)],
        _ if used + 3 <= columns => {
            let rest = at_end(columns - cells(&left), &right);
            vec![format!("{left}{rest}")]
        }
        _ => vec![at_end(columns, &right), left],
    }
}

/// The label of y and the legend of up to `most` lines; together on one line if there is room.
fn heading(figure: &Figure, name: &str, columns: usize, most: usize, colour: bool) -> Vec<String> {
    let name = cut(name, columns);
    let left = cells(&name);
    // A screen narrower than this has no room for names.
    let listed = figure.series.len() > 1 && columns >= 16;
    let mut lines = if listed { legend(figure, columns, most, colour) } else { Vec::new() };
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

/// The names of the series, on up to `most` lines, each with the columns it takes.
fn legend(figure: &Figure, columns: usize, most: usize, colour: bool) -> Vec<(String, usize)> {
    let mut lines = vec![(String::new(), 0)];
    let count = figure.series.len();
    for (i, series) in figure.series.iter().enumerate() {
        let sample = if colour { 3 } else { 0 };
        let text = font::fit_middle(&series.name(i), 24.0, |c| wide(c) as f64);
        let needed = sample + cells(&text);
        let left = count - i - 1;
        // On the last line there must be room to say how many are missing.
        let last = lines.len() >= most;
        let rest = if last && left > 0 { cells(&format!("  +{left} more")) } else { 0 };
        let used = lines.last().map_or(0, |l| l.1);
        let between = if used == 0 { 0 } else { 2 };
        let full = used + between + needed + rest > columns;
        if full && !last && used > 0 {
            lines.push((String::new(), 0));
        }
        let Some((line, used)) = lines.last_mut() else { break };
        let between = if *used == 0 { 0 } else { 2 };
        if full && last {
            let more = cut(
                &format!("{}+{} more", " ".repeat(between), count - i),
                columns.saturating_sub(*used),
            );
            line.push_str(&more);
            *used += cells(&more);
            break;
        }
        // Only a screen narrower than a single name gets here without enough room.
        let text = cut(&text, columns.saturating_sub(*used + between + sample));
        line.push_str(&" ".repeat(between));
        if colour {
            let _ = write!(line, "\x1b[38;5;{}m━━\x1b[39m ", colour::ansi(i));
        }
        line.push_str(&text);
        *used += between + sample + cells(&text);
    }
    lines
}

/// A label along x: the column of its tick, the column where it begins, and the text.
type Place = (usize, usize, String);

/// The ticks along x with as many labels as have room, and where each goes.
fn fitting(
    axis: &Axis,
    range: Range,
    plot_columns: usize,
    gutter: usize,
    columns: usize,
) -> (Ticks, Vec<Place>) {
    for most in (1..=(plot_columns / 9).clamp(1, 12)).rev() {
        let ticks = Ticks::of(axis, range, most);
        let mut places: Vec<Place> = Vec::new();
        let mut end = 0;
        for tick in &ticks.marks {
            let part = ((tick.value - range.low) / range.span()).clamp(0.0, 1.0);
            let column = (part * (plot_columns * 2 - 1) as f64).round() as usize / 2;
            let length = cells(&tick.label);
            let middle = gutter + 1 + column;
            let begin = middle.saturating_sub(length / 2).min(columns.saturating_sub(length));
            if begin >= end && length <= columns {
                places.push((column, begin, tick.label.clone()));
                end = begin + length + 2;
            }
        }
        if places.len() == ticks.marks.len() || most == 1 {
            return (ticks, places);
        }
    }
    (Ticks::default(), Vec::new())
}

/// The line under the plot and the labels below it.
fn axis_lines(places: &[Place], gutter: usize, plot_columns: usize, columns: usize) -> [String; 2] {
    let mut rule = " ".repeat(gutter);
    if columns > 1 {
        rule.push('└');
    }
    rule.extend((0..plot_columns).map(|c| if places.iter().any(|p| p.0 == c) { '┬' } else { '─' }));
    let mut labels = String::new();
    let mut used = 0;
    for (_, begin, text) in places {
        labels.push_str(&" ".repeat(begin.saturating_sub(used)));
        labels.push_str(text);
        used = begin + cells(text);
    }
    [rule, labels]
}
