//! The table of supported formats.

use spile_core::format::FormatInfo;
use spile_core::registry::Registry;

/// All formats of `registry`.
pub fn formats(registry: &Registry) -> Vec<&'static FormatInfo> {
    registry.0.iter().map(|format| format.info()).collect()
}
