//! [`Writer`]: appends frames to a file that other processes can read at any time.
//!
//! # Atomic commits
//!
//! Data and names are written before the index entries that refer to them. A marker in unused bytes of
//! the header lists the entries of a commit; readers ignore them until all are written. A larger index
//! or name list is written to a new location and activated by one write of the header, which fits one
//! disk sector. A process that is killed at any time leaves all frames of its last commit or none.

mod commit;
mod sequential;
mod undo;

use std::path::Path;
use std::time::{Duration, Instant};

use spile_core::{Error, Hint, Limits, Overwrite, Result, Sink};

use crate::names::Names;
use crate::ops::NameRule;
use crate::read::{Chunk, File};
use crate::wire::{Abi, About, Block, Entry, Form, Header, SLOT, Type};

pub(crate) use sequential::{SequentialWriter, check_chunk, check_names};

/// Default of [`Writer::set_buffer_size`].
const BUFFER: usize = 1 << 20;

/// Default of [`Writer::set_pending_limit`].
const PENDING_LIMIT: usize = 1 << 14;

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
            Self::V0_0_1 => (Form::V0_0_1(Abi::X86_64), 1),
            Self::V1_0 => (Form::V1, 1 << 16),
            Self::V2_0 => (Form::V2, 2 << 16),
            Self::V2_1 => (Form::V2, 2 << 16 | 1),
        }
    }
}

/// When completed frames are committed without [`Writer::flush`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commit {
    /// Only by `flush`, or when [`Writer::pending_limit`] is reached.
    #[default]
    OnFlush,
    /// After this number of frames.
    Frames(u64),
    /// At the end of the first frame after this time has passed.
    Every(Duration),
}

/// How frames are committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// When.
    pub commit: Commit,
    /// Sync each commit to disk, so that it survives a power failure. Otherwise commits survive the
    /// process, and only flushed frames survive a power failure; later ones may be missing or damaged.
    pub durable: bool,
}

/// A file that frames are appended to. It is locked against other writers; readers are allowed.
///
/// Dropping it commits the completed frames and ignores errors; [`Writer::close`] returns them.
pub struct Writer {
    sink: Sink,
    /// The committed content, updated by [`Writer::reader`].
    file: File,
    header: Header,
    names: Names,
    /// Number of names in the file.
    names_written: usize,
    /// Number of entries in the index.
    count: u64,
    /// Number of the current frame, and its entries.
    frame: u64,
    current: Vec<Entry>,
    /// Entries of completed frames that are not committed.
    pending: Vec<Entry>,
    /// The entries of a commit as bytes.
    encoded: Vec<u8>,
    /// The name that follows the last one in the list: frames usually have the same chunks in the same order.
    next_name: u32,
    /// By name id: the last frame that used it, plus one.
    used: Vec<u64>,
    step: u64,
    buffer: Vec<u8>,
    buffer_size: usize,
    pending_limit: usize,
    /// Offset of the next data, after the content of the buffer.
    tail: u64,
    /// Offset from which there are only data of the current frame.
    kept: u64,
    /// End of the unused bytes that the file had after its data when it was opened; 0 after a commit.
    unused_end: u64,
    /// Reserved space for a larger index.
    new_index: Option<Block>,
    /// A larger name list that the header does not refer to yet.
    new_names: Option<Block>,
    mode: Mode,
    frames_since_commit: u64,
    committed_frames: u64,
    last_commit: Instant,
    limits: Limits,
    closed: bool,
}

impl Writer {
    /// Creates an empty file and opens it. Fails if the file exists and `overwrite` does not allow to
    /// replace it, or if another writer has it open.
    pub fn create(
        path: impl AsRef<Path>,
        overwrite: Overwrite,
        version: Version,
        about: &About,
        mode: Mode,
    ) -> Result<Self> {
        let path = path.as_ref();
        // The lock keeps a file that is being written from being replaced.
        let old = (overwrite == Overwrite::Replace && path.exists())
            .then(|| Sink::edit_alone(path))
            .transpose()?;
        let (form, number) = version.form();
        let header = Header::new(form, number, about);
        create_empty(path, overwrite, &header)?;
        drop(old);
        Self::append(path, mode, &Limits::default())
    }

