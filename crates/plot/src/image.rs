//! Cells as the pixels of an image inside the drawing.

use base64_simd::STANDARD;
use resvg::tiny_skia::{IntSize, Pixmap};

use crate::figure::HeatMap;
use crate::layout::Rect;
use crate::range::Range;
use crate::shade::{Rgb, Shades};
use crate::trace::View;

/// Pixels of an image for each unit of the drawing, where it is not one for each cell.
const FINE: f64 = 2.0;

/// No more pixels than this along either side, however large the drawing is.
const MOST_PIXELS: f64 = 4096.0;

/// Opaque colours, or nothing, row after row from the top.
pub(crate) struct Image {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pixels: Vec<Option<Rgb>>,
}

impl Image {
    /// The map as seen in `view`, and the rectangle it fills; `gap` is the colour of what has no
    /// value. Cells of one size are one pixel each; others, and those far finer than the picture,
    /// are looked up for every pixel of it.
    pub(crate) fn of(map: &HeatMap, view: &View, gap: Option<Rgb>) -> Option<(Self, Rect)> {
        let (columns, rows) = map.size()?;
        let shades = Shades::of(map)?;
        let Rect { left, top, width, height } =
            Rect { left: view.left, top: view.top, width: view.width, height: view.height };
        let few = |cells: usize, room: f64| cells as f64 <= 4.0 * room;
        let plain = view.log == [false; 2] && is_even(&map.x) && is_even(&map.y);
        let colour = |value: f64| shades.part(value).map(|p| shades.colour(p)).or(gap);
        if !(plain && few(columns, width) && few(rows, height)) {
            let fine = |v: f64| (v * FINE).ceil().clamp(1.0, MOST_PIXELS) as usize;
            let [across, down] = [width, height].map(fine);
            let values = sampled(map, view, across, down).into_iter();
            let pixels = values.map(|value| value.and_then(colour)).collect();
            let image = Self { width: across as u32, height: down as u32, pixels };
            return Some((image, Rect { left, top, width, height }));
        }
        let (x0, x1) = (view.px(map.x[0]), view.px(map.x[columns]));
        let (y0, y1) = (view.py(map.y[0]), view.py(map.y[rows]));
        // Rows go downwards in an image; a falling axis is shown the other way round.
        let turned =
            |count: usize, turn: bool| move |k: usize| if turn { count - 1 - k } else { k };
        let (x_of, y_of) = (turned(columns, x0 > x1), turned(rows, y0 > y1));
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

    /// All colours of the map, the last on top.
    pub(crate) fn bar(shades: &Shades) -> Self {
        let pixels = (0..=255).rev().map(|k| Some(shades.colour(f64::from(k) / 255.0))).collect();
        Self { width: 1, height: 256, pixels }
    }

    /// The image as the address of a PNG file that carries its own bytes.
    pub(crate) fn address(&self) -> Option<String> {
        let bytes = self.pixels.iter().flat_map(|p| match p {
            Some([r, g, b]) => [*r, *g, *b, 255],
            None => [0; 4],
        });
        let size = IntSize::from_wh(self.width, self.height)?;
        let png = Pixmap::from_vec(bytes.collect(), size)?.encode_png().ok()?;
        Some(format!("data:image/png;base64,{}", STANDARD.encode_to_string(&png)))
    }
}

/// The value in the middle of each of `across` by `down` equal parts of the view, from the top
/// left; `None` outside the cells.
pub(crate) fn sampled(map: &HeatMap, view: &View, across: usize, down: usize) -> Vec<Option<f64>> {
    let pick = |edges: &[f64], range: Range, log: bool, count: usize, turn: bool| {
        let at = |k: usize| {
            let part = (k as f64 + 0.5) / count as f64;
            let place = range.low + if turn { 1.0 - part } else { part } * range.span();
            find(edges, if log { 10f64.powf(place) } else { place })
        };
        (0..count).map(at).collect::<Vec<_>>()
    };
    let xs = pick(&map.x, view.x, view.log[0], across, false);
    let ys = pick(&map.y, view.y, view.log[1], down, true);
    let value = |x: Option<usize>, y: Option<usize>| Some(map.value(x?, y?));
    ys.iter().flat_map(|y| xs.iter().map(|x| value(*x, *y))).collect()
}

/// The cell between whose edges `value` lies.
fn find(edges: &[f64], value: f64) -> Option<usize> {
    let rising = edges.first() < edges.last();
    let passed = edges.partition_point(|e| if rising { *e <= value } else { *e >= value });
    // The far end belongs to the last cell.
    let cell = passed.checked_sub(1)?;
    (cell + 1 < edges.len() || edges.last() == Some(&value))
        .then(|| cell.min(edges.len().saturating_sub(2)))
}

/// Whether all cells are of one size, as far as a picture can show.
fn is_even(edges: &[f64]) -> bool {
    let (Some(first), Some(last)) = (edges.first(), edges.last()) else { return false };
    let step = last / (edges.len() - 1) as f64 - first / (edges.len() - 1) as f64;
    let off = |(k, e): (usize, &f64)| (e - (first + k as f64 * step)).abs();
    edges.iter().enumerate().map(off).all(|off| off <= 0.01 * step.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_finds_its_cell_in_either_direction() {
        for edges in [[0.0, 1.0, 10.0], [10.0, 1.0, 0.0]] {
            let wide = usize::from(edges[0] == 0.0);
            assert_eq!(find(&edges, 5.0), Some(wide));
            assert_eq!(find(&edges, 0.5), Some(1 - wide));
            assert_eq!((find(&edges, -1.0), find(&edges, 11.0)), (None, None));
            assert!(find(&edges, 0.0).is_some() && find(&edges, 10.0).is_some());
        }
    }

    #[test]
    fn even_cells_are_told_from_others() {
        assert!(
            is_even(&[0.0, 1.0, 2.0]) && is_even(&[2.0, 1.0, 0.0]) && is_even(&[-1e307, 1e307])
        );
        assert!(!is_even(&[0.0, 1.0, 3.0]));
    }
}
