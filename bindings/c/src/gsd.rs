//! The functions of the GSD specification, under its names. `gsd.h` describes them.

pub mod read;
pub mod write;

use std::collections::VecDeque;
use std::ffi::{CString, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use spile::error::{Error, Result};
use spile::limits::Limits;
use spile::sink::Overwrite;
use spile_gsd::wire::{About, Form, Type};
use spile_gsd::{File, Mode, Version, Writer};

use crate::failure::{copy_words, guard, last_message};
use crate::memory::words;
use read::CallerEntry;

/// The numbers of element types in `gsd.h` are those of the later versions.
const NUMBERS: Form = Form::V2;

/// `gsd_handle_t`.
pub struct GsdHandle {
    file: Open,
    path: PathBuf,
    /// What [`read::gsd_find_chunk`] gave out last.
    found: VecDeque<Box<CallerEntry>>,
    /// What [`read::gsd_find_matching_chunk_name`] goes through.
    names: Vec<CString>,
}

enum Open {
    Read(File),
    /// There unless a call in between failed.
    Write(Option<Box<Writer>>),
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
