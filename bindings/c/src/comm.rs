//! A job whose ranks talk through a table of the caller's functions (`scda_comm_t`).

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use spile::comm::{Comm, Ranks, Serial, Transport, address, address_mut};
use spile::error::{Error, Result};

/// `scda_comm_t`; see `scda.h` for what each function has to do. All of them give 0 or a code.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Table {
    context: *mut c_void,
    rank: c_int,
    size: c_int,
    bcast: unsafe extern "C" fn(*mut c_void, *mut c_void, usize, c_int) -> c_int,
    allgather: unsafe extern "C" fn(*mut c_void, *const c_void, usize, *mut c_void) -> c_int,
    open: unsafe extern "C" fn(*mut c_void, *const c_char, c_int, *mut *mut c_void) -> c_int,
    write_at_all: unsafe extern "C" fn(
        *mut c_void,
        *mut c_void,
        u64,
        *const c_void,
        usize,
        *mut usize,
    ) -> c_int,
    read_at_all: unsafe extern "C" fn(
        *mut c_void,
        *mut c_void,
        u64,
        *mut c_void,
        usize,
        *mut usize,
    ) -> c_int,
    close: unsafe extern "C" fn(*mut c_void, *mut c_void, c_int) -> c_int,
    explain: unsafe extern "C" fn(*mut c_void, c_int, *mut c_char, usize),
    release: unsafe extern "C" fn(*mut c_void),
}

/// The job of a table, or of one process where there is none.
///
/// # Safety
/// `table` is null or what `scda.h` says; it is not used by anybody else any more.
pub(crate) unsafe fn job(table: *const Table) -> Result<Box<dyn Comm>> {
    if table.is_null() {
        return Ok(Box::new(Serial));
    }
    // SAFETY: the caller says so; a table of no ranks has no functions, and is not looked at.
    let (rank, size) = unsafe { ((*table).rank, (*table).size) };
    if size < 1 || rank < 0 || rank >= size {
        return Err(Error::argument("the communicator could not be made"));
    }
    // SAFETY: the caller says so.
    Ok(Box::new(Ranks::new(Caller(unsafe { *table }))))
}

struct Caller(Table);

impl Drop for Caller {
    fn drop(&mut self) {
        // SAFETY: this is the last call with this context.
        unsafe { (self.0.release)(self.0.context) };
    }
}

impl Caller {
    fn check(&self, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let mut text = [0; 512];
        // SAFETY: the function writes at most as many bytes as it is told, with a zero.
        let text = unsafe {
            (self.0.explain)(self.0.context, code, text.as_mut_ptr(), text.len() - 1);
            CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
        };
        Err(io::Error::other(text).into())
    }
}

impl Transport for Caller {
    type File = *mut c_void;

    fn rank(&self) -> usize {
        self.0.rank as usize
    }

    fn size(&self) -> usize {
        self.0.size as usize
    }

    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<()> {
        if root >= self.size() {
            return Err(Error::argument(format!("there is no rank {root}")));
        }
        let (data, len) = (bytes.as_mut_ptr().cast(), bytes.len());
        // SAFETY: `data` has `len` bytes.
        self.check(unsafe { (self.0.bcast)(self.0.context, data, len, root as c_int) })
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        if all.len() != mine.len() * self.size() {
            return Err(Error::argument("the room for a message of every rank is not right"));
        }
        let (from, to) = (mine.as_ptr().cast(), all.as_mut_ptr().cast());
        // SAFETY: `to` has as many bytes for every rank as `from`.
        self.check(unsafe { (self.0.allgather)(self.0.context, from, mine.len(), to) })
    }

    fn open(&self, path: &Path, write: bool) -> Result<Self::File> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Error::argument("a file name contains a zero byte"))?;
        let mut file = std::ptr::null_mut();
        // SAFETY: the name ends with a zero, `file` is written by the call.
        self.check(unsafe {
            (self.0.open)(self.0.context, name.as_ptr(), c_int::from(write), &raw mut file)
        })?;
        Ok(file)
    }

    fn write_at_all(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut done = 0;
        let (data, len) = (address(bytes).cast(), bytes.len());
        // SAFETY: the file is open, `data` has `len` bytes.
        self.check(unsafe {
            (self.0.write_at_all)(self.0.context, *file, offset, data, len, &raw mut done)
        })?;
        if done == len {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::StorageFull, "not all bytes could be written").into())
    }

    fn read_at_all(&self, file: &Self::File, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let mut done = 0;
        let len = buffer.len();
        let data = address_mut(buffer).cast();
        // SAFETY: the file is open, `data` has `len` bytes.
        self.check(unsafe {
            (self.0.read_at_all)(self.0.context, *file, offset, data, len, &raw mut done)
        })?;
        if done == len {
            return Ok(());
        }
        let message = format!("{len} bytes wanted here, the file ends after {done} of them");
        Err(Error::truncated("core-eof", message))
    }

    fn close(&self, file: Self::File, keep: bool) -> Result<()> {
        // SAFETY: the file is open and not used afterwards.
        self.check(unsafe { (self.0.close)(self.0.context, file, c_int::from(keep)) })
    }
}
