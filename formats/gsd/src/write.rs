//! The native writer: chunks into frames, frames into a file that can be read at any moment.
//!
//! # What makes a frame appear
//!
//! Data and names go to the file before the index entries that point to them. The entries of a
//! commit are announced by a marker in the header, in bytes the format leaves unused: until every
//! announced entry is there, none of them counts. A larger index or name list is written whole
//! somewhere else and takes its place with one write of the header, which fits one disk sector.
//! So every kill between two writes, and every cut through one, leaves all frames of the last
//! commit or none of them.

mod commit;

use std::path::Path;
use std::time::{Duration, Instant};

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::sink::{Overwrite, Sink};

use crate::names::Names;
use crate::read::{Chunk, File};
use crate::wire::{Abi, About, Block, Entry, Form, Header, SLOT, Type};

/// Data collected before they are written, unless [`Writer::set_buffer`] says otherwise.
const BUFFER: usize = 1 << 20;

/// Index entries kept in memory; more than these are committed without being asked, unless
/// [`Writer::set_entries`] says otherwise.
const MOST_ENTRIES: usize = 1 << 14;

/// Bytes of an index that are copied at once when it moves.
const COPY: u64 = 256 << 10;

/// The version of a new file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// 0.0.1, in the layout of 64-bit machines.
    V0_0_1,
    /// 1.0.
    V1_0,
    /// 2.0.
    V2_0,
    /// 2.1.
    #[default]
    V2_1,
}

impl Version {
    fn form(self) -> (Form, u32) {
        match self {
            Self::V0_0_1 => (Form::First(Abi::X86_64), 1),
            Self::V1_0 => (Form::Slots, 1 << 16),
            Self::V2_0 => (Form::List, 2 << 16),
            Self::V2_1 => (Form::List, 2 << 16 | 1),
        }
    }
}

/// When frames that have ended become visible without [`Writer::flush`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commit {
    /// Only when it is called, or when very many entries are waiting.
    #[default]
    OnFlush,
    /// Whenever so many frames have ended.
    Frames(u64),
    /// At the end of the first frame after this time.
    Every(Duration),
}

/// How frames are committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// When.
    pub commit: Commit,
    /// Each of those commits waits for the disk, so that it outlives a power failure. Without it
    /// a commit outlives the process, not the machine: after a power failure what was flushed before
    /// is there, and later frames may be missing, cut or wrong.
    pub durable: bool,
}

/// An open file that frames are added to. Other writers are kept out, readers are not.
///
/// Dropping it commits the frames that have ended; [`Writer::close`] does the same and tells
/// whether it worked.
pub struct Writer {
    sink: Sink,
    /// What was committed when it was last asked for.
    file: File,
    header: Header,
    names: Names,
    /// Names that are in the file.
    names_saved: usize,
    /// Entries that are in the index.
    count: u64,
    /// The frame that is being written.
    frame: u64,
    current: Vec<Entry>,
    pending: Vec<Entry>,
    /// By name: the frame, counted from one, in which it was last used.
    used: Vec<u64>,
    step: u64,
    buffer: Vec<u8>,
    most_buffered: usize,
    most_entries: usize,
    /// Where the next data go; the buffer's content lies before it.
    tail: u64,
    /// Room set aside for a larger index.
    moved: Option<Block>,
    /// A larger name list that the header does not name yet.
    names_moved: Option<Block>,
    mode: Mode,
    waiting: u64,
    committed: Instant,
    limits: Limits,
    closed: bool,
}

impl Writer {
    /// Makes a new, empty file and opens it. It appears whole.
    pub fn create(
        path: impl AsRef<Path>,
        overwrite: Overwrite,
        version: Version,
        about: &About,
        mode: Mode,
    ) -> Result<Self> {
        let path = path.as_ref();
        // Nobody's file is taken away while he writes it.
        let old = (overwrite == Overwrite::Replace && path.exists())
            .then(|| Sink::edit_alone(path))
            .transpose()?;
        let (form, number) = version.form();
        let header = Header::new(form, number, about);
        make_empty(path, overwrite, &header)?;
        drop(old);
        Self::append(path, mode, &Limits::default())
    }

    /// Opens an existing file; new frames follow those it has, in its own version.
    pub fn append(path: impl AsRef<Path>, mode: Mode, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        let sink = Sink::edit_alone(path)?;
        let file = File::open(path, limits)?;
        Self::on(sink, file, mode, limits).map_err(|e| e.with_path(path).with_format("gsd"))
    }

