//! [`Transport`] over MPI functions.

// This file consists of calls into MPI. They need valid handles, which the types ensure, and buffers of the
// given length, which are slices.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use mpi::ffi;
use mpi::topology::Communicator;
use spile_core::comm::{Comm, Ranks, Transport, address, address_mut};
use spile_core::error::{Error, Result};

/// Initialises MPI, calls `body` with the communicator of all processes, and finalises MPI. Fails if MPI is
/// already initialised.
pub fn run<T>(body: impl FnOnce(&dyn Comm) -> Result<T>) -> Result<T> {
    // Only the initialising thread calls MPI; rayon's threads compress and parse.
    let started = mpi::initialize_with_threading(mpi::Threading::Funneled);
    let (universe, _) = started.ok_or_else(|| Error::argument("MPI is already initialised"))?;
    body(&job(&universe.world())?)
}

/// A communicator of all processes of `communicator`. Creating and dropping it are collective.
pub fn job(communicator: &impl Communicator) -> Result<Ranks<Mpi>> {
    job_with_hints(communicator, &[])
}

/// A communicator of all processes of `communicator` that opens files with these hints: names and values of an
/// `MPI_Info`, such as `striping_factor` and `cb_nodes`. MPI libraries ignore hints that they do not know. Creating
/// and dropping it are collective.
pub fn job_with_hints(
    communicator: &impl Communicator,
    hints: &[(&str, &str)],
) -> Result<Ranks<Mpi>> {
    let mut own = MaybeUninit::uninit();
    // A duplicate keeps messages of spile apart from those of the program.
    // SAFETY: the communicator is valid, and `own` is written before it is read.
    let own = unsafe {
        check(ffi::MPI_Comm_dup(communicator.as_raw(), own.as_mut_ptr()))?;
        own.assume_init()
    };
    // Errors are returned as codes and do not abort the program.
    // SAFETY: `own` is a communicator, the handler a constant of the library.
    check(unsafe { ffi::MPI_Comm_set_errhandler(own, ffi::RSMPI_ERRORS_RETURN) })?;
    let (mut rank, mut size) = (0, 0);
    // SAFETY: `own` is a communicator; the numbers outlive the calls.
    unsafe {
        check(ffi::MPI_Comm_rank(own, &raw mut rank))?;
        check(ffi::MPI_Comm_size(own, &raw mut size))?;
    }
    let mut mpi = Mpi { communicator: own, info: None, rank: rank as usize, size: size as usize };
    mpi.set_hints(hints)?;
    Ok(Ranks::new(mpi))
}

/// [`Transport`] over a duplicated MPI communicator.
pub struct Mpi {
    communicator: ffi::MPI_Comm,
    info: Option<ffi::MPI_Info>,
    rank: usize,
    size: usize,
}

impl Mpi {
    /// Replaces each value by the values of all ranks, combined by `op`.
    fn reduce(&self, values: &mut [u64], op: ffi::MPI_Op) -> Result<()> {
        for values in values.chunks_mut(1 << 20) {
            let mine = values.to_vec();
            let (from, to) = (mine.as_ptr().cast::<c_void>(), values.as_mut_ptr().cast::<c_void>());
            let count = values.len() as c_int;
            // SAFETY: `from` and `to` have `count` numbers; the others are constants of the library.
            check(unsafe {
                let kind = ffi::RSMPI_UINT64_T;
                ffi::MPI_Allreduce(from, to, count, kind, op, self.communicator)
            })?;
        }
        Ok(())
    }

