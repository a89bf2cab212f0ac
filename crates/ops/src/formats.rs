//! The table of supported formats.

use spile_core::Registry;
use spile_core::format::FormatInfo;

/// All formats of `registry`.
pub fn formats(registry: &Registry) -> Vec<&'static FormatInfo> {
    registry.0.iter().map(|format| format.info()).collect()
}
