//! The ground that everything stands on: the superblock, addresses, the budget, checksums.
//!
//! Sections named here and in the other files are those of the HDF5 File Format Specification 3.0.

use std::cell::{Cell, RefCell};

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::source::Source;
use spile_core::wire::{ByteOrder, Wire, fetch};

/// What every HDF5 file begins with, at byte 0, 512, 1024, 2048 and so on.
pub(crate) const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// What a small structure costs at least: without this, a circle of empty ones would be free.
const LEAST: u64 = 64;

/// Bytes of addresses and of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) offset: usize,
    pub(crate) length: usize,
}

/// A part of the file that has been read as metadata.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) name: &'static str,
}

/// The file, how its addresses are written, and what reading it has cost so far.
pub(crate) struct Ground {
    pub(crate) source: Source,
    pub(crate) limits: Limits,
    pub(crate) sizes: Sizes,
    /// Byte of the file that has address 0.
    pub(crate) base: u64,
    pub(crate) superblock: u8,
    pub(crate) root: u64,
    /// The length that the superblock tells.
    pub(crate) end: u64,
    spent: Cell<u64>,
    seen: RefCell<Vec<Seen>>,
}

impl Ground {
    /// Finds and reads the superblock (section II.A).
    pub(crate) fn new(source: &Source, limits: &Limits) -> Result<Self> {
        let base = find(source)?;
        let mut ground = Self {
            source: source.clone(),
            limits: *limits,
            sizes: Sizes { offset: 8, length: 8 },
            base,
            superblock: 0,
            root: 0,
            end: 0,
            spent: Cell::new(0),
            seen: RefCell::new(Vec::new()),
        };
        ground.charge(LEAST)?;
        let bytes = fetch(source, base, 112)?;
        ground.superblock(&bytes)?;
        Ok(ground)
    }

    fn superblock(&mut self, bytes: &[u8]) -> Result<()> {
        let mut wire = Wire::new(bytes, self.base, ByteOrder::Little, "hdf5-002");
        wire.skip(SIGNATURE.len())?;
        let version = wire.u8()?;
        self.superblock = version;
        let sizes = |offset: u8, length: u8| {
            let known = |n| matches!(n, 2 | 4 | 8);
            let sizes = Sizes { offset: usize::from(offset), length: usize::from(length) };
            (known(offset) && known(length)).then_some(sizes).ok_or_else(|| {
                let message = format!("addresses of {offset} and lengths of {length} bytes");
                Error::malformed("hdf5-002", message).at(self.base + 8)
            })
        };
        match version {
            0 | 1 => {
                wire.skip(4)?;
                self.sizes = sizes(wire.u8()?, wire.u8()?)?;
                wire.skip(if version == 0 { 9 } else { 13 })?;
                let mut fields = Fields { wire, sizes: self.sizes };
                // Base and free space before the end, the driver behind it; then the root's entry.
                fields.address()?;
                fields.address()?;
                self.end = fields.address()?.unwrap_or(0);
                fields.address()?;
                fields.address()?;
                self.root = fields.needed("the root group")?;
                self.note(self.base, fields.wire.offset() - self.base, "superblock");
            }
            2 | 3 => {
                self.sizes = sizes(wire.u8()?, wire.u8()?)?;
                wire.skip(1)?;
                let mut fields = Fields { wire, sizes: self.sizes };
                fields.address()?;
                fields.address()?;
                self.end = fields.address()?.unwrap_or(0);
                self.root = fields.needed("the root group")?;
                let len = (fields.wire.offset() - self.base) as usize;
                let stored = fields.u32()?;
                verify(&bytes[..len], stored, self.base, "superblock")?;
                self.note(self.base, len as u64 + 4, "superblock");
            }
            other => {
                let message = format!("a superblock of version {other}");
                return Err(Error::unsupported("hdf5-007", message).at(self.base + 8));
            }
        }
        Ok(())
    }

