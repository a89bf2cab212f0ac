//! Arrays computed from the coefficients of plane waves.

use rustfft::num_complex::Complex64;
use rustfft::{Fft, FftPlanner};
use spile_core::computed::Function;
use spile_core::select::Slice;
use spile_core::{Array, Axes, DType, Error, Order, Result, Selection};

/// Elements of G vectors that are computed at once: a multiple of 3.
pub(super) const VECTORS: u64 = 3 << 14;

/// What the items of -G are, from those of G.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mirror {
    /// 32-bit integers with the opposite sign.
    Negate,
    /// Complex conjugates.
    Conjugate,
}

/// The items of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements {
    /// Elements per item.
    pub(super) size: u64,
    /// How items of -G are added after the stored ones; `None` adds none.
    pub(super) mirror: Option<Mirror>,
}

/// Rows of an array: items of the stored G vectors, then those of their negatives without G = 0.
pub(super) struct Rows {
    pub(super) elements: Elements,
    /// The first index of the input is the row; otherwise the input is one row.
    pub(super) per_band: bool,
    /// Number of stored items.
    pub(super) stored: u64,
}

impl Function for Rows {
    fn name(&self) -> &'static str {
        if self.elements.mirror.is_some() { "mirrored G vectors" } else { "complex pairs" }
    }

    fn memory(&self, count: u64) -> u64 {
        count.saturating_mul(16)
    }

    fn compute(&self, inputs: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        let input = input(inputs, 0)?;
        let mut slices = vec![Slice::ALL; input.shape().rank()];
        let Elements { size, mirror } = self.elements;
        if let (true, Some(row)) = (self.per_band, slices.first_mut()) {
            let items = mirror.map_or(self.stored, |_| (2 * self.stored).saturating_sub(1));
            let number = first / items.saturating_mul(size).max(1);
            *row = Slice::Index(i64::try_from(number).unwrap_or(i64::MAX));
        }
        let stored = input.read_bytes(&Selection(slices), Axes::Order(Order::C))?;
        let item = usize::try_from(size).unwrap_or(usize::MAX).saturating_mul(match mirror {
            Some(Mirror::Negate) => 4,
            Some(Mirror::Conjugate) | None => 16,
        });
        let mirrored = if mirror.is_some() { stored.len().saturating_sub(item) } else { 0 };
        if stored.len().checked_add(mirrored) != Some(out.len()) {
            let message = format!("expected {} bytes, found {}", out.len(), stored.len());
            return Err(Error::malformed("iotk-050", message));
        }
        let (own, others) = out.split_at_mut(stored.len());
        own.copy_from_slice(&stored);
        others.copy_from_slice(stored.get(item..item + mirrored).unwrap_or_default());
        match mirror {
            Some(Mirror::Negate) => {
                for word in others.as_chunks_mut::<4>().0 {
                    *word = i32::from_le_bytes(*word).wrapping_neg().to_le_bytes();
                }
            }
            Some(Mirror::Conjugate) => {
                for [_, im] in others.as_chunks_mut::<8>().0.as_chunks_mut::<2>().0 {
                    *im = (-f64::from_le_bytes(*im)).to_le_bytes();
                }
            }
            None => {}
        }
        Ok(())
    }
}

/// G vectors from Miller indices.
pub(super) struct Vectors {
    /// Reciprocal lattice vectors as rows.
    pub(super) reciprocal: [[f64; 3]; 3],
}

impl Function for Vectors {
    fn name(&self) -> &'static str {
        "G vectors"
    }

    fn memory(&self, count: u64) -> u64 {
        count.saturating_mul(8)
    }

    fn compute(&self, inputs: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        let (from, count) = (first / 3, out.len() as u64 / 24);
        let slices = vec![Slice::range(from, from.saturating_add(count)), Slice::ALL];
        let miller: Vec<i32> = input(inputs, 0)?.read(&Selection(slices))?;
        for (vector, m) in out.as_chunks_mut::<24>().0.iter_mut().zip(miller.as_chunks::<3>().0) {
            for (k, slot) in vector.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let sum: f64 =
                    m.iter().zip(&self.reciprocal).map(|(m, b)| f64::from(*m) * b[k]).sum();
                *slot = sum.to_le_bytes();
            }
        }
        Ok(())
    }
}

/// The real part of the sum of `c exp(i G r)` on a grid of the cell, without a factor; the first
/// index is the fastest.
pub(super) struct InverseFft {
    pub(super) grid: [u64; 3],
    /// Number of plane waves.
    pub(super) waves: u64,
}

