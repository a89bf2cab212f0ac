//! The native writer (appendix A.4): all ranks of a job write sections collectively. The bytes of the
//! file do not depend on the number of ranks or the partition.

use std::cell::Cell;
use std::hash::Hash;
use std::path::Path;

use spile_core::comm::{
    Comm, SharedSink, agree, agree_alike, agree_call, agree_max, reserve, write_at_root,
};
use spile_core::{Error, Overwrite, Result};

use crate::buffers::{
    BYTES_AT_ONCE, ELEMENTS_AT_ONCE, ENCODED_AT_ONCE, Elements, Encoded, Run, encode, split,
};
use crate::codec::Encoder;
use crate::index::{INDEX, Part, Summed, element_size, format_table};
use crate::prepared::Prepared;
use crate::section::{COMPRESSED_ARRAY, COMPRESSED_BLOCK, COMPRESSED_VARRAY};
use crate::wire::{
    Breaks, ENTRY, FILE_HEADER, SECTION_HEADER, USER, VENDOR, data_padding, data_padding_bytes,
    format_entries, pad,
};

/// Bytes that one rank writes at once if they are not written directly from the caller's buffer. A
/// multiple of the size of a count entry.
const AT_ONCE: u64 = 1 << 20;

/// Likewise for each rank in a collective write.
const AT_ONCE_COLLECTIVE: u64 = 16 << 20;

/// Options for writing a file.
#[derive(Clone, Debug)]
pub struct Options {
    /// Vendor string, at most 20 bytes. Default: spile and its version.
    pub vendor: Vec<u8>,
    /// Line break style: [`Breaks::Unix`] (default) or [`Breaks::Mime`].
    pub breaks: Breaks,
    /// Compression level, 0 to 12. Default: 9.
    pub level: u32,
    /// Whether an existing file is replaced.
    pub overwrite: Overwrite,
    /// Writes an index at the end of the file, so that it is opened without reading the sizes of V sections.
    pub index: bool,
    /// Writes a checksum of each section to the index.
    pub checksums: bool,
}

impl Default for Options {
    fn default() -> Self {
        let vendor = format!("spile {}", env!("CARGO_PKG_VERSION")).into_bytes();
        Self {
            vendor,
            breaks: Breaks::Unix,
            level: 9,
            overwrite: Overwrite::Never,
            index: false,
            checksums: false,
        }
    }
}

/// How the data of a section are distributed over the ranks; the same on every rank.
#[derive(Clone, Copy)]
struct Spread {
    /// Maximum bytes of a rank.
    longest: u64,
    /// Last rank with data.
    last: Option<usize>,
    /// Some rank has elements that are not contiguous.
    copied: bool,
}

impl Spread {
    /// Of a table with one count entry per element.
    fn of_table(counts: &[u64]) -> Self {
        let longest = counts.iter().max().unwrap_or(&0) * ENTRY;
        Self { longest, last: counts.iter().rposition(|count| *count > 0), copied: true }
    }
}

/// Writes a file on all ranks of a job. Every method is collective. An error is the same on all ranks;
/// after an error the file is discarded.
pub struct Writer<'c> {
    comm: &'c dyn Comm,
    file: Box<Summed<'c>>,
    cursor: u64,
    options: Options,
    prepared: Cell<Option<Prepared>>,
    /// The sections written so far, with this rank's contribution to their checksums. Empty without an index.
    parts: Vec<Part>,
}

impl<'c> Writer<'c> {
    /// Starts a file.
    pub fn create(comm: &'c dyn Comm, path: &Path, user: &[u8], options: Options) -> Result<Self> {
        let file = comm.create(path, options.overwrite)?;
        Self::over(comm, file, user, options)
    }

