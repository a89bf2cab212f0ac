//! The functions of the GSD specification. `gsd_seed.h` describes them.

pub mod read;
pub mod write;

use std::collections::VecDeque;
use std::ffi::{CString, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::sink::Overwrite;
use spile_gsd::wire::{About, Form, Type};
use spile_gsd::{File, Mode, Version, Writer};

use crate::failure::{copy_text, guard, last_message};
use crate::memory::c_string;
use read::CallerEntry;

/// Element type codes in `gsd_seed.h` are those of the later versions.
const TYPE_CODES: Form = Form::V2;

/// `gsd_handle_t`.
pub struct GsdHandle {
    file: Open,
    /// The last results of [`read::gsd_seed_find_chunk`].
    found: VecDeque<Box<CallerEntry>>,
    /// The results of [`read::gsd_seed_find_matching_chunk_name`].
    names: Vec<CString>,
}

enum Open {
    Read(File),
    /// `None` after a failed call.
    Write(Option<Box<Writer>>),
}

type Handle = *mut GsdHandle;

impl GsdHandle {
    fn writer(&mut self) -> Result<&mut Writer> {
        match &mut self.file {
            Open::Write(writer) => writer.as_deref_mut().ok_or_else(closed),
            Open::Read(_) => Err(Error::argument("the file is open for reading only")),
        }
    }

    /// The writer, for calls that replace it.
    fn take_writer(&mut self) -> Result<Box<Writer>> {
        self.writer()?;
        match &mut self.file {
            Open::Write(writer) => writer.take().ok_or_else(closed),
            Open::Read(_) => Err(closed()),
        }
    }

    /// The file, including the data written so far.
    fn reader(&mut self) -> Result<&File> {
        match &mut self.file {
            Open::Read(file) => Ok(file),
            Open::Write(writer) => writer.as_mut().ok_or_else(closed)?.reader(),
        }
    }
}

fn closed() -> Error {
    Error::argument("an earlier call failed; open the file again")
}

/// Calls `body` with the handle. Returns 0 or a negative error code.
///
/// # Safety
/// `handle` is null or an open handle of this library.
unsafe fn with(handle: Handle, body: impl FnOnce(&mut GsdHandle) -> Result<()>) -> c_int {
    let mut err = 0;
    // SAFETY: condition of this function.
    unsafe { call(handle, &raw mut err, body) };
    -err
}

/// Calls `body` with the handle. Returns its result, or `failed` if it fails.
///
/// # Safety
/// `handle` is null or an open handle of this library.
unsafe fn get<T>(handle: Handle, failed: T, body: impl FnOnce(&mut GsdHandle) -> Result<T>) -> T {
    // SAFETY: condition of this function. The code is not stored.
    unsafe { call(handle, std::ptr::null_mut(), body) }.unwrap_or(failed)
}

/// # Safety
/// `handle` is null or an open handle of this library, `err` is null or points to an `int`.
unsafe fn call<T>(
    handle: Handle,
    err: *mut c_int,
    body: impl FnOnce(&mut GsdHandle) -> Result<T>,
) -> Option<T> {
    let closed = || Error::argument("the file is not open");
    // SAFETY: condition of this function.
    unsafe { guard(err, || body(handle.as_mut().ok_or_else(closed)?)) }
}

/// # Safety
/// `text` is null or ends with a NUL.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str> {
    // SAFETY: condition of this function.
    std::str::from_utf8(unsafe { c_string(text) })
        .map_err(|_| Error::argument("a name is not UTF-8"))
}

/// # Safety
/// `name` is null or ends with a NUL.
unsafe fn path<'a>(name: *const c_char) -> &'a Path {
    // SAFETY: condition of this function.
    Path::new(OsStr::from_bytes(unsafe { c_string(name) }))
}

/// Creates an empty file; an existing file is replaced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_create(
    fname: *const c_char,
    application: *const c_char,
    schema: *const c_char,
    schema_version: u32,
) -> c_int {
    // SAFETY: condition of this function.
    unsafe { gsd_seed_create_version(fname, application, schema, schema_version, 2 << 16 | 1) }
}

/// Creates an empty file in a given version of the format.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_create_version(
    fname: *const c_char,
    application: *const c_char,
    schema: *const c_char,
    schema_version: u32,
    version: u32,
) -> c_int {
    let mut err = 0;
    // SAFETY: condition of this function.
    unsafe {
        guard(&raw mut err, || {
            let version = match version {
                1 => Version::V0_0_1,
                0x1_0000 => Version::V1_0,
                0x2_0000 => Version::V2_0,
                0x2_0001 => Version::V2_1,
                other => {
                    let message = format!("version {other:#x} cannot be written");
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

/// Opens a file. Returns null on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_open(fname: *const c_char, flags: u8) -> Handle {
    let open = || {
        // SAFETY: condition of this function.
        let path = unsafe { path(fname) };
        let limits = Limits::default();
        let file = match flags {
            1 | 3 => Open::Write(Some(Box::new(Writer::append(path, Mode::default(), &limits)?))),
            2 => Open::Read(File::open(path, &limits)?),
            _ => {
                return Err(Error::argument(
                    "expected an open flag GSD_OPEN_READWRITE, _READONLY or _APPEND",
                ));
            }
        };
        let handle = GsdHandle { file, found: VecDeque::new(), names: Vec::new() };
        Ok(Box::into_raw(Box::new(handle)))
    };
    // SAFETY: the code is not stored.
    unsafe { guard(std::ptr::null_mut(), open) }.unwrap_or(std::ptr::null_mut())
}

/// Commits the ended frames and closes the file. The handle is invalid afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_close(handle: Handle) -> c_int {
    let mut err = 0;
    // SAFETY: condition of this function. The handle is not used afterwards.
    unsafe {
        guard(&raw mut err, || {
            if handle.is_null() {
                return Err(Error::argument("the file is not open"));
            }
            match Box::from_raw(handle).file {
                Open::Write(Some(writer)) => writer.close(),
                Open::Write(None) | Open::Read(_) => Ok(()),
            }
        });
    }
    -err
}

/// Bytes of an element; 0 for an unknown type.
#[unsafe(no_mangle)]
pub extern "C" fn gsd_seed_sizeof_type(kind: u8) -> usize {
    Type::from_code(TYPE_CODES, kind).map_or(0, |kind| kind.size() as usize)
}

/// A version as one number.
#[unsafe(no_mangle)]
pub extern "C" fn gsd_seed_make_version(major: u32, minor: u32) -> u32 {
    major << 16 | minor & 0xffff
}

/// Copies the message of the last error of this thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_last_message(text: *mut c_char, strlen: *mut c_int) -> c_int {
    // SAFETY: condition of this function.
    unsafe { copy_text(&last_message(), text, strlen) }
}
