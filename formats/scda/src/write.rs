//! The native writer (appendix A.4): sections written by all ranks of a job together. The bytes of
//! the file depend on the data alone, never on the number of ranks or the partition.

use std::path::Path;

use spile_core::comm::{Comm, SharedSink, agree, agree_alike, gather_numbers};
use spile_core::error::{Error, Result};
use spile_core::sink::Overwrite;

use crate::codec::Encoder;
use crate::elements::{Elements, Encoded, Run, encode, runs};
use crate::wire::{
    Breaks, ENTRY, FILE_HEADER, SECTION_HEADER, USER, VENDOR, data_padding, data_padding_bytes,
    format_entries, pad,
};

/// Bytes that are written at once where they are not written straight from the caller's memory.
const AT_ONCE: usize = 1 << 20;

/// Bytes that are compressed before anything of them is written, if they are several elements.
const ENCODED_AT_ONCE: u64 = 4 << 20;

/// How a file is written.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who writes; at most 20 bytes.
    pub vendor: Vec<u8>,
    /// Line breaks; [`Breaks::Unix`] or [`Breaks::Mime`].
    pub breaks: Breaks,
    /// Compression level of encoded sections, 0 to 12.
    pub level: u32,
    /// Whether an existing file may be replaced.
    pub overwrite: Overwrite,
}

impl Default for Options {
    fn default() -> Self {
        let vendor = format!("spile {}", env!("CARGO_PKG_VERSION")).into_bytes();
        Self { vendor, breaks: Breaks::Unix, level: 9, overwrite: Overwrite::Never }
    }
}

/// A file being written by the ranks of a job. Every method is collective; after an error, which
/// all ranks get alike, the file is given up and never appears.
pub struct Writer<'c> {
    comm: &'c dyn Comm,
    file: Box<dyn SharedSink + 'c>,
    cursor: u64,
    options: Options,
}

impl<'c> Writer<'c> {
    /// Starts a file.
    pub fn create(comm: &'c dyn Comm, path: &Path, user: &[u8], options: Options) -> Result<Self> {
        check(comm, user, &options)?;
        let file = comm.create(path, options.overwrite)?;
        Self::start(comm, file, user, options)
    }

    /// Starts a file in a sink that is there already; [`Writer::close`] finishes it.
    pub fn over(
        comm: &'c dyn Comm,
        file: Box<dyn SharedSink + 'c>,
        user: &[u8],
        options: Options,
    ) -> Result<Self> {
        check(comm, user, &options)?;
        Self::start(comm, file, user, options)
    }

    fn start(
        comm: &'c dyn Comm,
        file: Box<dyn SharedSink + 'c>,
        user: &[u8],
        options: Options,
    ) -> Result<Self> {
        let mut writer = Self { comm, file, cursor: 0, options };
        let mut header = b"scdata0 ".to_vec();
        header.extend(pad(&writer.options.vendor, 24, writer.options.breaks));
        header.extend(writer.head(b'F', user));
        header.extend(data_padding_bytes(0, None, writer.options.breaks));
        writer.write_at_root(0, &header)?;
        writer.cursor = FILE_HEADER;
        Ok(writer)
    }

    /// Writes 32 bytes, which `root` has.
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

    /// Writes a block of `size` bytes, which `root` has; with `encode`, compressed.
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