    /// Starts a file in an existing sink; [`Writer::close`] finishes the sink.
    pub fn over(
        comm: &'c dyn Comm,
        file: Box<dyn SharedSink + 'c>,
        user: &[u8],
        options: Options,
    ) -> Result<Self> {
        let checked = check_string(&options.vendor, VENDOR, "vendor")
            .and_then(|()| check_string(user, USER, "user"))
            .and_then(|()| Encoder::new(options.level, options.breaks).map(drop));
        // All ranks must pass the same.
        let Options { vendor, breaks, level, overwrite, index, checksums } = &options;
        let mime = *breaks == Breaks::Mime;
        let replace = *overwrite == Overwrite::Replace;
        let same = (user, vendor, mime, level, replace, index, checksums);
        agree_alike(comm, checked, same)?;
        let file = Box::new(Summed::new(file, options.checksums));
        let (prepared, parts) = (Cell::default(), Vec::new());
        let mut writer = Self { comm, file, cursor: 0, options, prepared, parts };
        let mut header = b"scdata0 ".to_vec();
        header.extend(pad(&writer.options.vendor, 24, writer.options.breaks));
        header.extend(writer.head(b'F', user, &[]));
        header.extend(data_padding_bytes(0, None, writer.options.breaks));
        write_at_root(comm, &*writer.file, 0, 0, &header)?;
        writer.move_to(FILE_HEADER, 0);
        Ok(writer)
    }

    /// Prepares the next call, for bindings to other languages: `arguments` must be the same on every rank, so must
    /// `optional` on the ranks that pass it, and an error of `checked` is returned by the call on all ranks.
    pub fn prepare(
        &mut self,
        arguments: impl Hash,
        optional: Option<impl Hash>,
        checked: Result<()>,
    ) {
        self.prepared.set(Some(Prepared::new(arguments, optional, checked)));
    }

    /// Adds arguments and checks to those of [`Writer::prepare`].
    pub(crate) fn prepare_more(&mut self, arguments: impl Hash, checked: Result<()>) {
        let prepared = self.prepared.take().unwrap_or_default();
        self.prepared.set(Some(prepared.and(arguments, checked)));
    }

    /// Writes an I section: 32 bytes, passed on rank `root`.
    pub fn inline(&mut self, user: &[u8], root: usize, data: Option<&[u8; 32]>) -> Result<()> {
        let end = self.cursor + SECTION_HEADER + ENTRY;
        let checked = self.check_root(user, root, data.is_some());
        self.agree(checked, ('I', user, root), Elements::Contiguous(&[]))?;
        let head = self.head(b'I', user, &[]);
        let data = data.filter(|_| self.comm.rank() == root);
        let parts = data.map(|data| [&head[..], data]);
        let written = self.file.write_alone(self.cursor, parts.as_ref().map_or(&[], |p| &p[..]));
        agree(self.comm, written)?;
        self.move_to(end, ENTRY);
        Ok(())
    }

    /// Writes a B section of `size` bytes, passed on rank `root`; compressed if `encode`.
    pub fn block(
        &mut self,
        user: &[u8],
        root: usize,
        size: u64,
        data: Option<&[u8]>,
        encode: bool,
    ) -> Result<()> {
        self.block_from(user, root, size, data.map(Elements::Contiguous), encode)
    }

    /// Writes a B section of `size` bytes from [`Elements`], passed on rank `root`. Compression copies them
    /// to one contiguous buffer.
    pub fn block_from(
        &mut self,
        user: &[u8],
        root: usize,
        size: u64,
        data: Option<Elements<'_>>,
        encode: bool,
    ) -> Result<()> {
        let here = self.comm.rank() == root;
        let head = self.head(b'B', user, &[(b'E', size)]);
        let checked = self.check_root(user, root, data.is_some()).and_then(|()| match data {
            Some(data) if here && data.bytes() != size => {
                Err(Error::argument(format!("expected {size} bytes, found {}", data.bytes())))
            }
            _ if size >= 1 << 62 => Err(too_large()),
            _ => Ok(()),
        });
        let data = data.filter(|_| here).unwrap_or(Elements::Contiguous(&[]));
        let ((), spread) = self.agree(checked, ('B', user, root, size, encode), data)?;
        if !encode {
            return self.write_section(&head, root, 0, size, data, spread);
        }
        let mut encoded = Vec::new();
        let Options { level, breaks, .. } = self.options;
        let mut encode =
            || Encoder::new(level, breaks)?.encode(data.contiguous(&mut Vec::new())?, &mut encoded);
        let done = if here { encode() } else { Ok(()) };
        let data = Elements::Contiguous(&encoded);
        let ((), spread) = self.agree(done, (), data)?;
        let mut head = self.announcement(COMPRESSED_BLOCK, size);
        head.extend(self.head(b'B', user, &[(b'E', spread.longest)]));
        self.write_section(&head, root, 0, spread.longest, data, spread)
    }

