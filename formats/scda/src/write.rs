//! The native writer (appendix A.4): sections written by all ranks of a job together. The bytes of
//! the file depend on the data alone, never on the number of ranks or the partition.

use std::path::Path;

use rayon::prelude::*;
use spile_core::comm::{Comm, SharedFile, agree};
use spile_core::error::{Error, Result};
use spile_core::sink::Overwrite;

use crate::codec::Encoder;
use crate::wire::{
    Breaks, ENTRY, FILE_HEADER, SECTION_HEADER, USER, VENDOR, data_padding, data_padding_bytes, pad,
};

/// Elements that are compressed with one state.
const ELEMENTS_AT_ONCE: usize = 64;

/// Elements that lie apart are gathered in pieces of this length.
const GATHER: usize = 1 << 20;

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

/// The elements of one rank.
#[derive(Clone, Copy, Debug)]
pub enum Elements<'a> {
    /// One after the other.
    Contiguous(&'a [u8]),
    /// Each somewhere else (`indirect` in the appendix).
    Indirect(&'a [&'a [u8]]),
}

impl<'a> Elements<'a> {
    fn bytes(self) -> u64 {
        match self {
            Self::Contiguous(bytes) => bytes.len() as u64,
            Self::Indirect(parts) => parts.iter().map(|p| p.len() as u64).sum(),
        }
    }

    fn last(self) -> Option<u8> {
        match self {
            Self::Contiguous(bytes) => bytes.last().copied(),
            Self::Indirect(parts) => parts.iter().rev().find_map(|p| p.last().copied()),
        }
    }

    /// The elements one by one, given their sizes.
    fn split(self, sizes: &[u64]) -> Vec<&'a [u8]> {
        match self {
            Self::Indirect(parts) => parts.to_vec(),
            Self::Contiguous(mut bytes) => sizes
                .iter()
                .map(|size| {
                    let (element, rest) = bytes.split_at(*size as usize);
                    bytes = rest;
                    element
                })
                .collect(),
        }
    }

    /// The elements are as many and as large as `sizes` says.
    fn fits(self, sizes: &[u64]) -> bool {
        match self {
            Self::Contiguous(bytes) => {
                let sum = sizes.iter().try_fold(0_u64, |sum, size| sum.checked_add(*size));
                sum == Some(bytes.len() as u64)
            }
            Self::Indirect(parts) => {
                parts.len() == sizes.len()
                    && parts.iter().zip(sizes).all(|(part, size)| part.len() as u64 == *size)
            }
        }
    }
}

/// A file being written by the ranks of a job. Every method is collective; after an error, which
/// all ranks get alike, the file is given up and never appears.
pub struct Writer<'c> {
    comm: &'c dyn Comm,
    file: Box<dyn SharedFile + 'c>,
    cursor: u64,
    options: Options,
}

impl<'c> Writer<'c> {
    /// Starts a file.
    pub fn create(comm: &'c dyn Comm, path: &Path, user: &[u8], options: Options) -> Result<Self> {
        let checked = string(&options.vendor, VENDOR, "vendor")
            .and_then(|()| string(user, USER, "user"))
            .and_then(|()| Encoder::new(options.level, options.breaks).map(drop));
        agree(comm, checked)?;
        let file = comm.create(path, options.overwrite)?;
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
        agree(self.comm, checked)?;
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
        let here = self.comm.rank() == root;
        let checked = self.check_root(user, root, data.is_some()).and_then(|()| match data {
            Some(data) if here && data.len() as u64 != size => {
                Err(Error::argument(format!("a block of {size} bytes was given {}", data.len())))
            }
            _ => Ok(()),
        });
        agree(self.comm, checked)?;
        let data = data.filter(|_| here).unwrap_or(&[]);
        if !encode {
            return self.write_block(user, root, size, data);
        }
        let mut encoded = Vec::new();
        let mut encode = || self.encoder()?.encode(data, &mut encoded);
        agree(self.comm, if here { encode() } else { Ok(()) })?;
        let lengths = self.gather_number(encoded.len() as u64)?;
        self.announce(b"B compressed scda 00", size)?;
        self.write_block(user, root, lengths[root], &encoded)
    }

