//! Conversion between element types: kinds on reading; on writing, types that Fortran does not have.

use spile_core::convert::{from_f64, part, recode_integers, to_f64};
use spile_core::{ByteOrder, DType, Error, Kind, Linear, Result};

/// Converts little-endian elements of one type to another.
pub(crate) struct Cast {
    from: DType,
    map: Option<Linear>,
    to: DType,
    numbers: Vec<f64>,
    out: Vec<u8>,
}

impl Cast {
    pub(crate) fn new(from: DType, map: Option<Linear>, to: DType) -> Self {
        let [from, to] = [from, to].map(|dtype| part(dtype).with_order(ByteOrder::Little));
        Self { from, map, to, numbers: Vec::new(), out: Vec::new() }
    }

    /// The converted elements. Fails if a number does not fit the type.
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
            None => Err(Error::argument(format!("cannot convert {from} elements to {to}"))),
        }
    }
}

/// The Fortran type in which elements of `dtype` are written, and the number of written elements per
/// element. Unsigned integers and half-precision reals become the next wider kind, opaque bytes
/// integers of one byte, scaled numbers their physical values in real(8).
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
