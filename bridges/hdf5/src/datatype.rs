//! Element types (section IV.A.2.d), and which of ours they are.

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::wire::ByteOrder;

use crate::wire::Fields;

/// Types inside types; no program makes so many.
const DEEPEST: u32 = 16;

/// A type as the file tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Type {
    pub(crate) size: u32,
    pub(crate) class: Class,
}

/// What the bytes of an element are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Integer {
        signed: bool,
        order: ByteOrder,
        whole: bool,
    },
    Float {
        order: ByteOrder,
        form: Option<Kind>,
    },
    Text,
    Opaque,
    Compound(Vec<Member>),
    /// Object (0), region (1) or newer references.
    Reference(u8),
    Enum {
        base: Box<Type>,
        members: Vec<(String, Vec<u8>)>,
    },
    /// Elements of different lengths in a heap.
    Many {
        text: bool,
        base: Box<Type>,
    },
    Array {
        dims: Vec<u64>,
        base: Box<Type>,
    },
    /// Two numbers, as the newest libraries say it.
    Complex(Box<Type>),
}

/// A field of a compound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) offset: u64,
    pub(crate) kind: Type,
}

/// Our word for a type: the element, further dimensions, and whether something is lost by it.
pub(crate) struct Element {
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<u64>,
    /// Only bytes are left of a type that we have no word for.
    pub(crate) bare: Option<&'static str>,
}

impl Type {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self> {
        Self::nested(fields, 0)
    }

    fn nested(fields: &mut Fields<'_>, depth: u32) -> Result<Self> {
        if depth > DEEPEST {
            return Err(fields.broken("types are nested too deeply"));
        }
        let at = fields.wire.offset();
        let first = fields.u8()?;
        let (class, version) = (first & 15, first >> 4);
        if !(1..=5).contains(&version) {
            let message = format!("a datatype of version {version}");
            return Err(Error::unsupported("hdf5-007", message).at(at));
        }
        let bits = fields.uint(3)? as u32;
        let size = fields.u32()?;
        let order = if bits & 1 == 0 { ByteOrder::Little } else { ByteOrder::Big };
        let whole = |offset: u16, precision: u16| {
            offset == 0 && u64::from(precision) == 8 * u64::from(size)
        };
        let class = match class {
            0 | 4 => {
                let whole = whole(fields.u16()?, fields.u16()?);
                Class::Integer { signed: class == 0 && bits & 8 != 0, order, whole }
            }
            1 => Class::Float { order, form: float(fields, bits, size)? },
            2 => {
                fields.skip(2)?;
                Class::Opaque
            }
            3 => Class::Text,
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
                Class::Many { text: bits & 15 == 1, base }
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
                let message = format!("a datatype of class {other}");
                return Err(Error::unsupported("hdf5-009", message).at(at));
            }
        };
        Ok(Self { size, class })
    }

    /// Our word for it. `at` is where the file says it.
    pub(crate) fn element(&self, at: u64) -> Result<Element> {
        let plain = |dtype| Element { dtype, dims: Vec::new(), bare: None };
        let bare =
            |why| Element { dtype: DType::opaque(self.size), dims: Vec::new(), bare: Some(why) };
        let known = |kind, order| DType::new(kind, self.size, order);
        Ok(match &self.class {
            Class::Integer { signed, order, whole: true } => {
                let kind = if *signed { Kind::Int } else { Kind::UInt };
                known(kind, *order).map_or_else(|| bare("an integer of unusual size"), plain)
            }
            Class::Integer { .. } => bare("an integer that does not use all of its bits"),
            Class::Float { order, form } => {
                let found = form.and_then(|kind| known(kind, *order));
                found.map_or_else(|| bare("a number in an unusual form"), plain)
            }
            Class::Text => plain(DType::text(self.size)),
            Class::Opaque => plain(DType::opaque(self.size)),
            Class::Reference(_) => bare("references"),
            Class::Enum { base, members } => {
                if base.is_bool(members) {
                    plain(known(Kind::Bool, ByteOrder::Little).unwrap_or(DType::U8))
                } else {
                    base.element(at)?
                }
            }
            Class::Many { .. } => bare("elements of different lengths"),
            Class::Compound(members) => {
                self.pair(members).map_or_else(|| bare("records of several fields"), plain)
            }
            Class::Complex(base) => match &base.class {
                Class::Float { order, form } => {
                    let found = form.and_then(|form| self.complex(form, *order));
                    found.map_or_else(|| bare("a complex number in an unusual form"), plain)
                }
                _ => bare("a complex number in an unusual form"),
            },
            Class::Array { dims, base } => {
                let mut element = base.element(at)?;
                let count = dims.iter().try_fold(u64::from(base.size), |n, d| n.checked_mul(*d));
                if count != Some(u64::from(self.size)) || dims.len() > 32 {
                    let message = "an array type whose size is not that of its elements";
                    return Err(Error::malformed("hdf5-009", message).at(at));
                }
                let mut all = dims.clone();
                all.append(&mut element.dims);
                Element { dims: all, ..element }
            }
        })
    }

    /// The enumeration that h5py makes of `bool`.
    fn is_bool(&self, members: &[(String, Vec<u8>)]) -> bool {
        let is = |k: usize, name: &str, value: u8| {
            members.get(k).is_some_and(|(n, v)| n == name && v[..] == [value])
        };
        self.size == 1 && members.len() == 2 && is(0, "FALSE", 0) && is(1, "TRUE", 1)
    }

    fn complex(&self, form: Kind, order: ByteOrder) -> Option<DType> {
        let kind = match form {
            Kind::Float => Kind::Complex,
            Kind::X87 => Kind::ComplexX87,
            _ => return None,
        };
        DType::new(kind, self.size, order)
    }

    /// Two real numbers of the same type one after the other are a complex one: h5py's `r` and `i`,
    /// and what others call them.
    fn pair(&self, members: &[Member]) -> Option<DType> {
        let [re, im] = members else { return None };
        let name = |m: &Member| m.name.to_lowercase();
        let names = [("r", "i"), ("re", "im"), ("real", "imag"), ("real", "imaginary")];
        let named = names.iter().any(|(r, i)| name(re) == *r && name(im) == *i);
        let halves = re.kind == im.kind && re.offset == 0 && im.offset == u64::from(re.kind.size);
        let filled = u64::from(self.size) == 2 * u64::from(re.kind.size);
        let Class::Float { order, form: Some(form) } = re.kind.class else { return None };
        (named && halves && filled).then(|| self.complex(form, order)).flatten()
    }
}

