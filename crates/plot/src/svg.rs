//! A figure as an SVG document.

use std::fmt::Write as _;

use crate::bar;
use crate::colour::{Ink, Theme};
use crate::figure::{Figure, HeatMap, Points};
use crate::font;
use crate::image::Image;
use crate::layout::{Anchor, Layout, MARK, Rect, TICK, Text};
use crate::legend::{Key, SAMPLE};
use crate::range;
use crate::shade::Shades;
use crate::trace::{Slice, Trace, View};

pub(crate) fn draw(figure: &Figure) -> String {
    let layout = Layout::of(figure);
    let theme = Theme::of(figure.dark);
    let (width, height) = (figure.width.max(1), figure.height.max(1));
    let mut out = Doc(String::new());
    let _ = write!(
        out.0,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"{}\">\
         <rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>",
        font::FAMILY,
        theme.paper,
    );
    out.grid(&layout, theme);
    if let Some(view) = &layout.view {
        out.data(figure, &layout, view, theme);
    }
    out.frame(&layout, theme);
    if let (Some(map), Some(bar)) = (&figure.map, &layout.bar) {
        out.bar(map, bar, theme);
    }
    for key in &layout.keys {
        if let Some(series) = figure.series.get(key.series) {
            out.sample(*key, &series.points, theme.ink(key.series));
        }
    }
    out.texts(figure, &layout, theme);
    out.0.push_str("</svg>\n");
    out.0
}

/// The document so far.
struct Doc(String);

impl Doc {
    /// A number with at most two decimals and no needless character.
    fn num(&mut self, value: f64) {
        let cents = (value * 100.0).round() as i64;
        if cents < 0 {
            self.0.push('-');
        }
        let (whole, rest) = (cents.unsigned_abs() / 100, cents.unsigned_abs() % 100);
        let _ = match (rest, rest % 10) {
            (0, _) => write!(self.0, "{whole}"),
            (_, 0) => write!(self.0, "{whole}.{}", rest / 10),
            _ => write!(self.0, "{whole}.{rest:02}"),
        };
    }

    fn attr(&mut self, name: &str, value: f64) {
        let _ = write!(self.0, " {name}=\"");
        self.num(value);
        self.0.push('"');
    }

