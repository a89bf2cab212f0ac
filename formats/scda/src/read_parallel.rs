//! Collective reading on all ranks of a job (appendix A.5). Each rank reads the elements of its
//! partition, which may differ from the partition of the writing job.
//!
//! A [`Cursor`] moves forwards, one section at a time. Every method is collective. Rank 0 reads the
//! headers and broadcasts them; each rank reads its own part of sizes and data.

mod data;

use std::cell::{Cell, OnceCell};
use std::hash::Hash;
use std::path::{Path, PathBuf};

use spile_core::comm::{Comm, SharedSource, agree, agree_call};
use spile_core::layout::Codec as _;
use spile_core::{Error, Limits, Result};

use crate::buffers::Slots;
use crate::codec::Convention;
use crate::index::{Index, compare_sums, sum_part};
use crate::prepared::Prepared;
use crate::section::{Headers, SectionHeader};
use crate::wire::{ENTRY, FILE_HEADER, FileHeader, Kind};

/// Reads the sections of a file on all ranks of a job.
pub struct Cursor<'c> {
    comm: &'c dyn Comm,
    file: Box<dyn SharedSource + 'c>,
    path: PathBuf,
    limits: Limits,
    header: FileHeader,
    /// Offset of the current section, or of the next one if no header was read.
    at: u64,
    open: Option<Open>,
    prepared: Cell<Option<Prepared>>,
    /// Read when it is needed first.
    index: OnceCell<Option<Index>>,
}

/// A place in the file.
pub(crate) struct Place {
    at: u64,
    open: Option<Open>,
}

/// The section whose header was read last.
struct Open {
    headers: Headers,
    /// Sizes of this rank's elements, for V and compressed A sections.
    share: Option<Share>,
}

/// The elements of one rank in a V section.
struct Share {
    counts: Vec<u64>,
    /// Stored sizes of this rank's elements.
    sizes: Vec<u64>,
    /// Uncompressed sizes of this rank's elements, if they differ.
    decoded: Option<Vec<u64>>,
    /// Stored bytes of the ranks before this one, and of all ranks.
    before: u64,
    total: u64,
}

impl<'c> Cursor<'c> {
    /// Opens a file on all ranks.
    pub fn open(comm: &'c dyn Comm, path: &Path, limits: &Limits) -> Result<Self> {
        let file = comm.open(path)?;
        let header = FileHeader::parse(&read_on_all(comm, &*file, 0, FILE_HEADER as usize)?);
        let header = header.map_err(|e| e.with_path(path))?;
        let (path, limits, at) = (path.to_path_buf(), *limits, FILE_HEADER);
        let (open, prepared, index) = (None, Cell::default(), OnceCell::new());
        Ok(Self { comm, file, path, limits, header, at, open, prepared, index })
    }

    /// Prepares the next call that reads data, for bindings to other languages: `arguments` must be the same on every
    /// rank, so must `optional` on the ranks that pass it, and an error of `checked` is returned by the call on all
    /// ranks.
    pub fn prepare(
        &mut self,
        arguments: impl Hash,
        optional: Option<impl Hash>,
        checked: Result<()>,
    ) {
        self.prepared.set(Some(Prepared::new(arguments, optional, checked)));
    }

    /// The index at the end of the file; `None` if it has none. Collective.
    pub fn index(&mut self) -> Result<Option<&Index>> {
        if self.index.get().is_none() {
            let fetch = |at, len| read_on_all(self.comm, &*self.file, at, len);
            let index = Index::read_with(self.file.len(), &self.limits, fetch);
            let _ = self.index.set(index.map_err(|e| e.with_path(&self.path))?);
        }
        Ok(self.index.get().and_then(Option::as_ref))
    }

    /// Compares the checksum of the part of the file that contains the byte at `position` with the index. Returns
    /// whether there is a checksum. Collective; every rank reads an equal share of the part.
    pub fn verify(&mut self, position: u64) -> Result<bool> {
        let part = self.index()?.and_then(|index| index.part_at(position)).copied();
        let Some((part, expected)) = part.and_then(|part| Some((part, part.crc?))) else {
            return Ok(false);
        };
        let (read, mine) =
            sum_part(self.comm, &part, |at, bytes, most| self.file.read(at, bytes, most));
        self.agree(read)?;
        let mut sum = [u64::from(mine)];
        self.comm.xor(&mut sum)?;
        compare_sums(&part, expected, sum[0] as u32).map_err(|e| e.with_path(&self.path))?;
        Ok(true)
    }

