//! Reading by all ranks of a job (appendix A.5): each rank gets the elements that its partition
//! gives it, whatever the partition was when the file was written.
//!
//! A [`Cursor`] moves forwards, one section at a time. Every method is collective. Rank 0 reads the
//! headers and tells the others; of everything else, sizes included, each rank reads its own part.

mod elements;

use std::hash::Hash;
use std::path::{Path, PathBuf};

use spile_core::comm::{Comm, SharedSource, agree, agree_alike};
use spile_core::error::{Error, Result};
use spile_core::layout::Codec as _;
use spile_core::limits::Limits;

use crate::codec::Convention;
use crate::elements::Slots;
use crate::read::announced;
use crate::wire::{ENTRY, FILE_HEADER, FileHeader, Head, Kind, LONGEST_HEAD, count};

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
    file: Box<dyn SharedSource + 'c>,
    path: PathBuf,
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
struct Share {
    counts: Vec<u64>,
    /// Stored sizes of this rank's elements.
    sizes: Vec<u64>,
    /// Sizes of this rank's elements as the user sees them, where they differ.
    decoded: Option<Vec<u64>>,
    /// Bytes of the ranks before this one, and of all.
    before: u64,
    total: u64,
}

impl<'c> Cursor<'c> {
    /// Opens a file on all ranks.
    pub fn open(comm: &'c dyn Comm, path: &Path, limits: &Limits) -> Result<Self> {
        let file = comm.open(path)?;
        let header = FileHeader::parse(&window(comm, &*file, 0, FILE_HEADER as usize)?);
        let header = header.map_err(|e| e.with_path(path))?;
        let path = path.to_path_buf();
        Ok(Self { comm, file, path, limits: *limits, header, at: FILE_HEADER, open: None })
    }

    /// The file header.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The section whose header was read and whose data were not.
    pub fn section(&self) -> Option<&SectionHeader> {
        self.open.as_ref().map(|open| &open.header)
    }

    /// Goes to the next section, past data that nobody read; nothing at the end of the file. With
    /// `decode`, a section of the compression convention is what it decodes to.
    pub fn next(&mut self, decode: bool) -> Result<Option<SectionHeader>> {
        self.settle_alike(Ok(()), decode)?;
        self.skip()?;
        // Long enough for the announcement of a compressed section and what follows it.
        let bytes = window(self.comm, &*self.file, self.at, 2 * LONGEST_HEAD)?;
        // All ranks look at the same bytes and come to the same end; there is nothing to agree on.
        let found = self.parse_header(&bytes, decode);
        let Some(open) = found.map_err(|e| e.with_path(&self.path))? else { return Ok(None) };
        let header = open.header.clone();
        self.open = Some(open);
        Ok(Some(header))
    }

    fn parse_header(&self, bytes: &[u8], decode: bool) -> Result<Option<Open>> {
        let file_len = self.file.len();
        let parse =
            |bytes: &[u8], at| Head::parse(&bytes[..bytes.len().min(LONGEST_HEAD)], at, file_len);
        let Some(first) = parse(bytes, self.at)? else { return Ok(None) };
        let Some(kind) = announced(&first).filter(|_| decode) else {
            if first.kind != Kind::Varray {
                // Every place inside the data can be computed without care from here on.
                first.section_end(file_len, first.end, first.data_len()?)?;
            }
            let Head { kind, user, count, size, .. } = first.clone();
            let header = SectionHeader { kind, user, count, size, decoded: false };
            return Ok(Some(Open { header, holder: first, announcement: None, share: None }));
        };
        let bad = |message: &str, at| Error::malformed("scda-011", message).at(at);
        let next = first.section_end(file_len, first.end, first.data_len()?)?;
        let holder = if kind == Kind::Varray {
            parse(&window(self.comm, &*self.file, next, LONGEST_HEAD)?, next)?
        } else {
            parse(&bytes[(next - self.at) as usize..], next)?
        };
        let wanted = if kind == Kind::Block { Kind::Block } else { Kind::Varray };
        let holder = holder
            .filter(|head| head.kind == wanted)
            .ok_or_else(|| bad("the announced compressed section is missing", next))?;
        if holder.kind == Kind::Block {
            holder.section_end(file_len, holder.end, holder.size)?;
        }
        let size = match kind {
            Kind::Varray if first.size != ENTRY || first.count != holder.count => {
                return Err(bad("the uncompressed sizes do not fit the elements", first.offset));
            }
            Kind::Varray => 0,
            _ => {
                let entry = (first.end - self.at) as usize;
                count(&bytes[entry..entry + ENTRY as usize], b'U', first.end)?.0
            }
        };
        let user = holder.user.clone();
        let header = SectionHeader { kind, user, count: holder.count, size, decoded: true };
        Ok(Some(Open { header, holder, announcement: Some(first), share: None }))
    }

    /// The first byte of the section whose header was read, or of the next one.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// Goes to the section at `position`, which [`Cursor::position`] gave on every rank.
    pub(crate) fn go_to(&mut self, position: u64) {
        (self.at, self.open) = (position, None);
    }