    /// Writes an A section: elements of `size` bytes. `counts` is the number of elements of each rank,
    /// `data` the elements of this rank; compressed if `encode`.
    pub fn array(
        &mut self,
        user: &[u8],
        counts: &[u64],
        size: u64,
        data: Elements<'_>,
        encode: bool,
    ) -> Result<()> {
        let checked = self.check_partition(user, counts).and_then(|(number, mine)| {
            let each = std::iter::repeat_n(size, mine as usize);
            if !data.matches(mine.checked_mul(size), each) {
                return Err(Error::argument(format!(
                    "rank {}: expected {mine} elements of {size} bytes, found {} bytes",
                    self.comm.rank(),
                    data.bytes()
                )));
            }
            let bytes = number.checked_mul(size).filter(|bytes| *bytes < 1 << 62);
            let bytes = bytes.ok_or_else(too_large)?;
            let head = self.head(b'A', user, &[(b'N', number), (b'E', size)]);
            if !encode && !is_on_one_rank(counts) {
                self.file.reserve(self.section_end(&head, bytes))?;
            }
            Ok((bytes, head))
        });
        let ((bytes, head), spread) =
            self.agree(checked, ('A', user, counts, size, encode), data)?;
        let rank = self.comm.rank();
        if encode {
            let first = self.announcement(COMPRESSED_ARRAY, size);
            return self.write_encoded(first, user, counts, counts[rank] as usize, |_| size, data);
        }
        self.write_section(&head, 0, before(counts, rank) * size, bytes, data, spread)
    }

    /// Writes a V section: elements of different sizes. `counts` is the number of elements of each rank,
    /// `sizes` and `data` are sizes in bytes and elements of this rank; compressed if `encode`.
    pub fn varray(
        &mut self,
        user: &[u8],
        counts: &[u64],
        sizes: &[u64],
        data: Elements<'_>,
        encode: bool,
    ) -> Result<()> {
        let checked = self.check_partition(user, counts).and_then(|(_, mine)| {
            let sum = sizes.iter().try_fold(0_u64, |sum, size| sum.checked_add(*size));
            if sizes.len() as u64 == mine && data.matches(sum, sizes.iter().copied()) {
                return Ok(());
            }
            Err(Error::argument(format!(
                "rank {}: expected {mine} elements, found {} sizes and {} bytes",
                self.comm.rank(),
                sizes.len(),
                data.bytes()
            )))
        });
        let ((), spread) = self.agree(checked, ('V', user, counts, encode), data)?;
        if !encode {
            return self.write_varray(Vec::new(), user, counts, sizes, data, spread);
        }
        let number = total(counts)?;
        let head = self.head(b'A', COMPRESSED_VARRAY, &[(b'N', number), (b'E', ENTRY)]);
        if !is_on_one_rank(counts) {
            reserve(self.comm, &*self.file, self.section_end(&head, number * ENTRY))?;
        }
        let position = before(counts, self.comm.rank()) * ENTRY;
        let fetch = self.fetch_entries(b'U', sizes);
        let table = Elements::Fetched(sizes.len() as u64 * ENTRY, &fetch);
        let spread = Spread::of_table(counts);
        self.write_section(&head, 0, position, number * ENTRY, table, spread)?;
        self.write_encoded(Vec::new(), user, counts, sizes.len(), |k| sizes[k], data)
    }