    /// The file header.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// Header of the current section: its header was read, its data were not.
    pub fn section(&self) -> Option<SectionHeader> {
        self.open.as_ref().map(|open| open.headers.header())
    }

    /// Reads the header of the next section, skipping data that were not read; `None` at the end of the
    /// file. With `decode`, a section that follows the compression convention is decoded.
    pub fn next(&mut self, decode: bool) -> Result<Option<SectionHeader>> {
        self.agree_alike(Ok(()), decode)?;
        self.read_header(decode)
    }

    /// [`Cursor::next`] with an argument that is known to be the same on every rank.
    pub(crate) fn read_header(&mut self, decode: bool) -> Result<Option<SectionHeader>> {
        self.skip()?;
        let fetch = |at, len| read_on_all(self.comm, &*self.file, at, len);
        // All ranks parse the same bytes and need not agree on the result.
        let headers = Headers::read(self.at, self.file.len(), decode, fetch);
        let headers = headers.map_err(|e| e.with_path(&self.path))?;
        self.open = headers.map(|headers| Open { headers, share: None });
        Ok(self.section())
    }

    /// Offset of the current section, or of the next one if no header was read.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// Moves to the section at `position`, which is a result of [`Cursor::position`].
    pub(crate) fn go_to(&mut self, position: u64) {
        (self.at, self.open) = (position, None);
    }

    /// Moves to the first section; the result is for [`Cursor::restore`].
    pub(crate) fn rewind(&mut self) -> Place {
        let place = Place { at: self.at, open: self.open.take() };
        self.go_to(FILE_HEADER);
        place
    }

    /// Moves back to the place from which [`Cursor::rewind`] has moved.
    pub(crate) fn restore(&mut self, place: Place) {
        (self.at, self.open) = (place.at, place.open);
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Skips the data of the current section.
    pub fn skip(&mut self) -> Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        if open.headers.data.kind != Kind::Varray || open.share.is_some() {
            return self.close();
        }
        let (head, file_len) = (open.headers.data.clone(), self.file.len());
        if let Some(len) = self.index()?.and_then(|index| index.data_len(&head, file_len)) {
            return self.move_behind(len);
        }
        // Every rank adds up an equal part of the sizes.
        let counts = split_evenly(head.count, self.comm.size());
        let (_, total) = self.sum_sizes(&counts, |_| ())?;
        self.move_behind(total)
    }

    /// Reads the 32 bytes of an I section; `None` on ranks other than `root`.
    pub fn inline(&mut self, root: usize) -> Result<Option<[u8; 32]>> {
        let mut bytes = [0; 32];
        let here = self.comm.rank() == root;
        self.inline_into(root, here.then_some(&mut bytes))?;
        Ok(here.then_some(bytes))
    }

    /// Reads the 32 bytes of an I section into `into` on `root`. The data are skipped if `root` passes `None`.
    pub fn inline_into(&mut self, root: usize, into: Option<&mut [u8; 32]>) -> Result<()> {
        let checked = self.open_as(Kind::Inline).and_then(|open| {
            self.check_rank(root)?;
            Ok(open.headers.data.end())
        });
        let at = self.agree_alike(checked, root)?;
        let here = self.comm.rank() == root;
        let into = into.filter(|_| here).map_or(&mut [][..], |bytes| &mut bytes[..]);
        self.agree(self.file.read(at, into, ENTRY))?;
        self.close()
    }

    /// Reads the bytes of a B section; `None` on ranks other than `root`.
    pub fn block(&mut self, root: usize) -> Result<Option<Vec<u8>>> {
        let here = self.comm.rank() == root;
        let buffer = self.open_as(Kind::Block).and_then(|open| {
            let size = if here { open.headers.size } else { 0 };
            Ok(vec![0; self.limits.allow(size, "the block")?])
        });
        let mut bytes = self.agree(buffer)?;
        self.block_into(root, here.then_some(&mut bytes))?;
        Ok(here.then_some(bytes))
    }

