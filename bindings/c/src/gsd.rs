//! The functions of current GSD libraries. `gsd.h` describes them.
//!
//! The caller allocates the handle. Its members are copies of the state, updated by every call; the state
//! itself is behind `file_index.mapped_data`.
//!
//! | file | content |
//! |---|---|
//! | `layout` | the structures of `gsd.h` |
//! | `read` | finding and reading chunks |
//! | `write` | creating files, writing frames, commits, buffers |

pub mod layout;
pub mod read;
pub mod write;

use std::ffi::{CString, OsStr, c_char, c_int};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use spile_core::error::{Error, ErrorKind, Result};
use spile_core::limits::Limits;
use spile_gsd::wire::{Form, Header, Type};
use spile_gsd::{File, Mode, Writer};

use crate::failure::{copy_text, guard, last_message};
use crate::memory::c_string;
use layout::{CHandle, CHeader};
use read::Found;

const READ_ONLY: c_int = 2;
const APPEND: c_int = 3;

/// Default size of the write buffer in bytes.
const BUFFER: u64 = 1 << 20;

/// An open file.
pub struct State {
    open: Open,
    path: PathBuf,
    flags: c_int,
    /// A descriptor for the caller.
    file: std::fs::File,
    /// Size of the write buffer of a file that is open for reading; it has no effect.
    buffer: u64,
    found: Found,
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
        // The file may have been replaced.
        self.file = open_file(&self.path)?;
        (self.found, self.names) = (Found::default(), Vec::new());
        Ok(())
    }
}

fn open_file(path: &Path) -> Result<std::fs::File> {
    std::fs::File::open(path).map_err(|e| Error::io(path, e))
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
            set_errno(match (error.io_kind(), error.os_error()) {
                _ if error.kind() == ErrorKind::Exists => 17,
                // Only the lock of another writer has no cause in the system.
                (None | Some(Io::WouldBlock | Io::ResourceBusy), _) => 16,
                (_, Some(number)) => number,
                (Some(Io::NotFound), None) => 2,
                (Some(Io::PermissionDenied), None) => 13,
                (Some(Io::IsADirectory), None) => 21,
                (Some(Io::StorageFull), None) => 28,
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
    // SAFETY: condition of this function.
    unsafe {
        with_handle(handle, |handle, state| {
            let done = body(state);
            update(handle, state)?;
            done
        })
    }
}

/// Calls `body` with the open file where no member of the handle changes.
///
/// # Safety
/// `handle` is null or was passed to a function of this file before.
unsafe fn with_state<T>(
    handle: Handle,
    body: impl FnOnce(&mut State) -> Outcome<T>,
) -> std::result::Result<T, c_int> {
    // SAFETY: condition of this function.
    unsafe { with_handle(handle, |_, state| body(state)) }
}

/// # Safety
/// `handle` is null or was passed to a function of this file before.
unsafe fn with_handle<T>(
    handle: Handle,
    body: impl FnOnce(&mut CHandle, &mut State) -> Outcome<T>,
) -> std::result::Result<T, c_int> {
    run(|| {
        // SAFETY: condition of this function.
        let handle = unsafe { handle.as_mut() };
        let handle = handle.ok_or_else(|| Error::argument("the handle is null"))?;
        // SAFETY: the state is null or was created by `fill`.
        let state = unsafe { handle.file_index.mapped_data.as_mut() };
        let state = state.ok_or_else(|| Error::argument("the file is not open"))?;
        body(handle, state)
    })
}

fn code(result: std::result::Result<(), c_int>) -> c_int {
    result.err().unwrap_or(0)
}

/// The state of an open file, or `None` after a failed call: header, committed and completed frames, buffer size.
fn progress(state: &State) -> Result<Option<(&Header, u64, u64, u64)>> {
    Ok(match &state.open {
        Open::Read(file) => {
            let frames = file.nframes()?;
            Some((file.header(), frames, frames, state.buffer))
        }
        Open::Write(None) => None,
        Open::Write(Some(writer)) => {
            let (committed, size) = (writer.committed_frames(), writer.buffer_size());
            Some((writer.header(), committed, writer.nframes(), size as u64))
        }
    })
}

/// Copies the state to the members that change.
fn update(handle: &mut CHandle, state: &State) -> Result<()> {
    handle.fd = state.file.as_raw_fd();
    let Some((header, committed, completed, size)) = progress(state)? else { return Ok(()) };
    handle.header.set_blocks(header);
    handle.file_index.reserved = header.index.allocated as usize;
    (handle.file_frame, handle.buffer_frame) = (committed, completed);
    handle.maximum_write_buffer_size = size;
    Ok(())
}

/// The handle of a file that is not open. Its memory may be uninitialised before; afterwards it can be closed.
///
/// # Safety
/// `handle` is null or points to memory for a handle.
unsafe fn clear<'a>(handle: Handle) -> Outcome<&'a mut CHandle> {
    if handle.is_null() {
        return Err(Error::argument("the handle is null").into());
    }
    // SAFETY: condition of this function; all members may be zero.
    let handle = unsafe {
        handle.write_bytes(0, 1);
        &mut *handle
    };
    handle.fd = -1;
    Ok(handle)
}

/// Fills the handle for an open file.
fn fill(handle: &mut CHandle, path: &Path, flags: c_int, open: Open) -> Outcome<()> {
    let file = open_file(path)?;
    let size = file.metadata().map_err(|e| Error::io(path, e))?.len();
    handle.open_flags = flags;
    handle.file_size = size as i64;
    let (path, buffer) = (path.to_path_buf(), BUFFER);
    let (found, names) = (Found::default(), Vec::new());
    let state = Box::new(State { open, path, flags, file, buffer, found, names });
    if let Some((header, ..)) = progress(&state)? {
        handle.header = CHeader::new(header);
    }
    update(handle, &state)?;
    handle.file_index.mapped_data = Box::into_raw(state);
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

/// Opens a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_open(handle: Handle, fname: *const c_char, flags: c_int) -> c_int {
    code(run(|| {
        // SAFETY: condition of this function.
        let (handle, path) = unsafe { (clear(handle)?, path(fname)) };
        let limits = Limits::default();
        let open = match flags {
            1 | APPEND => {
                Open::Write(Some(Box::new(Writer::append(path, Mode::default(), &limits)?)))
            }
            READ_ONLY => Open::Read(File::open(path, &limits)?),
            _ => return Err(Error::argument(format!("unknown open flag {flags}")).into()),
        };
        fill(handle, path, flags, open)
    }))
}

/// Commits the completed frames and closes the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_close(handle: Handle) -> c_int {
    code(run(|| {
        // SAFETY: condition of this function.
        let handle = unsafe { handle.as_mut() };
        let handle = handle.filter(|handle| !handle.file_index.mapped_data.is_null());
        let handle = handle.ok_or_else(|| Error::argument("the file is not open"))?;
        let state = std::mem::replace(&mut handle.file_index.mapped_data, null_mut());
        // SAFETY: the state was created by `fill` and is not used afterwards.
        let state = unsafe { Box::from_raw(state) };
        handle.fd = -1;
        if let Open::Write(Some(writer)) = state.open {
            writer.close()?;
        }
        Ok(())
    }))
}

/// Copies the message of the last error of this thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_last_message(text: *mut c_char, length: *mut c_int) -> c_int {
    // SAFETY: condition of this function.
    unsafe { copy_text(&last_message(), text, length) }
}
