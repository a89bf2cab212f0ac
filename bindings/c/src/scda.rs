//! The functions of the scda paper's appendix A, under its names. `scda.h` describes them.
//!
//! Every argument that may be wrong on one rank alone is handed on as something that the checks of
//! the library refuse, so that the error is agreed on by all ranks.

pub mod read;
pub mod write;

use std::ffi::{OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use spile::comm::{Comm, agree, agree_alike};
use spile::error::{Error, Result};
use spile::limits::Limits;
use spile::sink::Overwrite;
use spile_scda::wire::{Breaks, USER};
use spile_scda::{Cursor, Options, Writer};

use crate::comm::{Table, job};
use crate::failure::{copy_words, guard, last_message, meaning};
use crate::memory::{bytes, numbers, words};

/// `scda_file_t`: a file being written or read.
pub struct ScdaFile {
    // Dropped before what it borrows.
    state: State,
    comm: OwnComm,
    /// Length of the next user string to write, where it is not up to its first zero.
    user_length: Option<usize>,
    /// Length of the user string that was read last.
    read_length: usize,
}

enum State {
    Write(Writer<'static>),
    Read(Box<Cursor<'static>>),
}

/// The job of a file, which lives as long as the file.
struct OwnComm(*mut dyn Comm);

impl OwnComm {
    fn new(comm: Box<dyn Comm>) -> Self {
        Self(Box::into_raw(comm))
    }

    fn get(&self) -> &'static dyn Comm {
        // SAFETY: the job is freed when `self` is dropped, and [`ScdaFile`] drops what uses it
        // before that.
        unsafe { &*self.0 }
    }
}

impl Drop for OwnComm {
    fn drop(&mut self) {
        // SAFETY: it came from a box and nobody uses it any more.
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

/// Does something with a file and gives it back; on failure the file is closed and gone.
///
/// # Safety
/// `file` is null or a file of ours that is open; `err` is null or an `int`.
unsafe fn with(
    file: Handle,
    err: *mut c_int,
    body: impl FnOnce(&mut ScdaFile) -> Result<()>,
) -> Handle {
    // SAFETY: the caller says so.
    if unsafe { failed_before(file, err) } {
        return std::ptr::null_mut();
    }
    let done = || {
        // SAFETY: the caller says so; it is given back or dropped, never both.
        let mut own = unsafe { Box::from_raw(file) };
        body(&mut own)?;
        Ok(Box::into_raw(own))
    };
    // SAFETY: the caller says so.
    unsafe { guard(err, done) }.unwrap_or(std::ptr::null_mut())
}

/// There is no file, because an earlier call failed: its reason stays in `err`.
///
/// # Safety
/// `err` is null or an `int`.
unsafe fn failed_before(file: Handle, err: *mut c_int) -> bool {
    // SAFETY: the caller says so.
    unsafe {
        if file.is_null() && !err.is_null() && *err == 0 {
            guard::<()>(err, || Err(Error::argument("there is no open file")));
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
    /// `text` is null or ends with a zero, or is as long as was announced.
    unsafe fn user<'a>(&mut self, text: *const c_char) -> &'a [u8] {
        // SAFETY: the caller says so.
        match self.user_length.take() {
            Some(length) => unsafe { bytes(text.cast(), length as u64) },
            None => unsafe { words(text) },
        }
    }

    fn rank(&self) -> usize {
        self.comm.get().rank()
    }

    fn ranks(&self) -> u64 {
        self.comm.get().size() as u64
    }
}

/// The number of a rank; one that is negative is none.
fn rank_number(root: c_int) -> usize {
    usize::try_from(root).unwrap_or(usize::MAX)
}

/// A.3.1: opens a file on all ranks.
///
/// # Safety
/// As `scda.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fopen(
    comm: *const Table,
    filename: *const c_char,
    mode: c_char,
    userstr: *mut c_char,
    err: *mut c_int,
) -> Handle {
    // SAFETY: the caller says so.
    unsafe { scda_fopen_with(comm, filename, mode, userstr, std::ptr::null(), err) }
}

/// The same with options for writing.
///
/// # Safety
/// As `scda.h` says.
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
        // SAFETY: the caller says so.
        let comm = OwnComm::new(unsafe { job(comm) }?);
        // SAFETY: the caller says so.
        let path = Path::new(OsStr::from_bytes(unsafe { words(filename) }));
        let mode = mode as u8;
        let named = (!path.as_os_str().is_empty()).then_some(());
        let named = named.ok_or_else(|| Error::argument("no file was named"));
        agree_alike(comm.get(), named, (mode, path))?;
        let state = match mode {
            b'w' => {
                // SAFETY: the caller says so.
                let (user, options) = unsafe { (words(userstr), options_of(options)) };
                let options = agree(comm.get(), options)?;
                State::Write(Writer::create(comm.get(), path, user, options)?)
            }
            b'r' => {
                // Every number from the file is checked against its length, and the data go into
                // memory that the caller has already.
                let limits = Limits::default().with_memory(u64::MAX);
                State::Read(Box::new(Cursor::open(comm.get(), path, &limits)?))
            }
            _ => return Err(Error::argument("the mode is neither 'w' nor 'r'")),
        };
        let mut file = ScdaFile { state, comm, user_length: None, read_length: 0 };
        if let State::Read(cursor) = &file.state {
            let user = cursor.header().user.clone();
            // SAFETY: the caller says so.
            unsafe { file.give_user(&user, userstr) };
        }
        Ok(Box::into_raw(Box::new(file)))
    };
    // SAFETY: the caller says so.
    unsafe { guard(err, open) }.unwrap_or(std::ptr::null_mut())
}

/// # Safety
/// `options` is null or valid.
unsafe fn options_of(options: *const CallerOptions) -> Result<Options> {
    // A file that is opened with 'w' is replaced, as by `fopen`.
    let mut own = Options { overwrite: Overwrite::Replace, ..Options::default() };
    if options.is_null() {
        return Ok(own);
    }
    // SAFETY: the caller says so.
    let (given, vendor) = unsafe { (&*options, words((*options).vendor)) };
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
        .map_err(|_| Error::argument("compression levels are 0 to 12"))?;
    Ok(own)
}

impl ScdaFile {
    /// # Safety
    /// `room` is null or has 59 bytes.
    unsafe fn give_user(&mut self, user: &[u8], room: *mut c_char) {
        self.read_length = user.len();
        if !room.is_null() {
            // SAFETY: the caller says so; user strings have at most 58 bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(user.as_ptr().cast(), room, user.len().min(USER));
                *room.add(user.len().min(USER)) = 0;
            }
        }
    }
}

/// A.3.2: closes a file; 0 if all is well.
///
/// # Safety
/// As `scda.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fclose(f: Handle, err: *mut c_int) -> c_int {
    // SAFETY: the caller says so.
    if unsafe { failed_before(f, err) } {
        return -1;
    }
    let close = || {
        // SAFETY: the caller says so, and does not use the file afterwards.
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
    // SAFETY: the caller says so.
    if unsafe { guard(err, close) }.is_some() { 0 } else { -1 }
}

impl ScdaFile {
    /// The bytes of this rank's elements, which (S_q) has to confirm where data are `wanted`.
    ///
    /// # Safety
    /// `bytes_of_ranks` is null or has a number for every rank.
    unsafe fn check_sums(
        &self,
        wanted: bool,
        sizes: &[u64],
        bytes_of_ranks: *const u64,
    ) -> Result<u64> {
        let sum = sizes.iter().fold(0_u64, |sum, size| sum.saturating_add(*size));
        // SAFETY: the caller says so.
        let told = unsafe { numbers(bytes_of_ranks, self.ranks()) }.get(self.rank()).copied();
        let checked = if told == Some(sum) || !wanted {
            Ok(sum)
        } else {
            let (rank, told) = (self.rank(), told.unwrap_or(0));
            Err(Error::argument(format!("the sizes of rank {rank} add up to {sum}, not {told}")))
        };
        agree(self.comm.get(), checked)
    }
}

/// A.6.1: what a code means.
///
/// # Safety
/// As `scda.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_ferror_string(
    err: c_int,
    errorstr: *mut c_char,
    strlen: *mut c_int,
) -> c_int {
    match meaning(err) {
        // SAFETY: the caller says so.
        Some(words) => unsafe { copy_words(words, errorstr, strlen) },
        None => -1,
    }
}

/// The last failure of this thread in full: file, section, byte, and what was expected.
///
/// # Safety
/// As `scda.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_flast_message(text: *mut c_char, strlen: *mut c_int) -> c_int {
    // SAFETY: the caller says so.
    unsafe { copy_words(&last_message(), text, strlen) }
}

/// Bytes of the user string that was read last; it may contain zeros.
///
/// # Safety
/// As `scda.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fuserstr_length(f: *const ScdaFile) -> u64 {
    // SAFETY: the caller says so.
    if f.is_null() { 0 } else { unsafe { (*f).read_length as u64 } }
}

/// The next user string that is written has `length` bytes, zeros or not.
///
/// # Safety
/// As `scda.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fset_userstr_length(f: Handle, length: u64) {
    if !f.is_null() {
        // SAFETY: the caller says so.
        unsafe { (*f).user_length = usize::try_from(length).ok() };
    }
}