    /// Writes a V section after the bytes `first`. The ranks have agreed on the arguments.
    fn write_varray(
        &mut self,
        first: Vec<u8>,
        user: &[u8],
        counts: &[u64],
        sizes: &[u64],
        data: Elements<'_>,
        spread: Spread,
    ) -> Result<()> {
        let rank = self.comm.rank();
        let number = total(counts)?;
        let mut head = first;
        head.extend(self.head(b'V', user, &[(b'N', number)]));
        let table = self.cursor + head.len() as u64;
        let start = table + number * ENTRY;
        // Only the sum over the ranks before this one is needed; the end is the maximum over all ranks.
        let mine = start.saturating_add(self.comm.sum_before(data.bytes())?);
        let mut end = [mine.saturating_add(data.bytes())];
        let fits = if end[0] < 1 << 62 { Ok(()) } else { Err(too_large()) };
        agree_max(self.comm, fits, &mut end)?;
        let bytes = end[0] - start;
        if !is_on_one_rank(counts) {
            reserve(self.comm, &*self.file, end[0] + data_padding(bytes))?;
        }
        let fetch = self.fetch_entries(b'E', sizes);
        let entries = Elements::Fetched(sizes.len() as u64 * ENTRY, &fetch);
        let (at, head) = match rank {
            0 => (self.cursor, &head[..]),
            _ => (table + before(counts, rank) * ENTRY, &[][..]),
        };
        let in_table = Spread::of_table(counts);
        let sized = self.put(at, head, entries, false, in_table, number * ENTRY);
        let pads = rank == spread.last.unwrap_or(0);
        let written = self.put(mine, &[], data, pads, spread, bytes);
        agree(self.comm, sized.and(written))?;
        self.move_to(end[0] + data_padding(bytes), bytes);
        Ok(())
    }

    /// Compresses the elements of this rank on all threads and writes them as a V section after the bytes
    /// `first`.
    fn write_encoded(
        &mut self,
        first: Vec<u8>,
        user: &[u8],
        counts: &[u64],
        number: usize,
        size_of: impl Fn(usize) -> u64 + Sync,
        data: Elements<'_>,
    ) -> Result<()> {
        let Options { level, breaks, .. } = self.options;
        let encoder = || Encoder::new(level, breaks);
        let encode =
            |runs: &[Run], parts: &mut Vec<Encoded>| encode(data, &size_of, runs, encoder, parts);
        let mut parts = Vec::new();
        let runs = split((0..number).map(&size_of), ELEMENTS_AT_ONCE, BYTES_AT_ONCE);
        if self.comm.size() > 1 {
            // The offset of a rank's elements depends on the compressed sizes of the other ranks.
            let encoded = encode(&runs, &mut parts);
            let sizes: Vec<u64> = parts.iter().flat_map(|(sizes, _)| sizes).copied().collect();
            let pieces: Vec<&[u8]> = parts.iter().map(|(_, bytes)| bytes.as_slice()).collect();
            let data = Elements::Indirect(&pieces);
            let ((), spread) = self.agree(encoded, (), data)?;
            return self.write_varray(first, user, counts, &sizes, data, spread);
        }
        let mut head = first;
        head.extend(self.head(b'V', user, &[(b'N', number as u64)]));
        self.file.write_alone(self.cursor, &[&head])?;
        let table = self.cursor + head.len() as u64;
        let start = table + number as u64 * ENTRY;
        let (mut entry, mut at, mut last) = (table, start, None);
        for batch in split(runs.iter().map(|run| run.bytes), usize::MAX, ENCODED_AT_ONCE) {
            encode(&runs[batch.first..batch.first + batch.number], &mut parts)?;
            for (sizes, bytes) in &parts {
                self.file.write_alone(entry, &[&self.entries(b'E', sizes)])?;
                self.file.write_alone(at, &[bytes])?;
                entry += sizes.len() as u64 * ENTRY;
                at += bytes.len() as u64;
                last = bytes.last().copied().or(last);
            }
        }
        self.file.write_alone(at, &[&data_padding_bytes(at - start, last, breaks)])?;
        self.move_to(at + data_padding(at - start), at - start);
        Ok(())
    }

    /// Completes the file. It does not exist under its name before.
    pub fn close(mut self) -> Result<()> {
        self.write_index()?;
        self.file.finish()
    }

    /// Writes the index, if there is one.
    fn write_index(&mut self) -> Result<()> {
        let mut parts = std::mem::take(&mut self.parts);
        if parts.is_empty() {
            return Ok(());
        }
        if self.options.checksums {
            let mut sums: Vec<u64> =
                parts.iter().map(|part| part.crc.unwrap_or_default().into()).collect();
            self.comm.xor(&mut sums)?;
            for (part, sum) in parts.iter_mut().zip(sums) {
                part.crc = Some(sum as u32);
            }
        }
        // Not a part of itself.
        (self.options.index, self.options.checksums) = (false, false);
        let at = self.cursor;
        let size = element_size(parts.iter().any(|part| part.crc.is_some()));
        let here = self.comm.rank() == 0;
        let table = if here { format_table(&parts, self.options.breaks) } else { Vec::new() };
        let mut counts = vec![0; self.comm.size()];
        if let Some(first) = counts.first_mut() {
            *first = parts.len() as u64;
        }
        self.array(INDEX, &counts, size, Elements::Contiguous(&table), false)?;
        let entry = self.entries(b'O', &[at]);
        self.inline(INDEX, 0, entry.first_chunk())
    }

