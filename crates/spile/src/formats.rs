//! The registry: one line a format.

use spile_core::format::Registry;

/// Every format that spile knows.
pub static REGISTRY: Registry = Registry(&[
    &spile_scda::Scda,
    &spile_sdf::Sdf,
    &spile_taf::Taf,
    &spile_gsd::Gsd,
    &spile_iotk::Iotk,
    &spile_lecroy::LeCroy,
    &spile_tektronix::Tektronix,
    &spile_keysight::Keysight { hdf5: &spile_hdf5::Hdf5 },
    &spile_dig::Dig,
    &spile_columns::Columns,
    &spile_csv::Csv,
    &spile_hdf5::NetCdf,
    &spile_hdf5::Hdf5,
    &spile_npy::Npy,
    &spile_npy::Npz,
    &spile_parquet::Parquet,
    &spile_vtk::Vtk,
    &spile_zarr::Zarr,
]);
