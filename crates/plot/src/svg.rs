//! SVG output.

use std::fmt::Write as _;

use crate::colour::{Style, Theme};
use crate::colourbar;
use crate::colourmap::ColourMap;
use crate::figure::{Figure, HeatMap, Points};
use crate::figure_layout::{Anchor, FigureLayout, MARK, Rect, TICK, Text};
use crate::font;
use crate::geometry::{Slice, Trace, View};
use crate::image::Image;
use crate::legend::{HANDLE, LegendHandle};
use crate::range;

/// Draws a figure as an SVG document.
pub(crate) fn draw(figure: &Figure) -> String {
    let layout = FigureLayout::of(figure);
    let theme = Theme::of(figure.dark);
    let (width, height) = (figure.width.max(1), figure.height.max(1));
    let mut out = Doc(String::new());
    let _ = write!(
        out.0,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"{}\">\
         <rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>",
        font::FAMILY,
        theme.background,
    );
    out.grid(&layout, theme);
    if let Some(view) = &layout.view {
        out.data(figure, &layout, view, theme);
    }
    out.frame(&layout, theme);
    if let (Some(map), Some(bar)) = (&figure.map, &layout.bar) {
        out.bar(map, bar, theme);
    }
    for handle in &layout.handles {
        if let Some(series) = figure.series.get(handle.series) {
            out.legend_handle(*handle, &series.points, theme.style(handle.series));
        }
    }
    out.texts(figure, &layout, theme);
    out.0.push_str("</svg>\n");
    out.0
}

/// The document under construction.
struct Doc(String);

impl Doc {
    /// Writes a number with at most two decimals and no trailing zeros.
    fn num(&mut self, value: f64) {
        let cents = (value * 100.0).round() as i64;
        if cents < 0 {
            self.0.push('-');
        }
        let (integer, rest) = (cents.unsigned_abs() / 100, cents.unsigned_abs() % 100);
        let _ = match (rest, rest % 10) {
            (0, _) => write!(self.0, "{integer}"),
            (_, 0) => write!(self.0, "{integer}.{}", rest / 10),
            _ => write!(self.0, "{integer}.{rest:02}"),
        };
    }

    fn attr(&mut self, name: &str, value: f64) {
        let _ = write!(self.0, " {name}=\"");
        self.num(value);
        self.0.push('"');
    }

    /// Writes a path command with its arguments.
    fn path_command(&mut self, command: &str, numbers: &[f64]) {
        self.0.push_str(command);
        for (i, &n) in numbers.iter().enumerate() {
            if i > 0 {
                self.0.push(' ');
            }
            self.num(n);
        }
    }

    fn rect(&mut self, r: Rect, style: &str) {
        self.0.push_str("<rect");
        self.attr("x", r.left);
        self.attr("y", r.top);
        self.attr("width", r.width);
        self.attr("height", r.height);
        let _ = write!(self.0, " {style}/>");
    }

    fn grid(&mut self, layout: &FigureLayout, theme: Theme) {
        let (Some(view), frame) = (&layout.view, layout.frame) else { return };
        let _ = write!(self.0, "<path fill=\"none\" stroke=\"{}\" d=\"", theme.grid);
        for tick in &layout.x {
            self.path_command("M", &[crisp(view.px(tick.value), frame.left), frame.top]);
            self.path_command("v", &[frame.height]);
        }
        for tick in &layout.y {
            self.path_command("M", &[frame.left, crisp(view.py(tick.value), frame.top)]);
            self.path_command("h", &[frame.width]);
        }
        self.0.push_str("\"/>");
    }

    fn frame(&mut self, layout: &FigureLayout, theme: Theme) {
        let frame = layout.frame;
        self.rect(frame, &format!("fill=\"none\" stroke=\"{}\"", theme.frame));
        let Some(view) = &layout.view else { return };
        let _ = write!(self.0, "<path fill=\"none\" stroke=\"{}\" d=\"", theme.frame);
        for tick in &layout.x {
            self.path_command("M", &[crisp(view.px(tick.value), frame.left), frame.bottom()]);
            self.path_command("v", &[MARK]);
        }
        for tick in &layout.y {
            self.path_command("M", &[frame.left, crisp(view.py(tick.value), frame.top)]);
            self.path_command("h", &[-MARK]);
        }
        self.0.push_str("\"/>");
    }

