//! `spile index`.

use std::path::PathBuf;

use clap::Args;
use spile::error::{Error, Result};

use super::{index_h5, overwrite};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Output;

/// Let other programs read a file in place.
///
/// With --h5 the output is a small HDF5 file whose datasets are the bytes of the original (external
/// storage): h5py, MATLAB and IDL open it without a copy of the data. It names the original by its
/// absolute path. Exit 3: some arrays cannot be pointed to, and are listed.
#[derive(Debug, Args)]
pub(crate) struct IndexArgs {
    /// The file
    file: PathBuf,
    /// The new file
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
    /// As HDF5 with external storage
    #[arg(long)]
    h5: bool,
    /// Replace the output file if it exists
    #[arg(long)]
    overwrite: bool,
}

pub(crate) fn run(args: &IndexArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    if !args.h5 {
        return Err(Error::argument("which kind of index?").hint("--h5"));
    }
    index_h5::run(&args.file, &args.output, overwrite(args.overwrite), context, out)
}