    fn on(sink: Sink, file: File, mode: Mode, limits: &Limits) -> Result<Self> {
        let index = &file.index;
        let (names, count) = (index.names.clone(), index.count);
        if names.proper != names.len() {
            return Err(Error::unsupported("gsd-017", "a chunk of this file has an empty name")
                .in_object("name list")
                .hint("`spile salvage` gives it a name"));
        }
        if index.beyond.is_some() {
            // New entries would take the place of those.
            return Err(index.hole());
        }
        let frame = index.frames()?;
        if frame >> 63 != 0 {
            // Frames that follow would have no number.
            let message = format!("frame number {}", frame - 1);
            return Err(Error::malformed("gsd-012", message)
                .in_object("index")
                .at(index.offset(count.saturating_sub(1)))
                .hint("the number may be damaged; `spile salvage` drops that frame"));
        }
        let mut header = index.header.clone();
        let size = header.form.entry_size();
        if index.room < header.index.allocated {
            // Room that was cut off comes back.
            sink.reserve(header.index.location + header.index.allocated * size)?;
        }
        if index.torn {
            // What a killed commit left behind is wiped before the marker that hides it.
            let end = header.marker.map_or(count + 1, |marker| marker.end).min(index.room);
            let zeros = vec![0; (end.saturating_sub(count) * size) as usize];
            sink.write_all_at(index.offset(count), &zeros)?;
            sink.sync()?;
        }
        if header.marker.is_some() {
            header = header.with_marker(None);
            sink.write_all_at(0, &header.raw)?;
        }
        Ok(Self {
            names_saved: names.len(),
            used: vec![0; names.len()],
            frame,
            tail: file.source().current_len()?.max(header.form.header_size()),
            sink,
            file,
            header,
            names,
            count,
            current: Vec::new(),
            pending: Vec::new(),
            step: 0,
            buffer: Vec::new(),
            most_buffered: BUFFER,
            most_entries: MOST_ENTRIES,
            moved: None,
            names_moved: None,
            mode,
            waiting: 0,
            committed: Instant::now(),
            limits: *limits,
            closed: false,
        })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Frames that have ended, committed or not.
    pub fn nframes(&self) -> u64 {
        self.frame
    }

    /// The step that the chunks of a 0.0.1 file get from now on; later versions have none.
    pub fn set_step(&mut self, step: u64) {
        self.step = step;
    }

    /// How it commits.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Commits in another way from now on.
    pub fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Most bytes of data that are collected before they are written.
    pub fn buffer(&self) -> usize {
        self.most_buffered
    }

    /// Collects at most so many bytes from now on; more are written at once.
    pub fn set_buffer(&mut self, bytes: usize) {
        self.most_buffered = bytes;
    }

    /// Most index entries of frames that have ended which wait in memory for a commit.
    pub fn entries(&self) -> usize {
        self.most_entries
    }

    /// Lets at most so many entries wait from now on.
    pub fn set_entries(&mut self, entries: usize) {
        self.most_entries = entries.max(1);
    }

    /// Adds a chunk of `n` rows and `m` columns to the current frame. `data` are little-endian
    /// elements, row after row.
    pub fn write_chunk(
        &mut self,
        name: &str,
        kind: Type,
        n: u64,
        m: u64,
        data: &[u8],
    ) -> Result<()> {
        let wrong =
            |message: String| Err(Error::argument(message).in_object(format!("chunk \"{name}\"")));
        let form = self.header.form;
        let Some(code) = kind.code(form) else {
            let version = self.header.version_text();
            return wrong(format!("version {version} has no elements of type {}", kind.name()));
        };
        let bytes = n.checked_mul(m).and_then(|count| count.checked_mul(kind.size()));
        if bytes != Some(data.len() as u64) {
            let size = format!("{n} x {m} {}", kind.name());
            return wrong(format!("{} bytes are not {size}", data.len()));
        }
        let widest = if form == Form::Second { u64::from(u8::MAX) } else { u64::from(u32::MAX) };
        if !form.is_first() && m > widest {
            return wrong(format!("at most {widest} columns"));
        }
        if form.is_first() && bytes == Some(0) {
            return wrong("version 0.0.1 has no empty chunks".into());
        }
        let id = self.name_id(name)?;
        if self.used[id as usize] == self.frame + 1 {
            return wrong(format!("frame {} has this chunk already", self.frame));
        }
        let location = self.append_data(data)?;
        self.make_room()?;
        let step = if form.is_first() { self.step } else { 0 };
        self.used[id as usize] = self.frame + 1;
        let (frame, flags) = (self.frame, 0);
        let location = location as i64;
        self.current.push(Entry { frame, n, m, location, id, code, flags, step, sound: true });
        Ok(())
    }

    fn name_id(&mut self, name: &str) -> Result<u32> {
        // Frames mostly have the same chunks in the same order.
        let likely = self.current.last().map_or(0, |entry| entry.id + 1);
        if !name.is_empty() && self.names.raw(likely) == name.as_bytes() {
            return Ok(likely);
        }
        if let Some(id) = self.names.id(name.as_bytes()) {
            return Ok(id);
        }
        let (longest, most) = self.header.form.name_limits();
        let message = if name.is_empty() || name.contains('\0') {
            "a chunk's name is not empty and has no NUL".to_string()
        } else if name.len() > longest {
            let version = self.header.version_text();
            format!("a name has at most {longest} bytes in version {version}")
        } else if self.names.len() >= most {
            format!("a file has at most {most} names")
        } else {
            let id = self.names.intern(name.as_bytes(), &self.limits)?;
            self.used.push(0);
            return Ok(id);
        };
        Err(Error::argument(message).in_object(format!("chunk \"{name}\"")))
    }

    /// Puts data behind everything else and says where.
    fn append_data(&mut self, data: &[u8]) -> Result<u64> {
        if self.buffer.len() + data.len() > self.most_buffered {
            self.write_buffer()?;
        }
        let at = self.tail;
        if data.len() >= self.most_buffered {
            self.sink.write_all_at(at, data)?;
        } else {
            self.buffer.extend_from_slice(data);
        }
        self.tail += data.len() as u64;
        Ok(at)
    }

    fn write_buffer(&mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            self.sink.write_all_at(self.tail - self.buffer.len() as u64, &self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Sets room aside for a larger index if this one has none for another entry. Disk blocks are
    /// taken now, so that a commit cannot run out of them.
    fn make_room(&mut self) -> Result<()> {
        let form = self.header.form;
        let entries = self.count + (self.pending.len() + self.current.len()) as u64 + 1;
        let needed = form.room(entries, self.frame + 1);
        let mut allocated = self.moved.unwrap_or(self.header.index).allocated;
        if needed <= allocated {
            return Ok(());
        }
        while allocated < needed {
            allocated *= form.growth(allocated);
        }
        self.write_buffer()?;
        // Entries that do not cross sectors cannot be cut in two by a power failure.
        let aligned = self.tail.next_multiple_of(form.entry_size());
        let location = if form.is_first() { self.tail } else { aligned };
        let end = location + allocated * form.entry_size();
        self.sink.reserve(end)?;
        self.tail = end;
        self.moved = Some(Block { location, allocated });
        Ok(())
    }

    /// Ends the current frame; the next chunk belongs to the next one. Where a commit is due and
    /// fails, the frame has ended all the same and waits for the next commit.
    pub fn end_frame(&mut self) -> Result<()> {
        if self.header.form == Form::List {
            self.current.sort_by_key(|entry| entry.id);
        }
        self.pending.append(&mut self.current);
        self.frame += 1;
        self.waiting += 1;
        let due = match self.mode.commit {
            Commit::OnFlush => false,
            Commit::Frames(n) => self.waiting >= n,
            Commit::Every(time) => self.committed.elapsed() >= time,
        };
        if due {
            return self.commit(self.mode.durable);
        }
        // Memory stays bounded however long nobody asks for a flush.
        if self.pending.len() >= self.most_entries { self.commit(false) } else { Ok(()) }
    }

    /// Takes back the chunks of the current frame, which begins anew: for who could write some of them and
    /// not all. Their bytes stay in the file and belong to nobody.
    pub fn discard_frame(&mut self) {
        for entry in self.current.drain(..) {
            self.used[entry.id as usize] = 0;
        }
    }

    /// Commits the frames that have ended and waits for the disk: when it returns, they outlive
    /// the process and a power failure.
    pub fn flush(&mut self) -> Result<()> {
        self.commit(true)
    }

    /// The file as a reader sees it, after a commit of everything that has ended.
    pub fn reader(&mut self) -> Result<&File> {
        self.commit(false)?;
        self.file.refresh()?;
        Ok(&self.file)
    }

    /// A chunk of a frame that has ended.
    pub fn find_chunk(&mut self, frame: u64, name: &str) -> Result<Option<Chunk>> {
        self.reader()?.find_chunk(frame, name)
    }

    /// Takes all frames out of the file. The empty file takes the place of the old one in one
    /// step; who is reading the old one goes on reading it.
    pub fn truncate(mut self) -> Result<Self> {
        self.closed = true;
        let path = self.sink.path().to_path_buf();
        let header = Header::new(self.header.form, self.header.version, &self.header.about());
        make_empty(&path, Overwrite::Replace, &header)?;
        let mut empty = Self::append(&path, self.mode, &self.limits)?;
        (empty.most_buffered, empty.most_entries) = (self.most_buffered, self.most_entries);
        Ok(empty)
    }

    /// Commits what has ended, waits for the disk and closes the file.
    pub fn close(mut self) -> Result<()> {
        self.closed = true;
        self.finish()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.closed {
            let _ = self.finish();
        }
    }
}

/// Writes a file without frames.
fn make_empty(path: &Path, overwrite: Overwrite, header: &Header) -> Result<()> {
    let sink = Sink::create(path, overwrite)?;
    let index = header.index.allocated * header.form.entry_size();
    let names = header.names.map_or(0, |block| block.allocated * SLOT);
    let mut bytes = header.raw.clone();
    bytes.resize(bytes.len() + (index + names) as usize, 0);
    sink.write_all_at(0, &bytes)?;
    sink.commit()
}
