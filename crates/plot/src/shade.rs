//! Colours for numbers: one scale that grows brighter, one that parts at its middle.

use crate::figure::HeatMap;
use crate::range::{Extent, Range};

/// Every fifth colour of viridis, made by Nathaniel Smith, Stéfan van der Walt and Eric Firing and
/// given to the public domain (CC0); equal steps in it look equally far apart, also in grey and to
/// the colour blind. A straight line between two of these is as close as eight bits can tell.
#[allow(clippy::unreadable_literal)] // They are colours, as everybody writes them.
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

/// The colours of a heat map and which value has which.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shades {
    /// Of the values, or of their logarithms.
    pub(crate) range: Range,
    log: bool,
    diverging: bool,
}

impl Shades {
    /// The colours for the values of `map`; `None` if neither they nor the axis decide.
    pub(crate) fn of(map: &HeatMap) -> Option<Self> {
        let (log, diverging) = (map.colour.log, map.diverging);
        let asked = map.colour.asked();
        let range = asked.or_else(|| {
            let mut seen = Extent::default();
            for value in map.values.iter().map(|v| map.colour.place(*v)) {
                if value.is_finite() {
                    seen.add(value);
                }
            }
            let range = seen.range()?;
            let most = range.low.abs().max(range.high.abs());
            Some(if diverging && !log { Range::new(-most, most) } else { range })
        })?;
        Some(Self { range, log, diverging })
    }

    /// How far along the scale a value lies, from 0 to 1; `None` for a gap.
    pub(crate) fn part(&self, value: f64) -> Option<f64> {
        let value = if self.log { value.log10() } else { value };
        value.is_finite().then(|| ((value - self.range.low) / self.range.span()).clamp(0.0, 1.0))
    }

    /// The colour at a part of the scale.
    pub(crate) fn colour(&self, part: f64) -> Rgb {
        if self.diverging { diverging(part) } else { viridis(part) }
    }
}

fn viridis(part: f64) -> Rgb {
    let at = part.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
    let k = (at as usize).min(VIRIDIS.len() - 2);
    let channel = |shift: u32| {
        let [a, b] = [VIRIDIS[k], VIRIDIS[k + 1]].map(|c| f64::from(c >> shift & 0xff));
        (a + (b - a) * (at - k as f64)).round() as u8
    };
    [channel(16), channel(8), channel(0)]
}

/// From blue over a light grey to red, straight in Oklab, where equal steps look equal: both arms
/// have the same lightness at the same distance from the middle, so neither sign stands out.
fn diverging(part: f64) -> Rgb {
    const MIDDLE: [f64; 3] = [0.965, 0.0, 0.0];
    const BLUE: [f64; 3] = [0.38, -0.035, -0.145];
    const RED: [f64; 3] = [0.38, 0.150, 0.070];
    let signed = 2.0 * part.clamp(0.0, 1.0) - 1.0;
    let (end, t) = (if signed < 0.0 { BLUE } else { RED }, signed.abs());
    // Colour comes sooner than darkness: both arms stay clean instead of grey.
    let colour = t.powf(0.8);
    let [l, a, b] =
        [0, 1, 2].map(|k| MIDDLE[k] + (end[k] - MIDDLE[k]) * if k == 0 { t } else { colour });
    oklab(l, a, b)
}

/// A colour of Oklab as sRGB (Björn Ottosson, "A perceptual color space for image processing").
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

/// The nearest of the 256 colours that terminals know: a cube of six steps a side, and greys.
pub(crate) fn ansi([r, g, b]: Rgb) -> u8 {
    const STEPS: [i32; 6] = [0, 95, 135, 175, 215, 255];
    let far = |x: i32, y: u8| (x - i32::from(y)).pow(2);
    let step = |v: u8| (0..6).min_by_key(|k| far(STEPS[*k], v)).unwrap_or(0);
    let cube = [r, g, b].map(step);
    let grey = ((i32::from(r) + i32::from(g) + i32::from(b)) / 3 - 3).clamp(0, 235) / 10;
    let grey = grey.min(23);
    let distance = |c: [i32; 3]| far(c[0], r) + far(c[1], g) + far(c[2], b);
    if distance([8 + 10 * grey; 3]) < distance(cube.map(|k| STEPS[k])) {
        232 + grey as u8
    } else {
        (16 + 36 * cube[0] + 6 * cube[1] + cube[2]) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance, near enough to tell brighter from darker.
    fn bright([r, g, b]: Rgb) -> f64 {
        let linear = |v: u8| (f64::from(v) / 255.0).powf(2.2);
        0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
    }

    #[test]
    fn the_scale_grows_brighter_all_the_way() {
        let shades: Vec<f64> = (0..=100).map(|k| bright(viridis(f64::from(k) / 100.0))).collect();
        assert!(shades.is_sorted_by(|a, b| a < b), "{shades:?}");
        assert_eq!((viridis(0.0), viridis(1.0)), ([0x44, 0x01, 0x54], [0xfd, 0xe7, 0x25]));
        assert_eq!(viridis(1.0 / 3.0), [0x31, 0x68, 0x8e]);
    }

    #[test]
    fn both_signs_weigh_the_same() {
        let [r, g, b] = diverging(0.5);
        assert!(r > 235 && r.abs_diff(g) < 3 && g.abs_diff(b) < 3, "the middle is a light grey");
        for k in 1..=50 {
            let t = f64::from(k) / 100.0;
            let [low, high] = [diverging(0.5 - t), diverging(0.5 + t)];
            assert!(low[2] >= low[0] && high[0] >= high[2], "blue below, red above");
            let [low, high] = [low, high].map(bright);
            let last = [diverging(0.51 - t), diverging(0.49 + t)].map(bright);
            assert!(low < last[0] && high < last[1], "{k} is not darker");
            assert!((low.sqrt() - high.sqrt()).abs() < 0.06, "{k}: {low} {high}");
        }
    }

    #[test]
    fn the_nearest_terminal_colour_is_near() {
        assert_eq!((ansi([0, 0, 0]), ansi([255, 255, 255]), ansi([255, 0, 0])), (16, 231, 196));
        assert_eq!(ansi([128, 128, 128]), 244);
    }
}