    /// Counts bytes that are read or kept; over the budget is the end. This also ends circles.
    pub(crate) fn charge(&self, bytes: u64) -> Result<()> {
        let spent = self.spent.get().saturating_add(bytes.max(LEAST));
        self.limits.allow(spent, "the metadata")?;
        self.spent.set(spent);
        Ok(())
    }

    /// Remembers what a part of the file is.
    pub(crate) fn note(&self, offset: u64, len: u64, name: &'static str) {
        self.seen.borrow_mut().push(Seen { offset, len, name });
    }

    /// All parts noted.
    pub(crate) fn into_seen(self) -> Vec<Seen> {
        self.seen.into_inner()
    }

    /// The byte of the file that `address` means.
    pub(crate) fn place(&self, address: u64) -> u64 {
        self.base.saturating_add(address)
    }

    /// `len` bytes at an address; the structure is called `name`.
    pub(crate) fn fetch(&self, address: u64, len: u64, name: &'static str) -> Result<Vec<u8>> {
        let at = self.place(address);
        if at.checked_add(len).is_none_or(|end| end > self.source.len()) {
            let left = self.source.len().saturating_sub(at);
            let message = format!("needs {len} bytes, {left} are there");
            return Err(Error::truncated("hdf5-003", message).in_object(name).at(at));
        }
        self.charge(len)?;
        self.source.read_vec(at, len)
    }

    /// The same, noted as a part of its own.
    pub(crate) fn structure(&self, address: u64, len: u64, name: &'static str) -> Result<Vec<u8>> {
        let bytes = self.fetch(address, len, name)?;
        self.note(self.place(address), len, name);
        Ok(bytes)
    }

    /// A cursor over bytes that were fetched at `address`.
    pub(crate) fn fields<'a>(&self, bytes: &'a [u8], address: u64) -> Fields<'a> {
        let wire = Wire::new(bytes, self.place(address), ByteOrder::Little, "hdf5-004");
        Fields { wire, sizes: self.sizes }
    }

    /// The file breaks a rule at `address`.
    pub(crate) fn broken(&self, address: u64, message: impl Into<String>) -> Error {
        Error::malformed("hdf5-008", message).at(self.place(address))
    }
}

/// Where the superblock is: behind a user block of 0, 512, 1024... bytes.
fn find(source: &Source) -> Result<u64> {
    let mut at = 0_u64;
    loop {
        let bytes = fetch(source, at, SIGNATURE.len())?;
        if bytes == SIGNATURE {
            return Ok(at);
        }
        if at == 0 && bytes.starts_with(b"CDF") {
            let message = "a netCDF file in the classic format, which is not HDF5";
            let error = Error::unsupported("hdf5-001", message).at(0);
            return Err(error.hint("nccopy -k netCDF-4 makes one of it that is read"));
        }
        at = if at == 0 { 512 } else { at.saturating_mul(2) };
        if at >= source.len() {
            let message = "an HDF5 file has \\x89HDF at byte 0, 512, 1024...";
            return Err(Error::not_this_format("hdf5-001", message).at(0));
        }
    }
}

/// A cursor that knows how addresses and lengths are written.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    pub(crate) wire: Wire<'a>,
    pub(crate) sizes: Sizes,
}

