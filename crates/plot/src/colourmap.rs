//! Colour maps: viridis, and a diverging one from blue to red.

use crate::figure::HeatMap;
use crate::range::{Extent, Range};

/// Every fifth colour of viridis by Nathaniel Smith, Stéfan van der Walt and Eric Firing (CC0), which is
/// perceptually uniform, also in greyscale and for colour-blind readers. Linear interpolation gives the
/// other colours within the precision of 8 bits.
#[allow(clippy::unreadable_literal)] // Hexadecimal RGB.
const VIRIDIS: [u32; 52] = [
    0x440154, 0x46085c, 0x471063, 0x481769, 0x481d6f, 0x482475, 0x472a7a, 0x46307e, 0x453781,
    0x433d84, 0x414287, 0x3f4889, 0x3d4e8a, 0x3a538b, 0x38598c, 0x355e8d, 0x33638d, 0x31688e,
    0x2e6d8e, 0x2c718e, 0x2a768e, 0x297b8e, 0x27808e, 0x25848e, 0x23898e, 0x218e8d, 0x20928c,
    0x1f978b, 0x1e9c89, 0x1fa188, 0x21a585, 0x24aa83, 0x28ae80, 0x2eb37c, 0x35b779, 0x3dbc74,
    0x46c06f, 0x50c46a, 0x5ac864, 0x65cb5e, 0x70cf57, 0x7cd250, 0x89d548, 0x95d840, 0xa2da37,
    0xb0dd2f, 0xbddf26, 0xcae11f, 0xd8e219, 0xe5e419, 0xf1e51d, 0xfde725,
];

/// An RGB colour.
pub(crate) type Rgb = [u8; 3];

/// Mapping from values to colours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ColourMap {
    /// Range of the values, or of their logarithms.
    pub(crate) range: Range,
    log: bool,
    diverging: bool,
}

impl ColourMap {
    /// Colour map of a heat map; `None` if neither the values nor the axis define a range.
    pub(crate) fn of(map: &HeatMap) -> Option<Self> {
        let (log, diverging) = (map.colour.log, map.diverging);
        let requested = map.colour.requested_range();
        let range = requested.or_else(|| {
            let mut extent = Extent::default();
            for value in map.values.iter().map(|v| map.colour.position(*v)) {
                if value.is_finite() {
                    extent.add(value);
                }
            }
            let range = extent.range()?;
            let max = range.low.abs().max(range.high.abs());
            Some(if diverging && !log { Range::new(-max, max) } else { range })
        })?;
        Some(Self { range, log, diverging })
    }

    /// Relative position of a value in the range, from 0 to 1; `None` for a gap.
    pub(crate) fn fraction(&self, value: f64) -> Option<f64> {
        let value = if self.log { value.log10() } else { value };
        value.is_finite().then(|| self.range.fraction(value))
    }

    /// Colour at a relative position from 0 to 1.
    pub(crate) fn colour(&self, fraction: f64) -> Rgb {
        if self.diverging { diverging(fraction) } else { viridis(fraction) }
    }
}

fn viridis(fraction: f64) -> Rgb {
    let at = fraction.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
    let k = (at as usize).min(VIRIDIS.len() - 2);
    let channel = |shift: u32| {
        let [a, b] = [VIRIDIS[k], VIRIDIS[k + 1]].map(|c| f64::from(c >> shift & 0xff));
        (a + (b - a) * (at - k as f64)).round() as u8
    };
    [channel(16), channel(8), channel(0)]
}

/// Blue to light grey to red, interpolated in the perceptually uniform space Oklab. Both halves have the
/// same lightness at the same distance from the middle, so that neither sign dominates.
fn diverging(fraction: f64) -> Rgb {
    const MIDDLE: [f64; 3] = [0.965, 0.0, 0.0];
    const BLUE: [f64; 3] = [0.38, -0.035, -0.145];
    const RED: [f64; 3] = [0.38, 0.150, 0.070];
    let signed = 2.0 * fraction.clamp(0.0, 1.0) - 1.0;
    let (end, t) = (if signed < 0.0 { BLUE } else { RED }, signed.abs());
    // Saturation increases faster than lightness decreases, which avoids greyish tones.
    let colour = t.powf(0.8);
    let [l, a, b] =
        [0, 1, 2].map(|k| MIDDLE[k] + (end[k] - MIDDLE[k]) * if k == 0 { t } else { colour });
    oklab(l, a, b)
}