    /// Opens an existing file to append frames in its version. Fails if another writer has it open.
    pub fn append(path: impl AsRef<Path>, mode: Mode, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        let sink = Sink::edit_alone(path)?;
        let file = File::open(path, limits)?;
        Self::from_file(sink, file, mode, limits).map_err(|e| e.with_path(path).with_format("gsd"))
    }

    fn from_file(sink: Sink, file: File, mode: Mode, limits: &Limits) -> Result<Self> {
        let index = &file.index;
        let (names, count) = (index.names.clone(), index.count);
        if names.listed != names.len() {
            return Err(Error::unsupported("gsd-017", "cannot append: a chunk has an empty name")
                .in_object("name list")
                .hint(Hint::salvage("assigns a name")));
        }
        if index.entry_after_end.is_some() {
            // New entries would overwrite those.
            return Err(index.gap_error());
        }
        let frame = index.frames()?;
        if frame >> 63 != 0 {
            // There are not enough frame numbers for more frames.
            let message = format!("frame number {}", frame - 1);
            return Err(Error::malformed("gsd-016", message)
                .in_object("index")
                .at(index.offset(count.saturating_sub(1)))
                .hint(Hint::salvage("drops that frame if its number is damaged")));
        }
        let mut header = index.header.clone();
        let size = header.form.entry_size();
        if index.capacity < header.index.allocated {
            // Restore the missing free end of the index.
            sink.reserve(header.index.location + header.index.allocated * size)?;
        }
        if index.torn {
            // Clear the entries of an interrupted commit before the marker that hides them.
            let end = header.marker.map_or(count + 1, |marker| marker.end).min(index.capacity);
            let zeros = vec![0; (end.saturating_sub(count) * size) as usize];
            sink.write_all_at(index.offset(count), &zeros)?;
            sink.sync()?;
        }
        // Data of interrupted commits are overwritten.
        let tail = undo::end_of_data(index)?.max(header.form.header_size());
        if header.marker.is_some() {
            header = header.with_marker(None);
            sink.write_all_at(0, &header.raw)?;
        }
        let unused_end = file.source().current_len()?;
        Ok(Self {
            names_written: names.len(),
            next_name: 0,
            used: vec![0; names.len()],
            frame,
            tail,
            kept: tail,
            unused_end,
            sink,
            file,
            header,
            names,
            count,
            current: Vec::new(),
            pending: Vec::new(),
            encoded: Vec::new(),
            step: 0,
            buffer: Vec::new(),
            buffer_size: BUFFER,
            pending_limit: PENDING_LIMIT,
            new_index: None,
            new_names: None,
            mode,
            frames_since_commit: 0,
            committed_frames: frame,
            last_commit: Instant::now(),
            limits: *limits,
            closed: false,
        })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Number of completed frames, committed or not.
    pub fn nframes(&self) -> u64 {
        self.frame
    }

    /// Sets the time step of the following chunks in a file of 0.0.1; ignored in later versions.
    pub fn set_step(&mut self, step: u64) {
        self.step = step;
    }

    /// The commit mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Sets the commit mode. The time of [`Commit::Every`] starts now.
    pub fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
        self.last_commit = Instant::now();
    }

    /// Size of the write buffer in bytes [default: 1 MiB].
    pub fn buffer_size(&self) -> usize {
        self.buffer_size
    }

    /// Sets the size of the write buffer in bytes. Larger chunks are written directly.
    pub fn set_buffer_size(&mut self, bytes: usize) {
        self.buffer_size = bytes;
    }

    /// Maximum number of entries of completed frames in memory [default: 16384]; at this number they are
    /// committed.
    pub fn pending_limit(&self) -> usize {
        self.pending_limit
    }

    /// Sets the maximum number of entries of completed frames in memory.
    pub fn set_pending_limit(&mut self, entries: usize) {
        self.pending_limit = entries.max(1);
    }