impl<'a> Fields<'a> {
    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.wire.u8()
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.wire.u16()
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.wire.u32()
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.wire.u64()
    }

    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        self.wire.skip(n)
    }

    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        self.wire.take(n)
    }

    /// A number of up to eight bytes.
    pub(crate) fn uint(&mut self, size: usize) -> Result<u64> {
        let bytes = self.wire.take(size)?;
        Ok(bytes.iter().rev().take(8).fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// An address; all ones is none.
    pub(crate) fn address(&mut self) -> Result<Option<u64>> {
        let size = self.sizes.offset;
        let value = self.uint(size)?;
        let none = if size == 8 { u64::MAX } else { (1 << (8 * size)) - 1 };
        Ok((value != none).then_some(value))
    }

    /// An address that must be there.
    pub(crate) fn needed(&mut self, what: &str) -> Result<u64> {
        let at = self.wire.offset();
        self.address()?
            .ok_or_else(|| Error::malformed("hdf5-008", format!("{what} has no address")).at(at))
    }

    pub(crate) fn length(&mut self) -> Result<u64> {
        self.uint(self.sizes.length)
    }

    /// A name of `len` bytes that may be ended by a NUL before.
    pub(crate) fn name(&mut self, len: usize) -> Result<String> {
        Ok(text(self.wire.take(len)?))
    }

    /// The four letters of a structure.
    pub(crate) fn expect(&mut self, letters: [u8; 4]) -> Result<()> {
        self.wire.expect(&letters, "hdf5-005")
    }

    /// The version of a structure, which must be among `known`.
    pub(crate) fn version(&mut self, known: &[u8], what: &str) -> Result<u8> {
        let at = self.wire.offset();
        let version = self.u8()?;
        if known.contains(&version) {
            return Ok(version);
        }
        let message = format!("{what} of version {version}");
        Err(Error::unsupported("hdf5-007", message).at(at))
    }

    /// A `Malformed` error at the current byte.
    pub(crate) fn broken(&self, message: impl Into<String>) -> Error {
        self.wire.malformed("hdf5-008", message)
    }
}

/// Bytes up to the first NUL as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Bytes that numbers up to `value` take.
pub(crate) fn bytes_for(value: u64) -> usize {
    (value.checked_ilog2().unwrap_or(0) / 8 + 1) as usize
}

/// Fails unless `bytes` have this checksum.
pub(crate) fn verify(bytes: &[u8], stored: u32, at: u64, name: &str) -> Result<()> {
    let sum = checksum(bytes);
    // A fuzzer that has to guess checksums never gets behind them.
    if sum == stored || cfg!(fuzzing) {
        return Ok(());
    }
    let message = format!("the checksum is {sum:#010x}, stored is {stored:#010x}");
    Err(Error::malformed("hdf5-006", message).in_object(name).at(at))
}

/// Bob Jenkins's hash "lookup3", little-endian, beginning with 0: HDF5's checksum of metadata.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    const MIX: [(usize, usize, usize, u32); 6] =
        [(0, 2, 1, 4), (1, 0, 2, 6), (2, 1, 0, 8), (0, 2, 1, 16), (1, 0, 2, 19), (2, 1, 0, 4)];
    let mut state = [0xdead_beef_u32.wrapping_add(bytes.len() as u32); 3];
    let mut rest = bytes;
    let word = |part: &[u8]| part.iter().rev().fold(0, |w: u32, b| w << 8 | u32::from(*b));
    let add = |state: &mut [u32; 3], block: &[u8]| {
        for (s, part) in state.iter_mut().zip(block.chunks(4)) {
            *s = s.wrapping_add(word(part));
        }
    };
    // The last block, even a full one, is mixed in another way.
    while rest.len() > 12 {
        add(&mut state, &rest[..12]);
        for (x, y, z, turn) in MIX {
            state[x] = state[x].wrapping_sub(state[y]) ^ state[y].rotate_left(turn);
            state[y] = state[y].wrapping_add(state[z]);
        }
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return state[2];
    }
    add(&mut state, rest);
    let [mut a, mut b, mut c] = state;
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_lookup3() {
        // The author's own test values.
        assert_eq!(checksum(b""), 0xdead_beef);
        assert_eq!(checksum(b"Four score and seven years ago"), 0x1777_0551);
    }

    #[test]
    fn numbers_take_as_many_bytes_as_they_need() {
        assert_eq!([0, 1, 255, 256, 65535, 65536].map(bytes_for), [1, 1, 1, 2, 2, 3]);
    }
}
