//! Communicators of MPI jobs, with shared files through MPI-IO.
//!
//! The feature `mpi` links the MPI library that `mpicc` finds; without it this crate is empty. [`run`]
//! initialises MPI and calls a function with the communicator of all processes. A program that initialises
//! MPI itself uses [`job`]. Both implement the `Comm` trait of spile.
//!
//! ```no_run
//! # #[cfg(feature = "mpi")]
//! spile_mpi::run(|comm| {
//!     let messages = comm.allgather(format!("rank {}", comm.rank()).as_bytes())?;
//!     assert_eq!(messages.len(), comm.size());
//!     Ok(())
//! })?;
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![warn(unsafe_op_in_unsafe_fn)]

#[cfg(feature = "mpi")]
mod transport;

#[cfg(feature = "mpi")]
pub use transport::{File, Mpi, job, job_with_hints, run};

#[cfg(feature = "mpi")]
pub use mpi;
