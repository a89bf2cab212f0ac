//! The functions of appendix A of the scda specification. `scda.h` describes them.
//!
//! An argument that may be wrong on one rank only is passed on in a form that the checks of the library
//! reject, so that all ranks get the same error.

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
use spile_scda::{Cursor, Options, Writer};

use crate::comm::{Table, communicator};
use crate::failure::{copy_text, describe_code, guard, last_message};
use crate::memory::{bytes, c_string, integers};

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
    Write(Writer<'static>),
    Read(Box<Cursor<'static>>),
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
    fn writer(&mut self) -> Result<&mut Writer<'static>> {
        match &mut self.state {
            State::Write(writer) => Ok(writer),
            State::Read(_) => Err(Error::argument("the file is open for reading")),
        }
    }

    fn cursor(&mut self) -> Result<&mut Cursor<'static>> {
        match &mut self.state {
            State::Read(cursor) => Ok(cursor),
            State::Write(_) => Err(Error::argument("the file is open for writing")),
        }
    }

    /// A user string to write.
    ///
    /// # Safety
    /// `text` is null, ends with a NUL, or has the length that was set.
    unsafe fn user<'a>(&mut self, text: *const c_char) -> &'a [u8] {
        // SAFETY: condition of this function.
        match self.user_length.take() {
            Some(length) => unsafe { bytes(text.cast(), length as u64) },
            None => unsafe { c_string(text) },
        }
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
    userstr: *mut c_char,
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
    userstr: *mut c_char,
    options: *const CallerOptions,
    err: *mut c_int,
) -> Handle {
    let open = || {
        // SAFETY: condition of this function.
        let comm = OwnComm::new(unsafe { communicator(comm) }?);
        // SAFETY: condition of this function.
        let path = Path::new(OsStr::from_bytes(unsafe { c_string(filename) }));
        let mode = mode as u8;
        let named = (!path.as_os_str().is_empty()).then_some(());
        let named = named.ok_or_else(|| Error::argument("the file name is empty"));
        agree_alike(comm.get(), named, (mode, path))?;
        let state = match mode {
            b'w' => {
                // SAFETY: condition of this function.
                let (user, options) = unsafe { (c_string(userstr), options_of(options)) };
                let options = agree(comm.get(), options)?;
                State::Write(Writer::create(comm.get(), path, user, options)?)
            }
            b'r' => {
                // Counts are checked against the length of the file; data are read into memory of the caller.
                let limits = Limits::default().with_memory(u64::MAX);
                State::Read(Box::new(Cursor::open(comm.get(), path, &limits)?))
            }
            _ => return Err(Error::argument("expected the mode 'w' or 'r'")),
        };
        let mut file = ScdaFile { state, comm, user_length: None, read_length: 0 };
        if let State::Read(cursor) = &file.state {
            let user = cursor.header().user.clone();
            // SAFETY: condition of this function.
            unsafe { file.copy_user(&user, userstr) };
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
            State::Write(writer) => writer.close(),
            State::Read(cursor) => {
                drop(cursor);
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
    /// Sum of the sizes of this rank's elements. With `check`, it must equal (S_q) of this rank.
    ///
    /// # Safety
    /// `bytes_of_ranks` is null or has one number for every rank.
    unsafe fn check_sums(
        &self,
        check: bool,
        sizes: &[u64],
        bytes_of_ranks: *const u64,
    ) -> Result<u64> {
        let sum = sizes.iter().fold(0_u64, |sum, size| sum.saturating_add(*size));
        // SAFETY: condition of this function.
        let given = unsafe { integers(bytes_of_ranks, self.ranks()) }.get(self.rank()).copied();
        let checked = if given == Some(sum) || !check {
            Ok(sum)
        } else {
            let (rank, given) = (self.rank(), given.unwrap_or(0));
            let message = format!("rank {rank}: expected sizes with the sum {given}, found {sum}");
            Err(Error::argument(message))
        };
        agree(self.comm.get(), checked)
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
