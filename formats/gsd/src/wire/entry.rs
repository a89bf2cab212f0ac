//! An index entry in its five layouts.

use spile_core::error::{Error, Result};
use spile_core::wire::{ByteOrder, Wire};

use super::{Abi, Form, Type};

/// An index entry: a chunk and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The frame it belongs to.
    pub frame: u64,
    /// Rows.
    pub n: u64,
    /// Columns.
    pub m: u64,
    /// First byte of the data; 0 ends the index.
    pub location: i64,
    /// Number of the name.
    pub id: u32,
    /// Code of the element type.
    pub code: u8,
    /// Always 0.
    pub flags: u8,
    /// Time step, in 0.0.1.
    pub step: u64,
    /// The checksum of 0.0.1 is right.
    pub sound: bool,
}

impl Entry {
    /// The entry in `bytes`; an entry of 0.0.1 gets its number from `name_id`.
    pub fn parse(form: Form, bytes: &[u8], name_id: impl FnOnce(&[u8]) -> u32) -> Result<Self> {
        let Form::First(abi) = form else {
            let short = || Error::truncated("gsd-005", "an entry has 32 bytes");
            let words: &[u8; 32] = bytes.first_chunk().ok_or_else(short)?;
            return Ok(Self::later(form, words));
        };
        let mut wire = Wire::new(bytes, 0, ByteOrder::Little, "gsd-005");
        let frame = wire.u64()?;
        let id = name_id(first_name(wire.take(33)?));
        let code = wire.u8()?;
        wire.skip(match abi {
            Abi::X86_64 => 6,
            Abi::I386 => 2,
            Abi::Packed => 0,
        })?;
        let (n, m, step, location) = (wire.u64()?, wire.u64()?, wire.u64()?, wire.i64()?);
        let sum = checksum(code, n, m, step, location);
        let sound = wire.u64()? == sum;
        Ok(Self { frame, n, m, location, id, code, flags: 0, step, sound })
    }

    /// An entry of 2.0 or later.
    #[inline]
    pub(crate) fn listed(bytes: &[u8; 32]) -> Self {
        Self::later(Form::List, bytes)
    }

    /// An entry of 0.2 or later. Lookups pass many of them, so that this is as short as it can be.
    #[inline]
    fn later(form: Form, bytes: &[u8; 32]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let [a, b, c, d] = [words[0], words[1], words[2], words[3]].map(u64::from_le_bytes);
        // The last word: M, the number of the name, type, flags; in 0.2 in another order.
        let [m, id, code, flags] = if form == Form::Second {
            [d >> 16 & 0xff, d & 0xffff, d >> 24 & 0xff, 0]
        } else {
            [d & 0xffff_ffff, d >> 32 & 0xffff, d >> 48 & 0xff, d >> 56]
        };
        let (id, code, flags) = (id as u32, code as u8, flags as u8);
        Self { frame: a, n: b, m, location: c as i64, id, code, flags, step: 0, sound: true }
    }

    /// The bytes of the entry; `name` is needed in 0.0.1.
    pub fn encode(&self, form: Form, name: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.frame.to_le_bytes());
        let Form::First(abi) = form else {
            out.extend_from_slice(&self.n.to_le_bytes());
            out.extend_from_slice(&self.location.to_le_bytes());
            let id = (self.id as u16).to_le_bytes();
            if form == Form::Second {
                out.extend_from_slice(&id);
                out.extend_from_slice(&[self.m as u8, self.code, 0, 0, 0, 0]);
            } else {
                out.extend_from_slice(&(self.m as u32).to_le_bytes());
                out.extend_from_slice(&id);
                out.extend_from_slice(&[self.code, self.flags]);
            }
            return;
        };
        let mut field = [0; 33];
        let length = name.len().min(32);
        field[..length].copy_from_slice(&name[..length]);
        out.extend_from_slice(&field);
        out.push(self.code);
        let padding: &[u8] = match abi {
            Abi::X86_64 => &[0; 6],
            Abi::I386 => &[0; 2],
            Abi::Packed => &[],
        };
        out.extend_from_slice(padding);
        let sum = checksum(self.code, self.n, self.m, self.step, self.location);
        for value in [self.n, self.m, self.step, self.location as u64, sum] {
            out.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// The element type.
    pub fn kind(&self, form: Form) -> Option<Type> {
        Type::from_code(form, self.code)
    }

    /// Bytes of the data, or nothing if they fit no file.
    pub fn bytes(&self, form: Form) -> Option<u64> {
        self.kind(form)?.bytes(self.n, self.m)
    }
}

/// The name in an entry of 0.0.1: up to the first NUL.
pub(crate) fn first_name(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    &field[..end]
}

/// "type + N + M + step + location" (seed, Index block).
fn checksum(code: u8, n: u64, m: u64, step: u64, location: i64) -> u64 {
    u64::from(code).wrapping_add(n).wrapping_add(m).wrapping_add(step).wrapping_add(location as u64)
}
