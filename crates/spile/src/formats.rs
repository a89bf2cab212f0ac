//! The registry: one line per format.

use spile_core::registry::Registry;

/// All formats that are enabled as cargo features.
pub static REGISTRY: Registry = Registry(&[
    #[cfg(feature = "scda")]
    &spile_scda::Scda,
    #[cfg(feature = "sdf")]
    &spile_sdf::Sdf,
    #[cfg(feature = "taf")]
    &spile_taf::Taf,
    #[cfg(feature = "gsd")]
    &spile_gsd::Gsd,
    #[cfg(feature = "iotk")]
    &spile_iotk::Iotk,
    #[cfg(feature = "lecroy")]
    &spile_lecroy::LeCroy,
    #[cfg(feature = "tektronix")]
    &spile_tektronix::Tektronix,
    #[cfg(feature = "keysight")]
    &spile_keysight::Keysight { hdf5: &spile_hdf5::Hdf5 },
    #[cfg(feature = "rigol")]
    &spile_rigol::Rigol,
    #[cfg(feature = "rohde_schwarz")]
    &spile_rohde_schwarz::RohdeSchwarz,
    #[cfg(feature = "siglent")]
    &spile_siglent::Siglent,
    #[cfg(feature = "tdms")]
    &spile_tdms::Tdms,
    #[cfg(feature = "raw")]
    &spile_raw::Raw::BYTES,
    #[cfg(feature = "raw")]
    &spile_raw::Yokogawa,
    #[cfg(feature = "dig")]
    &spile_dig::Dig,
    #[cfg(feature = "columns")]
    &spile_columns::Columns,
    #[cfg(feature = "csv")]
    &spile_csv::Csv,
    #[cfg(feature = "hdf5")]
    &spile_hdf5::NetCdf,
    #[cfg(feature = "hdf5")]
    &spile_hdf5::Hdf5,
    #[cfg(feature = "hdf5")]
    &spile_hdf5::Mat,
    #[cfg(feature = "netcdf")]
    &spile_netcdf::Classic,
    #[cfg(feature = "npy")]
    &spile_npy::Npy,
    #[cfg(feature = "npy")]
    &spile_npy::Npz,
    #[cfg(feature = "arrow")]
    &spile_arrow::Arrow,
    #[cfg(feature = "parquet")]
    &spile_parquet::Parquet,
    #[cfg(feature = "vtk")]
    &spile_vtk::Vtk,
    #[cfg(feature = "vtk")]
    &spile_vtk::VtkHdf { hdf5: &spile_hdf5::Hdf5 },
    #[cfg(feature = "openpmd")]
    &spile_openpmd::OpenPmd { hdf5: &spile_hdf5::Hdf5 },
    #[cfg(feature = "upf_json")]
    &spile_upf_json::UpfJson,
    #[cfg(feature = "xyz")]
    &spile_xyz::Xyz,
    #[cfg(feature = "xtc")]
    &spile_xtc::Xtc,
    #[cfg(feature = "xtc")]
    &spile_xtc::Dcd,
    #[cfg(feature = "cube")]
    &spile_cube::Cube,
    #[cfg(feature = "cube")]
    &spile_cube::Xsf,
    #[cfg(feature = "zarr")]
    &spile_zarr::Zarr,
]);
