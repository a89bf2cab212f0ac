//! The C interface: `libspile`, declared in `include/*.h`.
//!
//! | file | what is in it |
//! |---|---|
//! | `scda` | the functions of the scda paper's appendix, under its names |
//! | `gsd` | the functions of the GSD specification, under its names |
//! | `comm` | a job whose ranks talk through a table of the caller's functions |
//! | `memory` | the caller's memory as slices |
//! | `failure` | error codes, and the words behind the last one |
//!
//! MPI is not linked here: `include/scda_mpi.h` fills the table with calls that the user's own
//! compiler has bound.
//!
//! Functions that C calls cannot be safe: they believe what `scda.h` says about their arguments.
//! Everything behind them is.
#![allow(unsafe_code)]

pub mod comm;
mod failure;
pub mod gsd;
mod memory;
pub mod scda;