fn member(fields: &mut Fields<'_>, version: u8, size: u32, depth: u32) -> Result<Member> {
    let name = padded_name(fields, version < 3)?;
    let offset = if version < 3 {
        u64::from(fields.u32()?)
    } else {
        fields.uint(crate::wire::bytes_for(u64::from(size)))?
    };
    let mut dims: Vec<u64> = Vec::new();
    if version == 1 {
        let rank = fields.u8()?;
        fields.skip(3 + 4 + 4)?;
        let lengths: Vec<u32> = (0..4).map(|_| fields.u32()).collect::<Result<_>>()?;
        dims.extend(lengths.iter().take(usize::from(rank)).map(|n| u64::from(*n)));
    }
    let base = Type::nested(fields, depth + 1)?;
    let kind = if dims.is_empty() {
        base
    } else {
        let count = dims.iter().try_fold(u64::from(base.size), |n, d| n.checked_mul(*d));
        let size = count.and_then(|n| u32::try_from(n).ok());
        let size = size.ok_or_else(|| fields.broken("a field that is larger than any record"))?;
        Type { size, class: Class::Array { dims, base: Box::new(base) } }
    };
    if offset.checked_add(u64::from(kind.size)).is_none_or(|end| end > u64::from(size)) {
        return Err(fields.broken(format!("field \"{name}\" reaches out of its record")));
    }
    Ok(Member { name, offset, kind })
}

fn enumeration(fields: &mut Fields<'_>, version: u8, count: usize, depth: u32) -> Result<Class> {
    let base = Type::nested(fields, depth + 1)?;
    let names: Vec<String> =
        (0..count).map(|_| padded_name(fields, version < 3)).collect::<Result<_>>()?;
    let mut members = Vec::new();
    for name in names {
        members.push((name, fields.take(base.size as usize)?.to_vec()));
    }
    Ok(Class::Enum { base: Box::new(base), members })
}

/// A name up to its NUL, in old versions filled up to a multiple of eight bytes.
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

/// Which of our kinds a floating-point number is, by where its parts lie.
fn float(fields: &mut Fields<'_>, bits: u32, size: u32) -> Result<Option<Kind>> {
    let (offset, precision) = (fields.u16()?, fields.u16()?);
    let parts: [u8; 4] = fields.wire.array()?;
    let bias = fields.u32()?;
    let sign = (bits >> 8 & 0xff) as u8;
    let implied = bits >> 4 & 3 == 2;
    // A VAX has both bits of the byte order set.
    let vax = bits & 0x40 != 0;
    let [exponent, exponent_size, mantissa, mantissa_size] = parts;
    let form = (size, precision, sign, exponent, exponent_size, mantissa, mantissa_size, bias);
    let ieee = match form {
        (2, 16, 15, 10, 5, 0, 10, 15)
        | (4, 32, 31, 23, 8, 0, 23, 127)
        | (8, 64, 63, 52, 11, 0, 52, 1023)
        | (16, 128, 127, 112, 15, 0, 112, 16383) => implied,
        _ => false,
    };
    let x87 = form == (16, 80, 79, 64, 15, 0, 64, 16383) && !implied;
    Ok(match (offset, vax) {
        (0, false) if ieee => Some(Kind::Float),
        (0, false) if x87 => Some(Kind::X87),
        _ => None,
    })
}
