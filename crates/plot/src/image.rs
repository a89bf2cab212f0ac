//! Heat map cells as an image.

use base64_simd::STANDARD;
use resvg::tiny_skia::{IntSize, Pixmap};

use crate::colourmap::{ColourMap, Rgb};
use crate::figure::HeatMap;
use crate::figure_layout::Rect;
use crate::geometry::View;
use crate::range::Range;

/// Image pixels per figure pixel if the image is resampled.
const RESAMPLING: f64 = 2.0;

/// Maximum width and height of a resampled image.
const MAX_PIXELS: f64 = 4096.0;

/// Pixels row by row from the top, opaque or (`None`) transparent.
pub(crate) struct Image {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pixels: Vec<Option<Rgb>>,
}

impl Image {
    /// Image of a heat map in `view`, and the rectangle that it fills. `gap` is the colour of missing
    /// values. Uniform cells are one pixel each; other cells, and cells much smaller than a pixel, are
    /// resampled.
    pub(crate) fn of(map: &HeatMap, view: &View, gap: Option<Rgb>) -> Option<(Self, Rect)> {
        let (columns, rows) = map.size()?;
        let colours = ColourMap::of(map)?;
        let Rect { width, height, .. } = view.frame;
        let few = |cells: usize, pixels: f64| cells as f64 <= 4.0 * pixels;
        let uniform = view.log == [false; 2] && is_uniform(&map.x) && is_uniform(&map.y);
        let colour = |value: f64| colours.fraction(value).map(|p| colours.colour(p)).or(gap);
        if !(uniform && few(columns, width) && few(rows, height)) {
            let resampled = |v: f64| (v * RESAMPLING).ceil().clamp(1.0, MAX_PIXELS) as usize;
            let [across, down] = [width, height].map(resampled);
            let values = sampled(map, view, across, down).into_iter();
            let pixels = values.map(|value| value.and_then(colour)).collect();
            let image = Self { width: across as u32, height: down as u32, pixels };
            return Some((image, view.frame));
        }
        let (x0, x1) = (view.px(map.x[0]), view.px(map.x[columns]));
        let (y0, y1) = (view.py(map.y[0]), view.py(map.y[rows]));
        // Image rows go downwards; decreasing edges are flipped.
        let flip_index =
            |count: usize, flip: bool| move |k: usize| if flip { count - 1 - k } else { k };
        let (x_of, y_of) = (flip_index(columns, x0 > x1), flip_index(rows, y0 > y1));
        let pixels = (0..rows)
            .flat_map(|row| (0..columns).map(move |column| (column, row)))
            .map(|(column, row)| colour(map.value(x_of(column), y_of(row))))
            .collect();
        let rect = Rect {
            left: x0.min(x1),
            top: y0.min(y1),
            width: (x1 - x0).abs(),
            height: (y1 - y0).abs(),
        };
        Some((Self { width: columns as u32, height: rows as u32, pixels }, rect))
    }

    /// Image of the colour bar, largest value at the top.
    pub(crate) fn bar(colours: &ColourMap) -> Self {
        let pixels = (0..=255).rev().map(|k| Some(colours.colour(f64::from(k) / 255.0))).collect();
        Self { width: 1, height: 256, pixels }
    }

    /// The image as a PNG in a `data:` URL.
    pub(crate) fn data_url(&self) -> Option<String> {
        let bytes = self.pixels.iter().flat_map(|p| match p {
            Some([r, g, b]) => [*r, *g, *b, 255],
            None => [0; 4],
        });
        let size = IntSize::from_wh(self.width, self.height)?;
        let png = Pixmap::from_vec(bytes.collect(), size)?.encode_png().ok()?;
        Some(format!("data:image/png;base64,{}", STANDARD.encode_to_string(&png)))
    }
}

/// Values at the centres of `across` by `down` equal parts of the view, row by row from the top left;
/// `None` outside the cells.
pub(crate) fn sampled(map: &HeatMap, view: &View, across: usize, down: usize) -> Vec<Option<f64>> {
    let pick = |edges: &[f64], range: Range, log: bool, count: usize, flip: bool| {
        let at = |k: usize| {
            let fraction = (k as f64 + 0.5) / count as f64;
            let position = range.low + if flip { 1.0 - fraction } else { fraction } * range.span();
            find(edges, if log { 10f64.powf(position) } else { position })
        };
        (0..count).map(at).collect::<Vec<_>>()
    };
    let xs = pick(&map.x, view.x, view.log[0], across, false);
    let ys = pick(&map.y, view.y, view.log[1], down, true);
    let value = |x: Option<usize>, y: Option<usize>| Some(map.value(x?, y?));
    ys.iter().flat_map(|y| xs.iter().map(|x| value(*x, *y))).collect()
}

/// Index of the cell that contains `value`.
fn find(edges: &[f64], value: f64) -> Option<usize> {
    let increasing = edges.first() < edges.last();
    let passed = edges.partition_point(|e| if increasing { *e <= value } else { *e >= value });
    // The last edge belongs to the last cell.
    let cell = passed.checked_sub(1)?;
    (cell + 1 < edges.len() || edges.last() == Some(&value))
        .then(|| cell.min(edges.len().saturating_sub(2)))
}

/// Whether all cells have the same size within 1 %.
fn is_uniform(edges: &[f64]) -> bool {
    let (Some(first), Some(last)) = (edges.first(), edges.last()) else { return false };
    let step = last / (edges.len() - 1) as f64 - first / (edges.len() - 1) as f64;
    let deviation = |(k, e): (usize, &f64)| (e - (first + k as f64 * step)).abs();
    edges.iter().enumerate().map(deviation).all(|d| d <= 0.01 * step.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_for_increasing_and_decreasing_edges() {
        for edges in [[0.0, 1.0, 10.0], [10.0, 1.0, 0.0]] {
            let cell = usize::from(edges[0] == 0.0);
            assert_eq!(find(&edges, 5.0), Some(cell));
            assert_eq!(find(&edges, 0.5), Some(1 - cell));
            assert_eq!((find(&edges, -1.0), find(&edges, 11.0)), (None, None));
            assert!(find(&edges, 0.0).is_some() && find(&edges, 10.0).is_some());
        }
    }

    #[test]
    fn uniform_and_non_uniform_edges_are_distinguished() {
        assert!(
            is_uniform(&[0.0, 1.0, 2.0])
                && is_uniform(&[2.0, 1.0, 0.0])
                && is_uniform(&[-1e307, 1e307])
        );
        assert!(!is_uniform(&[0.0, 1.0, 3.0]));
    }
}
