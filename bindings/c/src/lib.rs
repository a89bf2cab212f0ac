//! The C interface: `libspile`, declared in `include/*.h`.
//!
//! | file | content |
//! |---|---|
//! | `scda` | the functions of the appendix of the scda specification |
//! | `gsd` | the functions of the GSD specification |
//! | `comm` | a communicator that calls a table of the caller's functions |
//! | `memory` | the caller's memory as slices |
//! | `failure` | error codes, and the message of the last error |
//!
//! MPI is not linked here: `include/scda_mpi.h` fills the table with MPI functions and is compiled with the
//! program.
//!
//! The exported functions are unsafe: they rely on the conditions in `scda.h` and `gsd.h`.
#![allow(unsafe_code)]

pub mod comm;
mod failure;
pub mod gsd;
mod memory;
pub mod scda;