    /// Reads the bytes of a B section into `into` on `root`. The data are skipped if `root` passes `None`.
    pub fn block_into(&mut self, root: usize, into: Option<&mut [u8]>) -> Result<()> {
        let into = into.filter(|_| self.comm.rank() == root);
        let checked = self.open_as(Kind::Block).and_then(|open| {
            self.check_rank(root)?;
            let Headers { size, announcement, data, .. } = &open.headers;
            let Some(into) = &into else { return Ok((data.end(), None)) };
            if into.len() as u64 != *size {
                let message = format!("expected a buffer of {size} bytes, found {}", into.len());
                return Err(Error::argument(message));
            }
            if announcement.is_none() {
                return Ok((data.end(), None));
            }
            let stored = self.limits.allow(data.size, "the compressed block")?;
            Ok((data.end(), Some(vec![0; stored])))
        });
        let (at, stored) = self.agree_alike(checked, root)?;
        let longest = self.current()?.headers.data.size;
        let read = match (into, stored) {
            (Some(into), Some(mut stored)) => {
                let read = self.file.read(at, &mut stored, longest);
                read.and_then(|()| Convention.decode(&stored, into).map_err(|e| e.at(at)))
            }
            (into, _) => self.file.read(at, into.unwrap_or_default(), longest),
        };
        self.agree(read)?;
        self.close()
    }

    /// Reads the bytes of a B section on all ranks, which agree on the result of `allowed` first.
    pub(crate) fn block_on_all(&mut self, allowed: Result<()>) -> Result<Vec<u8>> {
        let opened = self.open_as(Kind::Block).map(|open| {
            let Headers { size, announcement, data, .. } = &open.headers;
            (data.end(), data.size, announcement.is_some().then_some(*size))
        });
        let checked = allowed.and(opened).and_then(|(at, stored, decoded)| {
            let bytes = stored.saturating_add(decoded.unwrap_or(0));
            self.limits.allow(bytes, "the block")?;
            Ok((at, stored, decoded))
        });
        let (at, stored, decoded) = self.agree(checked)?;
        let mut bytes = read_on_all(self.comm, &*self.file, at, stored as usize)?;
        if let Some(size) = decoded {
            let mut whole = vec![0; size as usize];
            let done = Convention.decode(&bytes, &mut whole).map_err(|e| e.at(at));
            done.map_err(|e| e.with_path(&self.path))?;
            bytes = whole;
        }
        self.close()?;
        Ok(bytes)
    }

    /// Reads this rank's elements of an A section in file order. `counts` is the number of elements of
    /// each rank.
    pub fn array(&mut self, counts: &[u64]) -> Result<Vec<u8>> {
        let buffer = self.open_as(Kind::Array).and_then(|open| {
            let (_, mine) = self.partition(open, counts)?;
            let bytes = mine.saturating_mul(open.headers.size);
            Ok(vec![0; self.limits.allow(bytes, "the data of one rank")?])
        });
        let mut bytes = self.agree(buffer)?;
        self.array_into(counts, Some(Slots::Contiguous(&mut bytes)))?;
        Ok(bytes)
    }

    /// Reads this rank's elements of an A section into `into`; a rank that passes `None` reads nothing.
    /// `counts` is the number of elements of each rank.
    pub fn array_into(&mut self, counts: &[u64], into: Option<Slots<'_, '_>>) -> Result<()> {
        let checked = self.open_as(Kind::Array).and_then(|open| {
            let (first, mine) = self.partition(open, counts)?;
            let size = open.headers.size;
            let sizes = std::iter::repeat_n(size, mine as usize);
            let total = mine.checked_mul(size);
            if into.as_ref().is_some_and(|slots| !slots.matches(total, sizes)) {
                let message = format!("expected buffers for {mine} elements of {size} bytes");
                return Err(Error::argument(message));
            }
            let at = open.headers.data.end().saturating_add(first.saturating_mul(size));
            Ok((open.headers.announcement.is_some(), size, at))
        });
        let ((encoded, size, at), longest) = self.agree_slots(checked, counts, into.as_ref())?;
        let mine = counts[self.comm.rank()] as usize;
        if encoded {
            self.read_share(counts)?;
            self.decode_elements(std::iter::repeat_n(size, mine), into)?;
        } else {
            self.read_elements(at, into, longest)?;
        }
        self.close()
    }

