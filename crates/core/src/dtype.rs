//! Element types.

use std::fmt;
use std::str::FromStr;

use crate::{ByteOrder, Error, Result};

/// Kind of an element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Two's complement integer of 1, 2, 4 or 8 bytes.
    Int,
    /// Unsigned integer of 1, 2, 4 or 8 bytes.
    UInt,
    /// IEEE 754 binary floating-point number of 2, 4, 8 or 16 bytes.
    Float,
    /// x87 80-bit extended precision number, padded to 16 bytes.
    X87,
    /// Two `Float`s, real part first; the size is that of both.
    Complex,
    /// Two `X87`s, real part first; the size is that of both.
    ComplexX87,
    /// Boolean of 1, 2, 4 or 8 bytes: false if all bytes are 0.
    Bool,
    /// Text field of fixed size, padded with NUL or spaces.
    Text,
    /// Uninterpreted bytes.
    Opaque,
}

/// Kind, size in bytes and byte order of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DType {
    kind: Kind,
    size: u32,
    order: ByteOrder,
}

impl DType {
    /// The type of this kind and size in bytes; `None` if there is none.
    pub fn new(kind: Kind, size: u32, order: ByteOrder) -> Option<Self> {
        let valid = match kind {
            Kind::Int | Kind::UInt | Kind::Bool => matches!(size, 1 | 2 | 4 | 8),
            Kind::Float => matches!(size, 2 | 4 | 8 | 16),
            Kind::Complex => matches!(size, 4 | 8 | 16 | 32),
            Kind::X87 => size == 16,
            Kind::ComplexX87 => size == 32,
            // Text of size 0 exists in Fortran.
            Kind::Text | Kind::Opaque => true,
        };
        valid.then_some(Self { kind, size, order })
    }

    const fn fixed(kind: Kind, size: u32) -> Self {
        Self { kind, size, order: ByteOrder::Little }
    }

    /// `uint8`.
    pub const U8: Self = Self::fixed(Kind::UInt, 1);
    /// `uint16`, little-endian.
    pub const U16: Self = Self::fixed(Kind::UInt, 2);
    /// `uint32`, little-endian.
    pub const U32: Self = Self::fixed(Kind::UInt, 4);
    /// `uint64`, little-endian.
    pub const U64: Self = Self::fixed(Kind::UInt, 8);
    /// `int8`.
    pub const I8: Self = Self::fixed(Kind::Int, 1);
    /// `int16`, little-endian.
    pub const I16: Self = Self::fixed(Kind::Int, 2);
    /// `int32`, little-endian.
    pub const I32: Self = Self::fixed(Kind::Int, 4);
    /// `int64`, little-endian.
    pub const I64: Self = Self::fixed(Kind::Int, 8);
    /// `float32`, little-endian.
    pub const F32: Self = Self::fixed(Kind::Float, 4);
    /// `float64`, little-endian.
    pub const F64: Self = Self::fixed(Kind::Float, 8);

    /// Text of `size` bytes.
    pub const fn text(size: u32) -> Self {
        Self::fixed(Kind::Text, size)
    }

    /// `size` uninterpreted bytes.
    pub const fn opaque(size: u32) -> Self {
        Self::fixed(Kind::Opaque, size)
    }

    /// Kind.
    pub const fn kind(self) -> Kind {
        self.kind
    }

    /// Size of one element in bytes.
    pub const fn size(self) -> usize {
        self.size as usize
    }

    /// Byte order; irrelevant if [`DType::word`] is 1.
    pub const fn order(self) -> ByteOrder {
        self.order
    }

    /// Returns this type in another byte order.
    pub const fn with_order(self, order: ByteOrder) -> Self {
        Self { order, ..self }
    }

    /// Size in bytes of the unit of byte swapping: half of a complex number, one byte of text.
    pub const fn word(self) -> usize {
        match self.kind {
            Kind::Int | Kind::UInt | Kind::Float | Kind::X87 | Kind::Bool => self.size as usize,
            Kind::Complex | Kind::ComplexX87 => self.size as usize / 2,
            Kind::Text | Kind::Opaque => 1,
        }
    }

    /// Number of significant bytes of a word: 10 for x87 numbers, whose padding is undefined.
    pub const fn used(self) -> usize {
        match self.kind {
            Kind::X87 | Kind::ComplexX87 if self.word() > 10 => 10,
            _ => self.word(),
        }
    }

    /// Whether elements must be byte-swapped to be in `order`.
    pub fn needs_swap(self, order: ByteOrder) -> bool {
        self.word() > 1 && self.order != order
    }

    /// The NumPy type string, for example `<f8`; `None` if NumPy has no such type.
    pub fn numpy(self) -> Option<String> {
        let letter = match (self.kind, self.size) {
            (Kind::Int, _) => 'i',
            (Kind::UInt, _) => 'u',
            // NumPy's 16-byte float is the platform's long double: x87 on x86.
            (Kind::X87, _) | (Kind::Float, 2 | 4 | 8) => 'f',
            (Kind::ComplexX87, _) | (Kind::Complex, 8 | 16) => 'c',
            (Kind::Bool, 1) => 'b',
            (Kind::Text, _) => 'S',
            (Kind::Opaque, _) => 'V',
            _ => return None,
        };
        let order = match self.order {
            _ if self.word() <= 1 => '|',
            ByteOrder::Little => '<',
            ByteOrder::Big => '>',
        };
        Some(format!("{order}{letter}{}", self.size))
    }