    /// Moves to the end of a section with `len` data bytes, and adds it to the index.
    fn move_to(&mut self, end: u64, len: u64) {
        if self.options.index || self.options.checksums {
            let crc = self.options.checksums.then(|| self.file.take_sum(end));
            self.parts.push(Part { offset: self.cursor, end, len, crc });
        }
        self.cursor = end;
    }

    /// Agrees on the result and the arguments of a call, and on the distribution of the data.
    fn agree<T>(
        &self,
        checked: Result<T>,
        arguments: impl Hash,
        data: Elements<'_>,
    ) -> Result<(T, Spread)> {
        let bytes = data.bytes();
        let last = if bytes > 0 { self.comm.rank() as u64 + 1 } else { 0 };
        let copied = u64::from(bytes > 0 && !matches!(data, Elements::Contiguous(_)));
        let prepared = self.prepared.take().unwrap_or_default();
        let arguments = (prepared.hash, arguments);
        let [optional, complement] = prepared.optional;
        let values = [bytes, last, copied, optional, complement];
        let (value, [longest, last, copied, optional, complement]) =
            agree_call(self.comm, prepared.checked.and(checked), arguments, values)?;
        Prepared::compare([optional, complement])?;
        let last = last.checked_sub(1).map(|rank| rank as usize);
        Ok((value, Spread { longest, last, copied: copied > 0 }))
    }

    /// Writes `head` on rank `root`, the data of every rank, those of this rank at offset `position` of the
    /// `bytes` of all ranks, and the padding. The data of ranks before `root` are empty. The space is
    /// reserved.
    fn write_section(
        &mut self,
        head: &[u8],
        root: usize,
        position: u64,
        bytes: u64,
        data: Elements<'_>,
        spread: Spread,
    ) -> Result<()> {
        let rank = self.comm.rank();
        let start = self.cursor + head.len() as u64;
        let end = self.section_end(head, bytes);
        let (at, head) =
            if rank == root { (self.cursor, head) } else { (start + position, &[][..]) };
        let pads = rank == spread.last.unwrap_or(root);
        agree(self.comm, self.put(at, head, data, pads, spread, bytes))?;
        self.move_to(end, bytes);
        Ok(())
    }

    /// Writes `head` and `data` of this rank from offset `at`, and the padding of the section if it `pads`.
    /// If all `bytes` are on one rank, it writes them independently, otherwise the write is collective.
    fn put(
        &self,
        mut at: u64,
        mut head: &[u8],
        data: Elements<'_>,
        pads: bool,
        spread: Spread,
        bytes: u64,
    ) -> Result<()> {
        let alone = spread.longest == bytes;
        let write = |at, parts: &[&[u8]], longest| {
            if alone {
                return self.file.write_alone(at, parts);
            }
            // Headers and padding are shorter than 256 bytes.
            self.file.write(at, parts, longest + 256)
        };
        let padding = |last: Option<&u8>| {
            let padding =
                pads.then(|| data_padding_bytes(bytes, last.copied(), self.options.breaks));
            padding.unwrap_or_default()
        };
        if let (Elements::Contiguous(all), false) = (data, spread.copied) {
            return write(at, &[head, all, &padding(all.last())], spread.longest);
        }
        // The other elements are copied to a buffer. All ranks take part in every round.
        let at_once = if alone { AT_ONCE } else { AT_ONCE_COLLECTIVE };
        let mut left = data.bytes();
        let mut buffer = vec![0; left.min(at_once) as usize];
        let mut fill = data.reader();
        let mut result = Ok(());
        for round in 0..spread.longest.div_ceil(at_once).max(1) {
            let piece = &mut buffer[..left.min(at_once) as usize];
            let last_round = left == piece.len() as u64 && (left > 0 || round == 0);
            left -= piece.len() as u64;
            if result.is_ok() {
                result = fill(piece);
            }
            let padding = if last_round { padding(piece.last()) } else { Vec::new() };
            let longest = spread.longest.min(at_once);
            result = result.and(write(at, &[head, piece, &padding], longest));
            at += (head.len() + piece.len()) as u64;
            head = &[];
        }
        result
    }

