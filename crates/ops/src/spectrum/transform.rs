//! The power spectrum of one segment.

use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftPlanner};
use spile_core::{Error, Result};

use super::trace::{Part, Trace};
use super::{PIECE, Settings};

/// Longest segment: 2^26 samples.
const LONGEST: u64 = 1 << 26;

/// Window, transform and scaling for segments of one length.
pub(super) struct Transform {
    window: Vec<f64>,
    detrend: bool,
    /// Factor of a power.
    scale: f64,
    rate: f64,
    fft: Plan,
}

enum Plan {
    Real(Arc<dyn RealToComplex<f64>>),
    Complex(Arc<dyn Fft<f64>>),
}

impl Transform {
    pub(super) fn new(settings: &Settings, segment: u64, trace: &Trace) -> Result<Self> {
        if segment > LONGEST {
            let message = format!("segments of {segment} samples exceed the maximum of {LONGEST}");
            return Err(Error::argument(message));
        }
        let count = segment as usize;
        let window = settings.window.values(count);
        let rate = trace.rate;
        let scale = if settings.density {
            1.0 / (rate * window.iter().map(|w| w * w).sum::<f64>())
        } else {
            window.iter().sum::<f64>().powi(-2)
        };
        let fft = if trace.is_complex {
            Plan::Complex(FftPlanner::new().plan_fft_forward(count))
        } else {
            Plan::Real(RealFftPlanner::new().plan_fft_forward(count))
        };
        Ok(Self { window, detrend: settings.detrend, scale, rate, fft })
    }

    pub(super) fn segment(&self) -> u64 {
        self.window.len() as u64
    }

    /// Number of frequencies.
    pub(super) fn bins(&self) -> u64 {
        match self.fft {
            Plan::Real(_) => self.segment() / 2 + 1,
            Plan::Complex(_) => self.segment(),
        }
    }

    /// First frequency and interval.
    pub(super) fn frequencies(&self) -> (f64, f64) {
        let step = self.rate / self.window.len() as f64;
        match self.fft {
            Plan::Real(_) => (0.0, step),
            Plan::Complex(_) => (-step * (self.window.len() / 2) as f64, step),
        }
    }

    /// Memory of all threads in bytes, for segments `step` samples apart.
    pub(super) fn memory(&self, step: u64) -> u64 {
        let samples = PIECE.max(step) + self.segment();
        let threads = rayon::current_num_threads() as u64;
        threads * (24 * samples + 64 * self.segment())
    }

    pub(super) fn worker(&self) -> Worker<'_> {
        let (count, zero) = (self.window.len(), Complex::default());
        let scratch = match &self.fft {
            Plan::Real(fft) => fft.get_scratch_len(),
            Plan::Complex(fft) => fft.get_inplace_scratch_len(),
        };
        let (real, output) = match self.fft {
            Plan::Real(_) => (vec![0.0; count], count / 2 + 1),
            Plan::Complex(_) => (Vec::new(), count),
        };
        Worker { of: self, real, output: vec![zero; output], scratch: vec![zero; scratch] }
    }
}

/// Buffers of one thread.
pub(super) struct Worker<'a> {
    of: &'a Transform,
    real: Vec<f64>,
    output: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
}

impl Worker<'_> {
    /// Calls `each` with the number and the power of each frequency of a segment, from the lowest on.
    pub(super) fn power(
        &mut self,
        samples: Part<'_>,
        mut each: impl FnMut(usize, f64),
    ) -> Result<()> {
        let Transform { window, detrend, scale, fft, .. } = self.of;
        let count = window.len();
        let wrong =
            |found: usize| Error::truncated("", format!("expected {count} samples, found {found}"));
        match (fft, samples) {
            (Plan::Real(fft), Part::Real(samples)) if samples.len() == count => {
                let mean = if *detrend { samples.iter().sum::<f64>() / count as f64 } else { 0.0 };
                let inputs = self.real.iter_mut().zip(samples).zip(window);
                inputs.for_each(|((input, sample), weight)| *input = (sample - mean) * weight);
                fft.process_with_scratch(&mut self.real, &mut self.output, &mut self.scratch)
                    .map_err(|e| Error::argument(e.to_string()))?;
                let last = self.output.len() - 1;
                for (bin, value) in self.output.iter().enumerate() {
                    // Negative frequencies are added to the positive ones; 0 and the highest of an even number have
                    // none.
                    let single = bin == 0 || (bin == last && count.is_multiple_of(2));
                    let power = value.norm_sqr() * scale;
                    each(bin, if single { power } else { 2.0 * power });
                }
                Ok(())
            }
            (Plan::Complex(fft), Part::Complex(samples)) if samples.len() == 2 * count => {
                let pairs = samples.as_chunks::<2>().0;
                let sum = pairs.iter().fold((0.0, 0.0), |sum, [re, im]| (sum.0 + re, sum.1 + im));
                let mean = if *detrend {
                    Complex::new(sum.0 / count as f64, sum.1 / count as f64)
                } else {
                    Complex::default()
                };
                for ((output, [re, im]), weight) in self.output.iter_mut().zip(pairs).zip(window) {
                    *output = (Complex::new(*re, *im) - mean) * weight;
                }
                fft.process_with_scratch(&mut self.output, &mut self.scratch);
                // Negative frequencies are the second half.
                let half = count - count / 2;
                let ascending = self.output[half..].iter().chain(&self.output[..half]);
                ascending.enumerate().for_each(|(bin, value)| each(bin, value.norm_sqr() * scale));
                Ok(())
            }
            (_, Part::Real(samples)) => Err(wrong(samples.len())),
            (_, Part::Complex(samples)) => Err(wrong(samples.len() / 2)),
        }
    }
}
