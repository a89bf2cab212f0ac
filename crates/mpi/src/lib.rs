//! The ranks of a real MPI job, and files they share through MPI-IO.
//!
//! Behind the feature `mpi`, which links the MPI library that `mpicc` finds; without it this crate
//! is empty. [`run`] starts MPI and gives the program its job; a program that has started MPI
//! itself makes one with [`job`]. Everything in spile that takes a `&dyn Comm` takes such a job.
//!
//! ```no_run
//! # #[cfg(feature = "mpi")]
//! spile_mpi::run(|comm| {
//!     let everybody = comm.allgather(format!("rank {}", comm.rank()).as_bytes())?;
//!     assert_eq!(everybody.len(), comm.size());
//!     Ok(())
//! })?;
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![warn(unsafe_op_in_unsafe_fn)]

#[cfg(feature = "mpi")]
mod world;

#[cfg(feature = "mpi")]
pub use world::{File, Mpi, job, run};

#[cfg(feature = "mpi")]
pub use mpi;
