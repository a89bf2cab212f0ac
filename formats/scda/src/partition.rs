//! Reading by all ranks of a job (appendix A.5): each rank gets the elements that its partition
//! gives it, whatever the partition was when the file was written.
//!
//! A [`Cursor`] moves forwards, one section at a time. Every method is collective; each rank reads
//! its own part of the file, of the sizes of a V section too.

use std::path::Path;

use rayon::prelude::*;
use spile_core::comm::{Comm, agree};
use spile_core::error::{Error, Result};
use spile_core::layout::Codec as _;
use spile_core::limits::Limits;
use spile_core::source::Source;

use crate::codec::Convention;
use crate::read::announced;
use crate::wire::{ENTRY, FILE_HEADER, FileHeader, Head, Kind, count, read_entries};

/// What a section is, the same on every rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionHeader {
    /// Type; the one that was encoded, if it is decoded.
    pub kind: Kind,
    /// User string.
    pub user: Vec<u8>,
    /// Number of elements; 0 for I and B.
    pub count: u64,
    /// Bytes of an element (A) or of the block (B); 0 for I and V.
    pub size: u64,
    /// The data will be decoded (Table 2).
    pub decoded: bool,
}

/// A file being read by the ranks of a job.
pub struct Cursor<'c> {
    comm: &'c dyn Comm,
    source: Source,
    limits: Limits,
    header: FileHeader,
    /// The next section.
    at: u64,
    open: Option<Open>,
}

/// The section whose header was read last.
struct Open {
    header: SectionHeader,
    /// The raw section that holds the data.
    holder: Head,
    /// The raw section that announced compression.
    announcement: Option<Head>,
    /// This rank's share of the sizes of a V section.
    share: Option<Share>,
}

impl Open {
    /// First byte of the stored elements.
    fn elements(&self) -> u64 {
        match self.holder.kind {
            Kind::Varray => self.holder.end.saturating_add(self.holder.count.saturating_mul(ENTRY)),
            _ => self.holder.end,
        }
    }
}

/// What a rank knows of the elements of a V section.
#[derive(Clone)]
struct Share {
    counts: Vec<u64>,
    /// Stored sizes of this rank's elements.
    sizes: Vec<u64>,
    /// Bytes of the ranks before this one, and of all.
    before: u64,
    total: u64,
}

impl<'c> Cursor<'c> {
    /// Opens a file on all ranks.
    pub fn open(comm: &'c dyn Comm, path: &Path, limits: &Limits) -> Result<Self> {
        let opened = Source::open(path).and_then(|source| {
            let header = FileHeader::read(&source).map_err(|e| e.with_path(path))?;
            Ok((source, header))
        });
        let (source, header) = agree(comm, opened)?;
        Ok(Self { comm, source, limits: *limits, header, at: FILE_HEADER, open: None })
    }

    /// The file header.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// Goes to the next section, past data that nobody read; nothing at the end of the file. With
    /// `decode`, a section of the compression convention is what it decodes to.
    pub fn next(&mut self, decode: bool) -> Result<Option<SectionHeader>> {
        self.skip()?;
        let found = agree(self.comm, self.read_header(decode))?;
        let Some(open) = found else { return Ok(None) };
        let header = open.header.clone();
        self.open = Some(open);
        Ok(Some(header))
    }

    fn read_header(&self, decode: bool) -> Result<Option<Open>> {
        let Some(first) = Head::read(&self.source, self.at)? else { return Ok(None) };
        let Some(kind) = announced(&first).filter(|_| decode) else {
            if first.kind != Kind::Varray {
                // Every place inside the data can be computed without care from here on.
                first.section_end(&self.source, first.end, first.data_len()?)?;
            }
            let Head { kind, user, count, size, .. } = first.clone();
            let header = SectionHeader { kind, user, count, size, decoded: false };
            return Ok(Some(Open { header, holder: first, announcement: None, share: None }));
        };
        let bad = |message: &str, at| Error::malformed("scda-011", message).at(at);
        let next = first.section_end(&self.source, first.end, first.data_len()?)?;
        let wanted = if kind == Kind::Block { Kind::Block } else { Kind::Varray };
        let holder = Head::read(&self.source, next)?.filter(|head| head.kind == wanted);
        let holder =
            holder.ok_or_else(|| bad("the announced compressed section is missing", next))?;
        let size = match kind {
            Kind::Varray if first.size != ENTRY || first.count != holder.count => {
                return Err(bad("the uncompressed sizes do not fit the elements", first.offset));
            }
            Kind::Varray => 0,
            _ => count(&self.source.read_vec(first.end, ENTRY)?, b'U', first.end)?.0,
        };
        let header = SectionHeader {
            kind,
            user: holder.user.clone(),
            count: holder.count,
            size,
            decoded: true,
        };
        Ok(Some(Open { header, holder, announcement: Some(first), share: None }))
    }