    /// Reads the sizes of this rank's elements of a V section in bytes. `counts` is the number of elements
    /// of each rank.
    pub fn sizes(&mut self, counts: &[u64]) -> Result<Vec<u64>> {
        let checked = self.open_as(Kind::Varray).and_then(|open| {
            let (before, _) = self.partition(open, counts)?;
            let announcement = open.headers.announcement.as_ref();
            Ok(announcement.map(|first| first.end() + before * ENTRY))
        });
        let uncompressed = self.agree_alike(checked, counts)?;
        self.read_share(counts)?;
        let decoded = match uncompressed {
            Some(at) => Some(self.read_entries(at, counts, b'U')?),
            None => None,
        };
        let share = self.open.as_mut().and_then(|open| open.share.as_mut());
        let share = share.ok_or_else(|| Error::argument("no section header has been read"))?;
        share.decoded = decoded;
        Ok(share.decoded.as_ref().unwrap_or(&share.sizes).clone())
    }

    /// Reads this rank's elements of a V section in file order. Must be called after [`Cursor::sizes`] with
    /// the same `counts`.
    pub fn varray(&mut self, counts: &[u64]) -> Result<Vec<u8>> {
        let buffer = self.known_sizes(counts).and_then(|sizes| {
            let bytes = sizes.iter().fold(0_u64, |sum, size| sum.saturating_add(*size));
            Ok(vec![0; self.limits.allow(bytes, "the data of one rank")?])
        });
        let mut bytes = self.agree(buffer)?;
        self.varray_into(counts, Some(Slots::Contiguous(&mut bytes)))?;
        Ok(bytes)
    }

    /// Reads this rank's elements of a V section into `into`; a rank that passes `None` reads nothing. Must
    /// be called after [`Cursor::sizes`] with the same `counts`.
    pub fn varray_into(&mut self, counts: &[u64], into: Option<Slots<'_, '_>>) -> Result<()> {
        let checked = self.known_sizes(counts).and_then(|sizes| {
            let total = sizes.iter().try_fold(0_u64, |sum, size| sum.checked_add(*size));
            if into.as_ref().is_none_or(|slots| slots.matches(total, sizes.iter().copied())) {
                return Ok((sizes.to_vec(), self.current()?.headers.announcement.is_some()));
            }
            Err(Error::argument("expected buffers of the sizes in the file"))
        });
        let ((sizes, encoded), longest) = self.agree_slots(checked, counts, into.as_ref())?;
        if encoded {
            self.decode_elements(sizes.iter().copied(), into)?;
        } else {
            let at = self.current().map_or(0, |open| {
                open.headers.data.data() + open.share.as_ref().map_or(0, |share| share.before)
            });
            self.read_elements(at, into, longest)?;
        }
        self.close()
    }

    /// The result of [`Cursor::sizes`] for `counts`.
    fn known_sizes(&self, counts: &[u64]) -> Result<&[u64]> {
        let open = self.open_as(Kind::Varray)?;
        let share = open.share.as_ref().filter(|share| share.counts == counts);
        let share = share.ok_or_else(|| {
            Error::argument("the sizes of this partition must be read before the elements")
        })?;
        Ok(share.decoded.as_ref().unwrap_or(&share.sizes))
    }

    /// Moves to the end of the current section.
    fn close(&mut self) -> Result<()> {
        let len = self.current().and_then(|open| match &open.share {
            Some(share) => Ok(share.total),
            None => open.headers.data.data_len(),
        });
        self.move_behind(len.map_err(|e| e.with_path(&self.path))?)
    }

    /// Moves to the end of the current section, which has `len` stored bytes on every rank.
    fn move_behind(&mut self, len: u64) -> Result<()> {
        let end =
            self.current().and_then(|open| open.headers.data.section_end(self.file.len(), len));
        self.at = end.map_err(|e| e.with_path(&self.path))?;
        self.open = None;
        Ok(())
    }

    fn current(&self) -> Result<&Open> {
        self.open.as_ref().ok_or_else(|| Error::argument("no section header has been read"))
    }

