//! Files as recordings: native `.bin` files and HDF5 files.

pub(crate) mod bin;
pub(crate) mod hdf5;
