//! Pictures of numbers, as lines, points, bars or a map of colours: as SVG, as PNG, or as text for
//! a terminal.
//!
//! The caller hands over plain numbers and gets a finished picture with ticks at round values,
//! axes labelled in fitting units, a bar beside colours, and a legend where there is more than one
//! series. The crate reads
//! no files, needs no fonts on the machine, and takes any number that a float can hold: what is not
//! finite is a gap.
//!
//! ```
//! use spile_plot::{Axis, Figure, Screen, Series};
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
//! assert!(figure.to_terminal(80, 24, Screen::Plain).contains("voltage (mV)"));
//! assert!(figure.to_png(2.0)?.starts_with(b"\x89PNG"));
//! # Ok::<(), spile_plot::PlotError>(())
//! ```
//!
//! # Map
//!
//! | room | what is in it |
//! |---|---|
//! | `figure.rs` | the model: [`Figure`], [`Axis`], [`Series`], [`Points`], [`HeatMap`] |
//! | `range.rs` | which part of the number plane is shown |
//! | `ticks.rs` | round tick positions and their exact labels |
//! | `unit.rs` | SI prefixes and shared powers of ten |
//! | `trace.rs` | series in pixels: clipped, broken at gaps, no denser than the eye sees |
//! | `shade.rs`, `image.rs` | the colours of numbers, and cells as an image |
//! | `layout.rs`, `legend.rs`, `bar.rs` | the place of every part and every text |
//! | `svg.rs`, `png.rs`, `terminal.rs` | the three ways out |
//! | `graphics.rs` | pixels inside a terminal: kitty and sixel |
//! | `font.rs`, `colour.rs` | widths of text, and the inks |
//!
//! # The font
//!
//! `font/DejaVuSans-subset.ttf` is DejaVu Sans 2.37 cut down to Latin, Greek, raised and lowered
//! digits, arrows and mathematical signs, without hints and kerning; `font/LICENSE` is its licence.
//! SVG text names that family first and falls back to any plain one.

#![forbid(unsafe_code)]

mod bar;
mod colour;
mod figure;
mod font;
mod graphics;
mod image;
mod layout;
mod legend;
mod png;
mod range;
mod shade;
mod svg;
mod terminal;
mod ticks;
mod trace;
mod unit;

pub use figure::{Axis, Figure, HeatMap, Points, Screen, Series};
pub use graphics::kitty;
pub use png::PlotError;