impl Function for InverseFft {
    fn name(&self) -> &'static str {
        "inverse FFT"
    }

    fn memory(&self, count: u64) -> u64 {
        let longest = self.grid.iter().max().copied().unwrap_or(0);
        // The grid; tables and buffers of one line; indices and coefficients, mirrored from stored ones.
        let grid = count.saturating_mul(16);
        let line = longest.saturating_mul(16 * 16);
        grid.saturating_add(line).saturating_add(self.waves.saturating_mul(2 * (16 + 12)))
    }

    fn compute(&self, inputs: &[Array], _: u64, out: &mut [u8]) -> Result<()> {
        let lengths = self.grid.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let [n1, n2, _] = lengths;
        let miller: Vec<i32> = input(inputs, 0)?.read("...")?;
        let coefficients =
            input(inputs, 1)?.read_bytes(&Selection::all(), Axes::Order(Order::C))?;
        let mut grid = vec![Complex64::ZERO; out.len() / DType::F64.size()];
        let numbers = coefficients.as_chunks::<8>().0.as_chunks::<2>().0;
        for (m, [re, im]) in miller.as_chunks::<3>().0.iter().zip(numbers) {
            let mut at = [0_usize; 3];
            for ((at, m), n) in at.iter_mut().zip(m).zip(self.grid) {
                // Beyond half of the grid it would be another plane wave.
                if u64::from(m.unsigned_abs()).saturating_mul(2) > n {
                    let message = format!("Miller index {m} is not on a grid of {n} points");
                    return Err(Error::malformed("iotk-050", message));
                }
                let index = i64::from(*m).rem_euclid(i64::try_from(n).unwrap_or(i64::MAX).max(1));
                *at = usize::try_from(index).unwrap_or(0);
            }
            if let Some(sum) = grid.get_mut((at[2] * n2 + at[1]) * n1 + at[0]) {
                *sum += Complex64::new(f64::from_le_bytes(*re), f64::from_le_bytes(*im));
            }
        }
        transform(&mut grid, lengths);
        for (slot, value) in out.as_chunks_mut::<8>().0.iter_mut().zip(&grid) {
            *slot = value.re.to_le_bytes();
        }
        Ok(())
    }
}

fn input(inputs: &[Array], k: usize) -> Result<&Array> {
    inputs.get(k).ok_or_else(|| Error::malformed("iotk-050", "an input is missing"))
}

/// Transforms a grid, first index fastest, along all dimensions, with a positive sign and no factor.
fn transform(grid: &mut [Complex64], lengths: [usize; 3]) {
    let mut planner = FftPlanner::new();
    let mut stride = 1;
    for n in lengths {
        if n > 1 {
            along(grid, stride, &*planner.plan_fft_inverse(n));
        }
        stride *= n.max(1);
    }
}

/// Transforms all lines whose elements have the distance `stride`.
fn along(grid: &mut [Complex64], stride: usize, fft: &dyn Fft<f64>) {
    let n = fft.len();
    let mut scratch = vec![Complex64::ZERO; fft.get_inplace_scratch_len()];
    if stride == 1 {
        fft.process_with_scratch(grid, &mut scratch);
        return;
    }
    let mut line = vec![Complex64::ZERO; n];
    for block in grid.chunks_exact_mut(n * stride) {
        for first in 0..stride {
            let elements = block.iter().skip(first).step_by(stride);
            line.iter_mut().zip(elements).for_each(|(to, from)| *to = *from);
            fft.process_with_scratch(&mut line, &mut scratch);
            let elements = block.iter_mut().skip(first).step_by(stride);
            elements.zip(&line).for_each(|(to, from)| *to = *from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_equals_the_sum_over_plane_waves() {
        let lengths = [3, 4, 5];
        let value = |k: usize| Complex64::new((k as f64).sin(), (k as f64 * 1.7).cos());
        let stored: Vec<Complex64> = (0..60).map(value).collect();
        let mut grid = stored.clone();
        transform(&mut grid, lengths);
        for at in [[0, 0, 0], [1, 2, 3], [2, 3, 4]] {
            let mut sum = Complex64::ZERO;
            for (number, c) in stored.iter().enumerate() {
                let m = [number % 3, number / 3 % 4, number / 12];
                let turn: f64 = (0..3).map(|k| (m[k] * at[k]) as f64 / lengths[k] as f64).sum();
                sum += c * Complex64::from_polar(1.0, std::f64::consts::TAU * turn);
            }
            let found = grid[(at[2] * 4 + at[1]) * 3 + at[0]];
            assert!((found - sum).norm() < 1e-12, "{at:?}: {found} {sum}");
        }
    }
}
