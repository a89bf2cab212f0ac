//! `.bin`: the container of waveforms and buffers that Keysight also writes.

use spile_core::recording::buffers::{Codes, Dialect};
use spile_core::wire::fetch;
use spile_core::{ByteOrder, DType, Error, OpenOptions, Parsed, Result, Source, Wire};

static BIN: Dialect = Dialect {
    magic: "RG",
    versions: &[("01", false), ("03", true)],
    origin_is_distance: true,
    counts_only_segment: true,
    buffer: |kind, bytes| match (kind, bytes) {
        (2, _) => Some((DType::F32, "max")),
        (3, _) => Some((DType::F32, "min")),
        // Type 5 has digital lines; MSO5000 stores the bytes of the logic analyser as floats.
        (1, _) | (5, 4) => Some((DType::F32, "")),
        (5 | 6, _) => Some((DType::U8, "")),
        _ => None,
    },
    unnamed: |number| format!("CH{number}"),
    codes: Codes {
        format: "rigol-001",
        header: "rigol-002",
        version: "rigol-003",
        header_len: "rigol-004",
        kind: "rigol-005",
        sample_size: "rigol-006",
        samples: "rigol-007",
        file_size: "rigol-010",
        rest: "rigol-011",
        count: "rigol-012",
    },
};

pub(super) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    if let Some(model) = default_header(&source)? {
        let message = format!(
            "{model}: the headers of this file have default values, and its samples no scaling"
        );
        let error = Error::unsupported("rigol-018", message).at(12);
        return Err(error.hint("save the waveform again, with newer firmware or as CSV"));
    }
    BIN.open(source, options)
}

/// Model of an instrument whose firmware writes waveform headers of 144 bytes with default values, before 8-bit
/// samples without scaling; `None` for other files.
fn default_header(source: &Source) -> Result<Option<String>> {
    let head = fetch(source, 0, 124)?;
    let mut wire = Wire::new(&head, 0, ByteOrder::Little, "rigol-002");
    let mut read = || {
        wire.skip(4)?;
        let size = u64::from(wire.u32()?);
        wire.skip(4)?;
        let header = wire.u32()?;
        wire.skip(84)?;
        Ok((size, header, wire.text(24)?))
    };
    Ok(match read() {
        Ok::<_, Error>((size, 144, frame)) if size != source.len() => {
            Some(frame.split(':').next().unwrap_or("").to_string())
        }
        _ => None,
    })
}