    /// The current section. Fails if it is of another type.
    fn open_as(&self, kind: Kind) -> Result<&Open> {
        let open = self.current()?;
        if open.headers.kind == kind {
            return Ok(open);
        }
        let (found, expected) = (open.headers.kind.letter(), kind.letter());
        Err(Error::argument(format!("expected a section of type {expected}, found {found}")))
    }

    fn check_rank(&self, root: usize) -> Result<()> {
        let size = self.comm.size();
        if root < size {
            return Ok(());
        }
        Err(Error::argument(format!("rank {root} is out of range for {size} ranks")))
    }

    /// Number of elements before this rank's, and of this rank. Fails if `counts` is not a partition of the
    /// section.
    fn partition(&self, open: &Open, counts: &[u64]) -> Result<(u64, u64)> {
        let sum = counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        if counts.len() != self.comm.size() || sum != Some(open.headers.data.count) {
            let (count, ranks, numbers) = (open.headers.data.count, self.comm.size(), counts.len());
            let sum = sum.map_or_else(|| "more than 2^64".into(), |sum| sum.to_string());
            return Err(Error::argument(format!(
                "expected a partition of {count} elements on {ranks} ranks, found {sum} on {numbers}"
            )));
        }
        let rank = self.comm.rank();
        Ok((counts[..rank].iter().sum(), counts[rank]))
    }

    /// The result of this rank if all ranks succeed, otherwise the same error on all.
    fn agree<T>(&self, mine: Result<T>) -> Result<T> {
        agree(self.comm, mine.map_err(|e| e.with_path(&self.path)))
    }

    /// The result of this rank if all ranks succeed with the same `arguments`, otherwise the same error on
    /// all.
    pub(crate) fn agree_alike<T>(&self, mine: Result<T>, arguments: impl Hash) -> Result<T> {
        self.agree_call(mine, arguments, [0; 2]).map(|(mine, _)| mine)
    }

    /// [`Cursor::agree_alike`] that also returns the maximum over all ranks of each value.
    fn agree_call<T>(
        &self,
        mine: Result<T>,
        arguments: impl Hash,
        values: [u64; 2],
    ) -> Result<(T, [u64; 2])> {
        let prepared = self.prepared.take().unwrap_or_default();
        let arguments = (prepared.hash, arguments);
        let mine = prepared.checked.and(mine).map_err(|e| e.with_path(&self.path));
        let ([a, b], [optional, complement]) = (values, prepared.optional);
        let values = [a, b, optional, complement];
        let (mine, [a, b, optional, complement]) = agree_call(self.comm, mine, arguments, values)?;
        Prepared::compare([optional, complement])?;
        Ok((mine, [a, b]))
    }

    /// [`Cursor::agree_alike`] of a call that fills `slots`; also returns the maximum bytes of a rank in one
    /// buffer, and in one buffer per element.
    fn agree_slots<T>(
        &self,
        mine: Result<T>,
        counts: &[u64],
        slots: Option<&Slots<'_, '_>>,
    ) -> Result<(T, [u64; 2])> {
        let bytes = match slots {
            None => [0; 2],
            Some(Slots::Contiguous(buffer)) => [buffer.len() as u64, 0],
            Some(Slots::Indirect(slots)) => [0, slots.iter().map(|slot| slot.len() as u64).sum()],
        };
        self.agree_call(mine, counts, bytes)
    }
}

/// Number of elements of each rank if `count` elements are split evenly; the first ranks get one more.
pub fn split_evenly(count: u64, ranks: usize) -> Vec<u64> {
    let each = |rank| count / ranks as u64 + u64::from(rank < count % ranks as u64);
    (0..ranks as u64).map(each).collect()
}

/// Reads `len` bytes at `offset`, or as many as the file has, on rank 0 and broadcasts them.
fn read_on_all(
    comm: &dyn Comm,
    file: &dyn SharedSource,
    offset: u64,
    len: usize,
) -> Result<Vec<u8>> {
    let len = file.len().saturating_sub(offset).min(len as u64) as usize;
    // The first byte is 1 after an error.
    let mut bytes = vec![0; len + 1];
    let read = file.read_at_root(offset, &mut bytes[1..]);
    bytes[0] = u8::from(read.is_err());
    comm.broadcast(0, &mut bytes)?;
    if bytes[0] != 0 {
        agree(comm, read)?;
    }
    bytes.remove(0);
    Ok(bytes)
}
