//! The functions of current GSD libraries. `gsd.h` describes them.
//!
//! The caller allocates the handle. Its members are copies of the state, updated by every call; the state
//! itself is behind the last member.

use std::collections::VecDeque;
use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr::null_mut;
use std::time::Duration;

use spile_core::error::{Error, ErrorKind, Result};
use spile_core::limits::Limits;
use spile_core::sink::Overwrite;
use spile_gsd::wire::{About, Form, Type};
use spile_gsd::{Chunk, Commit, File, Mode, Version, Writer};

use crate::failure::{copy_text, guard, last_message};
use crate::memory::{bytes, bytes_mut, c_string};

/// Number of results of [`gsd_find_chunk`] that stay valid.
const REMEMBERED: usize = 4096;

/// Bytes of a name in the header, and of a chunk name before version 2.0.
const NAME: usize = 63;

const READ_ONLY: c_int = 2;
const APPEND: c_int = 3;

/// `struct gsd_header`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CHeader {
    magic: u64,
    index_location: u64,
    index_allocated_entries: u64,
    namelist_location: u64,
    namelist_allocated_entries: u64,
    schema_version: u32,
    gsd_version: u32,
    application: [u8; 64],
    schema: [u8; 64],
    reserved: [u8; 80],
}

/// `struct gsd_index_entry`.
#[repr(C)]
pub struct CEntry {
    frame: u64,
    n: u64,
    location: i64,
    m: u32,
    id: u16,
    kind: u8,
    flags: u8,
}

/// `struct gsd_index_buffer`.
#[repr(C)]
pub struct CIndex {
    data: *mut CEntry,
    size: usize,
    reserved: usize,
    mapped_data: *mut c_void,
    mapped_len: usize,
}

/// `struct gsd_byte_buffer`.
#[repr(C)]
pub struct CBytes {
    data: *mut c_char,
    size: usize,
    reserved: usize,
}

/// `struct gsd_name_buffer`.
#[repr(C)]
pub struct CNames {
    data: CBytes,
    n_names: usize,
}

/// `struct gsd_name_id_map`.
#[repr(C)]
pub struct CMap {
    v: *mut c_void,
    size: usize,
}

/// `struct gsd_handle`.
#[repr(C)]
pub struct CHandle {
    fd: c_int,
    header: CHeader,
    file_index: CIndex,
    buffer_index: CIndex,
    write_buffer: CBytes,
    file_names: CNames,
    frame_names: CNames,
    buffer_frame: u64,
    file_frame: u64,
    file_size: i64,
    open_flags: c_int,
    name_map: CMap,
    pending_index_entries: u64,
    maximum_write_buffer_size: u64,
    state: *mut State,
}

/// An open file.
pub struct State {
    open: Open,
    flags: c_int,
    /// A descriptor for the caller.
    _file: std::fs::File,
    found: VecDeque<Box<CEntry>>,
    names: Vec<CString>,
}

enum Open {
    Read(File),
    /// `None` after a failed call.
    Write(Option<Box<Writer>>),
}

type Handle = *mut CHandle;

/// Why a call failed, besides errors of the library.
enum Failure {
    Error(Error),
    NotWritable,
    NotReadable,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

type Outcome<T> = std::result::Result<T, Failure>;

impl State {
    fn writer(&mut self) -> Outcome<&mut Writer> {
        match &mut self.open {
            Open::Write(writer) => Ok(writer.as_deref_mut().ok_or_else(failed_before)?),
            Open::Read(_) => Err(Failure::NotWritable),
        }
    }

    /// The committed frames.
    fn reader(&mut self) -> Outcome<&File> {
        if self.flags == APPEND {
            return Err(Failure::NotReadable);
        }
        match &mut self.open {
            Open::Read(file) => Ok(file),
            Open::Write(writer) => Ok(writer.as_mut().ok_or_else(failed_before)?.committed()?),
        }
    }

