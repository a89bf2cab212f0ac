//! Reading a selection as Rust values.

use super::{Array, Axes};
use crate::convert::{self, Number};
use crate::{ByteOrder, DType, Error, Kind, Order, Result, Selection};

/// Text or a parsed selection.
pub trait ToSelection {
    /// The selection; an error where the text is not one.
    fn to_selection(&self) -> Result<Selection>;
}

impl ToSelection for str {
    fn to_selection(&self) -> Result<Selection> {
        self.parse()
    }
}

impl ToSelection for Selection {
    fn to_selection(&self) -> Result<Selection> {
        Ok(self.clone())
    }
}

/// Values that an array can be read as, in C order.
pub trait FromArray: Sized {
    /// Reads the selected part of `array`.
    fn from_array(array: &Array, selection: &Selection) -> Result<Self>;
}

impl Array {
    /// Reads a selection, for example `"..., 10"`; `"..."` or `":"` is everything. `Vec<f64>` and
    /// `ArrayD<f64>` (feature `ndarray`) hold physical values; other element types require exactly
    /// that stored type without scaling.
    pub fn read<T: FromArray>(&self, selection: &(impl ToSelection + ?Sized)) -> Result<T> {
        T::from_array(self, &selection.to_selection()?)
    }
}

impl<T: Number> FromArray for Vec<T> {
    fn from_array(array: &Array, selection: &Selection) -> Result<Self> {
        let is_number = array.dtype().is_real() || array.dtype().kind() == Kind::Bool;
        if T::DTYPE == DType::F64 && is_number {
            let values = array.read_f64(selection, Axes::Order(Order::C))?;
            return Ok(values.into_iter().map(T::from_f64).collect());
        }
        if array.dtype().with_order(ByteOrder::Little) != T::DTYPE || array.map().is_some() {
            let scaled = if array.map().is_some() { " with scaling" } else { "" };
            let message = format!("cannot read {}{scaled} as {}", array.dtype(), T::DTYPE);
            let error = Error::argument(message);
            return Err(if is_number { error.hint("read it as float64") } else { error });
        }
        let bytes = array.read_bytes(selection, Axes::Order(Order::C))?;
        Ok(convert::decode(&bytes))
    }
}

#[cfg(feature = "ndarray")]
impl<T: Number> FromArray for ndarray::ArrayD<T> {
    fn from_array(array: &Array, selection: &Selection) -> Result<Self> {
        let shape = array.select(selection, Axes::Order(Order::C))?.shape();
        let shape: Vec<usize> = shape.lengths().iter().map(|n| *n as usize).collect();
        let values = Vec::<T>::from_array(array, selection)?;
        Self::from_shape_vec(shape, values).map_err(|e| Error::argument(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use crate::dataset::Dataset;
    use crate::layout::ArrayDesc;
    use crate::limits::Limits;
    use crate::shape::Shape;
    use crate::source::Source;
    use crate::tree::{ROOT, Tree};

    #[test]
    fn complex_numbers_are_not_reduced_to_their_real_part() {
        let mut tree = Tree::new(&Limits::default());
        for (name, dtype) in [("z", "complex64"), ("n", "int64"), ("b", "bool8")] {
            let dtype: crate::dtype::DType = dtype.parse().unwrap();
            tree.add_array(
                ROOT,
                name,
                ArrayDesc::inline(dtype, Shape::new([1]), vec![1; dtype.size()]),
            )
            .unwrap();
        }
        let dataset = Dataset::new(Source::memory([]), tree);
        let error = dataset.array("z").unwrap().read::<Vec<f64>>("...").unwrap_err();
        assert_eq!(error.message(), "cannot read complex64 as float64");
        assert_eq!(dataset.array("b").unwrap().read::<Vec<f64>>("...").unwrap(), [1.0]);
        let n = dataset.array("n").unwrap();
        assert_eq!(n.read::<Vec<i64>>("...").unwrap(), [0x0101_0101_0101_0101]);
        assert!(n.read::<Vec<i32>>("...").is_err() && n.read::<Vec<f64>>("...").is_ok());
    }
}