/// Oklab to sRGB (Björn Ottosson, "A perceptual color space for image processing").
fn oklab(l: f64, a: f64, b: f64) -> Rgb {
    let cone = |v: f64| v * v * v;
    let long = cone(l + 0.396_337_777_4 * a + 0.215_803_757_3 * b);
    let middle = cone(l - 0.105_561_345_8 * a - 0.063_854_172_8 * b);
    let short = cone(l - 0.089_484_177_5 * a - 1.291_485_548_0 * b);
    let linear = [
        4.076_741_662_1 * long - 3.307_711_591_3 * middle + 0.230_969_929_2 * short,
        -1.268_438_004_6 * long + 2.609_757_401_1 * middle - 0.341_319_396_5 * short,
        -0.004_196_086_3 * long - 0.703_418_614_7 * middle + 1.707_614_701_0 * short,
    ];
    linear.map(|v| {
        let v = v.clamp(0.0, 1.0);
        let v = if v <= 0.003_130_8 { 12.92 * v } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 };
        (v * 255.0).round() as u8
    })
}

/// Nearest of the 256 ANSI colours: a cube of 6 x 6 x 6 colours, and 24 greys.
pub(crate) fn ansi([r, g, b]: Rgb) -> u8 {
    const STEPS: [i32; 6] = [0, 95, 135, 175, 215, 255];
    let distance_squared = |x: i32, y: u8| (x - i32::from(y)).pow(2);
    let step = |v: u8| (0..6).min_by_key(|k| distance_squared(STEPS[*k], v)).unwrap_or(0);
    let cube = [r, g, b].map(step);
    let grey = ((i32::from(r) + i32::from(g) + i32::from(b)) / 3 - 3).clamp(0, 235) / 10;
    let grey = grey.min(23);
    let distance = |c: [i32; 3]| {
        distance_squared(c[0], r) + distance_squared(c[1], g) + distance_squared(c[2], b)
    };
    if distance([8 + 10 * grey; 3]) < distance(cube.map(|k| STEPS[k])) {
        232 + grey as u8
    } else {
        (16 + 36 * cube[0] + 6 * cube[1] + cube[2]) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Approximate relative luminance.
    fn luminance([r, g, b]: Rgb) -> f64 {
        let linear = |v: u8| (f64::from(v) / 255.0).powf(2.2);
        0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
    }

    #[test]
    fn viridis_increases_in_luminance() {
        let colours: Vec<f64> =
            (0..=100).map(|k| luminance(viridis(f64::from(k) / 100.0))).collect();
        assert!(colours.is_sorted_by(|a, b| a < b), "{colours:?}");
        assert_eq!((viridis(0.0), viridis(1.0)), ([0x44, 0x01, 0x54], [0xfd, 0xe7, 0x25]));
        assert_eq!(viridis(1.0 / 3.0), [0x31, 0x68, 0x8e]);
    }

    #[test]
    fn both_signs_have_the_same_lightness() {
        let [r, g, b] = diverging(0.5);
        assert!(r > 235 && r.abs_diff(g) < 3 && g.abs_diff(b) < 3, "the middle is a light grey");
        for k in 1..=50 {
            let t = f64::from(k) / 100.0;
            let [low, high] = [diverging(0.5 - t), diverging(0.5 + t)];
            assert!(low[2] >= low[0] && high[0] >= high[2], "blue below, red above");
            let [low, high] = [low, high].map(luminance);
            let last = [diverging(0.51 - t), diverging(0.49 + t)].map(luminance);
            assert!(low < last[0] && high < last[1], "{k} is not darker");
            assert!((low.sqrt() - high.sqrt()).abs() < 0.06, "{k}: {low} {high}");
        }
    }

    #[test]
    fn ansi_colours_are_the_nearest() {
        assert_eq!((ansi([0, 0, 0]), ansi([255, 255, 255]), ansi([255, 0, 0])), (16, 231, 196));
        assert_eq!(ansi([128, 128, 128]), 244);
    }
}
