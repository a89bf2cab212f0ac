//! Reading a selection as Rust values.

use super::{Array, Axes};
use crate::convert::{self, Number};
use crate::error::{Error, Result};
use crate::select::Selection;
use crate::shape::Order;
use crate::wire::ByteOrder;

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
        if T::DTYPE == crate::dtype::DType::F64 {
            let values = array.read_f64(selection, Axes::Order(Order::C))?;
            return Ok(values.into_iter().map(T::from_f64).collect());
        }
        if array.dtype().with_order(ByteOrder::Little) != T::DTYPE || array.map().is_some() {
            let scaled = if array.map().is_some() { " with scaling" } else { "" };
            let message = format!("cannot read {}{scaled} as {}", array.dtype(), T::DTYPE);
            return Err(Error::argument(message).hint("read it as float64"));
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
