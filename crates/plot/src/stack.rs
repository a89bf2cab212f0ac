//! Figures above each other.

use crate::figure::{ColourMode, Figure};
use crate::figure_layout::FigureLayout;
use crate::{PlotError, graphics, png, svg};

/// Figures above each other. Their axes start at the same distance from the left edge.
#[derive(Debug, Clone, PartialEq)]
pub struct Stack {
    /// The figures, from top to bottom.
    pub figures: Vec<Figure>,
}

impl Stack {
    /// The figures, with the axes aligned.
    pub fn new(mut figures: Vec<Figure>) -> Self {
        let left = |figure: &Figure| FigureLayout::of(figure).frame.left as u32;
        let most = figures.iter().map(left).max().unwrap_or(0);
        for figure in &mut figures {
            figure.left = most;
        }
        Self { figures }
    }

    /// Width and height in pixels.
    fn size(&self) -> (u32, u32) {
        let width = self.figures.iter().map(|figure| figure.width).max().unwrap_or(1);
        (width, self.figures.iter().map(|figure| figure.height).fold(0, u32::saturating_add))
    }

    /// Draws the figures as an SVG document.
    #[must_use]
    pub fn to_svg(&self) -> String {
        svg::draw_all(&self.figures, self.size())
    }

    /// Draws the figures as a PNG file of `scale` times their size.
    ///
    /// # Errors
    /// The size is zero or more than 2^27 pixels, or the renderer fails.
    pub fn to_png(&self, scale: f32) -> Result<Vec<u8>, PlotError> {
        png::encode(&png::render(&self.to_svg(), self.size(), scale)?)
    }

    /// Draws the figures as a sixel image; see [`Figure::to_sixel`].
    pub fn to_sixel(&self, scale: f32) -> Result<String, PlotError> {
        png::render(&self.to_svg(), self.size(), scale).map(|canvas| graphics::sixel(&canvas))
    }

    /// Draws the figures as text, each with `rows` lines; see [`Figure::to_terminal`].
    #[must_use]
    pub fn to_terminal(&self, columns: usize, rows: usize, mode: ColourMode) -> String {
        let draw = |figure: &Figure| figure.to_terminal(columns, rows, mode);
        self.figures.iter().map(draw).collect::<Vec<_>>().join("\n")
    }
}