    /// A command of a path with its numbers.
    fn step(&mut self, command: &str, numbers: &[f64]) {
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

    fn grid(&mut self, layout: &Layout, theme: Theme) {
        let (Some(view), frame) = (&layout.view, layout.frame) else { return };
        let _ = write!(self.0, "<path fill=\"none\" stroke=\"{}\" d=\"", theme.grid);
        for tick in &layout.x {
            self.step("M", &[crisp(view.px(tick.value), frame.left), frame.top]);
            self.step("v", &[frame.height]);
        }
        for tick in &layout.y {
            self.step("M", &[frame.left, crisp(view.py(tick.value), frame.top)]);
            self.step("h", &[frame.width]);
        }
        self.0.push_str("\"/>");
    }

    fn frame(&mut self, layout: &Layout, theme: Theme) {
        let frame = layout.frame;
        self.rect(frame, &format!("fill=\"none\" stroke=\"{}\"", theme.frame));
        let Some(view) = &layout.view else { return };
        let _ = write!(self.0, "<path fill=\"none\" stroke=\"{}\" d=\"", theme.frame);
        for tick in &layout.x {
            self.step("M", &[crisp(view.px(tick.value), frame.left), frame.bottom()]);
            self.step("v", &[MARK]);
        }
        for tick in &layout.y {
            self.step("M", &[frame.left, crisp(view.py(tick.value), frame.top)]);
            self.step("h", &[-MARK]);
        }
        self.0.push_str("\"/>");
    }

    fn data(&mut self, figure: &Figure, layout: &Layout, view: &View, theme: Theme) {
        // A nested document cuts off what sticks out, and unlike a clip path it needs no name that
        // could clash when several pictures end up on one page.
        let f = layout.frame;
        let cut = [f.left, f.top, f.width, f.height];
        self.0.push_str("<svg");
        for (name, value) in ["x", "y", "width", "height"].into_iter().zip(cut) {
            self.attr(name, value);
        }
        self.0.push_str(" viewBox=\"");
        self.step("", &cut);
        self.0.push_str("\" stroke-linejoin=\"round\">");
        if let Some(map) = &figure.map {
            let gap = (!map.sparse).then_some(theme.gap);
            if let Some((image, rect)) = Image::of(map, view, gap) {
                self.image(&image, rect, "pixelated");
            }
        }
        let several = figure.series.len() > 1;
        for (i, series) in figure.series.iter().enumerate() {
            let ink = theme.ink(i);
            match view.trace(&series.points) {
                Trace::Lines(runs) => self.lines(&runs, ink, f.width),
                Trace::Bands(runs) => self.bands(&runs, ink, several),
                Trace::Dots(dots) => self.dots(&dots, ink),
            }
        }
        self.0.push_str("</svg>");
    }

    fn lines(&mut self, runs: &[Vec<(f64, f64)>], ink: Ink, width: f64) {
        let joined: usize = runs.iter().filter(|r| r.len() > 1).map(Vec::len).sum();
        if joined > 0 {
            // A line that goes up and down in every pixel would be a blot if it were any thicker.
            let thick = if joined as f64 > 2.0 * width { 1.0 } else { 1.6 };
            let _ = write!(self.0, "<path fill=\"none\" stroke=\"{}\"", ink.hex);
            self.attr("stroke-width", thick);
            if !ink.dash.is_empty() {
                let _ = write!(self.0, " stroke-dasharray=\"{}\"", ink.dash);
            }
            self.0.push_str(" d=\"");
            for run in runs.iter().filter(|r| r.len() > 1) {
                for (i, &(x, y)) in run.iter().enumerate() {
                    self.step(if i == 0 { "M" } else { " " }, &[x, y]);
                }
            }
            self.0.push_str("\"/>");
        }
        // Points with a gap on both sides: a path of arcs draws them all as discs.
        if runs.iter().any(|r| r.len() == 1) {
            let _ = write!(self.0, "<path fill=\"{}\" d=\"", ink.hex);
            for &(x, y) in runs.iter().filter(|r| r.len() == 1).flatten() {
                self.step("M", &[x - 2.0, y]);
                self.0.push_str("a2 2 0 1 0 4 0a2 2 0 1 0-4 0z");
            }
            self.0.push_str("\"/>");
        }
    }

    fn bands(&mut self, runs: &[Vec<Slice>], ink: Ink, several: bool) {
        if runs.is_empty() {
            return;
        }
        // The stroke keeps a flat band visible and closes the steps between neighbouring buckets.
        let _ = write!(self.0, "<path fill=\"{0}\" stroke=\"{0}\"", ink.hex);
        if several {
            self.0.push_str(" opacity=\"0.8\"");
        }
        self.0.push_str(" d=\"");
        for run in runs {
            for (i, s) in run.iter().enumerate() {
                self.step(if i == 0 { "M" } else { " " }, &[s.x, s.top]);
            }
            for s in run.iter().rev() {
                self.step(" ", &[s.x, s.bottom]);
            }
            self.0.push('z');
        }
        self.0.push_str("\"/>");
    }

    fn dots(&mut self, dots: &[(f64, f64)], ink: Ink) {
        if dots.is_empty() {
            return;
        }
        // Many points are drawn small and thin, so that crowds look denser than loners.
        let (size, opacity) = match dots.len() {
            0..300 => (5.0, 0.85),
            300..2000 => (3.5, 0.7),
            _ => (2.2, 0.55),
        };
        self.0.push_str("<g");
        self.attr("stroke-width", size);
        self.attr("stroke-opacity", opacity);
        let _ = write!(self.0, " stroke=\"{}\" stroke-linecap=\"round\" fill=\"none\">", ink.hex);
        // A path is painted in one go, so points of one path do not darken each other.
        for (x, y) in dots {
            self.step("<path d=\"M", &[*x, *y]);
            self.0.push_str("h0\"/>");
        }
        self.0.push_str("</g>");
    }

    /// An image stretched over `rect`.
    fn image(&mut self, image: &Image, rect: Rect, rendering: &str) {
        let Some(address) = image.address() else { return };
        self.0.push_str("<image");
        self.attr("x", rect.left);
        self.attr("y", rect.top);
        self.attr("width", rect.width);
        self.attr("height", rect.height);
        // The attribute is what older programs know, the style what the others go by.
        let _ = write!(
            self.0,
            " preserveAspectRatio=\"none\" image-rendering=\"optimizeSpeed\" \
             style=\"image-rendering:{rendering}\" href=\"{address}\"/>"
        );
    }

    fn bar(&mut self, map: &HeatMap, bar: &bar::Placed, theme: Theme) {
        if let Some(shades) = Shades::of(map) {
            self.image(&Image::bar(&shades), bar.rect, "pixelated");
        }
        self.rect(bar.rect, &format!("fill=\"none\" stroke=\"{}\"", theme.frame));
        let _ = write!(self.0, "<path fill=\"none\" stroke=\"{}\" d=\"", theme.frame);
        for tick in &bar.ticks {
            self.step("M", &[bar.rect.right(), crisp(bar.py(tick), bar.rect.top)]);
            self.step("h", &[MARK]);
        }
        self.0.push_str("\"/>");
    }

    fn sample(&mut self, key: Key, points: &Points, ink: Ink) {
        if let Points::Dots { .. } = points {
            self.dots(&[(key.x + SAMPLE / 2.0, key.y)], ink);
            return;
        }
        if matches!(points, Points::Envelope { .. } | Points::Bars { .. }) {
            let r = Rect { left: key.x + 3.0, top: key.y - 5.0, width: SAMPLE - 6.0, height: 10.0 };
            self.rect(r, &format!("fill=\"{}\"", ink.hex));
            return;
        }
        let _ = write!(self.0, "<path stroke=\"{}\" stroke-width=\"2\"", ink.hex);
        if !ink.dash.is_empty() {
            let _ = write!(self.0, " stroke-dasharray=\"{}\"", ink.dash);
        }
        self.0.push_str(" d=\"");
        self.step("M", &[key.x, key.y]);
        self.step("h", &[SAMPLE]);
        self.0.push_str("\"/>");
    }

    fn texts(&mut self, figure: &Figure, layout: &Layout, theme: Theme) {
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
                turned: false,
                content: range::nothing(figure).to_owned(),
            });
        }
        self.0.push_str("</g>");
    }

    fn text(&mut self, text: &Text) {
        self.0.push_str("<text");
        if text.turned {
            self.0.push_str(" transform=\"");
            self.step("translate(", &[text.x, text.y]);
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

/// `value` moved so that a thin line there fills whole pixels, as the frame that begins at `edge`
/// does.
fn crisp(value: f64, edge: f64) -> f64 {
    edge + (value - edge).round()
}
