//! A figure as a PNG file: its SVG, drawn by resvg with the embedded font and no other.

use std::fmt;
use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::{Database, Source};
use resvg::usvg::{Options, Tree};

use crate::figure::Figure;
use crate::font::FONT;
use crate::svg;

/// A picture may have this many pixels at most; it takes four times as many bytes to draw.
const MOST_PIXELS: u64 = 1 << 27;

/// Why there is no picture.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PlotError {
    /// The size asked for is nothing or far too much.
    Size {
        /// Width of the figure.
        width: u32,
        /// Height of the figure.
        height: u32,
        /// What both were to be multiplied with.
        scale: f32,
    },
    /// The drawing library refused, in its own words.
    Render(String),
}

impl fmt::Display for PlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { width, height, scale } => write!(
                f,
                "a picture of {width} by {height} pixels at scale {scale} cannot be drawn; \
                 it needs at least one pixel and at most {MOST_PIXELS}"
            ),
            Self::Render(why) => write!(f, "the picture cannot be drawn: {why}"),
        }
    }
}

impl std::error::Error for PlotError {}

pub(crate) fn draw(figure: &Figure, scale: f32) -> Result<Vec<u8>, PlotError> {
    render(figure, scale)?.encode_png().map_err(|e| PlotError::Render(e.to_string()))
}

/// The pixels themselves.
pub(crate) fn render(figure: &Figure, scale: f32) -> Result<Pixmap, PlotError> {
    let size = || PlotError::Size { width: figure.width, height: figure.height, scale };
    let pixels = |length: u32| {
        let scaled = (f64::from(length) * f64::from(scale)).round();
        (scaled >= 1.0 && scaled <= f64::from(i32::MAX)).then_some(scaled as u32)
    };
    let width = pixels(figure.width).ok_or_else(size)?;
    let height = pixels(figure.height).ok_or_else(size)?;
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return Err(size());
    }
    let options = Options { fontdb: fonts(), ..Options::default() };
    let tree = Tree::from_str(&svg::draw(figure), &options)
        .map_err(|e| PlotError::Render(e.to_string()))?;
    let mut canvas = Pixmap::new(width, height).ok_or_else(size)?;
    let fill = Transform::from_scale(
        width as f32 / figure.width as f32,
        height as f32 / figure.height as f32,
    );
    resvg::render(&tree, fill, &mut canvas.as_mut());
    Ok(canvas)
}

/// The embedded font under every generic name, so that no text is ever left out.
fn fonts() -> Arc<Database> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    let load = || {
        let mut fonts = Database::new();
        fonts.load_font_source(Source::Binary(Arc::new(FONT)));
        fonts.set_sans_serif_family("DejaVu Sans");
        fonts.set_serif_family("DejaVu Sans");
        Arc::new(fonts)
    };
    Arc::clone(FONTS.get_or_init(load))
}
