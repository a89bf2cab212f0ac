//! A communicator that calls a table of the caller's functions (`scda_comm_t`).

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use spile_core::comm::{Comm, Ranks, Serial, Transport, address, address_mut};
use spile_core::error::{Error, Result};

/// Writes bytes at an offset of a file, and returns the number of bytes written.
type Write =
    unsafe extern "C" fn(*mut c_void, *mut c_void, u64, *const c_void, usize, *mut usize) -> c_int;

/// Combines numbers of all ranks.
type Reduce = unsafe extern "C" fn(*mut c_void, *mut u64, usize) -> c_int;

/// `scda_comm_t`; `scda.h` describes the functions. They return 0 or an error code.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Table {
    context: *mut c_void,
    rank: c_int,
    size: c_int,
    bcast: unsafe extern "C" fn(*mut c_void, *mut c_void, usize, c_int) -> c_int,
    allgather: unsafe extern "C" fn(*mut c_void, *const c_void, usize, *mut c_void) -> c_int,
    max: Reduce,
    xor: Reduce,
    sum_before: Reduce,
    open: unsafe extern "C" fn(*mut c_void, *const c_char, c_int, *mut *mut c_void) -> c_int,
    write_at_all: Write,
    write_at: Write,
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

/// The communicator of a table; of one process if `table` is null.
///
/// # Safety
/// `table` is null or as `scda.h` describes it, and not used elsewhere.
pub(crate) unsafe fn communicator(table: *const Table) -> Result<Box<dyn Comm>> {
    if table.is_null() {
        return Ok(Box::new(Serial));
    }
    // SAFETY: condition of this function. The functions of a table of no ranks may be null.
    let (rank, size) = unsafe { ((*table).rank, (*table).size) };
    if size < 1 || rank < 0 || rank >= size {
        return Err(Error::argument("invalid communicator"));
    }
    // SAFETY: condition of this function.
    Ok(Box::new(Ranks::new(TableTransport(unsafe { *table }))))
}

struct TableTransport(Table);

impl Drop for TableTransport {
    fn drop(&mut self) {
        // SAFETY: this is the last call with this context.
        unsafe { (self.0.release)(self.0.context) };
    }
}

impl TableTransport {
    fn check(&self, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let mut text = [0; 512];
        // SAFETY: the function writes at most as many bytes as given, with a NUL.
        let text = unsafe {
            (self.0.explain)(self.0.context, code, text.as_mut_ptr(), text.len() - 1);
            CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
        };
        Err(io::Error::other(text).into())
    }

    fn reduce(&self, call: Reduce, values: &mut [u64]) -> Result<()> {
        for values in values.chunks_mut(1 << 20) {
            let (numbers, len) = (values.as_mut_ptr(), values.len());
            // SAFETY: `numbers` has `len` numbers.
            self.check(unsafe { call(self.0.context, numbers, len) })?;
        }
        Ok(())
    }

    fn write(&self, call: Write, file: *mut c_void, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut done = 0;
        let (data, len) = (address(bytes).cast(), bytes.len());
        // SAFETY: the file is open, `data` has `len` bytes.
        self.check(unsafe { call(self.0.context, file, offset, data, len, &raw mut done) })?;
        if done == len {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::StorageFull, "not all bytes were written").into())
    }
}

impl Transport for TableTransport {
    type File = *mut c_void;

    fn rank(&self) -> usize {
        self.0.rank as usize
    }

    fn size(&self) -> usize {
        self.0.size as usize
    }

    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<()> {
        if root >= self.size() {
            return Err(Error::argument(format!(
                "rank {root} is out of range for {} ranks",
                self.size()
            )));
        }
        let (data, len) = (bytes.as_mut_ptr().cast(), bytes.len());
        // SAFETY: `data` has `len` bytes.
        self.check(unsafe { (self.0.bcast)(self.0.context, data, len, root as c_int) })
    }

    fn max(&self, values: &mut [u64]) -> Result<()> {
        self.reduce(self.0.max, values)
    }

    fn xor(&self, values: &mut [u64]) -> Result<()> {
        self.reduce(self.0.xor, values)
    }

    fn sum_before(&self, values: &mut [u64; 2]) -> Result<()> {
        self.reduce(self.0.sum_before, values)
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        if all.len() != mine.len() * self.size() {
            return Err(Error::argument("expected a buffer for the message of every rank"));
        }
        let (from, to) = (mine.as_ptr().cast(), all.as_mut_ptr().cast());
        // SAFETY: `to` has the size of `from` for every rank.
        self.check(unsafe { (self.0.allgather)(self.0.context, from, mine.len(), to) })
    }

    fn open(&self, path: &Path, write: bool) -> Result<Self::File> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Error::argument("a file name contains a NUL byte"))?;
        let mut file = std::ptr::null_mut();
        // SAFETY: the name ends with a NUL, `file` is written by the call.
        self.check(unsafe {
            (self.0.open)(self.0.context, name.as_ptr(), c_int::from(write), &raw mut file)
        })?;
        Ok(file)
    }

    fn write_at_all(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write(self.0.write_at_all, *file, offset, bytes)
    }

    fn write_at(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write(self.0.write_at, *file, offset, bytes)
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
        let message = format!("unexpected end of file: expected {len} bytes, found {done}");
        Err(Error::truncated("core-eof", message))
    }

    fn close(&self, file: Self::File, keep: bool) -> Result<()> {
        // SAFETY: the file is open and not used afterwards.
        self.check(unsafe { (self.0.close)(self.0.context, file, c_int::from(keep)) })
    }
}
