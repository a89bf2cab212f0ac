//! Datatypes (section IV.A.2.d) and the element types of core they map to.

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::wire::ByteOrder;

use super::{Fields, bytes_for};

/// Largest nesting of datatypes.
const MAX_DEPTH: u32 = 16;

/// A datatype of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Datatype {
    pub(crate) size: u32,
    pub(crate) class: Class,
}

/// The class of a datatype and its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Integer {
        signed: bool,
        order: ByteOrder,
        /// Lowest bit and number of bits of the value.
        bits: (u16, u16),
    },
    Float {
        order: ByteOrder,
        /// IEEE or x87; `None` for other formats.
        format: Option<Kind>,
    },
    /// A time of the obsolete class 2.
    Time,
    String,
    Opaque,
    Compound(Vec<Member>),
    /// The reference type: object (0), region (1) or later ones.
    Reference(u8),
    Enum {
        base: Box<Datatype>,
        members: Vec<(String, Vec<u8>)>,
    },
    /// A sequence or string in the global heap.
    VariableLength {
        string: bool,
        base: Box<Datatype>,
    },
    Array {
        dims: Vec<u64>,
        base: Box<Datatype>,
    },
    /// The complex class of HDF5 2.
    Complex(Box<Datatype>),
}

/// A member of a compound datatype.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) offset: u64,
    pub(crate) datatype: Datatype,
}

/// Integers of which only some bits are the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reduced {
    /// Size in bytes, at most 8.
    size: usize,
    order: ByteOrder,
    signed: bool,
    offset: u32,
    /// Number of bits, at least 1.
    precision: u32,
}

impl Reduced {
    /// Replaces each integer by one that uses all bits.
    pub(crate) fn extend(self, bytes: &mut [u8]) {
        let unused = 64 - self.precision.clamp(1, 64);
        for field in bytes.chunks_exact_mut(self.size.clamp(1, 8)) {
            let join = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
            let value = match self.order {
                ByteOrder::Little => field.iter().rev().fold(0, join),
                ByteOrder::Big => field.iter().fold(0, join),
            };
            let value = value >> self.offset.min(63) << unused;
            let value = if self.signed { (value as i64 >> unused) as u64 } else { value >> unused };
            let size = field.len();
            match self.order {
                ByteOrder::Little => field.copy_from_slice(&value.to_le_bytes()[..size]),
                ByteOrder::Big => field.copy_from_slice(&value.to_be_bytes()[8 - size..]),
            }
        }
    }
}

/// A datatype as an element type of core.
pub(crate) struct Element {
    pub(crate) dtype: DType,
    /// Dimensions of an array datatype.
    pub(crate) dims: Vec<u64>,
    /// What the datatype is, if it is only available as opaque bytes.
    pub(crate) opaque: Option<&'static str>,
}