    fn replace_writer(&mut self, change: impl FnOnce(Writer) -> Result<Writer>) -> Outcome<()> {
        self.writer()?;
        if let Open::Write(writer) = &mut self.open
            && let Some(old) = writer.take()
        {
            *writer = Some(Box::new(change(*old)?));
        }
        (self.found, self.names) = (VecDeque::new(), Vec::new());
        Ok(())
    }
}

fn failed_before() -> Error {
    Error::argument("an earlier call failed; open the file again")
}

/// Sets `errno`.
fn set_errno(number: c_int) {
    unsafe extern "C" {
        #[cfg_attr(target_os = "macos", link_name = "__error")]
        fn __errno_location() -> *mut c_int;
    }
    // SAFETY: the C library returns a valid pointer.
    unsafe { *__errno_location() = number };
}

/// The code of an error in `gsd.h`; sets `errno` for errors of input and output.
fn code_of(error: &Error) -> c_int {
    use std::io::ErrorKind as Io;
    match error.kind() {
        ErrorKind::Io | ErrorKind::Exists => {
            // Numbers of Linux, which are the same on the other systems for these errors.
            set_errno(match error.io_kind() {
                _ if error.kind() == ErrorKind::Exists => 17,
                Some(Io::NotFound) => 2,
                Some(Io::PermissionDenied) => 13,
                Some(Io::StorageFull) => 28,
                Some(Io::WouldBlock | Io::ResourceBusy) => 16,
                _ => 5,
            });
            -1
        }
        ErrorKind::Argument => -2,
        ErrorKind::NotThisFormat => -3,
        ErrorKind::Unsupported if error.code() == "gsd-034" => -7,
        ErrorKind::Unsupported => -4,
        ErrorKind::Malformed | ErrorKind::Truncated => -5,
        ErrorKind::Limit => -6,
    }
}

/// Runs `body` and returns its result, or the code of its error.
fn run<T>(body: impl FnOnce() -> Outcome<T>) -> std::result::Result<T, c_int> {
    let mut code = -2;
    let body = || {
        body().map_err(|failure| match failure {
            Failure::Error(error) => {
                code = code_of(&error);
                error
            }
            Failure::NotWritable => {
                code = -8;
                Error::argument("the file is open for reading only")
            }
            Failure::NotReadable => {
                code = -9;
                Error::argument("the file is open for appending only")
            }
        })
    };
    // SAFETY: the code is not stored.
    unsafe { guard(null_mut(), body) }.ok_or(code)
}

/// Calls `body` with the open file and updates the members of the handle.
///
/// # Safety
/// `handle` is null or was passed to a function of this file before.
unsafe fn with<T>(
    handle: Handle,
    body: impl FnOnce(&mut State) -> Outcome<T>,
) -> std::result::Result<T, c_int> {
    run(|| {
        // SAFETY: condition of this function.
        let handle = unsafe { handle.as_mut() };
        let handle = handle.ok_or_else(|| Error::argument("the handle is null"))?;
        // SAFETY: the state is null or was created by `fill`.
        let state = unsafe { handle.state.as_mut() };
        let state = state.ok_or_else(|| Error::argument("the file is not open"))?;
        let done = body(state);
        update(handle, state)?;
        done
    })
}

fn code(result: std::result::Result<(), c_int>) -> c_int {
    result.err().unwrap_or(0)
}

/// Copies the state to the members that change.
fn update(handle: &mut CHandle, state: &mut State) -> Result<()> {
    let (header, frames, buffered, size) = match &mut state.open {
        Open::Read(file) => (file.header(), file.nframes()?, file.nframes()?, 0),
        Open::Write(None) => return Ok(()),
        Open::Write(Some(writer)) => {
            let frames = writer.committed_frames();
            (writer.header(), frames, writer.nframes(), writer.buffer_size() as u64)
        }
    };
    let fixed = |text: &str| {
        let mut bytes = [0; 64];
        let len = text.len().min(NAME);
        bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        bytes
    };
    let about = header.about();
    handle.header = CHeader {
        magic: 0x65df_65df_65df_65df,
        index_location: header.index.location,
        index_allocated_entries: header.index.allocated,
        namelist_location: header.names.map_or(0, |names| names.location),
        namelist_allocated_entries: header.names.map_or(0, |names| names.allocated),
        schema_version: about.schema_version,
        gsd_version: header.version,
        application: fixed(&about.application),
        schema: fixed(&about.schema),
        reserved: [0; 80],
    };
    handle.file_index.reserved = header.index.allocated as usize;
    (handle.file_frame, handle.buffer_frame) = (frames, buffered);
    handle.maximum_write_buffer_size = size;
    Ok(())
}

/// Fills a handle, whose memory may be uninitialised, for an open file.
///
/// # Safety
/// `handle` is null or points to memory for a handle.
unsafe fn fill(handle: Handle, path: &Path, flags: c_int, open: Open) -> Outcome<()> {
    if handle.is_null() {
        return Err(Error::argument("the handle is null").into());
    }
    let io = |e: std::io::Error| Error::io(path, e);
    let file = std::fs::File::open(path).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    // SAFETY: condition of this function; all members may be zero.
    let handle = unsafe {
        handle.write_bytes(0, 1);
        &mut *handle
    };
    handle.fd = file.as_raw_fd();
    handle.open_flags = flags;
    handle.file_size = size as i64;
    let (found, names) = (VecDeque::new(), Vec::new());
    let mut state = Box::new(State { open, flags, _file: file, found, names });
    update(handle, &mut state)?;
    handle.state = Box::into_raw(state);
    Ok(())
}

/// # Safety
/// `name` is null or ends with a NUL.
unsafe fn path<'a>(name: *const c_char) -> &'a Path {
    // SAFETY: condition of this function.
    Path::new(OsStr::from_bytes(unsafe { c_string(name) }))
}

/// # Safety
/// `text` is null or ends with a NUL.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str> {
    // SAFETY: condition of this function.
    std::str::from_utf8(unsafe { c_string(text) })
        .map_err(|_| Error::argument("a name is not UTF-8"))
}

