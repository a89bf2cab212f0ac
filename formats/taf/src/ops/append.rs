//! `append` and `replace`: new elements in the type and map of the file.

use std::path::Path;

use spile_core::{Array, Error, Limits, Order, Overwrite, Result, Shape, Sink};

use super::{Target, rewrite};
use crate::read::File;
use crate::wire::{Header, dimension_offset};
use crate::write::{check_storable, write_elements};

/// Comments are moved in blocks of this size.
const MOVE_BLOCK: u64 = 64 << 10;

/// Appends `input` along the last dimension and returns the number of clipped values. All lengths
/// except the last must be those of the file; an input with one dimension less is one slab.
///
/// With `safe` the file is rewritten and replaced atomically. Otherwise it is modified in place, in
/// an order that can lose comments after a crash but never data: reserve disk space (a full disk
/// fails here, before any change), move the comments, write the elements, sync, write the new length.
///
/// # Errors
/// The shapes do not match, or the elements cannot be converted. The file is then unchanged.
pub fn append(path: &Path, input: &Array, safe: bool, limits: &Limits) -> Result<u64> {
    let edit = Sink::edit(path)?;
    let file = File::open(path, limits)?;
    let old = file.header();
    let new = extended(old, input.shape()).map_err(|e| e.with_path(path))?;
    let selected = input.all_in(Order::F)?;
    if safe {
        let mut sink = Sink::create(path, Overwrite::Replace)?;
        sink.write_all_at(0, &new.encode())?;
        write_elements(&sink, old.data_offset(), &file.array()?.all()?, old)?;
        let clipped = write_elements(&sink, old.comment_offset(), &selected, old)?;
        sink.seek(new.comment_offset());
        file.copy_comments(&mut sink)?;
        sink.commit()?;
        return Ok(clipped);
    }
    check_storable(input.dtype())?;
    let (from, len) = file.comment_range();
    let to = new.comment_offset();
    edit.reserve(to + len)?;
    move_bytes(&file, &edit, from, to, len)?;
    let clipped = match write_elements(&edit, old.comment_offset(), &selected, old) {
        Ok(clipped) => clipped,
        Err(error) => {
            // The input could not be read completely: restore the file.
            move_bytes(&file, &edit, to, from, len)?;
            edit.set_len(from + len)?;
            return Err(error);
        }
    };
    edit.sync()?;
    let last = new.dimensions.len() - 1;
    let length = new.dimensions[last].length;
    edit.write_all_at(dimension_offset(last), &length.to_le_bytes())?;
    edit.commit()?;
    Ok(clipped)
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

/// Moves `len` bytes of the file in blocks, in an order that never overwrites bytes before they are read.
fn move_bytes(file: &File, sink: &Sink, from: u64, to: u64, len: u64) -> Result<()> {
    let blocks = len.div_ceil(MOVE_BLOCK);
    for k in 0..blocks {
        let start = MOVE_BLOCK * if to > from { blocks - 1 - k } else { k };
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
    let _edit = Sink::edit(path)?;
    let file = File::open(path, limits)?;
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