impl Datatype {
    /// Parses a datatype message.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self> {
        Self::nested(fields, 0)
    }

    fn nested(fields: &mut Fields<'_>, depth: u32) -> Result<Self> {
        if depth > MAX_DEPTH {
            return Err(fields.malformed("datatypes nested deeper than 16 levels"));
        }
        let at = fields.offset();
        let first = fields.u8()?;
        let (class, version) = (first & 15, first >> 4);
        if !(1..=5).contains(&version) {
            let message = format!("datatype version {version} is not supported");
            return Err(Error::unsupported("hdf5-007", message).at(at));
        }
        let bits = fields.uint(3)? as u32;
        let size = fields.u32()?;
        let order = if bits & 1 == 0 { ByteOrder::Little } else { ByteOrder::Big };
        let class = match class {
            0 | 4 => {
                let signed = class == 0 && bits & 8 != 0;
                Class::Integer { signed, order, bits: (fields.u16()?, fields.u16()?) }
            }
            1 => Class::Float { order, format: float(fields, bits, size)? },
            2 => {
                fields.skip(2)?;
                Class::Time
            }
            3 => Class::String,
            5 => {
                fields.skip((bits & 0xff).next_multiple_of(8) as usize)?;
                Class::Opaque
            }
            6 => {
                let count = bits & 0xffff;
                let mut members = Vec::new();
                for _ in 0..count {
                    members.push(member(fields, version, size, depth)?);
                }
                Class::Compound(members)
            }
            7 => Class::Reference((bits & 15) as u8),
            8 => enumeration(fields, version, (bits & 0xffff) as usize, depth)?,
            9 => {
                let base = Box::new(Self::nested(fields, depth + 1)?);
                Class::VariableLength { string: bits & 15 == 1, base }
            }
            10 => {
                let rank = fields.u8()?;
                if version < 3 {
                    fields.skip(3)?;
                }
                let dims = (0..rank).map(|_| fields.u32().map(u64::from));
                let dims = dims.collect::<Result<_>>()?;
                if version < 3 {
                    fields.skip(4 * usize::from(rank))?;
                }
                Class::Array { dims, base: Box::new(Self::nested(fields, depth + 1)?) }
            }
            11 => Class::Complex(Box::new(Self::nested(fields, depth + 1)?)),
            other => {
                let message = format!("datatype class {other} is not supported");
                return Err(Error::unsupported("hdf5-009", message).at(at));
            }
        };
        Ok(Self { size, class })
    }

    /// Approximate heap memory of the description, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        const BOX: u64 = size_of::<Datatype>() as u64 + 16;
        match &self.class {
            Class::Compound(members) => {
                let each = |m: &Member| m.name.len() as u64 + 2 * BOX + m.datatype.memory();
                members.iter().map(each).sum()
            }
            Class::Enum { base, members } => {
                let each =
                    |(name, value): &(String, Vec<u8>)| (name.len() + value.len()) as u64 + 96;
                BOX + base.memory() + members.iter().map(each).sum::<u64>()
            }
            Class::VariableLength { base, .. } | Class::Complex(base) => BOX + base.memory(),
            Class::Array { dims, base } => BOX + 8 * dims.len() as u64 + base.memory(),
            _ => 0,
        }
    }

    /// The element type of core. Datatypes that core lacks are opaque bytes. `at` is the file offset for
    /// errors.
    pub(crate) fn element(&self, at: u64) -> Result<Element> {
        let plain = |dtype| Element { dtype, dims: Vec::new(), opaque: None };
        let opaque = |what| Element {
            dtype: DType::opaque(self.size),
            dims: Vec::new(),
            opaque: Some(what),
        };
        let known = |kind, order| DType::new(kind, self.size, order);
        Ok(match &self.class {
            Class::Integer { signed, order, .. } if self.reduced().is_none() => {
                let kind = if *signed { Kind::Int } else { Kind::UInt };
                known(kind, *order).map_or_else(|| opaque("integer of an unsupported size"), plain)
            }
            Class::Integer { .. } => opaque("integer with reduced precision"),
            Class::Float { order, format } => {
                let found = format.and_then(|kind| known(kind, *order));
                found.map_or_else(|| opaque("non-IEEE floating-point number"), plain)
            }
            Class::String => plain(DType::text(self.size)),
            Class::Opaque => plain(DType::opaque(self.size)),
            Class::Time => opaque("time datatype"),
            Class::Reference(_) => opaque("reference"),
            Class::Enum { base, members } => {
                if base.is_bool(members) {
                    plain(known(Kind::Bool, ByteOrder::Little).unwrap_or(DType::U8))
                } else {
                    base.element(at)?
                }
            }
            Class::VariableLength { .. } => opaque("variable-length data"),
            Class::Compound(members) => {
                self.complex_pair(members).map_or_else(|| opaque("compound datatype"), plain)
            }
            Class::Complex(base) => match &base.class {
                Class::Float { order, format } => {
                    let found = format.and_then(|format| self.complex(format, *order));
                    found.map_or_else(|| opaque("non-IEEE complex number"), plain)
                }
                _ => opaque("non-IEEE complex number"),
            },
            Class::Array { dims, base } => {
                let mut element = base.element(at)?;
                let count = dims.iter().try_fold(u64::from(base.size), |n, d| n.checked_mul(*d));
                if count != Some(u64::from(self.size)) || dims.len() > 32 {
                    let message = "array datatype whose size does not match its elements";
                    return Err(Error::malformed("hdf5-008", message).at(at));
                }
                let mut all = dims.clone();
                all.append(&mut element.dims);
                Element { dims: all, ..element }
            }
        })
    }

    /// How values are extracted from integers that do not use all of their bits, also in arrays and
    /// enumerations; `None` for all other types.
    pub(crate) fn reduced(&self) -> Option<Reduced> {
        match &self.class {
            Class::Integer { signed, order, bits: (offset, precision) } => {
                let (offset, precision) = (u32::from(*offset), u32::from(*precision));
                let reduced = Reduced {
                    size: self.size as usize,
                    order: *order,
                    signed: *signed,
                    offset,
                    precision,
                };
                (offset != 0 || u64::from(precision) != 8 * u64::from(self.size)).then_some(reduced)
            }
            Class::Array { base, .. } | Class::Enum { base, .. } => base.reduced(),
            _ => None,
        }
    }

    /// The type with full precision that [`Reduced::extend`] gives; this type if its integers are complete. `None`
    /// if there is no such type.
    pub(crate) fn extended(&self) -> Option<Self> {
        let class = match &self.class {
            Class::Integer { signed, order, .. } => {
                let size = u16::try_from(self.size).ok().filter(|n| matches!(n, 1 | 2 | 4 | 8))?;
                if let Some(Reduced { offset, precision, .. }) = self.reduced()
                    && (precision == 0 || offset + precision > 8 * u32::from(size))
                {
                    return None;
                }
                Class::Integer { signed: *signed, order: *order, bits: (0, 8 * size) }
            }
            Class::Array { dims, base } => {
                Class::Array { dims: dims.clone(), base: Box::new(base.extended()?) }
            }
            Class::Enum { base, .. } => return base.extended(),
            other => other.clone(),
        };
        Some(Self { size: self.size, class })
    }

    /// Whether the enumeration is h5py's `bool`.
    fn is_bool(&self, members: &[(String, Vec<u8>)]) -> bool {
        let is = |k: usize, name: &str, value: u8| {
            members.get(k).is_some_and(|(n, v)| n == name && v[..] == [value])
        };
        self.size == 1 && members.len() == 2 && is(0, "FALSE", 0) && is(1, "TRUE", 1)
    }

    fn complex(&self, format: Kind, order: ByteOrder) -> Option<DType> {
        let kind = match format {
            Kind::Float => Kind::Complex,
            Kind::X87 => Kind::ComplexX87,
            _ => return None,
        };
        DType::new(kind, self.size, order)
    }

    /// A complex type for a compound of two floats of the same type: h5py's `r` and `i`, and the names
    /// that other programs use.
    fn complex_pair(&self, members: &[Member]) -> Option<DType> {
        let [re, im] = members else { return None };
        let name = |m: &Member| m.name.to_lowercase();
        let names = [("r", "i"), ("re", "im"), ("real", "imag"), ("real", "imaginary")];
        let named = names.iter().any(|(r, i)| name(re) == *r && name(im) == *i);
        let halves = re.datatype == im.datatype
            && re.offset == 0
            && im.offset == u64::from(re.datatype.size);
        let filled = u64::from(self.size) == 2 * u64::from(re.datatype.size);
        let Class::Float { order, format: Some(format) } = re.datatype.class else { return None };
        (named && halves && filled).then(|| self.complex(format, order)).flatten()
    }
}

