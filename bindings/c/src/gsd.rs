//! The functions of the GSD specification, under its names. `gsd.h` describes them.

use std::collections::VecDeque;
use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use spile::error::{Error, Result};
use spile::limits::Limits;
use spile::sink::Overwrite;
use spile_gsd::wire::{About, Form, Type};
use spile_gsd::{Chunk, Commit, File, Mode, Version, Writer};

use crate::failure::{copy_words, guard, last_message};
use crate::memory::{bytes, bytes_mut, words};

/// Entries that stay valid after they were found.
const REMEMBERED: usize = 256;

/// The numbers of element types in `gsd.h` are those of the later versions.
const NUMBERS: Form = Form::List;

/// `gsd_handle_t`.
pub struct GsdHandle {
    file: Open,
    path: PathBuf,
    /// What [`gsd_find_chunk`] gave out last.
    found: VecDeque<Box<CallerEntry>>,
    /// What [`gsd_find_matching_chunk_name`] goes through.
    names: Vec<CString>,
}

enum Open {
    Read(File),
    /// There unless a call in between failed.
    Write(Option<Box<Writer>>),
}

/// `gsd_index_entry_t`.
#[repr(C)]
pub struct CallerEntry {
    frame: u64,
    n: u64,
    m: u64,
    step: u64,
    location: i64,
    bytes: u64,
    kind: u8,
}

type Handle = *mut GsdHandle;

impl GsdHandle {
    fn writer(&mut self) -> Result<&mut Writer> {
        match &mut self.file {
            Open::Write(writer) => writer.as_deref_mut().ok_or_else(gone),
            Open::Read(_) => Err(Error::argument("the file is open for reading only")),
        }
    }

    /// The file with everything that has been written to it.
    fn reader(&mut self) -> Result<&File> {
        match &mut self.file {
            Open::Read(file) => Ok(file),
            Open::Write(writer) => writer.as_mut().ok_or_else(gone)?.reader(),
        }
    }
}

fn gone() -> Error {
    Error::argument("an earlier call has failed; open the file again")
}

/// Does something with a handle; 0, or the negative number of an error.
///
/// # Safety
/// `handle` is null or one of ours that is open.
unsafe fn with(handle: Handle, body: impl FnOnce(&mut GsdHandle) -> Result<()>) -> c_int {
    let mut err = 0;
    // SAFETY: the caller says so.
    unsafe {
        guard(&raw mut err, || match handle.as_mut() {
            Some(handle) => body(handle),
            None => Err(Error::argument("there is no open file")),
        });
    }
    -err
}

/// # Safety
/// `text` is null or ends with a zero.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str> {
    // SAFETY: the caller says so.
    std::str::from_utf8(unsafe { words(text) })
        .map_err(|_| Error::argument("a name is not text in UTF-8"))
}

/// # Safety
/// `name` is null or ends with a zero.
unsafe fn path<'a>(name: *const c_char) -> &'a Path {
    // SAFETY: the caller says so.
    Path::new(OsStr::from_bytes(unsafe { words(name) }))
}

/// Makes an empty file, in place of any other.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_create(
    fname: *const c_char,
    application: *const c_char,
    schema: *const c_char,
    schema_version: u32,
) -> c_int {
    // SAFETY: the caller says so.
    unsafe { gsd_create_version(fname, application, schema, schema_version, 2 << 16 | 1) }
}

/// The same in another version of the format.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_create_version(
    fname: *const c_char,
    application: *const c_char,
    schema: *const c_char,
    schema_version: u32,
    version: u32,
) -> c_int {
    let mut err = 0;
    // SAFETY: the caller says so.
    unsafe {
        guard(&raw mut err, || {
            let version = match version {
                1 => Version::V0_0_1,
                0x1_0000 => Version::V1_0,
                0x2_0000 => Version::V2_0,
                0x2_0001 => Version::V2_1,
                other => {
                    let message = format!("version {other:#x} is none that can be written");
                    return Err(Error::argument(message));
                }
            };
            let about = About {
                application: text(application)?.into(),
                schema: text(schema)?.into(),
                schema_version,
            };
            let mode = Mode::default();
            Writer::create(path(fname), Overwrite::Replace, version, &about, mode)?.close()
        });
    }
    -err
}