    fn set_hints(&mut self, hints: &[(&str, &str)]) -> Result<()> {
        if hints.is_empty() {
            return Ok(());
        }
        let mut info = MaybeUninit::uninit();
        // SAFETY: `info` is written before it is read.
        let info = unsafe {
            check(ffi::MPI_Info_create(info.as_mut_ptr()))?;
            info.assume_init()
        };
        self.info = Some(info);
        for (name, value) in hints {
            let text = |text: &str| {
                CString::new(text).map_err(|_| Error::argument("a hint contains a NUL byte"))
            };
            let (name, value) = (text(name)?, text(value)?);
            // SAFETY: both strings end with a NUL.
            check(unsafe { ffi::MPI_Info_set(info, name.as_ptr(), value.as_ptr()) })?;
        }
        Ok(())
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if let Some(mut info) = self.info.take() {
            // SAFETY: the object is not used or freed elsewhere.
            unsafe { ffi::MPI_Info_free(&raw mut info) };
        }
        // SAFETY: the communicator is not used or freed elsewhere.
        unsafe { ffi::MPI_Comm_free(&raw mut self.communicator) };
    }
}

/// A file open on all ranks.
pub struct File(ffi::MPI_File);

impl Transport for Mpi {
    type File = File;

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<()> {
        let root = c_int::try_from(root).ok().filter(|_| root < self.size);
        let root = root.ok_or_else(|| Error::argument("the rank is out of range"))?;
        for part in bytes.chunks_mut(1 << 30) {
            let (data, count) = (part.as_mut_ptr().cast::<c_void>(), part.len() as c_int);
            // SAFETY: `data` has `count` bytes.
            check(unsafe {
                ffi::MPI_Bcast(data, count, ffi::RSMPI_UINT8_T, root, self.communicator)
            })?;
        }
        Ok(())
    }

    fn max(&self, values: &mut [u64]) -> Result<()> {
        // SAFETY: a constant of the library.
        self.reduce(values, unsafe { ffi::RSMPI_MAX })
    }

    fn xor(&self, values: &mut [u64]) -> Result<()> {
        // SAFETY: a constant of the library.
        self.reduce(values, unsafe { ffi::RSMPI_BXOR })
    }

    fn sum_before(&self, values: &mut [u64; 2]) -> Result<()> {
        let mine = *values;
        // The call leaves the result of rank 0 undefined.
        let mut sums = [0_u64; 2];
        let (from, to) = (mine.as_ptr().cast::<c_void>(), sums.as_mut_ptr().cast::<c_void>());
        // SAFETY: `from` and `to` have two numbers; the others are constants of the library.
        check(unsafe {
            let (kind, op) = (ffi::RSMPI_UINT64_T, ffi::RSMPI_SUM);
            ffi::MPI_Exscan(from, to, 2, kind, op, self.communicator)
        })?;
        *values = if self.rank == 0 { [0; 2] } else { sums };
        Ok(())
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        let count = c_int::try_from(mine.len()).ok();
        let count = count.filter(|_| all.len() == mine.len() * self.size);
        let count = count.ok_or_else(|| Error::argument("the message exceeds 2 GiB"))?;
        // SAFETY: a constant of the library.
        let kind = unsafe { ffi::RSMPI_UINT8_T };
        let (from, to) = (mine.as_ptr().cast::<c_void>(), all.as_mut_ptr().cast::<c_void>());
        // SAFETY: `from` has `count` bytes, `to` has `count` bytes for every rank.
        check(unsafe { ffi::MPI_Allgather(from, count, kind, to, count, kind, self.communicator) })
    }

