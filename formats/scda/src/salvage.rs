//! Recovers a truncated or damaged file.
//!
//! Complete sections are copied, compressed ones if they can be decoded. Of a section that is cut off, everything is
//! kept if only its padding is missing, and otherwise the complete elements of an A or V section. Behind damage, the
//! next section header is searched at multiples of 32 bytes. An index is not copied: its offsets would be wrong.

use std::io::Write as _;

use spile_core::format::{Salvage, Salvager};
use spile_core::layout::Codec as _;
use spile_core::limits::Budget;
use spile_core::wire::fetch;
use spile_core::{Dataset, ErrorKind, Limits, Result, Sink, Source};

use crate::Scda;
use crate::check::decode_all;
use crate::codec::Convention;
use crate::index::INDEX;
use crate::section::{Section, Tables, compressed_kind};
use crate::wire::{
    Breaks, ENTRY, FILE_HEADER, FileHeader, Head, Kind, LONGEST_HEAD, SECTION_HEADER,
    data_padding_bytes, format_entries, parse_entries, read_starts,
};

impl Salvager for Scda {
    fn salvage(&self, source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
        FileHeader::read(source)?;
        target.copy_from(source, 0, FILE_HEADER)?;
        let bytes = Dataset::of_bytes(source.clone(), limits);
        let mut job = Job { source, target, limits, bytes, saved: Salvage::default() };
        let (mut offset, mut number) = (FILE_HEADER, 0);
        while let Some(next) = job.section(offset, number)? {
            (offset, number) = (next, number + 1);
        }
        Ok(job.saved)
    }
}

struct Job<'a> {
    source: &'a Source,
    target: &'a mut Sink,
    limits: &'a Limits,
    bytes: Dataset,
    saved: Salvage,
}