/// Opens a file; null on failure.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_open(fname: *const c_char, flags: u8) -> Handle {
    let open = || {
        // SAFETY: the caller says so.
        let path = unsafe { path(fname) };
        // The caller has the memory for what is read; a file's numbers are checked against it.
        let limits = Limits::default();
        let file = match flags {
            1 | 3 => Open::Write(Some(Box::new(Writer::append(path, Mode::default(), &limits)?))),
            2 => Open::Read(File::open(path, &limits)?),
            _ => return Err(Error::argument("a file is opened with GSD_OPEN_...")),
        };
        let handle =
            GsdHandle { file, path: path.to_path_buf(), found: VecDeque::new(), names: Vec::new() };
        Ok(Box::into_raw(Box::new(handle)))
    };
    // SAFETY: there is no number to write.
    unsafe { guard(std::ptr::null_mut(), open) }.unwrap_or(std::ptr::null_mut())
}

/// Commits what has ended and closes the file, which is gone in any case.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_close(handle: Handle) -> c_int {
    let mut err = 0;
    // SAFETY: the caller says so, and does not use the handle afterwards.
    unsafe {
        guard(&raw mut err, || {
            if handle.is_null() {
                return Err(Error::argument("there is no open file"));
            }
            match Box::from_raw(handle).file {
                Open::Write(Some(writer)) => writer.close(),
                Open::Write(None) | Open::Read(_) => Ok(()),
            }
        });
    }
    -err
}

/// When frames become visible to others: after every call of [`gsd_flush`] (0), or whenever so
/// many have ended; with `durable`, safe from power failures by then.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_set_commit(handle: Handle, frames: u64, durable: c_int) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            let commit = if frames == 0 { Commit::OnFlush } else { Commit::Frames(frames) };
            handle.writer()?.set_mode(Mode { commit, durable: durable != 0 });
            Ok(())
        })
    }
}

/// Most bytes of data that are collected before they are written; 0 on failure.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_get_maximum_write_buffer_size(handle: Handle) -> u64 {
    let mut size = 0;
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            size = handle.writer()?.buffer() as u64;
            Ok(())
        });
    }
    size
}

/// Collects at most so many bytes from now on.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_set_maximum_write_buffer_size(handle: Handle, size: u64) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            handle.writer()?.set_buffer(amount(size)?);
            Ok(())
        })
    }
}

/// Most index entries that wait for a commit; 0 on failure.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_get_index_entries_to_buffer(handle: Handle) -> u64 {
    let mut entries = 0;
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            entries = handle.writer()?.entries() as u64;
            Ok(())
        });
    }
    entries
}

/// Lets at most so many entries wait from now on.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_set_index_entries_to_buffer(handle: Handle, entries: u64) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            handle.writer()?.set_entries(amount(entries)?);
            Ok(())
        })
    }
}

/// A size of a buffer: none is no buffer, and memory has an end.
fn amount(number: u64) -> Result<usize> {
    usize::try_from(number)
        .ok()
        .filter(|n| (1..=1 << 40).contains(n))
        .ok_or_else(|| Error::argument(format!("{number} is no size of a buffer")))
}

/// Ends a frame.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_end_frame(handle: Handle) -> c_int {
    // SAFETY: the caller says so.
    unsafe { with(handle, |handle| handle.writer()?.end_frame()) }
}

/// Commits all frames that have ended, and waits for the disk.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_flush(handle: Handle) -> c_int {
    // SAFETY: the caller says so.
    unsafe { with(handle, |handle| handle.writer()?.flush()) }
}

/// Takes all frames out of the file.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_truncate(handle: Handle) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            handle.writer()?;
            if let Open::Write(writer) = &mut handle.file
                && let Some(open) = writer.take()
            {
                *writer = Some(Box::new(open.truncate()?));
            }
            Ok(())
        })
    }
}

/// Makes a file of the newest version of this one, with the same frames, in one step.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_upgrade(handle: Handle) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            handle.writer()?;
            if let Open::Write(writer) = &mut handle.file
                && let Some(open) = writer.take()
            {
                let limits = Limits::default();
                let (mode, buffer, entries) = (open.mode(), open.buffer(), open.entries());
                open.close()?;
                spile_gsd::ops::upgrade(&handle.path, &limits)?;
                let mut again = Writer::append(&handle.path, mode, &limits)?;
                again.set_buffer(buffer);
                again.set_entries(entries);
                *writer = Some(Box::new(again));
            }
            Ok(())
        })
    }
}

