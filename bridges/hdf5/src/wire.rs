//! On-disk structures. This file: superblock, addresses, memory budget, checksums.
//!
//! Section numbers here and in the submodules are those of the HDF5 File Format Specification 3.0.

pub(crate) mod attribute;
pub(crate) mod btree;
pub(crate) mod chunk_index;
pub(crate) mod datatype;
pub(crate) mod group;
pub(crate) mod header;
pub(crate) mod heap;
pub(crate) mod mapping;
pub(crate) mod messages;

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};

use spile_core::error::{Error, ErrorKind, Result};
use spile_core::limits::Limits;
use spile_core::source::Source;
use spile_core::wire::{ByteOrder, Wire, fetch};

/// The signature of HDF5, at byte 0, 512, 1024, 2048 and so on.
pub(crate) const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// Smallest charge for a structure, in bytes. It ends cycles of empty structures.
const MIN_CHARGE: u64 = 64;

/// Sizes of addresses and lengths, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) offset: usize,
    pub(crate) length: usize,
}

/// A range of the file that was read as metadata.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) name: &'static str,
}

/// An HDF5 file: source, superblock, and the memory charged so far.
pub(crate) struct Context {
    pub(crate) source: Source,
    pub(crate) limits: Limits,
    pub(crate) sizes: Sizes,
    /// File offset of address 0.
    pub(crate) base: u64,
    pub(crate) superblock: u8,
    pub(crate) root: u64,
    /// End-of-file address of the superblock.
    pub(crate) end: u64,
    spent: Cell<u64>,
    regions: RefCell<Vec<Region>>,
}

impl Context {
    /// Finds and reads the superblock (section II.A).
    pub(crate) fn new(source: &Source, limits: &Limits) -> Result<Self> {
        let base = find(source)?;
        let mut ctx = Self {
            source: source.clone(),
            limits: *limits,
            sizes: Sizes { offset: 8, length: 8 },
            base,
            superblock: 0,
            root: 0,
            end: 0,
            spent: Cell::new(0),
            regions: RefCell::new(Vec::new()),
        };
        ctx.charge(MIN_CHARGE)?;
        let bytes = fetch(source, base, 112)?;
        ctx.superblock(&bytes)?;
        Ok(ctx)
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
                let message = format!(
                    "addresses of {offset} bytes and lengths of {length} bytes; expected 2, 4 or 8"
                );
                Error::malformed("hdf5-002", message).at(self.base + 8)
            })
        };
        let old = match version {
            0 | 1 => true,
            2 | 3 => false,
            other => {
                let message = format!("superblock version {other} is not supported");
                return Err(Error::unsupported("hdf5-007", message).at(self.base + 8));
            }
        };
        wire.skip(if old { 4 } else { 0 })?;
        self.sizes = sizes(wire.u8()?, wire.u8()?)?;
        wire.skip([9, 13, 1, 1][usize::from(version)])?;
        let mut fields = Fields { wire, sizes: self.sizes };
        // Base and free space, or base and superblock extension; end of file.
        fields.address()?;
        fields.address()?;
        self.end = fields.address()?.unwrap_or(0);
        if old {
            // Driver; then the root's symbol table entry, which begins with the offset of a name.
            fields.address()?;
            fields.address()?;
        }
        self.root = fields.required_address("the root group")?;
        let len = (fields.offset() - self.base) as usize;
        if !old {
            let stored = fields.u32()?;
            verify(&bytes[..len], stored, self.base, "superblock")?;
        }
        self.record_region(self.base, fields.offset() - self.base, "superblock");
        Ok(())
    }

    /// Adds `bytes` to the memory that is in use until the file is closed. Fails with `Limit`, and adds
    /// nothing, when the sum exceeds the budget.
    pub(crate) fn charge(&self, bytes: u64) -> Result<()> {
        let spent = self.spent.get().saturating_add(bytes.max(MIN_CHARGE));
        self.limits.allow(spent, "the metadata")?;
        self.spent.set(spent);
        Ok(())
    }

    /// Fails with `Limit` unless `bytes` of temporary memory fit in the rest of the budget.
    pub(crate) fn allow(&self, bytes: u64, what: &str) -> Result<()> {
        self.limits.allow(self.spent.get().saturating_add(bytes), what).map(|_| ())
    }

    /// Records that a range of the file is a metadata structure called `name`.
    pub(crate) fn record_region(&self, offset: u64, len: u64, name: &'static str) {
        self.regions.borrow_mut().push(Region { offset, len, name });
    }

    /// All recorded regions.
    pub(crate) fn into_regions(self) -> Vec<Region> {
        self.regions.into_inner()
    }

    /// File offset of `address`.
    pub(crate) fn file_offset(&self, address: u64) -> u64 {
        self.base.saturating_add(address)
    }

    /// Reads `len` bytes at `address`. Fails with `Truncated` if the file is shorter, with `Limit` if
    /// the bytes exceed the budget. `name` names the structure in errors.
    pub(crate) fn read(&self, address: u64, len: u64, name: &'static str) -> Result<Vec<u8>> {
        let at = self.file_offset(address);
        if at.checked_add(len).is_none_or(|end| end > self.source.len()) {
            let left = self.source.len().saturating_sub(at);
            let message = format!("unexpected end of file: expected {len} bytes, found {left}");
            return Err(Error::truncated("hdf5-003", message).in_object(name).at(at));
        }
        self.charge(len)?;
        self.source.read_vec(at, len)
    }

    /// Reads `len` bytes at `address` like [`Context::read`] and records the region.
    pub(crate) fn read_structure(
        &self,
        address: u64,
        len: u64,
        name: &'static str,
    ) -> Result<Vec<u8>> {
        let bytes = self.read(address, len, name)?;
        self.record_region(self.file_offset(address), len, name);
        Ok(bytes)
    }

    /// Reads a structure of `len` bytes that begins with `signature` and ends with a checksum. Returns the bytes
    /// between them. Fails with `Malformed` if one of the two is wrong.
    pub(crate) fn read_checked(
        &self,
        address: u64,
        len: u64,
        signature: &[u8],
        name: &'static str,
    ) -> Result<Vec<u8>> {
        let mut bytes = self.read_structure(address, len, name)?;
        let mut wire = self.fields(&bytes, address).wire;
        wire.expect(signature, "hdf5-005")?;
        wire.skip(wire.remaining().saturating_sub(4))?;
        let (stored, end) = (wire.u32()?, bytes.len() - 4);
        verify(&bytes[..end], stored, self.file_offset(address), name)?;
        bytes.truncate(end);
        bytes.drain(..signature.len());
        Ok(bytes)
    }

    /// A cursor over bytes that were read at `address`.
    pub(crate) fn fields<'a>(&self, bytes: &'a [u8], address: u64) -> Fields<'a> {
        let wire = Wire::new(bytes, self.file_offset(address), ByteOrder::Little, "hdf5-004");
        Fields { wire, sizes: self.sizes }
    }

    /// A `Malformed` error at `address`.
    pub(crate) fn malformed(&self, address: u64, message: impl Into<String>) -> Error {
        Error::malformed("hdf5-008", message).at(self.file_offset(address))
    }
}