    /// A function that supplies this rank's part of a table of count entries.
    fn fetch_entries<'s>(
        &self,
        letter: u8,
        sizes: &'s [u64],
    ) -> impl Fn(u64, &mut [u8]) -> Result<()> + Sync + use<'s> {
        let breaks = self.options.breaks;
        move |at, buffer| {
            let (first, skipped) = ((at / ENTRY) as usize, (at % ENTRY) as usize);
            let number = (skipped + buffer.len()).div_ceil(ENTRY as usize);
            let mut entries = Vec::with_capacity(number * ENTRY as usize);
            format_entries(letter, &sizes[first..first + number], breaks, &mut entries);
            buffer.copy_from_slice(&entries[skipped..skipped + buffer.len()]);
            Ok(())
        }
    }

    /// Offset of the first byte after a section at the cursor.
    fn section_end(&self, head: &[u8], bytes: u64) -> u64 {
        self.cursor + head.len() as u64 + bytes + data_padding(bytes)
    }

    /// The I section before compressed data, with their uncompressed size (Figure 6).
    fn announcement(&self, user: &[u8], size: u64) -> Vec<u8> {
        self.head(b'I', user, &[(b'U', size)])
    }

    /// Type letter and user string, 64 bytes, and count entries, 32 bytes each.
    fn head(&self, letter: u8, user: &[u8], counts: &[(u8, u64)]) -> Vec<u8> {
        let mut out = vec![letter, b' '];
        out.extend(pad(user, SECTION_HEADER as usize - 2, self.options.breaks));
        out.extend(counts.iter().flat_map(|(letter, value)| self.entries(*letter, &[*value])));
        out
    }

    /// Count entries, 32 bytes each.
    fn entries(&self, letter: u8, values: &[u64]) -> Vec<u8> {
        let mut out = Vec::new();
        format_entries(letter, values, self.options.breaks, &mut out);
        out
    }

    fn check_root(&self, user: &[u8], root: usize, has_data: bool) -> Result<()> {
        check_string(user, USER, "user")?;
        if root >= self.comm.size() {
            let size = self.comm.size();
            return Err(Error::argument(format!("rank {root} is out of range for {size} ranks")));
        }
        if self.comm.rank() == root && !has_data {
            return Err(Error::argument(format!("rank {root}: expected data, found none")));
        }
        Ok(())
    }

    /// Number of elements of all ranks and of this rank. Fails if `counts` does not have one number per rank.
    fn check_partition(&self, user: &[u8], counts: &[u64]) -> Result<(u64, u64)> {
        check_string(user, USER, "user")?;
        if counts.len() != self.comm.size() {
            let (got, size) = (counts.len(), self.comm.size());
            return Err(Error::argument(format!(
                "expected a partition of {size} ranks, found {got}"
            )));
        }
        Ok((total(counts)?, counts[self.comm.rank()]))
    }
}

fn check_string(bytes: &[u8], longest: usize, which: &str) -> Result<()> {
    if bytes.len() <= longest {
        return Ok(());
    }
    let length = bytes.len();
    Err(Error::argument(format!(
        "expected a {which} string of at most {longest} bytes, found {length}"
    )))
}

fn too_large() -> Error {
    Error::limit("the data exceed the maximum file size")
}

fn total(counts: &[u64]) -> Result<u64> {
    let sum = counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
    sum.filter(|sum| *sum < 1 << 57).ok_or_else(too_large)
}

/// Whether all elements are on one rank. They are written independently: no other rank waits if the disk is full, and no
/// space is reserved.
fn is_on_one_rank(counts: &[u64]) -> bool {
    counts.iter().filter(|count| **count > 0).count() <= 1
}

fn before(counts: &[u64], rank: usize) -> u64 {
    counts[..rank].iter().sum()
}
