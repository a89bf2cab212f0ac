//! The functions of appendix A of the scda specification. `scda.h` describes them.
//!
//! An argument that may be wrong on one rank only is passed on in a form that the checks of the library
//! reject, so that all ranks get the same error.

pub mod field;
pub mod read;
pub mod write;

use std::ffi::{OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use spile_core::comm::{Comm, agree, agree_alike};
use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::sink::Overwrite;
use spile_scda::wire::{Breaks, USER};
use spile_scda::{Checkpoint, Cursor, Options, Restart, Writer};

use crate::comm::{Table, communicator};
use crate::failure::{copy_text, describe_code, guard, last_message};
use crate::memory::{c_string, integers, short_string};

/// `scda_file_t`: a file open for writing or reading.
pub struct ScdaFile {
    // Dropped before `comm`, which it borrows.
    state: State,
    comm: OwnComm,
    /// Length of the next user string to write, if it was set.
    user_length: Option<usize>,
    /// Length of the last user string read.
    read_length: usize,
}

enum State {
    Write(Box<Checkpoint<'static>>),
    Read(Box<Restart<'static>>),
}

/// The communicator of a file, which lives as long as the file.
struct OwnComm(*mut dyn Comm);

impl OwnComm {
    fn new(comm: Box<dyn Comm>) -> Self {
        Self(Box::into_raw(comm))
    }

    fn get(&self) -> &'static dyn Comm {
        // SAFETY: the communicator is freed when `self` is dropped; [`ScdaFile`] drops its users first.
        unsafe { &*self.0 }
    }
}

impl Drop for OwnComm {
    fn drop(&mut self) {
        // SAFETY: it is from a box and not used any more.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// `scda_options_t`.
#[repr(C)]
pub struct CallerOptions {
    vendor: *const c_char,
    mime: c_int,
    level: c_int,
    keep_existing: c_int,
    index: c_int,
    checksums: c_int,
}

type Handle = *mut ScdaFile;

/// Calls `body` with the file and returns the file. If `body` fails, the file is closed and null is returned.
///
/// # Safety
/// `file` is null or an open file of this library; `err` is null or an `int`.
unsafe fn with(
    file: Handle,
    err: *mut c_int,
    body: impl FnOnce(&mut ScdaFile) -> Result<()>,
) -> Handle {
    // SAFETY: condition of this function.
    if unsafe { failed_before(file, err) } {
        return std::ptr::null_mut();
    }
    let done = || {
        // SAFETY: condition of this function. The file is either returned or dropped.
        let mut own = unsafe { Box::from_raw(file) };
        body(&mut own)?;
        Ok(Box::into_raw(own))
    };
    // SAFETY: condition of this function.
    unsafe { guard(err, done) }.unwrap_or(std::ptr::null_mut())
}

/// Whether `file` is null because an earlier call failed; the error of that call stays in `err`.
///
/// # Safety
/// `err` is null or an `int`.
unsafe fn failed_before(file: Handle, err: *mut c_int) -> bool {
    // SAFETY: condition of this function.
    unsafe {
        if file.is_null() && !err.is_null() && *err == 0 {
            guard::<()>(err, || Err(Error::argument("the file is not open")));
        }
    }
    file.is_null()
}

impl ScdaFile {
    fn checkpoint(&mut self) -> Result<&mut Checkpoint<'static>> {
        match &mut self.state {
            State::Write(file) => Ok(file),
            State::Read(_) => Err(Error::argument("the file is open for reading")),
        }
    }

    fn restart(&mut self) -> Result<&mut Restart<'static>> {
        match &mut self.state {
            State::Read(file) => Ok(file),
            State::Write(_) => Err(Error::argument("the file is open for writing")),
        }
    }

    fn writer(&mut self) -> Result<&mut Writer<'static>> {
        self.checkpoint().map(Checkpoint::writer)
    }

    fn cursor(&mut self) -> Result<&mut Cursor<'static>> {
        self.restart().map(Restart::cursor)
    }

    /// A user string to write. One that is too long is cut to 59 bytes, which the library rejects.
    ///
    /// # Safety
    /// `text` is null, ends with a NUL, has the length that was set, or has 59 bytes.
    unsafe fn user<'a>(&mut self, text: *const c_char) -> &'a [u8] {
        // SAFETY: condition of this function.
        unsafe { short_string(text, self.user_length.take(), USER + 1) }
    }

    fn rank(&self) -> usize {
        self.comm.get().rank()
    }

    fn ranks(&self) -> u64 {
        self.comm.get().size() as u64
    }
}