    /// [`Writer::block`] of bytes that need not be one piece of memory. To be compressed they are
    /// put together there.
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
                Err(Error::argument(format!("a block of {size} bytes was given {}", data.bytes())))
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
        let mut encode = || self.encoder()?.encode(data.whole(&mut Vec::new())?, &mut encoded);
        agree(self.comm, if here { encode() } else { Ok(()) })?;
        let lengths = gather_numbers(self.comm, encoded.len() as u64)?;
        self.announce(b"B compressed scda 00", size)?;
        self.write_block(user, lengths[root], Elements::Contiguous(&encoded))
    }

    /// Writes a block of `size` bytes; all ranks but one have none of them.
    fn write_block(&mut self, user: &[u8], size: u64, data: Elements<'_>) -> Result<()> {
        let mut head = self.head(b'B', user);
        head.extend(self.entry(b'E', size));
        self.write_at_root(self.cursor, &head)?;
        let start = self.cursor + head.len() as u64;
        self.write_data(start, start, size, data)
    }

    /// Writes an array of elements of `size` bytes. `counts` are the elements of each rank.
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
            if !data.fit(mine.checked_mul(size), each) {
                return Err(Error::argument(format!(
                    "rank {} was to give {mine} elements of {size} bytes and gave {} bytes",
                    self.comm.rank(),
                    data.bytes()
                )));
            }
            number.checked_mul(size).filter(|bytes| *bytes < 1 << 62).ok_or_else(too_large)
        });
        let bytes = agree_alike(self.comm, checked, (user, counts, size, encode))?;
        if encode {
            self.announce(b"A compressed scda 00", size)?;
            let mine = counts[self.comm.rank()] as usize;
            return self.write_encoded(user, counts, mine, |_| size, data);
        }
        let mut head = self.head(b'A', user);
        head.extend(self.entry(b'N', total(counts)?));
        head.extend(self.entry(b'E', size));
        self.write_at_root(self.cursor, &head)?;
        let start = self.cursor + head.len() as u64;
        self.write_data(start, start + before(counts, self.comm.rank()) * size, bytes, data)
    }

    /// Writes an array of elements of different sizes. `counts` are the elements of each rank,
    /// `sizes` those of this rank's elements.
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
            if sizes.len() as u64 == mine && data.fit(sum, sizes.iter().copied()) {
                return Ok(());
            }
            Err(Error::argument(format!(
                "rank {} was to give {mine} elements and gave {} sizes and {} bytes",
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
        let mut head = self.head(b'A', b"V compressed scda 00");
        head.extend(self.entry(b'N', number));
        head.extend(self.entry(b'E', ENTRY));
        self.write_at_root(self.cursor, &head)?;
        let start = self.cursor + head.len() as u64;
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
        let table = self.write_varray_head(user, total(counts)?)?;
        self.write_entries(table, b'E', counts, sizes)?;
        let start = table + total(counts)? * ENTRY;
        self.write_data(start, start + before(&lengths, self.comm.rank()), bytes, data)
    }

    /// Writes the fixed part of a V section and gives the place of the sizes.
    fn write_varray_head(&mut self, user: &[u8], number: u64) -> Result<u64> {
        let mut head = self.head(b'V', user);
        head.extend(self.entry(b'N', number));
        self.write_at_root(self.cursor, &head)?;
        Ok(self.cursor + head.len() as u64)
    }

    /// Compresses the elements of this rank on all its threads and writes them as a V section.
    fn write_encoded(
        &mut self,
        user: &[u8],
        counts: &[u64],
        number: usize,
        size_of: impl Fn(usize) -> u64 + Sync,
        data: Elements<'_>,
    ) -> Result<()> {
        let (level, breaks) = (self.options.level, self.options.breaks);
        let encoder = || Encoder::new(level, breaks);
        let encode =
            |runs: &[Run], parts: &mut Vec<Encoded>| encode(data, &size_of, runs, encoder, parts);
        let mut parts = Vec::new();
        let runs = runs((0..number).map(&size_of));
        if self.comm.size() > 1 {
            // Where a rank's elements begin is known when all ranks have compressed theirs.
            agree(self.comm, encode(&runs, &mut parts))?;
            let sizes: Vec<u64> = parts.iter().flat_map(|(sizes, _)| sizes).copied().collect();
            let pieces: Vec<&[u8]> = parts.iter().map(|(_, bytes)| bytes.as_slice()).collect();
            return self.write_varray(user, counts, &sizes, Elements::Indirect(&pieces));
        }
        let table = self.write_varray_head(user, number as u64)?;
        let start = table + number as u64 * ENTRY;
        let (mut entry, mut at, mut last) = (table, start, None);
        let mut left = runs.as_slice();
        while !left.is_empty() {
            let mut bytes = 0;
            let fits = |run: &&Run| {
                bytes += run.bytes;
                bytes <= ENCODED_AT_ONCE
            };
            let (batch, rest) = left.split_at(left.iter().take_while(fits).count().max(1));
            left = rest;
            encode(batch, &mut parts)?;
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

    /// Makes the file appear.
    pub fn close(self) -> Result<()> {
        self.file.finish()
    }

    /// Writes this rank's data at `mine` and, by whoever has the last byte, the padding behind the
    /// `bytes` that begin at `start`.
    fn write_data(&mut self, start: u64, mine: u64, bytes: u64, data: Elements<'_>) -> Result<()> {
        let (together, apart) = match data {
            Elements::Contiguous(all) => (all, Elements::Contiguous(&[])),
            apart => (&[][..], apart),
        };
        self.file.write_at_all(mine, together)?;
        self.write_apart(mine, apart)?;
        // A collective answer to "who has the last byte": the last rank that has any.
        let last = agree(self.comm, data.last())?;
        let lasts = self.comm.allgather(last.as_slice())?;
        let last = lasts.iter().rev().find_map(|byte| byte.first().copied());
        self.pad_data(start, bytes, last)
    }

    /// Writes elements that lie apart, or come from elsewhere, through a buffer. Ranks with less to
    /// write join in with nothing.
    fn write_apart(&self, mut at: u64, data: Elements<'_>) -> Result<()> {
        let mut left = data.bytes();
        let rounds = gather_numbers(self.comm, left.div_ceil(AT_ONCE as u64))?;
        let mut buffer = vec![0; left.min(AT_ONCE as u64) as usize];
        let mut walk = data.walk();
        let mut filled = Ok(());
        for _ in 0..rounds.into_iter().max().unwrap_or(0) {
            let piece = &mut buffer[..left.min(AT_ONCE as u64) as usize];
            if filled.is_ok() {
                filled = walk.fill(piece);
            }
            if filled.is_err() && self.comm.size() == 1 {
                // Nobody else has to be kept company.
                return filled;
            }
            self.file.write_at_all(at, piece)?;
            at += piece.len() as u64;
            left -= piece.len() as u64;
        }
        agree(self.comm, filled)
    }

    /// Writes the padding behind the `bytes` that begin at `start`, and goes on behind it.
    fn pad_data(&mut self, start: u64, bytes: u64, last: Option<u8>) -> Result<()> {
        self.write_at_root(start + bytes, &data_padding_bytes(bytes, last, self.options.breaks))?;
        self.cursor = start + bytes + data_padding(bytes);
        Ok(())
    }

    /// Writes one count entry for each element of each rank.
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

    /// The inline section that announces compressed data (Figure 6).
    fn announce(&mut self, user: &[u8], size: u64) -> Result<()> {
        let mut bytes = self.head(b'I', user);
        bytes.extend(self.entry(b'U', size));
        self.write_at_root(self.cursor, &bytes)?;
        self.cursor += SECTION_HEADER + ENTRY;
        Ok(())
    }

    fn encoder(&self) -> Result<Encoder> {
        Encoder::new(self.options.level, self.options.breaks)
    }

    /// Letter and user string, 64 bytes.
    fn head(&self, letter: u8, user: &[u8]) -> Vec<u8> {
        let mut out = vec![letter, b' '];
        out.extend(pad(user, SECTION_HEADER as usize - 2, self.options.breaks));
        out
    }

    /// A count, 32 bytes.
    fn entry(&self, letter: u8, value: u64) -> Vec<u8> {
        self.entries(letter, &[value])
    }

    /// Counts, 32 bytes each.
    fn entries(&self, letter: u8, values: &[u64]) -> Vec<u8> {
        let mut out = Vec::new();
        format_entries(letter, values, self.options.breaks, &mut out);
        out
    }

    fn check_root(&self, user: &[u8], root: usize, given: bool) -> Result<()> {
        string(user, USER, "user")?;
        if root >= self.comm.size() {
            let size = self.comm.size();
            return Err(Error::argument(format!("there is no rank {root}, the job has {size}")));
        }
        if self.comm.rank() == root && !given {
            return Err(Error::argument(format!("rank {root} has the data, but gave none")));
        }
        Ok(())
    }

    /// The partition is one of this job: gives the number of all elements and of ours.
    fn check_partition(&self, user: &[u8], counts: &[u64]) -> Result<(u64, u64)> {
        string(user, USER, "user")?;
        if counts.len() != self.comm.size() {
            let (got, size) = (counts.len(), self.comm.size());
            return Err(Error::argument(format!("a partition of {got} for a job of {size}")));
        }
        Ok((total(counts)?, counts[self.comm.rank()]))
    }
}

/// What is said of the file fits, and is the same on every rank.
fn check(comm: &dyn Comm, user: &[u8], options: &Options) -> Result<()> {
    let checked = string(&options.vendor, VENDOR, "vendor")
        .and_then(|()| string(user, USER, "user"))
        .and_then(|()| Encoder::new(options.level, options.breaks).map(drop));
    let same = (user, &options.vendor, options.breaks == Breaks::Mime, options.level);
    agree_alike(comm, checked, same)
}

fn string(bytes: &[u8], longest: usize, which: &str) -> Result<()> {
    if bytes.len() <= longest {
        return Ok(());
    }
    let length = bytes.len();
    Err(Error::argument(format!("a {which} string has {length} bytes, at most {longest} fit")))
}

fn too_large() -> Error {
    Error::limit("more bytes than any file holds")
}

fn total(counts: &[u64]) -> Result<u64> {
    let sum = counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
    sum.filter(|sum| *sum < 1 << 57).ok_or_else(too_large)
}

fn before(counts: &[u64], rank: usize) -> u64 {
    counts[..rank].iter().sum()
}
