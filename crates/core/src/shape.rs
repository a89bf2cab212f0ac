//! Extents and the order in which their elements lie.

use std::fmt;

use crate::error::{Error, Result};

/// Which index runs fastest through memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last, as in C.
    C,
    /// The first, as in Fortran.
    F,
}

/// Lengths of an array's dimensions, in the format's own index order. No dimension: a scalar.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape(Vec<u64>);

impl Shape {
    /// A shape from lengths.
    pub fn new(lengths: impl Into<Vec<u64>>) -> Self {
        Self(lengths.into())
    }

    /// One element without dimensions.
    pub fn scalar() -> Self {
        Self::default()
    }

    /// The lengths.
    pub fn lengths(&self) -> &[u64] {
        &self.0
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Number of elements, or nothing when it does not fit 64 bits. Zero if any length is zero,
    /// however large the others are.
    pub fn count(&self) -> Option<u64> {
        if self.0.contains(&0) {
            return Some(0);
        }
        self.0.iter().try_fold(1_u64, |product, length| product.checked_mul(*length))
    }

    /// Number of bytes for elements of `size`, or a `Limit` error. No file is longer than
    /// `i64::MAX`, so neither is an array: distances inside it fit a signed number.
    pub fn bytes(&self, size: usize) -> Result<u64> {
        let fits = |n: &u64| i64::try_from(*n).is_ok();
        let count = self.count().filter(fits);
        count.and_then(|n| n.checked_mul(size as u64)).filter(fits).ok_or_else(|| {
            Error::limit(format!("an array of {self} elements does not fit any file"))
        })
    }

    /// Distance in elements between neighbours along each dimension.
    pub fn strides(&self, order: Order) -> Vec<u64> {
        let mut strides = vec![0; self.rank()];
        let mut step = 1_u64;
        let mut place = |k: usize| {
            strides[k] = step;
            // Only reached by arrays whose count overflows, which no reader accepts.
            step = step.saturating_mul(self.0[k].max(1));
        };
        match order {
            Order::C => (0..self.rank()).rev().for_each(&mut place),
            Order::F => (0..self.rank()).for_each(&mut place),
        }
        strides
    }
}

impl From<Vec<u64>> for Shape {
    fn from(lengths: Vec<u64>) -> Self {
        Self(lengths)
    }
}

/// `101 x 3`, or `scalar`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("scalar");
        }
        for (k, length) in self.0.iter().enumerate() {
            write!(f, "{}{length}", if k == 0 { "" } else { " x " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_never_wrap() {
        assert_eq!(Shape::new([1 << 33, 1 << 33]).count(), None);
        assert_eq!(Shape::new([1 << 33, 1 << 33, 0]).count(), Some(0));
        assert!(Shape::new([1 << 61]).bytes(8).is_err());
        assert!(Shape::new([1 << 63]).bytes(1).is_err());
        assert_eq!(Shape::scalar().count(), Some(1));
    }

    #[test]
    fn strides_follow_the_order() {
        let shape = Shape::new([2, 3, 4]);
        assert_eq!(shape.strides(Order::F), [1, 2, 6]);
        assert_eq!(shape.strides(Order::C), [12, 4, 1]);
    }
}
