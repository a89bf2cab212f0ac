//! The native writer (appendix A.4): all ranks of a job write sections collectively. The bytes of the
//! file do not depend on the number of ranks or the partition.

use std::path::Path;

use spile_core::comm::{Comm, SharedSink, agree, agree_alike, gather_numbers};
use spile_core::{Error, Overwrite, Result};

use crate::buffers::{
    BYTES_AT_ONCE, ELEMENTS_AT_ONCE, ENCODED_AT_ONCE, Elements, Encoded, Run, encode, split,
};
use crate::codec::Encoder;
use crate::section::{COMPRESSED_ARRAY, COMPRESSED_BLOCK, COMPRESSED_VARRAY};
use crate::wire::{
    Breaks, ENTRY, FILE_HEADER, SECTION_HEADER, USER, VENDOR, data_padding, data_padding_bytes,
    format_entries, pad,
};

/// Bytes written at once if they are not written directly from the caller's buffer.
const AT_ONCE: usize = 1 << 20;

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
}

impl Default for Options {
    fn default() -> Self {
        let vendor = format!("spile {}", env!("CARGO_PKG_VERSION")).into_bytes();
        Self { vendor, breaks: Breaks::Unix, level: 9, overwrite: Overwrite::Never }
    }
}

/// Writes a file on all ranks of a job. Every method is collective. An error is the same on all ranks;
/// after an error the file is discarded.
pub struct Writer<'c> {
    comm: &'c dyn Comm,
    file: Box<dyn SharedSink + 'c>,
    cursor: u64,
    options: Options,
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
        let same = (user, &options.vendor, options.breaks == Breaks::Mime, options.level);
        agree_alike(comm, checked, same)?;
        let mut writer = Self { comm, file, cursor: 0, options };
        let mut header = b"scdata0 ".to_vec();
        header.extend(pad(&writer.options.vendor, 24, writer.options.breaks));
        header.extend(writer.head(b'F', user));
        header.extend(data_padding_bytes(0, None, writer.options.breaks));
        writer.write_at_root(0, &header)?;
        writer.cursor = FILE_HEADER;
        Ok(writer)
    }

    /// Writes an I section: 32 bytes, passed on rank `root`.
    pub fn inline(&mut self, user: &[u8], root: usize, data: Option<&[u8; 32]>) -> Result<()> {
        let checked = self.check_root(user, root, data.is_some());
        agree_alike(self.comm, checked, (user, root))?;
        let mut bytes = self.head(b'I', user);
        bytes.extend_from_slice(data.map_or(&[], |d| &d[..]));
        let mine = if self.comm.rank() == root { &bytes[..] } else { &[] };
        self.file.write_at_all(self.cursor, mine)?;
        self.cursor += SECTION_HEADER + ENTRY;
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
        let checked = self.check_root(user, root, data.is_some()).and_then(|()| match data {
            Some(data) if here && data.bytes() != size => {
                Err(Error::argument(format!("expected {size} bytes, found {}", data.bytes())))
            }
            _ if size >= 1 << 62 => Err(too_large()),
            _ => Ok(()),
        });
        agree_alike(self.comm, checked, (user, root, size, encode))?;
        let data = data.filter(|_| here).unwrap_or(Elements::Contiguous(&[]));
        if !encode {
            return self.write_block(user, size, data);
        }
        let mut encoded = Vec::new();
        let Options { level, breaks, .. } = self.options;
        let mut encode =
            || Encoder::new(level, breaks)?.encode(data.contiguous(&mut Vec::new())?, &mut encoded);
        agree(self.comm, if here { encode() } else { Ok(()) })?;
        let lengths = gather_numbers(self.comm, encoded.len() as u64)?;
        self.write_announcement(COMPRESSED_BLOCK, size)?;
        self.write_block(user, lengths[root], Elements::Contiguous(&encoded))
    }

    /// Writes a block of `size` bytes, all of which are on one rank.
    fn write_block(&mut self, user: &[u8], size: u64, data: Elements<'_>) -> Result<()> {
        let start = self.write_head(b'B', user, &[(b'E', size)])?;
        self.write_data(start, start, size, data)
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
            number.checked_mul(size).filter(|bytes| *bytes < 1 << 62).ok_or_else(too_large)
        });
        let bytes = agree_alike(self.comm, checked, (user, counts, size, encode))?;
        if encode {
            self.write_announcement(COMPRESSED_ARRAY, size)?;
            let mine = counts[self.comm.rank()] as usize;
            return self.write_encoded(user, counts, mine, |_| size, data);
        }
        let start = self.write_head(b'A', user, &[(b'N', total(counts)?), (b'E', size)])?;
        self.write_data(start, start + before(counts, self.comm.rank()) * size, bytes, data)
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
        agree_alike(self.comm, checked, (user, counts, encode))?;
        if !encode {
            return self.write_varray(user, counts, sizes, data);
        }
        let number = total(counts)?;
        let start = self.write_head(b'A', COMPRESSED_VARRAY, &[(b'N', number), (b'E', ENTRY)])?;
        self.write_entries(start, b'U', counts, sizes)?;
        // The last byte of an entry is a line break in either style.
        self.pad_data(start, number * ENTRY, Some(b'\n').filter(|_| number > 0))?;
        self.write_encoded(user, counts, sizes.len(), |k| sizes[k], data)
    }

    fn write_varray(
        &mut self,
        user: &[u8],
        counts: &[u64],
        sizes: &[u64],
        data: Elements<'_>,
    ) -> Result<()> {
        let lengths = gather_numbers(self.comm, data.bytes())?;
        let bytes = total(&lengths)?;
        let table = self.write_head(b'V', user, &[(b'N', total(counts)?)])?;
        self.write_entries(table, b'E', counts, sizes)?;
        let start = table + total(counts)? * ENTRY;
        self.write_data(start, start + before(&lengths, self.comm.rank()), bytes, data)
    }

    /// Writes type, user string and counts of a section. Returns the offset of the first byte after them.
    fn write_head(&self, letter: u8, user: &[u8], counts: &[(u8, u64)]) -> Result<u64> {
        let mut head = self.head(letter, user);
        head.extend(counts.iter().flat_map(|(letter, value)| self.entries(*letter, &[*value])));
        self.write_at_root(self.cursor, &head)?;
        Ok(self.cursor + head.len() as u64)
    }

    /// Compresses the elements of this rank on all threads and writes them as a V section.
    fn write_encoded(
        &mut self,
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
            agree(self.comm, encode(&runs, &mut parts))?;
            let sizes: Vec<u64> = parts.iter().flat_map(|(sizes, _)| sizes).copied().collect();
            let pieces: Vec<&[u8]> = parts.iter().map(|(_, bytes)| bytes.as_slice()).collect();
            return self.write_varray(user, counts, &sizes, Elements::Indirect(&pieces));
        }
        let table = self.write_head(b'V', user, &[(b'N', number as u64)])?;
        let start = table + number as u64 * ENTRY;
        let (mut entry, mut at, mut last) = (table, start, None);
        for batch in split(runs.iter().map(|run| run.bytes), usize::MAX, ENCODED_AT_ONCE) {
            encode(&runs[batch.first..batch.first + batch.number], &mut parts)?;
            for (sizes, bytes) in &parts {
                self.file.write_at_all(entry, &self.entries(b'E', sizes))?;
                self.file.write_at_all(at, bytes)?;
                entry += sizes.len() as u64 * ENTRY;
                at += bytes.len() as u64;
                last = bytes.last().copied().or(last);
            }
        }
        self.pad_data(start, at - start, last)
    }

    /// Completes the file. It does not exist under its name before.
    pub fn close(self) -> Result<()> {
        self.file.finish()
    }

    /// Writes this rank's data at offset `mine`, and the padding after the `bytes` of all ranks, which begin
    /// at `start`.
    fn write_data(&mut self, start: u64, mine: u64, bytes: u64, data: Elements<'_>) -> Result<()> {
        let (contiguous, other) = match data {
            Elements::Contiguous(all) => (all, Elements::Contiguous(&[])),
            other => (&[][..], other),
        };
        self.file.write_at_all(mine, contiguous)?;
        self.write_buffered(mine, other)?;
        // The padding depends on the last byte of the last rank with data.
        let last = agree(self.comm, data.last())?;
        let lasts = self.comm.allgather(last.as_slice())?;
        let last = lasts.iter().rev().find_map(|byte| byte.first().copied());
        self.pad_data(start, bytes, last)
    }

    /// Writes elements that are not contiguous through a buffer. All ranks take part in every round.
    fn write_buffered(&self, mut at: u64, data: Elements<'_>) -> Result<()> {
        let mut left = data.bytes();
        let rounds = gather_numbers(self.comm, left.div_ceil(AT_ONCE as u64))?;
        let mut buffer = vec![0; left.min(AT_ONCE as u64) as usize];
        let mut fill = data.reader();
        let mut filled = Ok(());
        for _ in 0..rounds.into_iter().max().unwrap_or(0) {
            let piece = &mut buffer[..left.min(AT_ONCE as u64) as usize];
            if filled.is_ok() {
                filled = fill(piece);
            }
            if filled.is_err() && self.comm.size() == 1 {
                // No other rank waits for this one.
                return filled;
            }
            self.file.write_at_all(at, piece)?;
            at += piece.len() as u64;
            left -= piece.len() as u64;
        }
        agree(self.comm, filled)
    }

    /// Writes the padding after the `bytes` that begin at `start`, and moves the cursor to its end.
    fn pad_data(&mut self, start: u64, bytes: u64, last: Option<u8>) -> Result<()> {
        self.write_at_root(start + bytes, &data_padding_bytes(bytes, last, self.options.breaks))?;
        self.cursor = start + bytes + data_padding(bytes);
        Ok(())
    }

    /// Writes the count entries of this rank's elements to the table at `table`.
    fn write_entries(&self, table: u64, letter: u8, counts: &[u64], sizes: &[u64]) -> Result<()> {
        let mut at = table + before(counts, self.comm.rank()) * ENTRY;
        let per_round = AT_ONCE / ENTRY as usize;
        let mut parts = sizes.chunks(per_round);
        let mut entries = Vec::new();
        for _ in 0..counts.iter().max().unwrap_or(&0).div_ceil(per_round as u64) {
            let part = parts.next().unwrap_or_default();
            format_entries(letter, part, self.options.breaks, &mut entries);
            self.file.write_at_all(at, &entries)?;
            at += entries.len() as u64;
        }
        Ok(())
    }

    fn write_at_root(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mine = if self.comm.rank() == 0 { bytes } else { &[] };
        self.file.write_at_all(offset, mine)
    }

    /// Writes the I section before compressed data, with their uncompressed size (Figure 6).
    fn write_announcement(&mut self, user: &[u8], size: u64) -> Result<()> {
        self.cursor = self.write_head(b'I', user, &[(b'U', size)])?;
        Ok(())
    }

    /// Type letter and user string, 64 bytes.
    fn head(&self, letter: u8, user: &[u8]) -> Vec<u8> {
        let mut out = vec![letter, b' '];
        out.extend(pad(user, SECTION_HEADER as usize - 2, self.options.breaks));
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

fn before(counts: &[u64], rank: usize) -> u64 {
    counts[..rank].iter().sum()
}
