//! Every golden file gives the samples, scale, grid and counts of the manifest.

#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use std::path::Path;

use recordings::{Expected, Found, check_all, folder, same_values, sha256_of};
use spile_tektronix::Tektronix;

#[test]
fn golden_files_give_what_the_manifest_says() {
    check_all(&Tektronix, &folder("tektronix"), |file, got, want| {
        match file.extension().and_then(|e| e.to_str()) {
            Some("isf") => formula(file, got, want),
            _ => same_values(file, got, want),
        }
    });
}

/// The manual's formula subtracts before it multiplies, which no `a + b x` does to the last bit: the map has
/// the formula's coefficients, each rounded once, and its values lie within a rounding of the formula's (of the larger of value and
/// intercept, which cancel near zero).
fn formula(file: &Path, got: &Found, want: &Expected) -> bool {
    let field = |name: &str| want.header[name].as_f64().unwrap();
    let (zero, multiple, offset) = (field("yzero"), field("ymult"), field("yoff"));
    let map = got.desc.map.map_or((0.0, 1.0), |m| (m.intercept, m.slope));
    assert_eq!(map, (zero - multiple * offset, multiple), "{}", file.display());
    let stored = got.values.iter().map(|v| ((v - map.0) / map.1).round());
    let stored: Vec<f64> =
        if got.desc.dtype.is_integer() { stored.collect() } else { got.values.clone() };
    let exact: Vec<f64> = stored.iter().map(|x| zero + multiple * (x - offset)).collect();
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= f64::EPSILON * b.abs().max(map.0.abs());
    sha256_of(&exact) == want.sha256_values && got.values.iter().zip(&exact).all(near)
}
