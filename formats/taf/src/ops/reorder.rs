//! `permute` and `transpose`.

use std::io::Write as _;
use std::path::Path;

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::shape::Shape;

use super::{Target, rewrite};
use crate::read::File;
use crate::wire::{DIMENSIONS, Header};
use crate::write::write_array;

/// Larger blocks than this gain nothing.
const LARGEST_BLOCK: u64 = 64 << 20;

/// Dimension `k` of the result is dimension `order[k]` of the file, counted from 1; grids move
/// along. Where only dimensions of length one change places, the elements stay where they are and
/// only the header is written. A description among the comments, which has names for the dimensions
/// as they were, is left out. Returns the new size.
pub fn permute(path: &Path, order: &[usize], target: &Target, limits: &Limits) -> Result<Shape> {
    let lock = target.lock(path)?;
    let file = File::open(path, limits)?;
    let old = file.header();
    let rank = old.dimensions.len();
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if sorted != (1..=rank).collect::<Vec<_>>() {
        let message = format!("{order:?} does not name each of the {rank} dimensions once");
        return Err(Error::argument(message).with_path(path));
    }
    let dimensions = order.iter().map(|k| old.dimensions[k - 1]).collect();
    let header = Header { dimensions, ..old.clone() };
    let moving: Vec<usize> =
        order.iter().copied().filter(|k| old.dimensions[k - 1].length != 1).collect();
    let undescribed = file.undescribed()?;
    let stays = moving.is_sorted() && undescribed.is_none();
    if let Some(sink) = lock.as_ref().filter(|_| stays) {
        sink.write_all_at(DIMENSIONS, &header.encode_dimensions())?;
        sink.sync()?;
        return Ok(header.shape());
    }
    let slowest: Vec<usize> = order.iter().rev().map(|k| k - 1).collect();
    let array = file.array()?;
    let selected = array.select(&Selection::all(), Axes::Slowest(&slowest))?;
    let selected = if moving.is_sorted() {
        selected
    } else {
        let share = limits.memory / (2 * rayon::current_num_threads() as u64);
        selected.with_block_bytes(share.clamp(64 << 10, LARGEST_BLOCK) as usize)
    };
    let Some(comments) = undescribed else {
        rewrite(&file, path, target, &header, &selected)?;
        return Ok(header.shape());
    };
    let mut sink = target.sink(path)?;
    write_array(&mut sink, &header, &selected)?;
    sink.write_all(comments.as_bytes())?;
    sink.commit()?;
    Ok(header.shape())
}

/// Rows become columns; for arrays of two dimensions.
pub fn transpose(path: &Path, target: &Target, limits: &Limits) -> Result<Shape> {
    let rank = File::open(path, limits)?.header().dimensions.len();
    if rank != 2 {
        let error = Error::argument(format!("the array has {rank} dimensions, not two"));
        return Err(error.with_path(path).hint("`spile taf permute` takes any number of them"));
    }
    permute(path, &[2, 1], target, limits)
}
