//! `append` and `replace`: new elements in the type and map of the file.

use std::path::Path;

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::sink::{Overwrite, Sink};

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
    let selected = input.select(&Selection::all(), Axes::Order(Order::F))?;
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
    edit.reserve(new.comment_offset() + file.comment_range().1)?;
    move_comments(&file, &edit, new.comment_offset())?;
    let clipped = match write_elements(&edit, old.comment_offset(), &selected, old) {
        Ok(clipped) => clipped,
        Err(error) => {
            // The input could not be read completely: restore the file.
            move_comments_back(&file, &edit, new.comment_offset())?;
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

/// Moves the comments to offset `to`, last block first because the ranges can overlap.
fn move_comments(file: &File, sink: &Sink, to: u64) -> Result<()> {
    let (from, mut rest) = file.comment_range();
    while rest > 0 {
        let part = rest.min(MOVE_BLOCK);
        rest -= part;
        let bytes = file.source().read_vec(from + rest, part)?;
        sink.write_all_at(to + rest, &bytes)?;
    }
    Ok(())
}

/// Reverts [`move_comments`], first block first, and truncates the file to its old length.
fn move_comments_back(file: &File, sink: &Sink, moved: u64) -> Result<()> {
    let (to, len) = file.comment_range();
    let mut done = 0;
    while done < len {
        let part = (len - done).min(MOVE_BLOCK);
        let bytes = file.source().read_vec(moved + done, part)?;
        sink.write_all_at(to + done, &bytes)?;
        done += part;
    }
    sink.set_len(to + len)
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
    while lengths.len() < 2 {
        lengths.push(1);
    }
    if lengths != header.shape().lengths() {
        return Err(Error::argument(format!(
            "expected a {} array, found {}",
            header.shape(),
            input.shape()
        ))
        .with_path(path));
    }
    let selected = input.select(&Selection::all(), Axes::Order(Order::F))?;
    rewrite(&file, path, &Target::InPlace, header, &selected)
}