impl Job<'_> {
    /// Copies what can be recovered of the section at `offset`. Returns the offset of the next one; `None` behind the
    /// last.
    fn section(&mut self, offset: u64, number: usize) -> Result<Option<u64>> {
        let error = match self.read(offset, true) {
            Ok(None) => return Ok(None),
            Ok(Some(section)) => {
                let title = title(&section.raw().head, section.announcement().map(|raw| &raw.head));
                if let Some(next) = self.inside(&section)? {
                    let end = section.end();
                    self.saved.lost.push(format!(
                        "section {number}, {title}: no section begins at its end, byte {end}, but one before it, at byte {next}"
                    ));
                    return Ok(Some(next));
                }
                let decoded =
                    if section.encoded { decode_all(&self.bytes, &section) } else { Ok(()) };
                if let Err(error) = decoded {
                    self.saved.lost.push(format!("section {number}, {title}: {error}"));
                } else if section.user() == INDEX && section.kind != Kind::Block {
                    self.saved.lost.push(format!("section {number}, {title}: index"));
                } else {
                    self.target.copy_from(self.source, offset, section.end() - offset)?;
                    self.saved.kept.push(title);
                }
                return Ok(Some(section.end()));
            }
            Err(error) => error,
        };
        let (first, data) = self.heads(offset);
        let named = data.as_ref().or(first.as_ref());
        let name = named.map(|head| title(head, data.as_ref().and(first.as_ref())));
        let title = name.as_ref().map_or_else(String::new, |name| format!(", {name}"));
        if let (Some(first), Some(data)) = (&first, &data)
            && self.read(data.offset, false).is_ok()
        {
            // Both sections are complete, but do not match: the second one is kept without decoding.
            self.saved.lost.push(format!("section {number}, {}: {error}", first.title()));
            return Ok(Some(data.offset));
        }
        // Behind a header with a wrong count there are other sections, behind the last one there are none.
        let from = named.map_or(offset, Head::end);
        if let Some(next) = self.search(from.max(offset + ENTRY))? {
            let bytes = next - offset;
            let lost = format!("section {number}{title}: {error}; skipped {bytes} bytes");
            self.saved.lost.push(lost);
            return Ok(Some(next));
        }
        let complete = match (&first, &data) {
            (Some(first), Some(data)) => self.cut_pair(first, data)?,
            // The first section of a compressed pair has no data.
            (Some(data), None) if compressed_kind(data.kind, &data.user).is_none() => {
                self.cut(data)?
            }
            _ => None,
        };
        let name = name.unwrap_or_default();
        if complete.is_some_and(|complete| complete.is_kept) {
            let part = complete.filter(|complete| complete.number < complete.all);
            let part = part.map(|part| format!(": {} of {} elements", part.number, part.all));
            self.saved.kept.push(format!("{name}{}", part.unwrap_or_default()));
        }
        let present = match complete {
            Some(Complete { number, all, unit, .. }) => {
                format!("; {name}: {number} of {all} {unit}")
            }
            None => String::new(),
        };
        self.saved.lost.push(format!("section {number} and all following: {error}{present}"));
        Ok(None)
    }

    /// The position of a section inside of the data of `section`, if there is none behind it: its length is wrong then.
    fn inside(&self, section: &Section) -> Result<Option<u64>> {
        let end = section.end();
        let follows = Head::read(self.source, end);
        if follows.is_ok() || follows.is_err_and(|error| error.kind() == ErrorKind::Truncated) {
            return Ok(None);
        }
        Ok(self.search(section.raw().head.end())?.filter(|next| *next < end))
    }

    fn read(&self, offset: u64, decode: bool) -> Result<Option<Section>> {
        let mut budget = Budget::new(self.limits);
        Section::read(self.source, offset, decode, &mut budget, (Tables::All, None))
    }

    /// The headers of the section at `offset`: one, or two if it is compressed and the first one is complete.
    fn heads(&self, offset: u64) -> (Option<Head>, Option<Head>) {
        let head = |at| Head::read(self.source, at).ok().flatten();
        let Some(first) = head(offset) else { return (None, None) };
        let second = compressed_kind(first.kind, &first.user).and_then(|kind| {
            let next = first.section_end(self.source.len(), first.data_len().ok()?).ok()?;
            let stored = if kind == Kind::Block { Kind::Block } else { Kind::Varray };
            head(next).filter(|second| second.kind == stored)
        });
        (Some(first), second)
    }

    /// The first position from `from` on where a section begins.
    fn search(&self, from: u64) -> Result<Option<u64>> {
        const BLOCK: u64 = 1 << 20;
        let mut at = from.next_multiple_of(ENTRY);
        while at < self.source.len() {
            // Headers at the end of the block are complete in it.
            let block = fetch(self.source, at, BLOCK as usize + LONGEST_HEAD)?;
            let starts = (0..BLOCK.min(block.len() as u64)).step_by(ENTRY as usize);
            for start in starts {
                let head = &block[start as usize..];
                if head.get(1) == Some(&b' ')
                    && b"IBAV".contains(&head[0])
                    && self.is_section(&head[..head.len().min(LONGEST_HEAD)], at + start)
                {
                    return Ok(Some(at + start));
                }
            }
            at += BLOCK;
        }
        Ok(None)
    }

    /// Whether `bytes` at offset `at` are the header of a section: a valid header with line breaks of one style, of
    /// a section that ends at the end of the file or at another valid header, or is cut off.
    fn is_section(&self, bytes: &[u8], at: u64) -> bool {
        match Head::parse(bytes, at, self.source.len()) {
            Ok(Some(head)) if head.breaks != Breaks::Other => {}
            _ => return false,
        }
        match self.read(at, false) {
            Ok(Some(section)) => {
                let next = section.end();
                next == self.source.len() || Head::read(self.source, next).is_ok()
            }
            Ok(None) => false,
            Err(error) => error.kind() == ErrorKind::Truncated,
        }
    }

    /// Writes what is complete of a section that is cut off.
    fn cut(&mut self, head: &Head) -> Result<Option<Complete>> {
        let Some(found) = self.source.len().checked_sub(head.end()) else { return Ok(None) };
        let (number, len) = match head.kind {
            Kind::Inline => return Ok(Some(Complete::bytes(found, ENTRY, false))),
            Kind::Block => {
                let is_kept = found >= head.size;
                if is_kept {
                    self.write(head, None, head.size)?;
                }
                return Ok(Some(Complete::bytes(found.min(head.size), head.size, is_kept)));
            }
            Kind::Array => {
                let number = found.checked_div(head.size).unwrap_or(head.count).min(head.count);
                (number, number * head.size)
            }
            Kind::Varray => {
                let Some(ends) = self.complete(head)? else {
                    return Ok(Some(Complete::sizes(found / ENTRY, head.count)));
                };
                (ends.len() as u64, ends.last().copied().unwrap_or(0))
            }
        };
        let complete = Complete::elements(number, head.count);
        if complete.is_kept {
            self.write(head, Some(number), len)?;
        }
        Ok(Some(complete))
    }

    /// Writes what is complete of a compressed section whose data are cut off.
    fn cut_pair(&mut self, first: &Head, data: &Head) -> Result<Option<Complete>> {
        let Some(found) = self.source.len().checked_sub(data.end()) else { return Ok(None) };
        let first_end = first.section_end(self.source.len(), first.data_len()?)?;
        if data.kind == Kind::Block {
            let size = self.entries(first.end(), 1)?.first().copied().unwrap_or(0);
            let is_kept = found >= data.size && self.decodes(data.data(), data.size, size);
            if is_kept {
                self.target.copy_from(self.source, first.offset, first_end - first.offset)?;
                self.write(data, None, data.size)?;
            }
            return Ok(Some(Complete::bytes(found.min(data.size), data.size, is_kept)));
        }
        let Some(ends) = self.complete(data)? else {
            return Ok(Some(Complete::sizes(found / ENTRY, data.count)));
        };
        let ragged = first.kind == Kind::Array;
        let sizes = self.entries(first.end(), if ragged { ends.len() as u64 } else { 1 })?;
        let (mut number, mut len) = (0, 0);
        for (k, end) in ends.into_iter().enumerate() {
            let size = if ragged { sizes.get(k) } else { sizes.first() };
            if !self.decodes(data.data() + len, end - len, size.copied().unwrap_or(0)) {
                break;
            }
            (number, len) = (number + 1, end);
        }
        let complete = Complete::elements(number, data.count);
        if complete.is_kept {
            if ragged {
                self.write(first, Some(number), number * ENTRY)?;
            } else {
                self.target.copy_from(self.source, first.offset, first_end - first.offset)?;
            }
            self.write(data, Some(number), len)?;
        }
        Ok(Some(complete))
    }

    /// Ends of the elements of a V section that are complete; `None` if the sizes are not.
    fn complete(&self, head: &Head) -> Result<Option<Vec<u64>>> {
        let Some(found) = self.source.len().checked_sub(head.data()) else { return Ok(None) };
        self.limits.allow((head.count + 1).saturating_mul(16), "the table of element sizes")?;
        let Ok(starts) = read_starts(self.source, head.end(), head.count, b'E') else {
            return Ok(None);
        };
        Ok(Some(starts.iter().skip(1).copied().take_while(|end| *end <= found).collect()))
    }

    /// The uncompressed sizes at `offset`.
    fn entries(&self, offset: u64, number: u64) -> Result<Vec<u64>> {
        let bytes = self.source.read_vec(offset, number * ENTRY)?;
        let mut values = vec![0; number as usize];
        parse_entries(&bytes, b'U', offset, &mut values)?;
        Ok(values)
    }

    /// Whether an element of `stored` bytes at `offset` decodes to `size` bytes.
    fn decodes(&self, offset: u64, stored: u64, size: u64) -> bool {
        let decode = || -> Result<()> {
            self.limits.allow(stored.saturating_add(size), "a compressed element")?;
            Convention.decode(&self.source.read_vec(offset, stored)?, &mut vec![0; size as usize])
        };
        decode().is_ok()
    }

    /// Writes a section with the first `len` data bytes of `head`, and `number` elements if it has a number.
    fn write(&mut self, head: &Head, number: Option<u64>, len: u64) -> Result<()> {
        let breaks = if head.breaks == Breaks::Mime { Breaks::Mime } else { Breaks::Unix };
        self.target.copy_from(self.source, head.offset, SECTION_HEADER)?;
        let mut entries = Vec::new();
        if let Some(number) = number {
            format_entries(b'N', &[number], breaks, &mut entries);
            self.target.write_all(&entries)?;
        }
        if matches!(head.kind, Kind::Array | Kind::Block) {
            format_entries(b'E', &[head.size], breaks, &mut entries);
            self.target.write_all(&entries)?;
        }
        if head.kind == Kind::Varray {
            let sizes = number.unwrap_or(head.count).saturating_mul(ENTRY);
            self.target.copy_from(self.source, head.end(), sizes)?;
        }
        self.target.copy_from(self.source, head.data(), len)?;
        let last = match len {
            0 => None,
            _ => self.source.read_vec(head.data() + len - 1, 1)?.first().copied(),
        };
        Ok(self.target.write_all(&data_padding_bytes(len, last, breaks))?)
    }
}

/// How much of a section that is cut off is in the file.
#[derive(Clone, Copy)]
struct Complete {
    number: u64,
    all: u64,
    unit: &'static str,
    is_kept: bool,
}

impl Complete {
    fn bytes(number: u64, all: u64, is_kept: bool) -> Self {
        Self { number, all, unit: "bytes are present", is_kept }
    }

    fn sizes(number: u64, all: u64) -> Self {
        Self { number, all, unit: "sizes are present, no elements", is_kept: false }
    }

    fn elements(number: u64, all: u64) -> Self {
        Self { number, all, unit: "elements are complete", is_kept: number > 0 || all == 0 }
    }
}

/// Type and user string of a section as the user sees it: `A "density" (compressed)`. `first` is the header of the
/// first one of two sections.
fn title(head: &Head, first: Option<&Head>) -> String {
    let kind = first.and_then(|first| compressed_kind(first.kind, &first.user));
    let letter = kind.unwrap_or(head.kind).letter();
    let note = if kind.is_some() { " (compressed)" } else { "" };
    format!("{letter} \"{}\"{note}", head.user.escape_ascii())
}
