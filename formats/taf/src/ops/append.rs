//! `append` and `replace`: new elements in the type and map of the file.

use std::path::Path;

use spile_core::{Array, Error, Limits, Order, Result, Shape, Sink};

use super::{Target, dimension_index, rewrite};
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
    append_along(path, input, None, safe, limits).map(|appended| appended.clipped)
}

/// What [`append_along`] has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The dimension that is longer now, counted from 1.
    pub dimension: usize,
    /// Shapes before and after.
    pub shapes: [Shape; 2],
    /// Number of clipped values.
    pub clipped: u64,
}

/// Appends `input` along `dimension`, which counts from 1; by default along the last one. Samples are appended to an
/// N x 1 trace along dimension 1, columns along dimension 2. See [`append`].
///
/// # Errors
/// As for [`append`]; and `dimension` is followed by dimensions longer than 1, because all elements would move.
pub fn append_along(
    path: &Path,
    input: &Array,
    dimension: Option<usize>,
    safe: bool,
    limits: &Limits,
) -> Result<Appended> {
    let largest = if safe { u64::MAX } else { journal::COPIED };
    append_to(path, input, dimension, largest, limits)
}

/// Appends `input` along the last dimension. A file of more than `largest` bytes is changed in place if its blocks
/// cannot be shared.
#[cfg(test)]
pub(crate) fn append_up_to(
    path: &Path,
    input: &Array,
    largest: u64,
    limits: &Limits,
) -> Result<u64> {
    append_to(path, input, None, largest, limits).map(|appended| appended.clipped)
}

fn append_to(
    path: &Path,
    input: &Array,
    dimension: Option<usize>,
    largest: u64,
    limits: &Limits,
) -> Result<Appended> {
    let (lock, file) = journal::lock(path, limits)?;
    let old = file.header();
    let along = match dimension {
        Some(number) => dimension_index(old, number).map_err(|e| e.with_path(path))?,
        None => old.dimensions.len() - 1,
    };
    let new = extended(old, input.shape(), along).map_err(|e| e.with_path(path))?;
    check_storable(input.dtype())?;
    let selected = input.all_in(Order::F)?;
    let ((from, len), to) = (file.comment_range(), new.comment_offset());
    let clipped = journal::change(&lock, &file, &new, to + len, largest, |sink| {
        // A full disk fails here, before the comments move.
        sink.reserve(to + len)?;
        move_bytes(&file, sink, from, to, len)?;
        write_elements(sink, from, &selected, old)
    })?;
    Ok(Appended { dimension: along + 1, shapes: [old.shape(), new.shape()], clipped })
}

/// The header after appending an array of `shape` along the dimension `along`, which counts from 0.
fn extended(old: &Header, shape: &Shape, along: usize) -> Result<Header> {
    let rank = old.dimensions.len();
    let mut lengths = shape.lengths().to_vec();
    if along + 1 == rank && lengths.len() + 1 == rank {
        // One slab.
        lengths.push(1);
    }
    // A vector is a column.
    lengths.resize(lengths.len().max(rank), 1);
    let other = |k: &usize| *k != along;
    let fits = |k: usize| lengths[k] == old.dimensions[k].length;
    if lengths.len() != rank || !(0..rank).filter(other).all(fits) {
        let message = format!(
            "cannot append a {shape} array to a {} array along dimension {}",
            old.shape(),
            along + 1
        );
        let error = Error::argument(message);
        let is_trace = old.dimensions.iter().skip(1).all(|d| d.length == 1) && along > 0;
        return Err(if is_trace {
            error.hint("samples are appended along dimension 1, columns of the same length along dimension 2")
        } else {
            error
        });
    }
    if old.dimensions.iter().skip(along + 1).any(|d| d.length != 1) {
        let message = format!(
            "cannot append to a {} array along dimension {}: all elements would move",
            old.shape(),
            along + 1
        );
        let error = Error::argument(message);
        return Err(error.hint("permute the dimensions, so that this one is the last"));
    }
    let more = lengths[along];
    let mut new = old.clone();
    let last = &mut new.dimensions[along].length;
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