    fn data(&mut self, figure: &Figure, layout: &FigureLayout, view: &View, theme: Theme) {
        // A nested document clips the data. Unlike a clip path it needs no id, which could clash with
        // other figures on the same page.
        let f = layout.frame;
        let clip = [f.left, f.top, f.width, f.height];
        self.0.push_str("<svg");
        for (name, value) in ["x", "y", "width", "height"].into_iter().zip(clip) {
            self.attr(name, value);
        }
        self.0.push_str(" viewBox=\"");
        self.path_command("", &clip);
        self.0.push_str("\" stroke-linejoin=\"round\">");
        if let Some(map) = &figure.map {
            let gap = (!map.sparse).then_some(theme.gap);
            if let Some((image, rect)) = Image::of(map, view, gap) {
                self.image(&image, rect, "pixelated");
            }
        }
        let several = figure.series.len() > 1;
        for (i, series) in figure.series.iter().enumerate() {
            let style = theme.style(i);
            match view.trace(&series.points) {
                Trace::Lines(runs) => self.lines(&runs, style, f.width),
                Trace::Bands(runs) => self.bands(&runs, style, several),
                Trace::Dots(dots) => self.dots(&dots, style),
            }
        }
        self.0.push_str("</svg>");
    }

    fn lines(&mut self, runs: &[Vec<(f64, f64)>], style: Style, width: f64) {
        let joined: usize = runs.iter().filter(|r| r.len() > 1).map(Vec::len).sum();
        if joined > 0 {
            // Dense lines are thin.
            let thick = if joined as f64 > 2.0 * width { 1.0 } else { 1.6 };
            let _ = write!(self.0, "<path fill=\"none\" stroke=\"{}\"", style.hex);
            self.attr("stroke-width", thick);
            if !style.dash.is_empty() {
                let _ = write!(self.0, " stroke-dasharray=\"{}\"", style.dash);
            }
            self.0.push_str(" d=\"");
            for run in runs.iter().filter(|r| r.len() > 1) {
                for (i, &(x, y)) in run.iter().enumerate() {
                    self.path_command(if i == 0 { "M" } else { " " }, &[x, y]);
                }
            }
            self.0.push_str("\"/>");
        }
        // Single points between gaps are drawn as discs.
        if runs.iter().any(|r| r.len() == 1) {
            let _ = write!(self.0, "<path fill=\"{}\" d=\"", style.hex);
            for &(x, y) in runs.iter().filter(|r| r.len() == 1).flatten() {
                self.path_command("M", &[x - 2.0, y]);
                self.0.push_str("a2 2 0 1 0 4 0a2 2 0 1 0-4 0z");
            }
            self.0.push_str("\"/>");
        }
    }

    fn bands(&mut self, runs: &[Vec<Slice>], style: Style, several: bool) {
        if runs.is_empty() {
            return;
        }
        // The stroke keeps flat bands visible and closes gaps between neighbouring buckets.
        let _ = write!(self.0, "<path fill=\"{0}\" stroke=\"{0}\"", style.hex);
        if several {
            self.0.push_str(" opacity=\"0.8\"");
        }
        self.0.push_str(" d=\"");
        for run in runs {
            for (i, s) in run.iter().enumerate() {
                self.path_command(if i == 0 { "M" } else { " " }, &[s.x, s.top]);
            }
            for s in run.iter().rev() {
                self.path_command(" ", &[s.x, s.bottom]);
            }
            self.0.push('z');
        }
        self.0.push_str("\"/>");
    }

    fn dots(&mut self, dots: &[(f64, f64)], style: Style) {
        if dots.is_empty() {
            return;
        }
        // Many points are drawn small and translucent to show the density.
        let (size, opacity) = match dots.len() {
            0..300 => (5.0, 0.85),
            300..2000 => (3.5, 0.7),
            _ => (2.2, 0.55),
        };
        self.0.push_str("<g");
        self.attr("stroke-width", size);
        self.attr("stroke-opacity", opacity);
        let _ = write!(self.0, " stroke=\"{}\" stroke-linecap=\"round\" fill=\"none\">", style.hex);
        // One path per point, because overlapping parts of one path do not add up.
        for (x, y) in dots {
            self.path_command("<path d=\"M", &[*x, *y]);
            self.0.push_str("h0\"/>");
        }
        self.0.push_str("</g>");
    }