/// File offset of the superblock, after a user block of 0, 512, 1024... bytes.
fn find(source: &Source) -> Result<u64> {
    let mut at = 0_u64;
    loop {
        let bytes = fetch(source, at, SIGNATURE.len())?;
        if bytes == SIGNATURE {
            return Ok(at);
        }
        if at == 0 && bytes.starts_with(b"CDF") {
            let message = "netCDF classic files are not HDF5 files";
            let error = Error::unsupported("hdf5-018", message).at(0);
            return Err(error.hint("nccopy -k netCDF-4 IN OUT converts to netCDF-4"));
        }
        at = if at == 0 { 512 } else { at.saturating_mul(2) };
        if at >= source.len() {
            let message = "no HDF5 signature (\\x89HDF) at byte 0, 512, 1024...";
            return Err(Error::not_this_format("hdf5-001", message).at(0));
        }
    }
}

/// A cursor over the fields of a structure, with the sizes of addresses and lengths.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    wire: Wire<'a>,
    pub(crate) sizes: Sizes,
}

impl<'a> Deref for Fields<'a> {
    type Target = Wire<'a>;

    fn deref(&self) -> &Wire<'a> {
        &self.wire
    }
}

impl<'a> DerefMut for Fields<'a> {
    fn deref_mut(&mut self) -> &mut Wire<'a> {
        &mut self.wire
    }
}

