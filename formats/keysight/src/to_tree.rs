//! `.bin` file as a recording: consecutive waveforms, each with its buffers.

use spile_core::DType;
use spile_core::recording::buffers::{Codes, Dialect};

/// Versions and buffer types of Keysight and Agilent instruments.
pub(crate) static BIN: Dialect = Dialect {
    magic: "AG",
    versions: &[("01", false), ("03", true), ("10", false)],
    origin_is_distance: false,
    counts_only_segment: false,
    buffer: |kind, _| match kind {
        1 => Some((DType::F32, "")),
        2 => Some((DType::F32, "max")),
        3 => Some((DType::F32, "min")),
        6 => Some((DType::U8, "")),
        _ => None,
    },
    unnamed: |_| String::new(),
    codes: Codes {
        format: "keysight-001",
        header: "keysight-002",
        version: "keysight-003",
        header_len: "keysight-004",
        kind: "keysight-005",
        sample_size: "keysight-006",
        samples: "keysight-007",
        file_size: "keysight-010",
        rest: "keysight-011",
        count: "keysight-012",
    },
};