    /// The type with the NumPy type string `descr`; `None` if it is not supported.
    pub fn from_numpy(descr: &str) -> Option<Self> {
        let (order, rest) = match descr.split_at_checked(1)? {
            ("<" | "|" | "=", rest) => (ByteOrder::Little, rest),
            (">", rest) => (ByteOrder::Big, rest),
            _ => (ByteOrder::Little, descr),
        };
        let (letter, size) = rest.split_at_checked(1)?;
        let size: u32 = size.parse().ok()?;
        let kind = match (letter, size) {
            ("i", _) => Kind::Int,
            ("u", _) => Kind::UInt,
            ("f", 16) => Kind::X87,
            ("c", 32) => Kind::ComplexX87,
            ("f", _) => Kind::Float,
            ("c", _) => Kind::Complex,
            ("b", 1) => Kind::Bool,
            ("S" | "a", _) => Kind::Text,
            ("V", _) => Kind::Opaque,
            _ => return None,
        };
        Self::new(kind, size, order)
    }

    /// Whether the elements are real numbers.
    pub const fn is_real(self) -> bool {
        matches!(self.kind, Kind::Int | Kind::UInt | Kind::Float | Kind::X87)
    }

    /// Whether the elements are integers.
    pub const fn is_integer(self) -> bool {
        matches!(self.kind, Kind::Int | Kind::UInt)
    }
}

/// `int16`, `float64`, `complex128`, `bool4`, `text[32]`, with `-be` for big-endian ones.
impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.size as u64 * 8;
        match self.kind {
            Kind::Int => write!(f, "int{bits}")?,
            Kind::UInt => write!(f, "uint{bits}")?,
            Kind::Float => write!(f, "float{bits}")?,
            Kind::X87 => f.write_str("x87")?,
            Kind::Complex => write!(f, "complex{bits}")?,
            Kind::ComplexX87 => f.write_str("complex-x87")?,
            Kind::Bool => write!(f, "bool{bits}")?,
            Kind::Text => write!(f, "text[{}]", self.size)?,
            Kind::Opaque => write!(f, "opaque[{}]", self.size)?,
        }
        if self.word() > 1 && self.order == ByteOrder::Big {
            f.write_str("-be")?;
        }
        Ok(())
    }
}

impl FromStr for DType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::argument(format!("unknown element type \"{text}\""))
                .hint("examples: uint8, int16, float32, float64-be, complex128, text[32]")
        };
        let (name, order) = match text.strip_suffix("-be") {
            Some(name) => (name, ByteOrder::Big),
            None => (text, ByteOrder::Little),
        };
        let fixed = |kind, size| Self::new(kind, size, order).ok_or_else(bad);
        match name {
            "x87" => return fixed(Kind::X87, 16),
            "complex-x87" => return fixed(Kind::ComplexX87, 32),
            _ => {}
        }
        if let Some((prefix, length)) = name.strip_suffix(']').and_then(|n| n.split_once('[')) {
            let size = length.parse().map_err(|_| bad())?;
            return match prefix {
                "text" => fixed(Kind::Text, size),
                "opaque" => fixed(Kind::Opaque, size),
                _ => Err(bad()),
            };
        }
        let digits = name.find(|c: char| c.is_ascii_digit()).ok_or_else(bad)?;
        let (prefix, bits) = name.split_at(digits);
        let bits: u32 = bits.parse().map_err(|_| bad())?;
        if bits == 0 || !bits.is_multiple_of(8) {
            return Err(bad());
        }
        let kind = match prefix {
            "int" => Kind::Int,
            "uint" => Kind::UInt,
            "float" => Kind::Float,
            "complex" => Kind::Complex,
            "bool" => Kind::Bool,
            _ => return Err(bad()),
        };
        fixed(kind, bits / 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_as_the_same_type() {
        let mut seen = 0;
        for kind in [
            Kind::Int,
            Kind::UInt,
            Kind::Float,
            Kind::X87,
            Kind::Complex,
            Kind::ComplexX87,
            Kind::Bool,
            Kind::Text,
            Kind::Opaque,
        ] {
            for size in 0..=33 {
                for order in [ByteOrder::Little, ByteOrder::Big] {
                    let Some(dtype) = DType::new(kind, size, order) else { continue };
                    let back: DType = dtype.to_string().parse().unwrap();
                    let same_order = dtype.word() == 1 || back == dtype;
                    assert!(same_order && back.kind() == kind && back.size() == size as usize);
                    if let Some(descr) = dtype.numpy() {
                        let back = DType::from_numpy(&descr).unwrap();
                        assert_eq!((back.kind(), back.to_string()), (kind, dtype.to_string()));
                    }
                    seen += 1;
                }
            }
        }
        assert!(seen > 100);
        for bad in ["", "int", "int7", "int128", "floaty", "text[x]", "float8"] {
            assert!(bad.parse::<DType>().is_err(), "{bad}");
        }
    }
    #[test]
    fn numpy_type_strings_are_parsed() {
        for (descr, name) in [
            ("|u1", "uint8"),
            ("<i8", "int64"),
            (">f4", "float32-be"),
            ("<c16", "complex128"),
            ("|b1", "bool8"),
            ("<f2", "float16"),
            ("|S12", "text[12]"),
            ("<f16", "x87"),
        ] {
            let dtype = DType::from_numpy(descr).unwrap();
            assert_eq!((dtype.to_string(), dtype.numpy().as_deref()), (name.into(), Some(descr)));
        }
        for bad in ["", "<", "O", "<U4", "<M8[ns]", "é8", "<f3"] {
            assert!(DType::from_numpy(bad).is_none(), "{bad}");
        }
        // Not available in NumPy.
        assert!(
            ["float128", "bool32"].iter().all(|t| t.parse::<DType>().unwrap().numpy().is_none())
        );
    }
}