    /// Passes over the data of the section.
    pub fn skip(&mut self) -> Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        if open.holder.kind == Kind::Varray && open.share.is_none() {
            // Somebody has to add up the sizes; everybody takes an equal part.
            let (count, ranks) = (open.holder.count, self.comm.size() as u64);
            let (each, rest) = (count / ranks, count % ranks);
            self.share((0..ranks).map(|rank| each + u64::from(rank < rest)).collect())?;
        }
        self.close()
    }

    /// The 32 bytes of an I section, on `root`.
    pub fn inline(&mut self, root: usize) -> Result<Option<[u8; 32]>> {
        let read = self.open_as(Kind::Inline).and_then(|open| {
            let mut bytes = [0; 32];
            if self.comm.rank() == root {
                self.source.read_exact_at(open.holder.end, &mut bytes)?;
            }
            Ok(bytes)
        });
        let bytes = agree(self.comm, read)?;
        self.close()?;
        Ok((self.comm.rank() == root).then_some(bytes))
    }

    /// The bytes of a B section, on `root`.
    pub fn block(&mut self, root: usize) -> Result<Option<Vec<u8>>> {
        let read = self.open_as(Kind::Block).and_then(|open| {
            if self.comm.rank() != root {
                return Ok(None);
            }
            let stored = self.source.read_vec(open.holder.end, self.room(open.holder.size)?)?;
            if open.announcement.is_none() {
                return Ok(Some(stored));
            }
            let mut bytes = vec![0; self.limits.allow(open.header.size, "the block")?];
            Convention.decode(&stored, &mut bytes).map_err(|e| e.at(open.holder.end))?;
            Ok(Some(bytes))
        });
        let bytes = agree(self.comm, read)?;
        self.close()?;
        Ok(bytes)
    }

    /// This rank's elements of an A section; `counts` are those of each rank. A rank that does not
    /// `want` its elements gets none.
    pub fn array(&mut self, counts: &[u64], want: bool) -> Result<Vec<u8>> {
        let checked = self.open_as(Kind::Array).and_then(|open| self.partition(open, counts));
        agree(self.comm, checked)?;
        let encoded = self.open.as_ref().is_some_and(|open| open.announcement.is_some());
        if encoded {
            self.share(counts.to_vec())?;
        }
        let read = self.open_as(Kind::Array).and_then(|open| {
            let (first, mine) = self.partition(open, counts)?;
            let size = open.header.size;
            if !want {
                return Ok(Vec::new());
            }
            if !encoded {
                let bytes = mine.checked_mul(size).ok_or_else(|| Error::limit("too many bytes"))?;
                return self.source.read_vec(open.holder.end + first * size, self.room(bytes)?);
            }
            self.decode(open, &vec![size; mine as usize])
        });
        let bytes = agree(self.comm, read)?;
        self.close()?;
        Ok(bytes)
    }

    /// The sizes of this rank's elements of a V section.
    pub fn sizes(&mut self, counts: &[u64]) -> Result<Vec<u64>> {
        let checked = self.open_as(Kind::Varray).and_then(|open| self.partition(open, counts));
        agree(self.comm, checked)?;
        self.share(counts.to_vec())?;
        let read = self.open_as(Kind::Varray).and_then(|open| match &open.announcement {
            None => Ok(open.share.as_ref().map(|s| s.sizes.clone()).unwrap_or_default()),
            Some(first) => {
                let (before, mine) = self.partition(open, counts)?;
                let at = first.end + before * ENTRY;
                read_entries(&self.source, at, mine, b'U', &self.limits)
            }
        });
        agree(self.comm, read)
    }

    /// This rank's elements of a V section, one after the other; `sizes` as [`Cursor::sizes`] gave
    /// them for the same `counts`. A rank that does not `want` its elements gets none.
    pub fn varray(&mut self, counts: &[u64], sizes: &[u64], want: bool) -> Result<Vec<u8>> {
        let read = self.open_as(Kind::Varray).and_then(|open| {
            let share = open.share.as_ref().filter(|share| share.counts == counts);
            let share = share.ok_or_else(|| {
                Error::argument("the sizes of this partition have to be read first")
            })?;
            if !want {
                return Ok(Vec::new());
            }
            if open.announcement.is_some() {
                return self.decode(open, sizes);
            }
            if sizes != share.sizes {
                return Err(Error::argument("the sizes are not those of the file"));
            }
            let bytes: u64 = share.sizes.iter().sum();
            let start = open.elements().saturating_add(share.before);
            self.source.read_vec(start, self.room(bytes)?)
        });
        let bytes = agree(self.comm, read)?;
        self.close()?;
        Ok(bytes)
    }

    /// Reads this rank's stored sizes and learns from the others where its elements begin.
    fn share(&mut self, counts: Vec<u64>) -> Result<()> {
        let rank = self.comm.rank();
        let read = self.current().and_then(|open| {
            let before: u64 = counts[..rank].iter().sum();
            let at = open.holder.end.saturating_add(before.saturating_mul(ENTRY));
            let sizes = read_entries(&self.source, at, counts[rank], b'E', &self.limits)?;
            let sum = sizes.iter().try_fold(0_u64, |sum, size| sum.checked_add(*size));
            let sum = sum.filter(|sum| *sum < 1 << 62).ok_or_else(|| {
                Error::malformed("scda-006", "the sizes add up to more than any file holds").at(at)
            })?;
            Ok((sizes, sum))
        });
        let (sizes, sum) = agree(self.comm, read)?;
        let all = self.comm.allgather(&sum.to_le_bytes())?;
        let sums = all.iter().map(|b| b.first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw)));
        let sums: Vec<u64> = sums.collect();
        let total = sums.iter().try_fold(0_u64, |total, sum| total.checked_add(*sum));
        let total = total.ok_or_else(|| {
            Error::malformed("scda-006", "the sizes add up to more than any file holds").at(self.at)
        })?;
        let before = sums[..rank].iter().sum();
        if let Some(open) = &mut self.open {
            open.share = Some(Share { counts, sizes, before, total });
        }
        Ok(())
    }

    /// Decodes this rank's elements on all its threads.
    fn decode(&self, open: &Open, sizes: &[u64]) -> Result<Vec<u8>> {
        let share = open.share.as_ref().ok_or_else(|| Error::argument("no sizes were read"))?;
        if sizes.len() != share.sizes.len() {
            return Err(Error::argument("the sizes are not those of the file"));
        }
        let stored: u64 = share.sizes.iter().sum();
        let start = open.elements().saturating_add(share.before);
        let stored = self.source.read_vec(start, self.room(stored)?)?;
        let total = sizes.iter().try_fold(0_u64, |total, size| total.checked_add(*size));
        let total = total.ok_or_else(|| Error::limit("too many bytes"))?;
        let mut out = vec![0; self.limits.allow(total, "the decoded elements")?];
        let (mut from, mut to) = (stored.as_slice(), out.as_mut_slice());
        let mut pairs = Vec::with_capacity(sizes.len());
        for (stored, size) in share.sizes.iter().zip(sizes) {
            let (element, rest) = from.split_at(*stored as usize);
            let (slot, left) = std::mem::take(&mut to).split_at_mut(*size as usize);
            (from, to) = (rest, left);
            pairs.push((element, slot));
        }
        pairs
            .into_par_iter()
            .try_for_each(|(element, slot)| Convention.decode(element, slot))
            .map_err(|e| e.at(start))?;
        Ok(out)
    }

    /// The cursor moves behind the section.
    fn close(&mut self) -> Result<()> {
        let end = self.current().and_then(|open| {
            let len = match &open.share {
                Some(share) => share.total,
                None => open.holder.data_len()?,
            };
            open.holder.section_end(&self.source, open.elements(), len)
        });
        self.at = agree(self.comm, end)?;
        self.open = None;
        Ok(())
    }

    fn current(&self) -> Result<&Open> {
        self.open.as_ref().ok_or_else(|| Error::argument("no section header has been read"))
    }

    /// The section, if it is of that type.
    fn open_as(&self, kind: Kind) -> Result<&Open> {
        let open = self.current()?;
        if open.header.kind == kind {
            return Ok(open);
        }
        let (found, wanted) = (open.header.kind.letter(), kind.letter());
        Err(Error::argument(format!("the section is {found}, not {wanted}")))
    }

    /// Elements before this rank's, and its own.
    fn partition(&self, open: &Open, counts: &[u64]) -> Result<(u64, u64)> {
        let sum = counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        if counts.len() != self.comm.size() || sum != Some(open.header.count) {
            return Err(Error::argument(format!(
                "the partition {counts:?} does not cover {} elements on {} ranks",
                open.header.count,
                self.comm.size()
            )));
        }
        let rank = self.comm.rank();
        Ok((counts[..rank].iter().sum(), counts[rank]))
    }

    fn room(&self, bytes: u64) -> Result<u64> {
        self.limits.allow(bytes, "the data of one rank").map(|bytes| bytes as u64)
    }
}