    fn write_block(&mut self, user: &[u8], root: usize, size: u64, data: &[u8]) -> Result<()> {
        let here = self.comm.rank() == root;
        let mut head = self.head(b'B', user);
        head.extend(self.entry(b'E', size));
        let tail = data_padding_bytes(size, data.last().copied(), self.options.breaks);
        let at = self.cursor;
        let start = at + head.len() as u64;
        let mine = |bytes: &'_ [u8]| if here { bytes.to_vec() } else { Vec::new() };
        self.file.write_at_all(at, &mine(&head))?;
        self.file.write_at_all(start, if here { data } else { &[] })?;
        self.file.write_at_all(start + size, &mine(&tail))?;
        self.cursor = start + size + data_padding(size);
        Ok(())
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
        let checked = self.check_partition(user, counts).and_then(|(_, mine)| {
            let bytes = mine.checked_mul(size).ok_or_else(too_large)?;
            let each = match data {
                Elements::Indirect(parts) => {
                    parts.len() as u64 == mine && parts.iter().all(|p| p.len() as u64 == size)
                }
                Elements::Contiguous(_) => true,
            };
            if data.bytes() != bytes || !each {
                return Err(Error::argument(format!(
                    "rank {} was to give {mine} elements of {size} bytes and gave {} bytes",
                    self.comm.rank(),
                    data.bytes()
                )));
            }
            total(counts)?.checked_mul(size).filter(|t| *t < 1 << 62).ok_or_else(too_large)
        });
        let bytes = agree(self.comm, checked)?;
        let (first, number) = (before(counts, self.comm.rank()), total(counts)?);
        if encode {
            let sizes = vec![size; counts[self.comm.rank()] as usize];
            self.announce(b"A compressed scda 00", size)?;
            return self.write_encoded(user, counts, &sizes, data);
        }
        let mut head = self.head(b'A', user);
        head.extend(self.entry(b'N', number));
        head.extend(self.entry(b'E', size));
        self.write_at_root(self.cursor, &head)?;
        let start = self.cursor + head.len() as u64;
        self.write_data(start, start + first * size, bytes, data)
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
            if sizes.len() as u64 == mine && data.fits(sizes) {
                return Ok(());
            }
            Err(Error::argument(format!(
                "rank {} was to give {mine} elements and gave {} sizes and {} bytes",
                self.comm.rank(),
                sizes.len(),
                data.bytes()
            )))
        });
        agree(self.comm, checked)?;
        if encode {
            let number = total(counts)?;
            let mut head = self.head(b'A', b"V compressed scda 00");
            head.extend(self.entry(b'N', number));
            head.extend(self.entry(b'E', ENTRY));
            self.write_at_root(self.cursor, &head)?;
            let start = self.cursor + head.len() as u64;
            let entries = self.entries(b'U', sizes);
            let first = before(counts, self.comm.rank());
            let bytes = number.checked_mul(ENTRY).ok_or_else(too_large)?;
            self.write_data(start, start + first * ENTRY, bytes, Elements::Contiguous(&entries))?;
            return self.write_encoded(user, counts, sizes, data);
        }
        self.write_varray(user, counts, sizes, data)
    }

    fn write_varray(
        &mut self,
        user: &[u8],
        counts: &[u64],
        sizes: &[u64],
        data: Elements<'_>,
    ) -> Result<()> {
        let lengths = self.gather_number(data.bytes())?;
        let number = total(counts)?;
        let mut head = self.head(b'V', user);
        head.extend(self.entry(b'N', number));
        self.write_at_root(self.cursor, &head)?;
        let table = self.cursor + head.len() as u64;
        let rank = self.comm.rank();
        let entries = self.entries(b'E', sizes);
        self.file.write_at_all(table + before(counts, rank) * ENTRY, &entries)?;
        let start = table + number * ENTRY;
        self.write_data(start, start + before(&lengths, rank), total(&lengths)?, data)
    }

    /// Compresses the elements of this rank on all its threads and writes them as a V section.
    fn write_encoded(
        &mut self,
        user: &[u8],
        counts: &[u64],
        sizes: &[u64],
        data: Elements<'_>,
    ) -> Result<()> {
        let elements = data.split(sizes);
        let parts: Result<Vec<(Vec<u64>, Vec<u8>)>> = elements
            .par_chunks(ELEMENTS_AT_ONCE)
            .map_init(
                || self.encoder(),
                |encoder, part| {
                    let encoder = encoder.as_mut().map_err(|e| Error::argument(e.message()))?;
                    let (mut sizes, mut out) = (Vec::with_capacity(part.len()), Vec::new());
                    for element in part {
                        let start = out.len();
                        encoder.encode(element, &mut out)?;
                        sizes.push((out.len() - start) as u64);
                    }
                    Ok((sizes, out))
                },
            )
            .collect();
        let parts = agree(self.comm, parts)?;
        let sizes: Vec<u64> = parts.iter().flat_map(|(sizes, _)| sizes.iter().copied()).collect();
        let pieces: Vec<&[u8]> = parts.iter().map(|(_, bytes)| bytes.as_slice()).collect();
        self.write_varray(user, counts, &sizes, Elements::Indirect(&pieces))
    }

    /// Makes the file appear.
    pub fn close(self) -> Result<()> {
        self.file.finish()
    }

    /// Writes this rank's data at `mine` and, by whoever has the last byte, the padding behind the
    /// `bytes` that begin at `start`.
    fn write_data(&mut self, start: u64, mine: u64, bytes: u64, data: Elements<'_>) -> Result<()> {
        match data {
            Elements::Contiguous(all) => self.file.write_at_all(mine, all)?,
            Elements::Indirect(parts) => self.write_gathered(mine, parts)?,
        }
        // A collective answer to "who has the last byte": the last rank that has any.
        let lasts = self.comm.allgather(data.last().as_slice())?;
        let last = lasts.iter().rev().find_map(|byte| byte.first().copied());
        self.write_at_root(start + bytes, &data_padding_bytes(bytes, last, self.options.breaks))?;
        self.cursor = start + bytes + data_padding(bytes);
        Ok(())
    }

    /// Writes scattered elements through a buffer. Ranks with less to write join in with nothing.
    fn write_gathered(&self, mut at: u64, parts: &[&[u8]]) -> Result<()> {
        let mut pieces: Vec<Vec<u8>> = vec![Vec::new()];
        for part in parts {
            if let Some(last) = pieces.last_mut()
                && (last.is_empty() || last.len() + part.len() <= GATHER)
            {
                last.extend_from_slice(part);
            } else {
                pieces.push(part.to_vec());
            }
        }
        let rounds = self.gather_number(pieces.len() as u64)?.iter().copied().max().unwrap_or(0);
        for round in 0..rounds as usize {
            let piece = pieces.get(round).map_or(&[][..], Vec::as_slice);
            self.file.write_at_all(at, piece)?;
            at += piece.len() as u64;
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

    fn gather_number(&self, mine: u64) -> Result<Vec<u64>> {
        let all = self.comm.allgather(&mine.to_le_bytes())?;
        let number =
            |bytes: &Vec<u8>| bytes.first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw));
        Ok(all.iter().map(number).collect())
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
        let mut blank = [b'-'; ENTRY as usize];
        (blank[0], blank[1]) = (letter, b' ');
        blank[30..].copy_from_slice(match self.options.breaks {
            Breaks::Mime => b"\r\n",
            _ => b"-\n",
        });
        let mut out = vec![0; values.len() * ENTRY as usize];
        for (entry, value) in out.as_chunks_mut::<{ ENTRY as usize }>().0.iter_mut().zip(values) {
            *entry = blank;
            let length = value.checked_ilog10().unwrap_or(0) as usize + 1;
            let mut left = *value;
            for digit in entry[2..2 + length].iter_mut().rev() {
                *digit = b'0' + (left % 10) as u8;
                left /= 10;
            }
            entry[2 + length] = b' ';
        }
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
