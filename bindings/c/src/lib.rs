//! The C interface: `libspile`, declared in `include/*.h`.
//!
//! | file | content |
//! |---|---|
//! | `scda` | the functions of the appendix of the scda specification |
//! | `gsd` | the functions of current GSD libraries |
//! | `gsd_seed` | the functions of the GSD specification |
//! | `comm` | a communicator that calls a table of the caller's functions |
//! | `memory` | the caller's memory as slices |
//! | `failure` | error codes, and the message of the last error |
//!
//! MPI is not linked here: `include/scda_mpi.h` fills the table with MPI functions and is compiled with the
//! program.
//!
//! # Safety
//!
//! The exported functions are unsafe: pointers must be valid as described for each function in `scda.h`,
//! `gsd.h` and `gsd_seed.h`. "Condition of this function" in comments refers to that.
#![allow(unsafe_code, clippy::missing_safety_doc)]

pub mod comm;
mod failure;
pub mod gsd;
pub mod gsd_seed;
mod memory;
pub mod scda;