/// The text, truncated to the length of a name.
fn truncated(text: &str) -> &str {
    let end = (0..=NAME.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// # Safety
/// The texts end with a NUL.
unsafe fn create(
    fname: *const c_char,
    application: *const c_char,
    schema: *const c_char,
    schema_version: u32,
    overwrite: Overwrite,
) -> Result<Writer> {
    // SAFETY: condition of this function.
    let (path, application, schema) = unsafe { (path(fname), text(application)?, text(schema)?) };
    let (application, schema) = (truncated(application).into(), truncated(schema).into());
    let about = About { application, schema, schema_version };
    Writer::create(path, overwrite, Version::V2_1, &about, Mode::default())
}

/// A version as one number.
#[unsafe(no_mangle)]
pub extern "C" fn gsd_make_version(major: u32, minor: u32) -> u32 {
    major << 16 | minor & 0xffff
}

/// Bytes of an element; 0 for an unknown type.
#[unsafe(no_mangle)]
pub extern "C" fn gsd_sizeof_type(kind: c_int) -> usize {
    element(kind).map_or(0, |kind| kind.size() as usize)
}

fn element(kind: c_int) -> Option<Type> {
    Type::from_code(Form::V2, u8::try_from(kind).ok()?)
}

/// Creates an empty file; an existing file is replaced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_create(
    fname: *const c_char,
    application: *const c_char,
    schema: *const c_char,
    schema_version: u32,
) -> c_int {
    // SAFETY: condition of this function.
    code(run(|| unsafe {
        Ok(create(fname, application, schema, schema_version, Overwrite::Replace)?.close()?)
    }))
}

/// Creates a file and opens it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_create_and_open(
    handle: Handle,
    fname: *const c_char,
    application: *const c_char,
    schema: *const c_char,
    schema_version: u32,
    flags: c_int,
    exclusive_create: c_int,
) -> c_int {
    code(run(|| {
        if !matches!(flags, 1 | APPEND) {
            return Err(Error::argument("a new file is opened for writing").into());
        }
        let overwrite = if exclusive_create == 0 { Overwrite::Replace } else { Overwrite::Never };
        // SAFETY: condition of this function.
        unsafe {
            let writer = create(fname, application, schema, schema_version, overwrite)?;
            fill(handle, path(fname), flags, Open::Write(Some(Box::new(writer))))
        }
    }))
}

/// Opens a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_open(handle: Handle, fname: *const c_char, flags: c_int) -> c_int {
    code(run(|| {
        // SAFETY: condition of this function.
        let path = unsafe { path(fname) };
        let limits = Limits::default();
        let open = match flags {
            1 | APPEND => {
                Open::Write(Some(Box::new(Writer::append(path, Mode::default(), &limits)?)))
            }
            READ_ONLY => Open::Read(File::open(path, &limits)?),
            _ => return Err(Error::argument(format!("unknown open flag {flags}")).into()),
        };
        // SAFETY: condition of this function.
        unsafe { fill(handle, path, flags, open) }
    }))
}