fn member(fields: &mut Fields<'_>, version: u8, size: u32, depth: u32) -> Result<Member> {
    let name = padded_name(fields, version < 3)?;
    let offset = if version < 3 {
        u64::from(fields.u32()?)
    } else {
        fields.uint(bytes_for(u64::from(size)))?
    };
    let mut dims: Vec<u64> = Vec::new();
    if version == 1 {
        let rank = fields.u8()?;
        fields.skip(3 + 4 + 4)?;
        let lengths: Vec<u32> = (0..4).map(|_| fields.u32()).collect::<Result<_>>()?;
        dims.extend(lengths.iter().take(usize::from(rank)).map(|n| u64::from(*n)));
    }
    let base = Datatype::nested(fields, depth + 1)?;
    let datatype = if dims.is_empty() {
        base
    } else {
        let count = dims.iter().try_fold(u64::from(base.size), |n, d| n.checked_mul(*d));
        let size = count.and_then(|n| u32::try_from(n).ok());
        let size = size.ok_or_else(|| fields.malformed("member size exceeds 4 GiB"))?;
        Datatype { size, class: Class::Array { dims, base: Box::new(base) } }
    };
    if offset.checked_add(u64::from(datatype.size)).is_none_or(|end| end > u64::from(size)) {
        return Err(fields.malformed(format!("member \"{name}\" exceeds its compound")));
    }
    Ok(Member { name, offset, datatype })
}

fn enumeration(fields: &mut Fields<'_>, version: u8, count: usize, depth: u32) -> Result<Class> {
    let base = Datatype::nested(fields, depth + 1)?;
    let names: Vec<String> =
        (0..count).map(|_| padded_name(fields, version < 3)).collect::<Result<_>>()?;
    let mut members = Vec::new();
    for name in names {
        members.push((name, fields.take(base.size as usize)?.to_vec()));
    }
    Ok(Class::Enum { base: Box::new(base), members })
}

/// A NUL-terminated name; old versions pad it to a multiple of eight bytes.
fn padded_name(fields: &mut Fields<'_>, padded: bool) -> Result<String> {
    let mut name = Vec::new();
    loop {
        match fields.u8()? {
            0 => break,
            byte => name.push(byte),
        }
    }
    if padded {
        fields.skip((name.len() + 1).next_multiple_of(8) - name.len() - 1)?;
    }
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// The floating-point format, from the positions of sign, exponent and mantissa; `None` if it is
/// neither IEEE nor x87.
fn float(fields: &mut Fields<'_>, bits: u32, size: u32) -> Result<Option<Kind>> {
    let (offset, precision) = (fields.u16()?, fields.u16()?);
    let parts: [u8; 4] = fields.array()?;
    let bias = fields.u32()?;
    let sign = (bits >> 8 & 0xff) as u8;
    let implied = bits >> 4 & 3 == 2;
    // VAX byte order sets both bits.
    let vax = bits & 0x40 != 0;
    let [exponent, exponent_size, mantissa, mantissa_size] = parts;
    let parts = (size, precision, sign, exponent, exponent_size, mantissa, mantissa_size, bias);
    let ieee = match parts {
        (2, 16, 15, 10, 5, 0, 10, 15)
        | (4, 32, 31, 23, 8, 0, 23, 127)
        | (8, 64, 63, 52, 11, 0, 52, 1023)
        | (16, 128, 127, 112, 15, 0, 112, 16383) => implied,
        _ => false,
    };
    let x87 = parts == (16, 80, 79, 64, 15, 0, 64, 16383) && !implied;
    Ok(match (offset, vax) {
        (0, false) if ieee => Some(Kind::Float),
        (0, false) if x87 => Some(Kind::X87),
        _ => None,
    })
}
