//! PNG output: the SVG, rendered by resvg with the embedded font.

mod fallback;

use std::fmt;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{FontResolver, Options, Tree};

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

/// Encodes pixels as a PNG file.
pub(crate) fn encode(canvas: &Pixmap) -> Result<Vec<u8>, PlotError> {
    canvas.encode_png().map_err(|e| PlotError::Render(e.to_string()))
}

/// Renders an SVG document of the given size to pixels.
pub(crate) fn render(
    svg: &str,
    (svg_width, svg_height): (u32, u32),
    scale: f32,
) -> Result<Pixmap, PlotError> {
    let size = || PlotError::Size { width: svg_width, height: svg_height, scale };
    let pixels = |length: u32| {
        let scaled = (f64::from(length) * f64::from(scale)).round();
        (scaled >= 1.0 && scaled <= f64::from(i32::MAX)).then_some(scaled as u32)
    };
    let width = pixels(svg_width).ok_or_else(size)?;
    let height = pixels(svg_height).ok_or_else(size)?;
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(size());
    }
    let (svg, fontdb) = fallback::prepared(svg);
    let font_resolver =
        FontResolver { select_fallback: Box::new(fallback::face), ..FontResolver::default() };
    let options = Options { fontdb, font_resolver, ..Options::default() };
    let tree = Tree::from_str(&svg, &options).map_err(|e| PlotError::Render(e.to_string()))?;
    let mut canvas = Pixmap::new(width, height).ok_or_else(size)?;
    let fill =
        Transform::from_scale(width as f32 / svg_width as f32, height as f32 / svg_height as f32);
    resvg::render(&tree, fill, &mut canvas.as_mut());
    Ok(canvas)
}
