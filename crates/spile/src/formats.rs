//! The registry: one line a format.

use spile_core::format::Registry;

/// Every format that spile knows.
pub static REGISTRY: Registry = Registry(&[
    &spile_scda::Scda,
    &spile_sdf::Sdf,
    &spile_taf::Taf,
    &spile_gsd::Gsd,
    &spile_iotk::Iotk,
    &spile_columns::Columns,
    &spile_npy::Npy,
    &spile_vtk::Vtk,
]);