    /// Writes an image stretched to `rect`.
    fn image(&mut self, image: &Image, rect: Rect, rendering: &str) {
        let Some(url) = image.data_url() else { return };
        self.0.push_str("<image");
        self.attr("x", rect.left);
        self.attr("y", rect.top);
        self.attr("width", rect.width);
        self.attr("height", rect.height);
        // Older programs use the attribute, newer ones the style.
        let _ = write!(
            self.0,
            " preserveAspectRatio=\"none\" image-rendering=\"optimizeSpeed\" \
             style=\"image-rendering:{rendering}\" href=\"{url}\"/>"
        );
    }

    fn bar(&mut self, map: &HeatMap, bar: &colourbar::PositionedColourbar, theme: Theme) {
        if let Some(colours) = ColourMap::of(map) {
            self.image(&Image::bar(&colours), bar.rect, "pixelated");
        }
        self.rect(bar.rect, &format!("fill=\"none\" stroke=\"{}\"", theme.frame));
        let _ = write!(self.0, "<path fill=\"none\" stroke=\"{}\" d=\"", theme.frame);
        for tick in &bar.ticks {
            self.path_command("M", &[bar.rect.right(), crisp(bar.py(tick), bar.rect.top)]);
            self.path_command("h", &[MARK]);
        }
        self.0.push_str("\"/>");
    }

    fn legend_handle(&mut self, handle: LegendHandle, points: &Points, style: Style) {
        if let Points::Dots { .. } = points {
            self.dots(&[(handle.x + HANDLE / 2.0, handle.y)], style);
            return;
        }
        if matches!(points, Points::Envelope { .. } | Points::Bars { .. }) {
            let r = Rect {
                left: handle.x + 3.0,
                top: handle.y - 5.0,
                width: HANDLE - 6.0,
                height: 10.0,
            };
            self.rect(r, &format!("fill=\"{}\"", style.hex));
            return;
        }
        let _ = write!(self.0, "<path stroke=\"{}\" stroke-width=\"2\"", style.hex);
        if !style.dash.is_empty() {
            let _ = write!(self.0, " stroke-dasharray=\"{}\"", style.dash);
        }
        self.0.push_str(" d=\"");
        self.path_command("M", &[handle.x, handle.y]);
        self.path_command("h", &[HANDLE]);
        self.0.push_str("\"/>");
    }

    fn texts(&mut self, figure: &Figure, layout: &FigureLayout, theme: Theme) {
        let _ = write!(self.0, "<g fill=\"{}\">", theme.text);
        for text in &layout.texts {
            self.text(text);
        }
        let f = layout.frame;
        if layout.empty && f.width > 120.0 && f.height > TICK * 2.0 {
            self.text(&Text {
                x: f.left + f.width / 2.0,
                y: f.top + f.height / 2.0,
                size: 13.0,
                anchor: Anchor::Middle,
                rotated: false,
                content: range::empty_message(figure).to_owned(),
            });
        }
        self.0.push_str("</g>");
    }

    fn text(&mut self, text: &Text) {
        self.0.push_str("<text");
        if text.rotated {
            self.0.push_str(" transform=\"");
            self.path_command("translate(", &[text.x, text.y]);
            self.0.push_str(")rotate(-90)\"");
        } else {
            self.attr("x", text.x);
            self.attr("y", text.y);
        }
        self.attr("font-size", text.size);
        self.0.push_str(match text.anchor {
            Anchor::Start => ">",
            Anchor::Middle => " text-anchor=\"middle\">",
            Anchor::End => " text-anchor=\"end\">",
        });
        self.escaped(&text.content);
        self.0.push_str("</text>");
    }

    fn escaped(&mut self, text: &str) {
        for c in font::clean(text) {
            match c {
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '&' => self.0.push_str("&amp;"),
                c => self.0.push(c),
            }
        }
    }
}

/// `value` aligned to the pixel grid of the frame that starts at `edge`, so that thin lines are sharp.
fn crisp(value: f64, edge: f64) -> f64 {
    edge + (value - edge).round()
}
