//! Data and metadata for test files.

use spile_sdf::Mesh;

/// `n` different numbers, little-endian.
pub(crate) fn doubles(n: u64) -> Vec<u8> {
    (0..n).flat_map(|k| (k as f64 * 0.5 - 1.0).to_le_bytes()).collect()
}

/// A Cartesian mesh with `dims` nodes.
pub(crate) fn mesh(dims: &[u64]) -> Mesh {
    let n = dims.len();
    Mesh {
        mults: vec![1.0; n],
        labels: ["X", "Y", "Z"].iter().take(n).map(ToString::to_string).collect(),
        units: vec!["m".into(); n],
        geometry: 1,
        minval: vec![-1.0; n],
        maxval: vec![2.0; n],
        dims: dims.to_vec(),
    }
}