/// A rank; a negative number becomes one that is out of range.
fn to_rank(root: c_int) -> usize {
    usize::try_from(root).unwrap_or(usize::MAX)
}

/// Opens a file on all ranks (A.3.1).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fopen(
    comm: *const Table,
    filename: *const c_char,
    mode: c_char,
    userstr: *const c_char,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe { scda_fopen_with(comm, filename, mode, userstr, std::ptr::null(), err) }
}

/// Opens a file on all ranks, with options for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fopen_with(
    comm: *const Table,
    filename: *const c_char,
    mode: c_char,
    userstr: *const c_char,
    options: *const CallerOptions,
    err: *mut c_int,
) -> Handle {
    let read = if mode as u8 == b'r' { userstr.cast_mut() } else { std::ptr::null_mut() };
    // SAFETY: condition of this function.
    unsafe { open(comm, filename, mode as u8, userstr, options, read, err) }
}

/// Creates a file on all ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fopen_write(
    comm: *const Table,
    filename: *const c_char,
    userstr: *const c_char,
    options: *const CallerOptions,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe { open(comm, filename, b'w', userstr, options, std::ptr::null_mut(), err) }
}

/// Opens a file for reading on all ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fopen_read(
    comm: *const Table,
    filename: *const c_char,
    userstr: *mut c_char,
    err: *mut c_int,
) -> Handle {
    let none = std::ptr::null();
    // SAFETY: condition of this function.
    unsafe { open(comm, filename, b'r', none, std::ptr::null(), userstr, err) }
}

/// Opens a file. `user` is the user string to write, `read` receives the one that is read.
///
/// # Safety
/// The pointers are null or as `scda.h` describes them.
unsafe fn open(
    comm: *const Table,
    filename: *const c_char,
    mode: u8,
    user: *const c_char,
    options: *const CallerOptions,
    read: *mut c_char,
    err: *mut c_int,
) -> Handle {
    let open = || {
        // SAFETY: condition of this function.
        let comm = OwnComm::new(unsafe { communicator(comm) }?);
        // SAFETY: condition of this function.
        let path = Path::new(OsStr::from_bytes(unsafe { c_string(filename) }));
        let named = (!path.as_os_str().is_empty()).then_some(());
        let named = named.ok_or_else(|| Error::argument("the file name is empty"));
        agree_alike(comm.get(), named, (mode, path))?;
        let state = match mode {
            b'w' => {
                // SAFETY: condition of this function.
                let user = unsafe { short_string(user, None, USER + 1) };
                // SAFETY: condition of this function.
                let options = agree(comm.get(), unsafe { options_of(options) })?;
                let writer = Writer::create(comm.get(), path, user, options)?;
                State::Write(Box::new(Checkpoint::from_writer(writer)))
            }
            b'r' => {
                // Counts are checked against the length of the file; data are read into memory of the caller.
                let limits = Limits::default().with_memory(u64::MAX);
                let cursor = Cursor::open(comm.get(), path, &limits)?;
                State::Read(Box::new(Restart::from_cursor(comm.get(), cursor, &Limits::default())))
            }
            _ => return Err(Error::argument("expected the mode 'w' or 'r'")),
        };
        let mut file = ScdaFile { state, comm, user_length: None, read_length: 0 };
        if let State::Read(restart) = &mut file.state {
            let found = restart.cursor().header().user.clone();
            // SAFETY: condition of this function.
            unsafe { file.copy_user(&found, read) };
        }
        Ok(Box::into_raw(Box::new(file)))
    };
    // SAFETY: condition of this function.
    unsafe { guard(err, open) }.unwrap_or(std::ptr::null_mut())
}

