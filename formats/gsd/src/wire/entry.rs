//! Index entries in all layouts.

use spile_core::{ByteOrder, Error, Result, Wire};

use super::{Abi, Form, Type};

/// An index entry: name, shape, type and location of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Frame number.
    pub frame: u64,
    /// Number of rows.
    pub n: u64,
    /// Number of columns.
    pub m: u64,
    /// Offset of the data in the file; 0 ends the index.
    pub location: i64,
    /// Id of the name.
    pub id: u32,
    /// Element type code.
    pub code: u8,
    /// Always 0.
    pub flags: u8,
    /// Time step in 0.0.1, else 0.
    pub step: u64,
    /// The checksum of 0.0.1 matches; true in later versions.
    pub checksum_ok: bool,
}

impl Entry {
    /// Decodes an entry. `name_id` returns the id of the name in an entry of 0.0.1. Fails if `bytes` is
    /// too short.
    pub fn parse(form: Form, bytes: &[u8], name_id: impl FnOnce(&[u8]) -> u32) -> Result<Self> {
        let Form::V0_0_1(abi) = form else {
            let short = || Error::truncated("gsd-005", "index entry shorter than 32 bytes");
            let words: &[u8; 32] = bytes.first_chunk().ok_or_else(short)?;
            return Ok(Self::later(form, words));
        };
        let mut wire = Wire::new(bytes, 0, ByteOrder::Little, "gsd-005");
        let frame = wire.u64()?;
        let id = name_id(inline_name(wire.take(33)?));
        let code = wire.u8()?;
        wire.skip(match abi {
            Abi::X86_64 => 6,
            Abi::I386 => 2,
            Abi::Packed => 0,
        })?;
        let (n, m, step, location) = (wire.u64()?, wire.u64()?, wire.u64()?, wire.i64()?);
        let sum = checksum(code, n, m, step, location);
        let checksum_ok = wire.u64()? == sum;
        Ok(Self { frame, n, m, location, id, code, flags: 0, step, checksum_ok })
    }

    /// Decodes an entry of 0.2 or later.
    #[inline]
    fn later(form: Form, bytes: &[u8; 32]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let [a, b, c, d] = [words[0], words[1], words[2], words[3]].map(u64::from_le_bytes);
        // The last 8 bytes are M, name id, type, flags; in a different order in 0.2.
        let [m, id, code, flags] = if form == Form::V0_2 {
            [d >> 16 & 0xff, d & 0xffff, d >> 24 & 0xff, 0]
        } else {
            [d & 0xffff_ffff, d >> 32 & 0xffff, d >> 48 & 0xff, d >> 56]
        };
        let (id, code, flags) = (id as u32, code as u8, flags as u8);
        Self { frame: a, n: b, m, location: c as i64, id, code, flags, step: 0, checksum_ok: true }
    }

    /// Appends the encoded entry to `out`; `name` is used in 0.0.1 only.
    pub fn encode(&self, form: Form, name: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.frame.to_le_bytes());
        let Form::V0_0_1(abi) = form else {
            out.extend_from_slice(&self.n.to_le_bytes());
            out.extend_from_slice(&self.location.to_le_bytes());
            let id = (self.id as u16).to_le_bytes();
            if form == Form::V0_2 {
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

    /// The element type; none if the code is not defined.
    pub fn kind(&self, form: Form) -> Option<Type> {
        Type::from_code(form, self.code)
    }

    /// Size of the data in bytes; none if type or size are invalid.
    pub fn bytes(&self, form: Form) -> Option<u64> {
        self.kind(form)?.bytes(self.n, self.m)
    }
}

/// The name in the name field of an entry of 0.0.1, which ends at the first NUL.
pub(crate) fn inline_name(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    &field[..end]
}

/// "type + N + M + step + location" (design text, Index block).
fn checksum(code: u8, n: u64, m: u64, step: u64, location: i64) -> u64 {
    u64::from(code).wrapping_add(n).wrapping_add(m).wrapping_add(step).wrapping_add(location as u64)
}
