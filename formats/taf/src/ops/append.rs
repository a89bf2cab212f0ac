//! `append` and `replace`: other elements under the same type and map.

use std::path::Path;

use spile_core::error::{Error, Result};
use spile_core::format::Reader as _;
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::sink::{Overwrite, Sink};

use super::{Target, rewrite};
use crate::read::File;
use crate::wire::{DIMENSION, DIMENSIONS, Header};
use crate::write::{storable, write_elements};

/// Comments are moved in pieces of this length.
const MOVE: u64 = 64 << 10;

/// Adds `input` along the last dimension and returns the number of clipped values. `input` has
/// the other lengths of the file; with one dimension less it is one slab.
///
/// In place, in an order that can cost comments but never data: room on the disk first (a full
/// one fails here, with nothing changed), then comments to the new end, the new elements, all of
/// it to the disk, and only then the new length. With `safe` everything goes to a new file.
pub fn append(path: &Path, input: &Array, safe: bool, limits: &Limits) -> Result<u64> {
    let edit = Sink::edit(path)?;
    let file = File::open(path, limits)?;
    let old = file.header();
    let new = longer(old, input.shape()).map_err(|e| e.with_path(path))?;
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
    storable(input.dtype())?;
    edit.reserve(new.comment_offset() + file.comment_range().1)?;
    move_comments(&file, &edit, new.comment_offset())?;
    let clipped = match write_elements(&edit, old.comment_offset(), &selected, old) {
        Ok(clipped) => clipped,
        Err(error) => {
            // The input could not be read to its end: the file becomes what it was.
            move_comments_back(&file, &edit, new.comment_offset())?;
            return Err(error);
        }
    };
    edit.sync()?;
    let last = new.dimensions.len() as u64 - 1;
    let length = new.dimensions[last as usize].length;
    edit.write_all_at(DIMENSIONS + DIMENSION * last, &length.to_le_bytes())?;
    edit.commit()?;
    Ok(clipped)
}

/// The header with the last dimension made longer by `shape`.
fn longer(old: &Header, shape: &Shape) -> Result<Header> {
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
            "a {shape} array does not fit a {} file along its last dimension",
            old.shape()
        )));
    }
    let mut new = old.clone();
    let last = &mut new.dimensions[rank - 1].length;
    *last = last.checked_add(more).ok_or_else(|| Error::limit("too many elements"))?;
    new.array_bytes()
        .and_then(|bytes| bytes.checked_add(new.data_offset()))
        .filter(|end| *end < 1 << 63)
        .ok_or_else(|| Error::limit("the file would be longer than any file can be"))?;
    Ok(new)
}

/// Moves the comments to `to`, the last piece first because the ranges may overlap.
fn move_comments(file: &File, sink: &Sink, to: u64) -> Result<()> {
    let (from, mut left) = file.comment_range();
    while left > 0 {
        let part = left.min(MOVE);
        left -= part;
        let bytes = file.source().read_vec(from + left, part)?;
        sink.write_all_at(to + left, &bytes)?;
    }
    Ok(())
}

/// Undoes [`move_comments`], the first piece first, and cuts the file to its old length.
fn move_comments_back(file: &File, sink: &Sink, moved: u64) -> Result<()> {
    let (to, len) = file.comment_range();
    let mut done = 0;
    while done < len {
        let part = (len - done).min(MOVE);
        let bytes = file.source().read_vec(moved + done, part)?;
        sink.write_all_at(to + done, &bytes)?;
        done += part;
    }
    sink.set_len(to + len)
}

/// Puts the elements of `input`, which has the same size, into the file; type, map, grids and
/// comments stay. Returns the number of clipped values.
pub fn replace(path: &Path, input: &Array, limits: &Limits) -> Result<u64> {
    let _edit = Sink::edit(path)?;
    let file = File::open(path, limits)?;
    let header = file.header();
    // A vector is a column.
    let mut lengths = input.shape().lengths().to_vec();
    while lengths.len() < 2 {
        lengths.push(1);
    }
    if lengths != header.shape().lengths() {
        return Err(Error::argument(format!(
            "a {} array cannot replace one of {}",
            input.shape(),
            header.shape()
        ))
        .with_path(path));
    }
    let selected = input.select(&Selection::all(), Axes::Order(Order::F))?;
    rewrite(&file, path, &Target::InPlace, header, &selected)
}
