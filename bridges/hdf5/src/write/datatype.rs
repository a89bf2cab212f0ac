//! Encoded datatype messages (section IV.A.2.d), versions 1 and 3.

use spile_core::dtype::{DType, Kind};
use spile_core::wire::ByteOrder;

/// Encoded bytes.
pub(crate) type Bytes = Vec<u8>;

/// The common fields: class and version, class bits, size.
fn prefix(class: u8, version: u8, bits: u32, size: u32) -> Bytes {
    let mut out = vec![version << 4 | class];
    out.extend_from_slice(&bits.to_le_bytes()[..3]);
    out.extend(size.to_le_bytes());
    out
}

/// A little-endian integer.
pub(crate) fn integer(size: u32, signed: bool) -> Bytes {
    ordered_integer(size, signed, ByteOrder::Little)
}

/// The class bit of the byte order.
fn order_bit(order: ByteOrder) -> u32 {
    u32::from(order == ByteOrder::Big)
}

fn ordered_integer(size: u32, signed: bool, order: ByteOrder) -> Bytes {
    let mut out = prefix(0, 1, order_bit(order) | if signed { 8 } else { 0 }, size);
    out.extend(0_u16.to_le_bytes());
    out.extend((8 * size as u16).to_le_bytes());
    out
}

/// An IEEE 754 number, or an x87 number in 16 bytes.
fn float(size: u32, x87: bool, order: ByteOrder) -> Bytes {
    // Sign position, exponent position and size, mantissa size, bias, precision.
    let (sign, exponent, exponent_size, mantissa, bias, precision) = match (size, x87) {
        (_, true) => (79, 64, 15, 64, 16383, 80),
        (2, _) => (15, 10, 5, 10, 15, 16),
        (4, _) => (31, 23, 8, 23, 127, 32),
        (8, _) => (63, 52, 11, 52, 1023, 64),
        _ => (127, 112, 15, 112, 16383_u32, 128_u16),
    };
    // x87 stores the leading bit of the mantissa.
    let implied = if x87 { 0 } else { 0x20 };
    let mut out = prefix(1, 1, (sign << 8) | implied | order_bit(order), size);
    out.extend(0_u16.to_le_bytes());
    out.extend(precision.to_le_bytes());
    out.extend([exponent, exponent_size, 0, mantissa]);
    out.extend(bias.to_le_bytes());
    out
}

/// A fixed string, NUL-padded, UTF-8.
pub(crate) fn text(size: u32) -> Bytes {
    prefix(3, 1, 1 | 1 << 4, size)
}

/// A fixed string, NUL-terminated, ASCII: used by the library for attributes of dimension scales, and with
/// size 1 for netCDF characters.
pub(crate) fn terminated_text(size: u32) -> Bytes {
    prefix(3, 1, 0, size)
}

/// A variable-length UTF-8 string.
pub(crate) fn variable_length_text() -> Bytes {
    let mut out = prefix(9, 1, 1 | 1 << 8, 16);
    out.extend(prefix(3, 1, 1 << 4, 1));
    out
}

/// An object reference.
pub(crate) fn reference() -> Bytes {
    prefix(7, 1, 0, 8)
}

/// A variable-length sequence of object references.
pub(crate) fn references() -> Bytes {
    let mut out = prefix(9, 1, 0, 16);
    out.extend(reference());
    out
}

/// Opaque bytes.
pub(crate) fn opaque(size: u32) -> Bytes {
    // The tag is empty.
    prefix(5, 1, 0, size)
}

/// A compound of members: name, offset, datatype.
pub(crate) fn compound(size: u32, members: &[(&str, u32, Bytes)]) -> Bytes {
    let mut out = prefix(6, 3, members.len() as u32, size);
    let width = crate::wire::bytes_for(u64::from(size));
    for (name, offset, kind) in members {
        out.extend(name.bytes());
        out.push(0);
        out.extend_from_slice(&offset.to_le_bytes()[..width]);
        out.extend_from_slice(kind);
    }
    out
}

/// The enumeration that h5py uses for `bool`.
pub(crate) fn boolean() -> Bytes {
    let mut out = prefix(8, 3, 2, 1);
    out.extend(integer(1, true));
    out.extend(b"FALSE\0TRUE\0");
    out.extend([0, 1]);
    out
}

/// A complex number as h5py writes it: `{r, i}`.
fn complex(size: u32, x87: bool, order: ByteOrder) -> Bytes {
    let half = size / 2;
    compound(size, &[("r", 0, float(half, x87, order)), ("i", half, float(half, x87, order))])
}

/// The datatype of an element type, in its byte order.
pub(crate) fn of(dtype: DType) -> Bytes {
    let (size, order) = (dtype.size() as u32, dtype.order());
    match dtype.kind() {
        Kind::Int => ordered_integer(size, true, order),
        Kind::Bool if size == 1 => boolean(),
        Kind::UInt | Kind::Bool => ordered_integer(size, false, order),
        Kind::Float => float(size, false, order),
        Kind::X87 => float(size, true, order),
        Kind::Complex => complex(size, false, order),
        Kind::ComplexX87 => complex(size, true, order),
        Kind::Text => text(size.max(1)),
        Kind::Opaque => opaque(size.max(1)),
    }
}
