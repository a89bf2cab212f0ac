//! What is needed to express a dataset in another model: plain arrays, tables, shared dimensions,
//! cell centres.
//!
//! | module | content |
//! |---|---|
//! | `flatten` | a dataset for a format with limited capabilities, with metadata that restores it |
//! | `flat` | a dataset as plain arrays without frames |
//! | `grid` | regular grids of chunks |
//! | `dimensions` | dimensions that arrays share by name (NetCDF, Zarr, xarray) |
//! | `variables` | names and CF attributes of the variables of one xarray dataset |
//! | `table` | arrays with the same number of rows as the columns of a table |
//! | `arrow` | the Arrow schema of a table, in Arrow and Parquet files |
//! | `flatbuffers` | encoding of Arrow metadata, with bounds checks |
//! | `losses` | loss accounting from metadata |
//! | `midpoints` | cell centres from the nodes of an axis |
//! | `structure` | chemical symbols and units of length |
//! | `cf` | scaling and missing values in attributes of the CF conventions |
#![forbid(unsafe_code)]

pub mod arrow;
pub mod cf;
pub mod dimensions;
pub mod flat;
pub mod flatbuffers;
mod flatten;
pub mod grid;
pub mod losses;
pub mod midpoints;
pub mod structure;
pub mod table;
mod variables;

pub use dimensions::{Dimension, Dimensions};
pub use flat::{Flat, RegionReader, flat_losses};
pub use flatten::flatten;
pub use losses::{Kept, Losses, flatten_losses};
pub use table::Table;
pub use variables::{Variables, root_attributes};