    /// Passes over the data of the section.
    pub fn skip(&mut self) -> Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        if open.holder.kind == Kind::Varray && open.share.is_none() {
            // Somebody has to add up the sizes; everybody takes an equal part.
            self.share(split_evenly(open.holder.count, self.comm.size()))?;
        }
        self.close()
    }

    /// The 32 bytes of an I section, on `root`.
    pub fn inline(&mut self, root: usize) -> Result<Option<[u8; 32]>> {
        let mut bytes = [0; 32];
        let here = self.comm.rank() == root;
        self.inline_into(root, here.then_some(&mut bytes))?;
        Ok(here.then_some(bytes))
    }

    /// [`Cursor::inline`] into memory that `root` gives; without any the data are passed over.
    pub fn inline_into(&mut self, root: usize, into: Option<&mut [u8; 32]>) -> Result<()> {
        let checked = self.open_as(Kind::Inline).and_then(|open| {
            self.is_rank(root)?;
            Ok(open.holder.end)
        });
        let at = self.settle_alike(checked, root)?;
        let here = self.comm.rank() == root;
        let into = into.filter(|_| here).map_or(&mut [][..], |bytes| &mut bytes[..]);
        self.file.read_at_all(at, into)?;
        self.close()
    }

    /// The bytes of a B section, on `root`.
    pub fn block(&mut self, root: usize) -> Result<Option<Vec<u8>>> {
        let here = self.comm.rank() == root;
        let room = self.open_as(Kind::Block).and_then(|open| {
            let size = if here { open.header.size } else { 0 };
            Ok(vec![0; self.limits.allow(size, "the block")?])
        });
        let mut bytes = self.settle(room)?;
        self.block_into(root, here.then_some(&mut bytes))?;
        Ok(here.then_some(bytes))
    }

    /// [`Cursor::block`] into memory that `root` gives; without any the data are passed over.
    pub fn block_into(&mut self, root: usize, into: Option<&mut [u8]>) -> Result<()> {
        let into = into.filter(|_| self.comm.rank() == root);
        let checked = self.open_as(Kind::Block).and_then(|open| {
            self.is_rank(root)?;
            let Some(into) = &into else { return Ok((open.holder.end, None)) };
            if into.len() as u64 != open.header.size {
                let (room, size) = (into.len(), open.header.size);
                return Err(Error::argument(format!(
                    "room for {room} bytes, the block has {size}"
                )));
            }
            if open.announcement.is_none() {
                return Ok((open.holder.end, None));
            }
            let stored = self.limits.allow(open.holder.size, "the compressed block")?;
            Ok((open.holder.end, Some(vec![0; stored])))
        });
        let (at, stored) = self.settle_alike(checked, root)?;
        match (into, stored) {
            (Some(into), Some(mut stored)) => {
                self.file.read_at_all(at, &mut stored)?;
                let decoded = Convention.decode(&stored, into).map_err(|e| e.at(at));
                self.settle(decoded)?;
            }
            (into, _) => {
                self.file.read_at_all(at, into.unwrap_or_default())?;
                self.settle(Ok(()))?;
            }
        }
        self.close()
    }

    /// This rank's elements of an A section; `counts` are those of each rank.
    pub fn array(&mut self, counts: &[u64]) -> Result<Vec<u8>> {
        let room = self.open_as(Kind::Array).and_then(|open| {
            let (_, mine) = self.partition(open, counts)?;
            let bytes = mine.saturating_mul(open.header.size);
            Ok(vec![0; self.limits.allow(bytes, "the elements of one rank")?])
        });
        let mut bytes = self.settle(room)?;
        self.array_into(counts, Some(Slots::Contiguous(&mut bytes)))?;
        Ok(bytes)
    }

    /// [`Cursor::array`] into memory of the caller; a rank that gives none gets no elements.
    pub fn array_into(&mut self, counts: &[u64], into: Option<Slots<'_, '_>>) -> Result<()> {
        let checked = self.open_as(Kind::Array).and_then(|open| {
            let (first, mine) = self.partition(open, counts)?;
            let size = open.header.size;
            let sizes = std::iter::repeat_n(size, mine as usize);
            let total = mine.checked_mul(size);
            if into.as_ref().is_some_and(|slots| !slots.fit(total, sizes)) {
                return Err(Error::argument(format!(
                    "the memory given is not for {mine} elements of {size} bytes"
                )));
            }
            Ok((open.announcement.is_some(), size, open.holder.end + first.saturating_mul(size)))
        });
        let (encoded, size, at) = self.settle_alike(checked, counts)?;
        let mine = counts[self.comm.rank()] as usize;
        if encoded {
            self.share(counts.to_vec())?;
            self.decode_elements(std::iter::repeat_n(size, mine), into)?;
        } else {
            self.read_elements(at, into)?;
        }
        self.close()
    }

    /// The sizes of this rank's elements of a V section.
    pub fn sizes(&mut self, counts: &[u64]) -> Result<Vec<u64>> {
        let checked = self.open_as(Kind::Varray).and_then(|open| {
            let (before, mine) = self.partition(open, counts)?;
            let announced = open.announcement.as_ref();
            Ok(announced.map(|first| (first.end + before * ENTRY, mine)))
        });
        let announced = self.settle_alike(checked, counts)?;
        self.share(counts.to_vec())?;
        let decoded = match announced {
            Some((at, mine)) => Some(self.read_entries(at, mine, counts, b'U')?),
            None => None,
        };
        let share = self.open.as_mut().and_then(|open| open.share.as_mut());
        let share = share.ok_or_else(|| Error::argument("no section header has been read"))?;
        share.decoded = decoded;
        Ok(share.decoded.as_ref().unwrap_or(&share.sizes).clone())
    }

    /// This rank's elements of a V section, one after the other; `counts` as they were given to
    /// [`Cursor::sizes`], which comes first.
    pub fn varray(&mut self, counts: &[u64]) -> Result<Vec<u8>> {
        let room = self.known_sizes(counts).and_then(|sizes| {
            let bytes = sizes.iter().fold(0_u64, |sum, size| sum.saturating_add(*size));
            Ok(vec![0; self.limits.allow(bytes, "the elements of one rank")?])
        });
        let mut bytes = self.settle(room)?;
        self.varray_into(counts, Some(Slots::Contiguous(&mut bytes)))?;
        Ok(bytes)
    }

    /// [`Cursor::varray`] into memory of the caller; a rank that gives none gets no elements.
    pub fn varray_into(&mut self, counts: &[u64], into: Option<Slots<'_, '_>>) -> Result<()> {
        let checked = self.known_sizes(counts).and_then(|sizes| {
            let total = sizes.iter().try_fold(0_u64, |sum, size| sum.checked_add(*size));
            if into.as_ref().is_none_or(|slots| slots.fit(total, sizes.iter().copied())) {
                return Ok((sizes.to_vec(), self.current()?.announcement.is_some()));
            }
            Err(Error::argument("the memory given is not for elements of the sizes of the file"))
        });
        let (sizes, encoded) = self.settle_alike(checked, counts)?;
        if encoded {
            self.decode_elements(sizes.iter().copied(), into)?;
        } else {
            let at = self.current().map_or(0, |open| {
                open.elements() + open.share.as_ref().map_or(0, |share| share.before)
            });
            self.read_elements(at, into)?;
        }
        self.close()
    }

    /// The sizes that [`Cursor::sizes`] gave for `counts`.
    fn known_sizes(&self, counts: &[u64]) -> Result<&[u64]> {
        let open = self.open_as(Kind::Varray)?;
        let share = open.share.as_ref().filter(|share| share.counts == counts);
        let share = share.ok_or_else(|| {
            Error::argument("the sizes of this partition have to be read before the elements")
        })?;
        Ok(share.decoded.as_ref().unwrap_or(&share.sizes))
    }

    /// The cursor moves behind the section.
    fn close(&mut self) -> Result<()> {
        let end = self.current().and_then(|open| {
            let len = match &open.share {
                Some(share) => share.total,
                None => open.holder.data_len()?,
            };
            open.holder.section_end(self.file.len(), open.elements(), len)
        });
        // The same numbers on every rank.
        self.at = end.map_err(|e| e.with_path(&self.path))?;
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

    fn is_rank(&self, root: usize) -> Result<()> {
        let size = self.comm.size();
        if root < size {
            return Ok(());
        }
        Err(Error::argument(format!("there is no rank {root}, the job has {size}")))
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

    /// What all ranks agree on.
    fn settle<T>(&self, mine: Result<T>) -> Result<T> {
        agree(self.comm, mine.map_err(|e| e.with_path(&self.path)))
    }

    /// What all ranks agree on, given that they were all called with the same arguments.
    fn settle_alike<T>(&self, mine: Result<T>, arguments: impl Hash) -> Result<T> {
        agree_alike(self.comm, mine.map_err(|e| e.with_path(&self.path)), arguments)
    }
}

/// `count` elements split over `ranks` as evenly as can be: the partition to take where there is no
/// better one.
pub fn split_evenly(count: u64, ranks: usize) -> Vec<u64> {
    let each = |rank| count / ranks as u64 + u64::from(rank < count % ranks as u64);
    (0..ranks as u64).map(each).collect()
}

/// Bytes at `offset` as far as the file goes, at most `len`, on every rank.
fn window(comm: &dyn Comm, file: &dyn SharedSource, offset: u64, len: usize) -> Result<Vec<u8>> {
    let len = file.len().saturating_sub(offset).min(len as u64) as usize;
    let mut bytes = vec![0; if comm.rank() == 0 { len } else { 0 }];
    file.read_at_all(offset, &mut bytes)?;
    comm.broadcast(0, &bytes)
}
