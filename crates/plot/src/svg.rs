//! SVG output.

use std::fmt::{self, Display, Formatter, Write as _};

use crate::colour::{Colours, Style};
use crate::colourbar::PositionedColourbar;
use crate::figure::{Figure, Points};
use crate::figure_layout::{Anchor, FigureLayout, MARK, Rect, TICK, Text};
use crate::font;
use crate::geometry::{Slice, Trace, View};
use crate::image::Image;
use crate::legend::{HANDLE, LegendHandle};
use crate::range;

/// Draws a figure as an SVG document.
pub(crate) fn draw(figure: &Figure) -> String {
    draw_all(std::slice::from_ref(figure), (figure.width, figure.height))
}

/// Draws figures above each other as an SVG document of the given width and height.
pub(crate) fn draw_all(figures: &[Figure], (width, height): (u32, u32)) -> String {
    let (width, height) = (width.max(1), height.max(1));
    let mut out = Doc(String::new());
    out.push(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"{}\">",
        font::FAMILY
    ));
    let mut top = 0;
    for figure in figures {
        if figures.len() > 1 {
            out.push(format_args!("<g transform=\"translate(0 {top})\">"));
        }
        out.figure(figure);
        if figures.len() > 1 {
            out.0.push_str("</g>");
        }
        top += figure.height;
    }
    out.0.push_str("</svg>\n");
    out.0
}

/// A number with at most two decimals and no trailing zeros.
struct Num(f64);

impl Display for Num {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let cents = (self.0 * 100.0).round() as i64;
        let sign = if cents < 0 { "-" } else { "" };
        let (integer, rest) = (cents.unsigned_abs() / 100, cents.unsigned_abs() % 100);
        match (rest, rest % 10) {
            (0, _) => write!(f, "{sign}{integer}"),
            (_, 0) => write!(f, "{sign}{integer}.{}", rest / 10),
            _ => write!(f, "{sign}{integer}.{rest:02}"),
        }
    }
}

/// Position and size of a rectangle as attributes.
impl Display for Rect {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [x, y, width, height] = [self.left, self.top, self.width, self.height].map(Num);
        write!(f, " x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"")
    }
}

/// The document under construction.
struct Doc(String);

impl Doc {
    fn push(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.0.write_fmt(text);
    }

    fn figure(&mut self, figure: &Figure) {
        let layout = FigureLayout::of(figure);
        let theme = figure.theme.colours();
        let (width, height) = (figure.width.max(1), figure.height.max(1));
        let background = theme.background;
        self.push(format_args!(
            "<rect width=\"{width}\" height=\"{height}\" fill=\"{background}\"/>"
        ));
        let frame = layout.frame;
        self.ticks(&layout, theme.grid, frame.top, frame.height, frame.width);
        if let Some(view) = &layout.view {
            self.data(figure, &layout, view, theme);
        }
        self.rect(frame, &format!("fill=\"none\" stroke=\"{}\"", theme.frame));
        self.ticks(&layout, theme.frame, frame.bottom(), MARK, -MARK);
        self.minor_ticks(&layout, theme.frame);
        if let Some(bar) = &layout.bar {
            self.bar(bar, theme);
        }
        for handle in &layout.handles {
            if let Some(series) = figure.series.get(handle.series) {
                self.legend_handle(*handle, &series.points, theme.style(handle.series));
            }
        }
        self.texts(figure, &layout, theme);
    }

    /// Short marks between the ticks of logarithmic axes.
    fn minor_ticks(&mut self, layout: &FigureLayout, colour: &str) {
        let (Some(view), frame) = (&layout.view, layout.frame) else { return };
        let [x, y] = &layout.minor;
        if x.is_empty() && y.is_empty() {
            return;
        }
        self.push(format_args!("<path fill=\"none\" stroke=\"{colour}\" d=\""));
        for value in x {
            let x = crisp(view.px(*value), frame.left);
            self.push(format_args!("M{} {}v{}", Num(x), Num(frame.bottom()), Num(MARK / 2.0)));
        }
        for value in y {
            let y = crisp(view.py(*value), frame.top);
            self.push(format_args!("M{} {}h{}", Num(frame.left), Num(y), Num(-MARK / 2.0)));
        }
        self.push(format_args!("\"/>"));
    }