/// # Safety
/// `options` is null or valid.
unsafe fn options_of(options: *const CallerOptions) -> Result<Options> {
    // Mode 'w' replaces an existing file, as in `fopen`.
    let mut own = Options { overwrite: Overwrite::Replace, ..Options::default() };
    if options.is_null() {
        return Ok(own);
    }
    // SAFETY: condition of this function.
    let (given, vendor) = unsafe { (&*options, c_string((*options).vendor)) };
    if !given.vendor.is_null() {
        own.vendor = vendor.to_vec();
    }
    if given.mime != 0 {
        own.breaks = Breaks::Mime;
    }
    if given.keep_existing != 0 {
        own.overwrite = Overwrite::Never;
    }
    (own.index, own.checksums) = (given.index != 0, given.checksums != 0);
    own.level = u32::try_from(given.level)
        .map_err(|_| Error::argument("expected a compression level from 0 to 12"))?;
    Ok(own)
}

impl ScdaFile {
    /// Copies a user string that was read.
    ///
    /// # Safety
    /// `target` is null or has 59 bytes.
    unsafe fn copy_user(&mut self, user: &[u8], target: *mut c_char) {
        self.read_length = user.len();
        if !target.is_null() {
            // SAFETY: condition of this function. At most 58 bytes and a NUL are written.
            unsafe {
                std::ptr::copy_nonoverlapping(user.as_ptr().cast(), target, user.len().min(USER));
                *target.add(user.len().min(USER)) = 0;
            }
        }
    }
}

/// Closes a file (A.3.2). Returns 0 on success.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fclose(f: Handle, err: *mut c_int) -> c_int {
    // SAFETY: condition of this function.
    if unsafe { failed_before(f, err) } {
        return -1;
    }
    let close = || {
        // SAFETY: condition of this function. The file is not used afterwards.
        let ScdaFile { state, comm, .. } = *unsafe { Box::from_raw(f) };
        let closed = match state {
            State::Write(file) => file.close(),
            State::Read(file) => {
                drop(file);
                Ok(())
            }
        };
        drop(comm);
        closed
    };
    // SAFETY: condition of this function.
    if unsafe { guard(err, close) }.is_some() { 0 } else { -1 }
}

impl ScdaFile {
    /// The numbers (S_q) of all ranks, and whether that of this rank is the sum of `sizes`.
    ///
    /// # Safety
    /// `bytes_of_ranks` is null or has one number for every rank.
    unsafe fn check_sums<'a>(
        &self,
        sizes: &[u64],
        bytes_of_ranks: *const u64,
    ) -> (&'a [u64], Result<()>) {
        let sum = sizes.iter().fold(0_u64, |sum, size| sum.saturating_add(*size));
        // SAFETY: condition of this function.
        let given = unsafe { integers(bytes_of_ranks, self.ranks()) };
        let rank = self.rank();
        let mine = given.get(rank).copied();
        let checked = if mine == Some(sum) {
            Ok(())
        } else {
            let mine = mine.unwrap_or(0);
            let message = format!("rank {rank}: expected sizes with the sum {mine}, found {sum}");
            Err(Error::argument(message))
        };
        (given, checked)
    }
}

/// Describes an error code (A.6.1).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_ferror_string(
    err: c_int,
    errorstr: *mut c_char,
    strlen: *mut c_int,
) -> c_int {
    match describe_code(err) {
        // SAFETY: condition of this function.
        Some(text) => unsafe { copy_text(text, errorstr, strlen) },
        None => -1,
    }
}

/// Copies the full message of the last error of this thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_flast_message(text: *mut c_char, strlen: *mut c_int) -> c_int {
    // SAFETY: condition of this function.
    unsafe { copy_text(&last_message(), text, strlen) }
}

/// Length of the last user string read; it may contain NUL bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fuserstr_length(f: *const ScdaFile) -> u64 {
    // SAFETY: condition of this function.
    if f.is_null() { 0 } else { unsafe { (*f).read_length as u64 } }
}

/// Sets the length of the next user string that is written; it may contain NUL bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fset_userstr_length(f: Handle, length: u64) {
    if !f.is_null() {
        // SAFETY: condition of this function.
        unsafe { (*f).user_length = usize::try_from(length).ok() };
    }
}
