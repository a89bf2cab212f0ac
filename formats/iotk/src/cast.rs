//! Elements of one type as elements of another that holds them: kinds on reading, and on writing
//! what Fortran has in place of types that it does not have.

use spile_core::convert::{from_f64, recode_integers, to_f64};
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::layout::Linear;
use spile_core::wire::ByteOrder;

/// Turns little-endian elements of one type into those of another.
pub(crate) struct Cast {
    from: DType,
    map: Option<Linear>,
    to: DType,
    numbers: Vec<f64>,
    out: Vec<u8>,
}

impl Cast {
    pub(crate) fn new(from: DType, map: Option<Linear>, to: DType) -> Self {
        let (from, to) = (components(from).0, components(to).0);
        let (from, to) = (from.with_order(ByteOrder::Little), to.with_order(ByteOrder::Little));
        Self { from, map, to, numbers: Vec::new(), out: Vec::new() }
    }

    /// The same numbers, or an error where one does not fit.
    pub(crate) fn apply<'a>(&'a mut self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let (from, to) = (self.from, self.to);
        if from.kind() == Kind::Opaque {
            return Ok(bytes);
        }
        let real = |dtype: DType| matches!(dtype.kind(), Kind::Float | Kind::X87);
        let misfits = if real(to) && (real(from) || self.map.is_some()) {
            to_f64(from, self.map, bytes, &mut self.numbers);
            from_f64(to, None, &self.numbers, &mut self.out)
        } else {
            recode_integers(from, to, bytes, &mut self.out)
        };
        match misfits {
            Some(0) => Ok(&self.out),
            Some(_) => Err(Error::argument(format!("a {from} number does not fit {to}"))),
            None => Err(Error::argument(format!("{from} elements are not read as {to}"))),
        }
    }
}

/// What is written for elements of `dtype`: themselves, or what Fortran has in their place, and how
/// many for each. Unsigned integers and components become the next wider kind, bytes without a meaning
/// integers of one byte, mapped numbers what they stand for.
pub(crate) fn fortran(dtype: DType, map: Option<Linear>) -> (DType, u64) {
    let fixed = |kind, size| DType::new(kind, size, ByteOrder::Little).unwrap_or(dtype);
    if map.is_some() {
        return (DType::F64, 1);
    }
    match (dtype.kind(), dtype.size()) {
        (Kind::UInt, size) => (fixed(Kind::Int, (2 * size as u32).min(8)), 1),
        (Kind::Float, 2) => (DType::F32, 1),
        (Kind::Complex, 4) => (fixed(Kind::Complex, 8), 1),
        (Kind::Opaque, size) => (DType::I8, size as u64),
        _ => (dtype, 1),
    }
}

/// Complex numbers as what they are made of.
pub(crate) fn components(dtype: DType) -> (DType, u64) {
    let half = match dtype.kind() {
        Kind::Complex => Kind::Float,
        Kind::ComplexX87 => Kind::X87,
        _ => return (dtype, 1),
    };
    (DType::new(half, dtype.word() as u32, dtype.order()).unwrap_or(dtype), 2)
}