    fn rect(&mut self, r: Rect, style: &str) {
        self.push(format_args!("<rect{r} {style}/>"));
    }

    /// Lines of length `v` and `h` from the ticks at the bottom and at the left, starting at height `top`.
    fn ticks(&mut self, layout: &FigureLayout, colour: &str, top: f64, v: f64, h: f64) {
        let (Some(view), frame) = (&layout.view, layout.frame) else { return };
        self.push(format_args!("<path fill=\"none\" stroke=\"{colour}\" d=\""));
        for tick in &layout.x {
            let x = crisp(view.px(tick.value), frame.left);
            self.push(format_args!("M{} {}v{}", Num(x), Num(top), Num(v)));
        }
        for tick in &layout.y {
            let y = crisp(view.py(tick.value), frame.top);
            self.push(format_args!("M{} {}h{}", Num(frame.left), Num(y), Num(h)));
        }
        self.push(format_args!("\"/>"));
    }

    fn data(&mut self, figure: &Figure, layout: &FigureLayout, view: &View, theme: Colours) {
        // A nested document clips the data. Unlike a clip path it needs no id, which could clash with
        // other figures on the same page.
        let frame = layout.frame;
        let [x, y, width, height] = [frame.left, frame.top, frame.width, frame.height].map(Num);
        self.push(format_args!(
            "<svg{frame} viewBox=\"{x} {y} {width} {height}\" stroke-linejoin=\"round\">"
        ));
        if let Some(map) = &figure.map {
            let gap = (!map.sparse).then_some(theme.gap);
            if let Some((image, rect)) = Image::of(map, view, gap) {
                self.image(&image, rect);
            }
        }
        let several = figure.series.len() > 1;
        for (i, series) in figure.series.iter().enumerate() {
            let style = theme.style(i);
            match view.trace(&series.points) {
                Trace::Lines(runs) => self.lines(&runs, style, frame.width),
                Trace::Bands(runs) => self.bands(&runs, style, several),
                Trace::Dots(dots) => self.dots(&dots, style),
            }
        }
        self.push(format_args!("</svg>"));
    }

    /// Writes the points of a path, connected by lines.
    fn polyline(&mut self, points: impl Iterator<Item = (f64, f64)>) {
        for (i, (x, y)) in points.enumerate() {
            self.push(format_args!("{}{} {}", if i == 0 { "M" } else { " " }, Num(x), Num(y)));
        }
    }

    fn lines(&mut self, runs: &[Vec<(f64, f64)>], style: Style, width: f64) {
        let joined: usize = runs.iter().filter(|r| r.len() > 1).map(Vec::len).sum();
        if joined > 0 {
            // Dense lines are thin.
            self.stroke(
                style,
                if joined as f64 > 2.0 * width { 1.0 } else { 1.6 },
                "fill=\"none\" ",
            );
            for run in runs.iter().filter(|r| r.len() > 1) {
                self.polyline(run.iter().copied());
            }
            self.push(format_args!("\"/>"));
        }
        // Single points between gaps are drawn as discs.
        if runs.iter().any(|r| r.len() == 1) {
            self.push(format_args!("<path fill=\"{}\" d=\"", style.hex));
            for &(x, y) in runs.iter().filter(|r| r.len() == 1).flatten() {
                let (x, y) = (Num(x - 2.0), Num(y));
                self.push(format_args!("M{x} {y}a2 2 0 1 0 4 0a2 2 0 1 0-4 0z"));
            }
            self.push(format_args!("\"/>"));
        }
    }

    /// Begins a path in the style of a series.
    fn stroke(&mut self, style: Style, width: f64, fill: &str) {
        let (hex, width) = (style.hex, Num(width));
        self.push(format_args!("<path {fill}stroke=\"{hex}\" stroke-width=\"{width}\""));
        if !style.dash.is_empty() {
            self.push(format_args!(" stroke-dasharray=\"{}\"", style.dash));
        }
        self.push(format_args!(" d=\""));
    }

    fn bands(&mut self, runs: &[Vec<Slice>], style: Style, several: bool) {
        if runs.is_empty() {
            return;
        }
        // The stroke keeps flat bands visible and closes gaps between neighbouring buckets.
        let opacity = if several { " opacity=\"0.8\"" } else { "" };
        self.push(format_args!("<path fill=\"{0}\" stroke=\"{0}\"{opacity} d=\"", style.hex));
        for run in runs {
            let back = run.iter().rev().map(|s| (s.x, s.bottom));
            self.polyline(run.iter().map(|s| (s.x, s.top)).chain(back));
            self.0.push('z');
        }
        self.push(format_args!("\"/>"));
    }