/// Adds a chunk to the current frame.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_write_chunk(
    handle: Handle,
    name: *const c_char,
    kind: u8,
    n: u64,
    m: u64,
    step: u64,
    data: *const c_void,
) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            let kind = Type::from_code(NUMBERS, kind)
                .ok_or_else(|| Error::argument(format!("{kind} is not an element type")))?;
            let size = n.checked_mul(m).and_then(|count| count.checked_mul(kind.size()));
            let data = bytes(data, size.unwrap_or(u64::MAX));
            let writer = handle.writer()?;
            writer.set_step(step);
            writer.write_chunk(text(name)?, kind, n, m, data)
        })
    }
}

/// The step of the last committed frame; 0 where there is none.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_get_last_step(handle: Handle) -> u64 {
    let mut last = 0;
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            last = handle.reader()?.last_step()?.unwrap_or(0);
            Ok(())
        });
    }
    last
}

/// Frames that have ended; 0 on failure.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_get_nframes(handle: Handle) -> u64 {
    let mut frames = 0;
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            frames = match &mut handle.file {
                Open::Read(file) => file.nframes()?,
                Open::Write(_) => handle.writer()?.nframes(),
            };
            Ok(())
        });
    }
    frames
}

/// Looks at the file again, which somebody may be writing.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_refresh(handle: Handle) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| match &mut handle.file {
            Open::Read(file) => file.refresh(),
            Open::Write(_) => Ok(()),
        })
    }
}

/// The chunk of that name in that frame; null where there is none, or on failure.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_find_chunk(
    handle: Handle,
    frame: u64,
    name: *const c_char,
) -> *const CallerEntry {
    let mut entry = std::ptr::null();
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            let Some(chunk) = handle.reader()?.find_chunk(frame, text(name)?)? else {
                return Ok(());
            };
            if handle.found.len() == REMEMBERED {
                handle.found.pop_front();
            }
            handle.found.push_back(Box::new(CallerEntry::new(&chunk)));
            entry = handle.found.back().map_or(std::ptr::null(), |last| &raw const **last);
            Ok(())
        });
    }
    entry
}

impl CallerEntry {
    fn new(chunk: &Chunk) -> Self {
        let kind = chunk.place.kind;
        Self {
            frame: chunk.entry.frame,
            n: chunk.entry.n,
            m: chunk.entry.m,
            step: chunk.entry.step,
            location: chunk.entry.location,
            bytes: chunk.place.len,
            kind: kind.code(NUMBERS).unwrap_or(Type::UInt8.code(NUMBERS).unwrap_or(1)),
        }
    }
}

/// The data of a chunk.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_read_chunk(
    handle: Handle,
    data: *mut c_void,
    chunk: *const CallerEntry,
) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            let chunk = chunk.as_ref().filter(|chunk| chunk.location >= 0);
            let chunk = chunk.ok_or_else(|| Error::argument("there is no such chunk"))?;
            if data.is_null() && chunk.bytes > 0 {
                return Err(Error::argument("there is no memory for the chunk"));
            }
            let into = if chunk.bytes > 0 { bytes_mut(data, chunk.bytes) } else { &mut [] };
            handle.reader()?.source().read_exact_at(chunk.location as u64, into)
        })
    }
}

/// The first name that begins with `match_`, or the next one after `prev`; null at the end.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_find_matching_chunk_name(
    handle: Handle,
    match_: *const c_char,
    prev: *const c_char,
) -> *const c_char {
    let mut found = std::ptr::null();
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            let prefix = text(match_)?;
            if prev.is_null() {
                let names = handle.reader()?.find_matching_names(prefix);
                handle.names = names.into_iter().filter_map(|n| CString::new(n).ok()).collect();
            }
            let seen = handle.names.iter().position(|name| name.as_ptr() == prev);
            let next = if prev.is_null() { Some(0) } else { seen.map(|k| k + 1) };
            let next = next.and_then(|next| handle.names.get(next));
            found = next.map_or(std::ptr::null(), |name| name.as_ptr());
            Ok(())
        });
    }
    found
}

/// Bytes of an element; 0 for a number that is no type.
#[unsafe(no_mangle)]
pub extern "C" fn gsd_sizeof_type(kind: u8) -> usize {
    Type::from_code(NUMBERS, kind).map_or(0, |kind| kind.size() as usize)
}

/// A version as one number.
#[unsafe(no_mangle)]
pub extern "C" fn gsd_make_version(major: u32, minor: u32) -> u32 {
    major << 16 | minor & 0xffff
}

/// The last failure of this thread in words.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_last_message(text: *mut c_char, strlen: *mut c_int) -> c_int {
    // SAFETY: the caller says so.
    unsafe { copy_words(&last_message(), text, strlen) }
}
