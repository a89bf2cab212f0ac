//! Streams: the messages of a file without footer. They are found one after another from the beginning.

use std::collections::HashSet;

use spile_core::error::{Error, Result};
use spile_core::limits::{Budget, Limits};
use spile_core::source::Source;
use spile_core::wire::fetch;
use spile_interchange::arrow::CONTINUATION;
use spile_interchange::flatbuffers::Table;

use crate::wire::{DICTIONARY_BATCH, Index, RECORD_BATCH, invalid};

/// Header type of the first message.
const SCHEMA: u8 = 1;

/// Memory charged for a message.
const MESSAGE: u64 = 128;

/// Whether a file begins like a stream: with the message of a schema.
pub(crate) fn is_stream(head: &[u8]) -> bool {
    let Some((mark, rest)) = head.split_first_chunk::<4>() else { return false };
    let Some((len, rest)) = rest.split_first_chunk::<4>() else { return false };
    let len = u32::from_le_bytes(*len) as usize;
    let kind = Table::root(&rest[..len.min(rest.len())]).and_then(|root| root.u8(1));
    *mark == CONTINUATION && len >= 16 && len.is_multiple_of(8) && kind == Some(SCHEMA)
}

/// Finds the messages of a stream. A stream may end without a mark.
pub(crate) fn read_index(source: &Source, limits: &Limits, memory: &mut Budget) -> Result<Index> {
    let mut index =
        Index { bytes: Vec::new(), start: 0, end: source.len(), stream: Some(Default::default()) };
    let (mut at, mut seen) = (0_u64, HashSet::new());
    let cut = |at: u64| Error::truncated("arrow-002", "unexpected end of file in a message").at(at);
    while source.len().saturating_sub(at) >= 8 {
        let prefix = fetch(source, at, 8)?;
        let len = prefix[4..].first_chunk().map_or(0, |len| u32::from_le_bytes(*len));
        if prefix[..4] != CONTINUATION {
            return Err(invalid("message").at(at));
        }
        if len == 0 {
            break;
        }
        memory.charge(MESSAGE, "the messages").map_err(|e| e.at(at))?;
        limits.allow(u64::from(len).saturating_mul(24), "a message").map_err(|e| e.at(at))?;
        let metadata = 8 + u64::from(len);
        if source.len() - at < metadata {
            return Err(cut(at));
        }
        let bytes = fetch(source, at + 8, len as usize)?;
        let root = Table::root(&bytes).ok_or_else(|| invalid("message").at(at))?;
        let body = u64::try_from(root.i64(3).unwrap_or(0)).map_err(|_| invalid("body").at(at))?;
        let next = at.checked_add(metadata).and_then(|end| end.checked_add(body));
        let next = next.filter(|next| *next <= source.len()).ok_or_else(|| cut(at))?;
        let kind = root.u8(1).unwrap_or(0);
        if kind == DICTIONARY_BATCH
            && let Some(header) = root.table(2)
            && header.u8(2) != Some(1)
            && !seen.insert(header.i64(0).unwrap_or(0))
        {
            let message = "streams in which a dictionary is replaced are not supported";
            return Err(Error::unsupported("arrow-006", message).at(at));
        }
        let mut block = [0; 24];
        for (slot, number) in block.as_chunks_mut::<8>().0.iter_mut().zip([at, metadata, body]) {
            *slot = number.to_le_bytes();
        }
        match (kind, &mut index.stream) {
            (SCHEMA, _) if at == 0 => index.bytes = bytes,
            (DICTIONARY_BATCH, Some([dictionaries, _])) => dictionaries.push(block),
            (RECORD_BATCH, Some([_, batches])) => batches.push(block),
            _ => return Err(invalid("message").at(at)),
        }
        at = next;
    }
    index.end = at;
    Ok(index)
}
