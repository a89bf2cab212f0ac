//! `append` and `replace`: new elements in the type and map of the file.

use std::path::Path;

use spile_core::{Array, Error, Limits, Order, Result, Shape, Sink};

use super::{Target, rewrite};
use crate::journal;
use crate::read::File;
use crate::wire::Header;
use crate::write::{check_storable, write_elements};

/// Comments are moved in blocks of this size.
const MOVE_BLOCK: u64 = 64 << 10;

/// Appends `input` along the last dimension and returns the number of clipped values. All lengths
/// except the last must be those of the file; an input with one dimension less is one slab.
///
/// After a crash at any time the file is the old one or the new one. Files of more than 64 MiB on file
/// systems that cannot share blocks are changed in place under a journal, which the next change by this
/// crate applies; with `safe` they are copied, too, so that other programs never see an intermediate state.
///
/// # Errors
/// The shapes do not match, or the elements cannot be converted. The file is then unchanged.
pub fn append(path: &Path, input: &Array, safe: bool, limits: &Limits) -> Result<u64> {
    append_up_to(path, input, if safe { u64::MAX } else { journal::COPIED }, limits)
}

/// Appends `input`. A file of more than `largest` bytes is changed in place if its blocks cannot be shared.
pub(crate) fn append_up_to(
    path: &Path,
    input: &Array,
    largest: u64,
    limits: &Limits,
) -> Result<u64> {
    let (lock, file) = journal::lock(path, limits)?;
    let old = file.header();
    let new = extended(old, input.shape()).map_err(|e| e.with_path(path))?;
    check_storable(input.dtype())?;
    let selected = input.all_in(Order::F)?;
    let ((from, len), to) = (file.comment_range(), new.comment_offset());
    journal::change(&lock, &file, &new, to + len, largest, |sink| {
        // A full disk fails here, before the comments move.
        sink.reserve(to + len)?;
        move_bytes(&file, sink, from, to, len)?;
        write_elements(sink, from, &selected, old)
    })
}

/// The header after appending an array of `shape`.
fn extended(old: &Header, shape: &Shape) -> Result<Header> {
    let rank = old.dimensions.len();
    let lengths = shape.lengths();
    let others: Vec<u64> = old.dimensions[..rank - 1].iter().map(|d| d.length).collect();
    let more = match lengths.len() {
        n if n == rank => lengths[rank - 1],
        n if n == rank - 1 => 1,
        _ => u64::MAX,
    };
    if more == u64::MAX || lengths[..rank - 1] != others[..] {
        return Err(Error::argument(format!(
            "cannot append a {shape} array to a {} array along the last dimension",
            old.shape()
        )));
    }
    let mut new = old.clone();
    let last = &mut new.dimensions[rank - 1].length;
    *last = last.checked_add(more).ok_or_else(|| Error::limit("too many elements"))?;
    new.array_bytes()
        .and_then(|bytes| bytes.checked_add(new.data_offset()))
        .filter(|end| *end < 1 << 63)
        .ok_or_else(|| Error::limit("the new file size exceeds 63 bits"))?;
    Ok(new)
}

/// Copies `len` bytes of the file to a higher offset, in an order that never overwrites bytes before they
/// are read.
fn move_bytes(file: &File, sink: &Sink, from: u64, to: u64, len: u64) -> Result<()> {
    let blocks = len.div_ceil(MOVE_BLOCK);
    for k in 0..blocks {
        let start = MOVE_BLOCK * (blocks - 1 - k);
        let bytes = file.source().read_vec(from + start, (len - start).min(MOVE_BLOCK))?;
        sink.write_all_at(to + start, &bytes)?;
    }
    Ok(())
}

/// Replaces the elements by those of `input`, keeping element type, map, grids and comments. The
/// file is replaced atomically. Returns the number of clipped values.
///
/// # Errors
/// The shape of `input` is not that of the file; a vector counts as a column.
pub fn replace(path: &Path, input: &Array, limits: &Limits) -> Result<u64> {
    let (_lock, file) = journal::lock(path, limits)?;
    let header = file.header();
    let mut lengths = input.shape().lengths().to_vec();
    lengths.resize(lengths.len().max(2), 1);
    if lengths != header.shape().lengths() {
        let (expected, found) = (header.shape(), input.shape());
        let message = format!("expected a {expected} array, found {found}");
        return Err(Error::argument(message).with_path(path));
    }
    let selected = input.all_in(Order::F)?;
    rewrite(&file, path, &Target::InPlace, header, &selected, None)
}
