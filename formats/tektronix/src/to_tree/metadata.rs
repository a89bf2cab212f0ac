//! Metadata that instruments append to a waveform: `tekmeta!`, a count, and names with values.

use spile_core::wire::fetch;
use spile_core::{Attrs, ByteOrder, Result, Source, Value, Wire};

/// Bytes of metadata that are read.
const LONGEST: usize = 64 << 10;

/// Attributes after byte `end` of the file; empty if there are none. Values of an unknown type, and all after
/// them, are not read.
pub(super) fn read(source: &Source, end: u64) -> Result<Attrs> {
    let bytes = fetch(source, end.min(source.len()), LONGEST)?;
    let mut attrs = Attrs::new();
    let mut wire = Wire::new(&bytes, end, ByteOrder::Little, "tektronix-007");
    if wire.take(8).ok() != Some(b"tekmeta!") {
        return Ok(attrs);
    }
    let count = wire.u32().unwrap_or(0);
    for _ in 0..count {
        // The end of a truncated list is not an error: the samples are complete.
        let Some((name, value)) = entry(&mut wire) else { break };
        if value != Value::Text(String::new()) {
            attrs.push(name, value);
        }
    }
    Ok(attrs)
}

fn entry(wire: &mut Wire<'_>) -> Option<(String, Value)> {
    let text = |wire: &mut Wire<'_>| {
        let len = wire.u32().ok()? as usize;
        wire.text(len).ok()
    };
    let name = text(wire)?;
    let value = match wire.u8().ok()? {
        1 => Value::from(text(wire)?),
        3 => Value::from(wire.f64().ok()?),
        _ => return None,
    };
    Some((name, value))
}