/// Commits the completed frames and closes the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_close(handle: Handle) -> c_int {
    code(run(|| {
        // SAFETY: condition of this function.
        let handle = unsafe { handle.as_mut() };
        let handle = handle.filter(|handle| !handle.state.is_null());
        let handle = handle.ok_or_else(|| Error::argument("the file is not open"))?;
        // SAFETY: the state was created by `fill` and is not used afterwards.
        let state = unsafe { Box::from_raw(std::mem::replace(&mut handle.state, null_mut())) };
        handle.fd = -1;
        if let Open::Write(Some(writer)) = state.open {
            writer.close()?;
        }
        Ok(())
    }))
}

/// Completes the current frame.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_end_frame(handle: Handle) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe { with(handle, |state| Ok(state.writer()?.end_frame()?)) })
}

/// Commits the completed frames and waits for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_flush(handle: Handle) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe { with(handle, |state| Ok(state.writer()?.flush()?)) })
}

/// Removes all frames.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_truncate(handle: Handle) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe { with(handle, |state| state.replace_writer(Writer::truncate)) })
}

/// Converts the file to version 2.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_upgrade(handle: Handle) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe { with(handle, |state| state.replace_writer(Writer::upgrade)) })
}

/// Shows frames that another process has committed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_refresh(handle: Handle) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe {
        with(handle, |state| match &mut state.open {
            Open::Read(file) => Ok(file.refresh()?),
            Open::Write(_) => Ok(()),
        })
    })
}

/// Commits automatically after a number of frames or a time; 0 for neither.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_set_commit(handle: Handle, frames: u64, seconds: f64) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe {
        with(handle, |state| {
            let time = Duration::try_from_secs_f64(seconds);
            let commit = match (frames, time) {
                (0, Ok(Duration::ZERO)) => Commit::OnFlush,
                (frames, Ok(Duration::ZERO)) => Commit::Frames(frames),
                (0, Ok(time)) => Commit::Every(time),
                _ => return Err(Error::argument("expected frames or seconds").into()),
            };
            let writer = state.writer()?;
            writer.set_mode(Mode { commit, ..writer.mode() });
            Ok(())
        })
    })
}

/// Adds a chunk to the current frame.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_write_chunk(
    handle: Handle,
    name: *const c_char,
    kind: c_int,
    n: u64,
    m: u32,
    flags: u8,
    data: *const c_void,
) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe {
        with(handle, |state| {
            let wrong = |message: String| Failure::from(Error::argument(message));
            let kind = element(kind).ok_or_else(|| wrong(format!("unknown type {kind}")))?;
            let m = u64::from(m);
            if flags != 0 || m == 0 || n > 0 && data.is_null() {
                return Err(wrong("expected flags 0, columns and data".into()));
            }
            let size = n.checked_mul(m).and_then(|count| count.checked_mul(kind.size()));
            let data = if n == 0 { &[] } else { bytes(data, size.unwrap_or(u64::MAX)) };
            let writer = state.writer()?;
            let name = text(name)?;
            let name = if writer.header().form == Form::V1 { truncated(name) } else { name };
            Ok(writer.write_chunk(name, kind, n, m, data)?)
        })
    })
}

/// Finds a chunk; null if it does not exist or on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_find_chunk(
    handle: Handle,
    frame: u64,
    name: *const c_char,
) -> *const CEntry {
    // SAFETY: condition of this function.
    let found = unsafe {
        with(handle, |state| {
            let Some(Chunk { entry, data, .. }) = state.reader()?.find_chunk(frame, text(name)?)?
            else {
                return Ok(std::ptr::null());
            };
            let kind = data.kind.code(Form::V2).unwrap_or(1);
            let (m, id) = (entry.m as u32, entry.id as u16);
            let (n, location) = (entry.n, entry.location);
            if state.found.len() == REMEMBERED {
                state.found.pop_front();
            }
            state.found.push_back(Box::new(CEntry { frame, n, location, m, id, kind, flags: 0 }));
            Ok(state.found.back().map_or(std::ptr::null(), |last| &raw const **last))
        })
    };
    found.unwrap_or(std::ptr::null())
}

