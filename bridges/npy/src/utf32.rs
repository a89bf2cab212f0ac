//! NumPy's `U` strings: UTF-32. They are read as UTF-8, which is never longer.

use std::sync::Arc;

use spile_core::error::{Error, Result};
use spile_core::layout::{Codec, Layout};
use spile_core::shape::Order;
use spile_core::wire::ByteOrder;

use crate::stream::Stream;

/// Bytes decoded at once.
const BLOCK: u64 = 1 << 20;

/// The layout of `bytes` of strings of `count` characters at byte `at` of `stream`. `endian` is the byte order
/// of the characters.
pub(crate) fn layout(
    stream: &Stream<'_>,
    at: u64,
    bytes: u64,
    count: u32,
    endian: ByteOrder,
    order: Order,
) -> Layout {
    let codec = |before| Arc::new(Utf32 { count: count as usize, endian, before });
    match stream.layout(at, bytes, order) {
        Layout::Encoded { starts, decoded, data, codec: inflate, order } => {
            Layout::Encoded { starts, decoded, data, codec: codec(Some(inflate)), order }
        }
        Layout::Plain { extents, order } => {
            let one = 4 * u64::from(count).max(1);
            let block = (BLOCK / one).max(1) * one;
            let blocks = (0..bytes.div_ceil(block)).map(|k| k * block);
            // The decoded strings have the same size.
            let starts: Arc<[u64]> = blocks.chain([bytes]).collect();
            let decoded = starts.clone();
            Layout::Encoded { starts, decoded, data: extents, codec: codec(None), order }
        }
        other => other,
    }
}

struct Utf32 {
    /// Characters of a string.
    count: usize,
    endian: ByteOrder,
    /// Codec of the stored bytes.
    before: Option<Arc<dyn Codec>>,
}

impl Codec for Utf32 {
    fn name(&self) -> &'static str {
        "UTF-32"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        match &self.before {
            Some(before) => before.decode(stored, out)?,
            None if stored.len() == out.len() => out.copy_from_slice(stored),
            None => {
                let message = format!("expected {} bytes, found {}", out.len(), stored.len());
                return Err(Error::malformed("npy-005", message));
            }
        }
        // In place: UTF-8 overwrites characters that have been decoded.
        for text in out.chunks_exact_mut(4 * self.count.max(1)) {
            let mut end = 0;
            for k in 0..text.len() / 4 {
                let raw = [text[4 * k], text[4 * k + 1], text[4 * k + 2], text[4 * k + 3]];
                let c = match self.endian {
                    ByteOrder::Little => u32::from_le_bytes(raw),
                    ByteOrder::Big => u32::from_be_bytes(raw),
                };
                if c == 0 {
                    continue;
                }
                let c = char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER);
                end += c.encode_utf8(&mut text[end..]).len();
            }
            text[end..].fill(0);
        }
        Ok(())
    }
}
