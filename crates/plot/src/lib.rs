//! Plots of lines, points, bars and heat maps as SVG, PNG, or text for a terminal.
//!
//! The caller passes plain numbers and gets a complete figure with ticks at round values, axis labels
//! with SI prefixes, a colour bar for heat maps, and a legend for more than one series. The crate
//! reads no files, needs no system fonts, and accepts any float; values that are not finite are gaps.
//!
//! ```
//! use spile_plot::{Axis, Figure, ColourMode, Series};
//!
//! let t: Vec<f64> = (0..200).map(|i| f64::from(i) * 1e-7).collect();
//! let u = t.iter().map(|t| 0.02 * (t * 1e6).sin()).collect();
//! let figure = Figure {
//!     title: "probe 1".into(),
//!     x: Axis::new("time", "s"),
//!     y: Axis::new("voltage", "V"),
//!     series: vec![Series::line("u", t, u)],
//!     ..Figure::default()
//! };
//! assert!(figure.to_svg().contains("time (µs)"));
//! assert!(figure.to_terminal(80, 24, ColourMode::Plain).contains("voltage (mV)"));
//! assert!(figure.to_png(2.0)?.starts_with(b"\x89PNG"));
//! # Ok::<(), spile_plot::PlotError>(())
//! ```
//!
//! # Map
//!
//! | file | content |
//! |---|---|
//! | `figure.rs` | the model: [`Figure`], [`Axis`], [`Series`], [`Points`], [`HeatMap`] |
//! | `range.rs` | axis ranges |
//! | `ticks.rs` | tick positions and labels |
//! | `unit.rs` | SI prefixes and powers of ten |
//! | `geometry.rs` | series in pixel coordinates: clipped, split at gaps, decimated |
//! | `colourmap.rs`, `image.rs` | colours of values, and heat maps as images |
//! | `figure_layout.rs`, `legend.rs`, `colourbar.rs` | positions of all parts and labels |
//! | `stack.rs` | figures above each other with the same x axis: [`Stack`] |
//! | `svg.rs`, `png.rs`, `terminal.rs` | output formats |
//! | `graphics.rs` | images in a terminal: kitty and sixel |
//! | `font.rs`, `colour.rs` | text widths; line colours and themes |
//!
//! # Font
//!
//! `font/DejaVuSans-subset.ttf` is a subset of DejaVu Sans 2.37 with Latin, Greek, superscript and
//! subscript digits, arrows and mathematical symbols, without hinting and kerning; `font/LICENSE` is
//! its licence. SVG text requests this family first and falls back to any sans-serif font.

#![forbid(unsafe_code)]

mod colour;
mod colourbar;
mod colourmap;
mod figure;
mod figure_layout;
mod font;
mod geometry;
mod graphics;
mod image;
mod legend;
mod png;
mod range;
mod stack;
mod svg;
mod terminal;
mod ticks;
mod unit;

pub use colour::Theme;
pub use figure::{Axis, ColourMode, Figure, HeatMap, Points, Series};
pub use graphics::kitty;
pub use png::PlotError;
pub use stack::Stack;