impl Fields<'_> {
    /// An unsigned integer of `size` bytes; bytes after the eighth are ignored.
    pub(crate) fn uint(&mut self, size: usize) -> Result<u64> {
        let bytes = self.wire.take(size)?;
        Ok(bytes.iter().rev().take(8).fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// An address, or `None` for the undefined address (all bits set).
    pub(crate) fn address(&mut self) -> Result<Option<u64>> {
        let size = self.sizes.offset;
        let value = self.uint(size)?;
        let none = if size == 8 { u64::MAX } else { (1 << (8 * size)) - 1 };
        Ok((value != none).then_some(value))
    }

    /// An address that must be defined; `what` names it in the error.
    pub(crate) fn required_address(&mut self, what: &str) -> Result<u64> {
        let at = self.wire.offset();
        self.address()?.ok_or_else(|| {
            Error::malformed("hdf5-008", format!("{what}: undefined address")).at(at)
        })
    }

    pub(crate) fn length(&mut self) -> Result<u64> {
        self.uint(self.sizes.length)
    }

    /// A string in a field of `len` bytes, up to the first NUL.
    pub(crate) fn string(&mut self, len: usize) -> Result<String> {
        Ok(text(self.wire.take(len)?))
    }

    /// The four-letter signature of a structure.
    pub(crate) fn expect(&mut self, letters: [u8; 4]) -> Result<()> {
        self.wire.expect(&letters, "hdf5-005")
    }

    /// The version of the structure `what`, which must be one of `known`.
    pub(crate) fn version(&mut self, known: &[u8], what: &str) -> Result<u8> {
        let at = self.wire.offset();
        let version = self.u8()?;
        if known.contains(&version) {
            return Ok(version);
        }
        let message = format!("{what} version {version} is not supported");
        Err(Error::unsupported("hdf5-007", message).at(at))
    }

    /// A `Malformed` error at the current byte.
    pub(crate) fn malformed(&self, message: impl Into<String>) -> Error {
        self.wire.malformed("hdf5-008", message)
    }
}

/// The objects of a list that can be read, and the errors of the others.
pub(crate) struct Readable<T> {
    pub(crate) found: Vec<T>,
    pub(crate) errors: Vec<Error>,
}

impl<T> Readable<T> {
    pub(crate) fn new() -> Self {
        Self { found: Vec::new(), errors: Vec::new() }
    }

    /// Keeps an object, or an error that is about the object. Fails with other errors ([`is_fatal`]).
    pub(crate) fn add(&mut self, ctx: &Context, read: Result<T>) -> Result<()> {
        let read = read.map(|object| self.found.push(object));
        self.add_all(ctx, read)
    }

    /// Keeps the error of reading several objects. Fails with errors that are not about them ([`is_fatal`]).
    pub(crate) fn add_all(&mut self, ctx: &Context, read: Result<()>) -> Result<()> {
        match read {
            Err(error) if !is_fatal(&error) => {
                ctx.charge(256)?;
                self.errors.push(error);
                Ok(())
            }
            read => read,
        }
    }
}

/// Whether an error ends the reading of the file: an exhausted budget or an I/O error. Other errors are
/// about one object.
pub(crate) fn is_fatal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Limit | ErrorKind::Io)
}

/// The string up to the first NUL; invalid UTF-8 is replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Size in bytes of an integer field that holds values up to `value`.
pub(crate) fn bytes_for(value: u64) -> usize {
    (value.checked_ilog2().unwrap_or(0) / 8 + 1) as usize
}

/// Fails with `Malformed` unless `stored` is the checksum of `bytes`.
pub(crate) fn verify(bytes: &[u8], stored: u32, at: u64, name: &str) -> Result<()> {
    let sum = checksum(bytes);
    // A fuzzer cannot produce valid checksums.
    if sum == stored || cfg!(fuzzing) {
        return Ok(());
    }
    let message = format!("checksum mismatch: computed {sum:#010x}, stored {stored:#010x}");
    Err(Error::malformed("hdf5-006", message).in_object(name).at(at))
}

/// The metadata checksum of HDF5: Bob Jenkins's "lookup3", little-endian, initial value 0.
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
    // The last block is mixed differently, even if it is full.
    while rest.len() > 12 {
        add(&mut state, &rest[..12]);
        for (x, y, z, bits) in MIX {
            state[x] = state[x].wrapping_sub(state[y]) ^ state[y].rotate_left(bits);
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
        // Test values from lookup3.c.
        assert_eq!(checksum(b""), 0xdead_beef);
        assert_eq!(checksum(b"Four score and seven years ago"), 0x1777_0551);
    }

    #[test]
    fn integer_fields_have_the_smallest_size() {
        assert_eq!([0, 1, 255, 256, 65535, 65536].map(bytes_for), [1, 1, 1, 2, 2, 3]);
    }
}