    fn dots(&mut self, dots: &[(f64, f64)], style: Style) {
        // Many points are drawn small and translucent to show the density.
        let (size, opacity) = match dots.len() {
            0 => return,
            1..300 => (5.0, 0.85),
            300..2000 => (3.5, 0.7),
            _ => (2.2, 0.55),
        };
        self.push(format_args!(
            "<g stroke-width=\"{}\" stroke-opacity=\"{}\" stroke=\"{}\" stroke-linecap=\"round\" \
             fill=\"none\">",
            Num(size),
            Num(opacity),
            style.hex
        ));
        // One path per point, because overlapping parts of one path do not add up.
        for (x, y) in dots {
            self.push(format_args!("<path d=\"M{} {}h0\"/>", Num(*x), Num(*y)));
        }
        self.push(format_args!("</g>"));
    }

    /// Writes an image stretched to `rect`.
    fn image(&mut self, image: &Image, rect: Rect) {
        let Some(url) = image.data_url() else { return };
        // Older programs use the attribute, newer ones the style.
        self.push(format_args!(
            "<image{rect} preserveAspectRatio=\"none\" image-rendering=\"optimizeSpeed\" \
             style=\"image-rendering:pixelated\" href=\"{url}\"/>"
        ));
    }

    fn bar(&mut self, bar: &PositionedColourbar, theme: Colours) {
        self.image(&Image::bar(&bar.colours), bar.rect);
        self.rect(bar.rect, &format!("fill=\"none\" stroke=\"{}\"", theme.frame));
        self.push(format_args!("<path fill=\"none\" stroke=\"{}\" d=\"", theme.frame));
        for tick in &bar.ticks {
            let (x, y) = (bar.rect.right(), crisp(bar.py(tick), bar.rect.top));
            self.push(format_args!("M{} {}h{}", Num(x), Num(y), Num(MARK)));
        }
        self.push(format_args!("\"/>"));
    }

    fn legend_handle(&mut self, handle: LegendHandle, points: &Points, style: Style) {
        let (x, y) = (handle.x, handle.y);
        match points {
            Points::Dots { .. } => self.dots(&[(x + HANDLE / 2.0, y)], style),
            Points::Bars { .. } => {
                let r = Rect { left: x + 3.0, top: y - 5.0, width: HANDLE - 6.0, height: 10.0 };
                self.rect(r, &format!("fill=\"{}\"", style.hex));
            }
            // An envelope is a line of many points.
            Points::Line { .. } | Points::Envelope { .. } => {
                self.stroke(style, 2.0, "");
                self.push(format_args!("M{} {}h{}\"/>", Num(x), Num(y), Num(HANDLE)));
            }
        }
    }

    fn texts(&mut self, figure: &Figure, layout: &FigureLayout, theme: Colours) {
        self.push(format_args!("<g fill=\"{}\">", theme.text));
        for text in &layout.texts {
            self.text(text);
        }
        let f = layout.frame;
        if layout.empty && f.width > 120.0 && f.height > TICK * 2.0 {
            let (x, y) = f.centre();
            let message = range::empty_message(figure).to_owned();
            self.text(&Text::new(x, y, 13.0, Anchor::Middle, message));
        }
        self.push(format_args!("</g>"));
    }

    fn text(&mut self, text: &Text) {
        let (x, y) = (Num(text.x), Num(text.y));
        if text.rotated {
            self.push(format_args!("<text transform=\"translate({x} {y})rotate(-90)\""));
        } else {
            self.push(format_args!("<text x=\"{x}\" y=\"{y}\""));
        }
        let anchor = match text.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        self.push(format_args!(" font-size=\"{}\"{anchor}>", Num(text.size)));
        for c in font::clean(&text.content) {
            match c {
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '&' => self.0.push_str("&amp;"),
                c => self.0.push(c),
            }
        }
        self.push(format_args!("</text>"));
    }
}

/// `value` aligned to the pixel grid of the frame that starts at `edge`, so that thin lines are sharp.
fn crisp(value: f64, edge: f64) -> f64 {
    edge + (value - edge).round()
}