/// Reads the data of a chunk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_read_chunk(
    handle: Handle,
    data: *mut c_void,
    chunk: *const CEntry,
) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe {
        with(handle, |state| {
            let chunk = chunk.as_ref().filter(|_| !data.is_null());
            let chunk = chunk.ok_or_else(|| Error::argument("chunk or data are null"))?;
            let malformed = || Error::malformed("gsd-010", "invalid index entry");
            let kind = element(chunk.kind.into()).ok_or_else(malformed)?;
            let offset = u64::try_from(chunk.location).map_err(|_| malformed())?;
            let size = kind.bytes(chunk.n, chunk.m.into()).ok_or_else(malformed)?;
            let source = state.reader()?.source();
            if offset.checked_add(size).is_none_or(|end| end > i64::MAX as u64) {
                return Err(malformed().into());
            }
            Ok(source.read_exact_at(offset, bytes_mut(data, size))?)
        })
    })
}

/// Number of committed frames; 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_get_nframes(handle: Handle) -> u64 {
    // SAFETY: condition of this function.
    let frames = unsafe {
        with(handle, |state| match &mut state.open {
            Open::Read(file) => Ok(file.nframes()?),
            Open::Write(_) => Ok(state.writer()?.committed_frames()),
        })
    };
    frames.unwrap_or(0)
}

/// The first name with the prefix `match_`, or the next one after `prev`; null at the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_find_matching_chunk_name(
    handle: Handle,
    match_: *const c_char,
    prev: *const c_char,
) -> *const c_char {
    // SAFETY: condition of this function.
    let found = unsafe {
        with(handle, |state| {
            if match_.is_null() {
                return Ok(std::ptr::null());
            }
            let prefix = text(match_)?;
            if prev.is_null() {
                // Names are only added, so that earlier results stay valid.
                let names = state.reader()?.find_matching_names("");
                let new = names.into_iter().skip(state.names.len());
                let new: Vec<CString> = new.filter_map(|name| CString::new(name).ok()).collect();
                state.names.extend(new);
            }
            let seen = state.names.iter().position(|name| name.as_ptr() == prev);
            let next = if prev.is_null() { Some(0) } else { seen.map(|k| k + 1) };
            let rest = next.and_then(|next| state.names.get(next..)).unwrap_or_default();
            let next = rest.iter().find(|name| name.as_bytes().starts_with(prefix.as_bytes()));
            Ok(next.map_or(std::ptr::null(), |name| name.as_ptr()))
        })
    };
    found.unwrap_or(std::ptr::null())
}

/// Size of the write buffer in bytes; 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_get_maximum_write_buffer_size(handle: Handle) -> u64 {
    // SAFETY: condition of this function.
    unsafe { with(handle, |state| Ok(state.writer()?.buffer_size() as u64)) }.unwrap_or(0)
}

/// Sets the size of the write buffer in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_set_maximum_write_buffer_size(handle: Handle, size: u64) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe {
        with(handle, |state| {
            state.writer()?.set_buffer_size(positive(size)?);
            Ok(())
        })
    })
}

/// Number of index entries in memory; 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_get_index_entries_to_buffer(handle: Handle) -> u64 {
    // SAFETY: condition of this function.
    unsafe { with(handle, |state| Ok(state.writer()?.pending_limit() as u64)) }.unwrap_or(0)
}

/// Sets the number of index entries in memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_set_index_entries_to_buffer(handle: Handle, number: u64) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe {
        with(handle, |state| {
            state.writer()?.set_pending_limit(positive(number)?);
            Ok(())
        })
    })
}

fn positive(number: u64) -> Result<usize> {
    let number = usize::try_from(number).ok().filter(|n| (1..=1 << 40).contains(n));
    number.ok_or_else(|| Error::argument("expected a number from 1 to 2^40"))
}

/// Copies the message of the last error of this thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_last_message(text: *mut c_char, length: *mut c_int) -> c_int {
    // SAFETY: condition of this function.
    unsafe { copy_text(&last_message(), text, length) }
}
