//! Array shapes and element order.

use std::fmt;

use crate::{Error, Result};

/// Order of elements in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Last index fastest, as in C.
    C,
    /// First index fastest, as in Fortran.
    F,
}

impl Order {
    /// The dimensions of an array of `rank` dimensions from slowest to fastest.
    pub fn slowest_first(self, rank: usize) -> Vec<usize> {
        match self {
            Self::C => (0..rank).collect(),
            Self::F => (0..rank).rev().collect(),
        }
    }
}

/// Lengths of the dimensions of an array, in the index order of the format. A scalar has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape(Vec<u64>);

impl Shape {
    /// The shape with these lengths.
    pub fn new(lengths: impl Into<Vec<u64>>) -> Self {
        Self(lengths.into())
    }

    /// The shape of a scalar: one element, no dimensions.
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

    /// Number of elements; `None` if it exceeds 64 bits. 0 if any length is 0, even if the product of the
    /// others overflows.
    pub fn count(&self) -> Option<u64> {
        if self.0.contains(&0) {
            return Some(0);
        }
        self.0.iter().try_fold(1_u64, |product, length| product.checked_mul(*length))
    }

    /// Number of bytes of all elements, each of `size` bytes. A `Limit` error if the count or the bytes
    /// exceed `i64::MAX`, the largest length of a file.
    pub fn bytes(&self, size: usize) -> Result<u64> {
        let fits = |n: &u64| i64::try_from(*n).is_ok();
        let count = self.count().filter(fits);
        count.and_then(|n| n.checked_mul(size as u64)).filter(fits).ok_or_else(|| {
            Error::limit(format!("array of {self} elements exceeds the largest file size"))
        })
    }

    /// Strides of a contiguous array, in elements.
    pub fn strides(&self, order: Order) -> Vec<u64> {
        let mut strides = vec![0; self.rank()];
        let mut step = 1_u64;
        let mut set = |k: usize| {
            strides[k] = step;
            // Only reached by arrays whose count overflows, which no reader accepts.
            step = step.saturating_mul(self.0[k].max(1));
        };
        match order {
            Order::C => (0..self.rank()).rev().for_each(&mut set),
            Order::F => (0..self.rank()).for_each(&mut set),
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