    fn open(&self, path: &Path, write: bool) -> Result<Self::File> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Error::argument("a file name contains a NUL byte"))?;
        let mode = if write {
            ffi::MPI_MODE_WRONLY | ffi::MPI_MODE_CREATE | ffi::MPI_MODE_EXCL
        } else {
            ffi::MPI_MODE_RDONLY
        };
        let mut file = MaybeUninit::uninit();
        // SAFETY: the name ends with a NUL; `file` is written before it is read.
        unsafe {
            check(ffi::MPI_File_open(
                self.communicator,
                name.as_ptr(),
                mode as c_int,
                self.info.unwrap_or(ffi::RSMPI_INFO_NULL),
                file.as_mut_ptr(),
            ))?;
            Ok(File(file.assume_init()))
        }
    }

    fn write_at_all(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<()> {
        let count = count(bytes.len())?;
        let (data, offset) = (address(bytes).cast::<c_void>(), offset as ffi::MPI_Offset);
        let mut status = MaybeUninit::uninit();
        // SAFETY: the file is open, `data` has `count` bytes, `status` is written by the call.
        unsafe {
            let kind = ffi::RSMPI_UINT8_T;
            check(ffi::MPI_File_write_at_all(
                file.0,
                offset,
                data,
                count,
                kind,
                status.as_mut_ptr(),
            ))?;
            if transferred(status.as_ptr())? == count {
                return Ok(());
            }
        }
        Err(full())
    }

    fn write_at(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<()> {
        let count = count(bytes.len())?;
        let (data, offset) = (address(bytes).cast::<c_void>(), offset as ffi::MPI_Offset);
        let mut status = MaybeUninit::uninit();
        // SAFETY: the file is open, `data` has `count` bytes, `status` is written by the call.
        let done = unsafe {
            let kind = ffi::RSMPI_UINT8_T;
            check(ffi::MPI_File_write_at(file.0, offset, data, count, kind, status.as_mut_ptr()))?;
            transferred(status.as_ptr())?
        };
        if done == count { Ok(()) } else { Err(full()) }
    }

    fn read_at_all(&self, file: &Self::File, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let count = count(buffer.len())?;
        let (data, offset) = (address_mut(buffer).cast::<c_void>(), offset as ffi::MPI_Offset);
        let mut status = MaybeUninit::uninit();
        // SAFETY: the file is open, `data` has `count` bytes, `status` is written by the call.
        let done = unsafe {
            let kind = ffi::RSMPI_UINT8_T;
            check(ffi::MPI_File_read_at_all(
                file.0,
                offset,
                data,
                count,
                kind,
                status.as_mut_ptr(),
            ))?;
            transferred(status.as_ptr())?
        };
        if done == count {
            return Ok(());
        }
        let message = format!("unexpected end of file: expected {count} bytes, found {done}");
        Err(Error::truncated("core-eof", message))
    }

    fn close(&self, mut file: Self::File, keep: bool) -> Result<()> {
        // SAFETY: the file is open and not used afterwards.
        unsafe {
            let synced = if keep { check(ffi::MPI_File_sync(file.0)) } else { Ok(()) };
            check(ffi::MPI_File_close(&raw mut file.0)).and(synced)
        }
    }
}

fn full() -> Error {
    io::Error::new(io::ErrorKind::StorageFull, "not all bytes were written").into()
}

fn count(bytes: usize) -> Result<c_int> {
    c_int::try_from(bytes).map_err(|_| Error::argument("the transfer exceeds 2 GiB"))
}

/// Number of bytes transferred.
///
/// # Safety
/// `status` was filled by the transfer.
unsafe fn transferred(status: *const ffi::MPI_Status) -> Result<c_int> {
    let mut count = 0;
    // SAFETY: condition of this function.
    check(unsafe { ffi::MPI_Get_count(status, ffi::RSMPI_UINT8_T, &raw mut count) })?;
    Ok(count)
}

/// Converts an MPI error code to a result.
fn check(code: c_int) -> Result<()> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = [0; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let (mut length, mut class) = (0, 0);
    // SAFETY: the buffer has the maximum length of the library and ends with a NUL.
    let text = unsafe {
        ffi::MPI_Error_class(code, &raw mut class);
        ffi::MPI_Error_string(code, text.as_mut_ptr(), &raw mut length);
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    };
    let kind = match class as u32 {
        ffi::MPI_ERR_NO_SPACE | ffi::MPI_ERR_QUOTA => io::ErrorKind::StorageFull,
        ffi::MPI_ERR_NO_SUCH_FILE => io::ErrorKind::NotFound,
        ffi::MPI_ERR_ACCESS | ffi::MPI_ERR_READ_ONLY => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    Err(io::Error::new(kind, format!("MPI: {text}")).into())
}
