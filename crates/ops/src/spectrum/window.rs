//! Window functions, periodic as those of `scipy.signal.get_window`.

use std::f64::consts::PI;
use std::str::FromStr;

/// A window function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Hann.
    Hann,
    /// Hamming.
    Hamming,
    /// Blackman.
    Blackman,
    /// Blackman-Harris with four terms.
    BlackmanHarris,
    /// Flat top, for amplitudes.
    FlatTop,
    /// No window.
    Boxcar,
}

impl Window {
    /// All windows.
    pub const ALL: [Self; 6] = [
        Self::Hann,
        Self::Hamming,
        Self::Blackman,
        Self::BlackmanHarris,
        Self::FlatTop,
        Self::Boxcar,
    ];

    /// Name, as in SciPy.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hann => "hann",
            Self::Hamming => "hamming",
            Self::Blackman => "blackman",
            Self::BlackmanHarris => "blackmanharris",
            Self::FlatTop => "flattop",
            Self::Boxcar => "boxcar",
        }
    }

    /// Coefficients of the cosines, with alternating signs.
    fn coefficients(self) -> &'static [f64] {
        match self {
            Self::Hann => &[0.5, 0.5],
            Self::Hamming => &[0.54, 0.46],
            Self::Blackman => &[0.42, 0.5, 0.08],
            Self::BlackmanHarris => &[0.358_75, 0.488_29, 0.141_28, 0.011_68],
            Self::FlatTop => {
                &[0.215_578_95, 0.416_631_58, 0.277_263_158, 0.083_578_947, 0.006_947_368]
            }
            Self::Boxcar => &[1.0],
        }
    }

    /// The window of `count` samples.
    pub(super) fn values(self, count: usize) -> Vec<f64> {
        if count == 1 {
            return vec![1.0];
        }
        let value = |k: usize| {
            let angle = 2.0 * PI * k as f64 / count as f64;
            let terms = self.coefficients().iter().enumerate();
            terms.map(|(n, a)| if n % 2 == 0 { *a } else { -a } * (n as f64 * angle).cos()).sum()
        };
        (0..count).map(value).collect()
    }
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|window| window.name() == text);
        found.ok_or_else(|| format!("unknown window; expected one of {}", names()))
    }
}
