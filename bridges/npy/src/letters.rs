//! NumPy's `U` strings: 32 bits a character. They are read as UTF-8, which is never longer.

use std::sync::Arc;

use spile_core::error::{Error, Result};
use spile_core::layout::{Codec, Layout};
use spile_core::shape::Order;
use spile_core::wire::ByteOrder;

use crate::place::Place;

/// Texts that are decoded together, in bytes.
const BLOCK: u64 = 1 << 20;

/// `bytes` of texts of `count` characters from byte `at` of `place` on.
pub(crate) fn layout(
    place: &Place<'_>,
    at: u64,
    bytes: u64,
    count: u32,
    letters: ByteOrder,
    order: Order,
) -> Layout {
    let codec = |before| Arc::new(Letters { count: count as usize, order: letters, before });
    match place.layout(at, bytes, order) {
        Layout::Encoded { starts, decoded, data, codec: inflate, order } => {
            Layout::Encoded { starts, decoded, data, codec: codec(Some(inflate)), order }
        }
        Layout::Plain { extents, order } => {
            let one = 4 * u64::from(count).max(1);
            let block = (BLOCK / one).max(1) * one;
            let blocks = (0..bytes.div_ceil(block)).map(|k| k * block);
            // As long before as after.
            let starts: Arc<[u64]> = blocks.chain([bytes]).collect();
            let decoded = starts.clone();
            Layout::Encoded { starts, decoded, data: extents, codec: codec(None), order }
        }
        other => other,
    }
}

struct Letters {
    count: usize,
    order: ByteOrder,
    /// What is to be decoded first.
    before: Option<Arc<dyn Codec>>,
}

impl Codec for Letters {
    fn name(&self) -> &'static str {
        "UTF-32"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        match &self.before {
            Some(before) => before.decode(stored, out)?,
            None if stored.len() == out.len() => out.copy_from_slice(stored),
            None => return Err(Error::malformed("npy-005", "texts of another length")),
        }
        // In place: the bytes of a character are written over those that have been read.
        for text in out.chunks_exact_mut(4 * self.count.max(1)) {
            let mut end = 0;
            for k in 0..text.len() / 4 {
                let raw = [text[4 * k], text[4 * k + 1], text[4 * k + 2], text[4 * k + 3]];
                let letter = match self.order {
                    ByteOrder::Little => u32::from_le_bytes(raw),
                    ByteOrder::Big => u32::from_be_bytes(raw),
                };
                if letter == 0 {
                    continue;
                }
                let letter = char::from_u32(letter).unwrap_or(char::REPLACEMENT_CHARACTER);
                end += letter.encode_utf8(&mut text[end..]).len();
            }
            text[end..].fill(0);
        }
        Ok(())
    }
}
