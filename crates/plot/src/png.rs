//! PNG output: the SVG, rendered by resvg with the embedded font.

use std::fmt;
use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::{Database, Source};
use resvg::usvg::{Options, Tree};

use crate::figure::Figure;
use crate::font::FONT;
use crate::svg;

/// Maximum number of pixels; rendering needs four bytes per pixel.
const MAX_PIXELS: u64 = 1 << 27;

/// Errors of rendering.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PlotError {
    /// The size is zero or too large.
    Size {
        /// Width of the figure.
        width: u32,
        /// Height of the figure.
        height: u32,
        /// Scale factor.
        scale: f32,
    },
    /// Message of the rendering library.
    Render(String),
}

impl fmt::Display for PlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { width, height, scale } => write!(
                f,
                "cannot render {width} x {height} pixels at scale {scale}: \
                 expected at least one pixel and at most {MAX_PIXELS}"
            ),
            Self::Render(message) => write!(f, "cannot render the figure: {message}"),
        }
    }
}

impl std::error::Error for PlotError {}

/// Renders a figure to a PNG file.
pub(crate) fn draw(figure: &Figure, scale: f32) -> Result<Vec<u8>, PlotError> {
    render(figure, scale)?.encode_png().map_err(|e| PlotError::Render(e.to_string()))
}

/// Renders a figure to pixels.
pub(crate) fn render(figure: &Figure, scale: f32) -> Result<Pixmap, PlotError> {
    let size = || PlotError::Size { width: figure.width, height: figure.height, scale };
    let pixels = |length: u32| {
        let scaled = (f64::from(length) * f64::from(scale)).round();
        (scaled >= 1.0 && scaled <= f64::from(i32::MAX)).then_some(scaled as u32)
    };
    let width = pixels(figure.width).ok_or_else(size)?;
    let height = pixels(figure.height).ok_or_else(size)?;
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
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

/// Font database with the embedded font as default for all text.
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