    /// Adds a chunk of `n` rows and `m` columns to the current frame. `data` contains little-endian
    /// elements in row-major order. Fails without effect if name, type or size are not allowed in the
    /// version of the file, or if the frame already has the chunk.
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
            return wrong(format!("version {version} has no element type {}", kind.name()));
        };
        let bytes = n.checked_mul(m).and_then(|count| count.checked_mul(kind.size()));
        if bytes != Some(data.len() as u64) {
            let size = format!("{n} x {m} {}", kind.name());
            return wrong(format!("expected data of {size}, found {} bytes", data.len()));
        }
        let widest = if form == Form::V0_2 { u64::from(u8::MAX) } else { u64::from(u32::MAX) };
        if !form.is_v0_0_1() && m > widest {
            return wrong(format!("expected at most {widest} columns, found {m}"));
        }
        if form.is_v0_0_1() && bytes == Some(0) {
            return wrong("version 0.0.1 cannot store empty chunks".into());
        }
        let id = self.name_id(name)?;
        if self.used[id as usize] == self.frame + 1 {
            return wrong(format!("frame {} already has this chunk", self.frame));
        }
        let location = self.append_data(data)?;
        self.reserve_index()?;
        let step = if form.is_v0_0_1() { self.step } else { 0 };
        self.used[id as usize] = self.frame + 1;
        let (frame, flags) = (self.frame, 0);
        let location = location as i64;
        self.current.push(Entry {
            frame,
            n,
            m,
            location,
            id,
            code,
            flags,
            step,
            checksum_ok: true,
        });
        Ok(())
    }

    fn name_id(&mut self, name: &str) -> Result<u32> {
        let id = match self.names.id_at(self.next_name, name.as_bytes()) {
            Some(id) => Some(id),
            None => self.names.id(name.as_bytes()),
        };
        if let Some(id) = id {
            self.next_name = if id as usize + 1 < self.names.len() { id + 1 } else { 0 };
            return Ok(id);
        }
        let (max_len, max_names) = self.header.form.name_limits();
        let message = if name.is_empty() || name.contains('\0') {
            "a chunk name must not be empty or contain NUL".to_string()
        } else if name.len() > max_len {
            let version = self.header.version_text();
            format!("a name has at most {max_len} bytes in version {version}")
        } else if self.names.len() >= max_names {
            let message = format!("a file has at most {max_names} names");
            return Err(
                Error::unsupported("gsd-034", message).in_object(format!("chunk \"{name}\""))
            );
        } else {
            let id = self.names.intern(name.as_bytes())?;
            self.used.push(0);
            return Ok(id);
        };
        Err(Error::argument(message).in_object(format!("chunk \"{name}\"")))
    }

    /// Appends data to the file and returns their offset.
    fn append_data(&mut self, data: &[u8]) -> Result<u64> {
        if self.buffer.len() + data.len() > self.buffer_size {
            self.write_buffer()?;
        }
        let at = self.tail;
        if data.len() >= self.buffer_size {
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

    /// Reserves a larger index if this one is too small for one more entry. Disk space is allocated now,
    /// so that a commit cannot fail for lack of it.
    fn reserve_index(&mut self) -> Result<()> {
        let form = self.header.form;
        let entries = self.count + (self.pending.len() + self.current.len()) as u64 + 1;
        let needed = form.index_capacity(entries, self.frame + 1);
        let mut allocated = self.new_index.unwrap_or(self.header.index).allocated;
        if needed <= allocated {
            return Ok(());
        }
        while allocated < needed {
            allocated *= form.growth(allocated);
        }
        self.write_buffer()?;
        // Aligned entries do not cross disk sectors, so a power failure cannot split them.
        let aligned = self.tail.next_multiple_of(form.entry_size());
        let location = if form.is_v0_0_1() { self.tail } else { aligned };
        let end = location + allocated * form.entry_size();
        self.sink.reserve(end)?;
        (self.tail, self.kept) = (end, end);
        self.new_index = Some(Block { location, allocated });
        Ok(())
    }

    /// Completes the current frame; following chunks belong to the next frame. If a commit is due and
    /// fails, the frame is still completed and part of the next commit.
    pub fn end_frame(&mut self) -> Result<()> {
        if self.header.form == Form::V2 {
            self.current.sort_by_key(|entry| entry.id);
        }
        self.pending.append(&mut self.current);
        self.kept = self.tail;
        self.frame += 1;
        self.frames_since_commit += 1;
        let due = match self.mode.commit {
            Commit::OnFlush => false,
            Commit::Frames(n) => self.frames_since_commit >= n,
            Commit::Every(time) => self.last_commit.elapsed() >= time,
        };
        if due {
            return self.commit(self.mode.durable);
        }
        if self.pending.len() >= self.pending_limit { self.commit(false) } else { Ok(()) }
    }

    /// Commits the completed frames and syncs the file: after that they survive a power failure.
    pub fn flush(&mut self) -> Result<()> {
        self.commit(true)
    }

    /// Commits the completed frames and returns the file as readers see it.
    pub fn reader(&mut self) -> Result<&File> {
        self.commit(false)?;
        self.file.refresh()?;
        Ok(&self.file)
    }

    /// The committed frames, as readers see them. Completed frames that are not committed are not included.
    pub fn committed(&mut self) -> Result<&File> {
        if self.file.index.count != self.count {
            self.file.refresh()?;
        }
        Ok(&self.file)
    }

    /// Number of frames that were completed before the last commit. Frames without chunks at the end are counted,
    /// but are not part of the file.
    pub fn committed_frames(&self) -> u64 {
        self.committed_frames
    }

    /// Commits the completed frames and returns the chunk `name` of a frame, see [`File::find_chunk`].
    pub fn find_chunk(&mut self, frame: u64, name: &str) -> Result<Option<Chunk>> {
        self.reader()?.find_chunk(frame, name)
    }

    /// Replaces the file atomically by an empty one of the same version and schema. Processes that have
    /// the old file open can still read it.
    pub fn truncate(mut self) -> Result<Self> {
        self.closed = true;
        let path = self.sink.path().to_path_buf();
        let header = Header::new(self.header.form, self.header.version, &self.header.about());
        create_empty(&path, Overwrite::Replace, &header)?;
        let mut empty = Self::append(&path, self.mode, &self.limits)?;
        (empty.buffer_size, empty.pending_limit) = (self.buffer_size, self.pending_limit);
        Ok(empty)
    }

    /// All chunks are committed: there are neither completed frames to commit nor chunks of an incomplete one.
    pub fn is_flushed(&self) -> bool {
        self.pending.is_empty() && self.current.is_empty()
    }

    /// Commits the completed frames and converts the file to version 2.1, see [`crate::ops::upgrade`]. Fails if
    /// the current frame has chunks.
    pub fn upgrade(self) -> Result<Self> {
        if !self.current.is_empty() {
            return Err(Error::argument("the current frame is not complete"));
        }
        let path = self.sink.path().to_path_buf();
        let (mode, limits) = (self.mode, self.limits);
        let (buffer_size, pending_limit) = (self.buffer_size, self.pending_limit);
        self.close()?;
        crate::ops::upgrade(&path, NameRule::Keep, &limits)?;
        let mut again = Self::append(&path, mode, &limits)?;
        (again.buffer_size, again.pending_limit) = (buffer_size, pending_limit);
        Ok(again)
    }

    /// Commits the completed frames, syncs and closes the file.
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

/// Creates a file without frames.
fn create_empty(path: &Path, overwrite: Overwrite, header: &Header) -> Result<()> {
    let sink = Sink::create(path, overwrite)?;
    let index = header.index.allocated * header.form.entry_size();
    let names = header.names.map_or(0, |block| block.allocated * SLOT);
    let mut bytes = header.raw.clone();
    bytes.resize(bytes.len() + (index + names) as usize, 0);
    sink.write_all_at(0, &bytes)?;
    sink.commit()
}
