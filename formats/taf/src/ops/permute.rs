//! `permute` and `transpose`: reorder the dimensions.

use std::path::Path;

use spile_core::{Axes, Error, Hint, Limits, Result, Selection, Shape};

use super::{Target, rewrite};
use crate::journal;
use crate::read::File;
use crate::wire::{DIMENSIONS_OFFSET, Header};

/// Upper limit of the block size in bytes; larger blocks are not faster.
const MAX_BLOCK_BYTES: u64 = 64 << 20;

/// Dimensions of up to this number of bytes are in one sector of the disk, so that writing them is atomic.
const ONE_SECTOR: usize = 20 * 24;

/// Reorders the dimensions together with their grids: dimension `k` of the result is dimension
/// `order[k]` of the file, counted from 1. Returns the new shape.
///
/// If only dimensions of length 1 move, an in-place operation rewrites the header only. A metadata
/// line in the comments is removed because its dimension names no longer apply.
///
/// # Errors
/// `order` is not a permutation of the dimensions.
pub fn permute(path: &Path, order: &[usize], target: &Target, limits: &Limits) -> Result<Shape> {
    let (lock, file) = target.open(path, limits)?;
    let old = file.header();
    let rank = old.dimensions.len();
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if sorted != (1..=rank).collect::<Vec<_>>() {
        let message =
            format!("expected a permutation of the dimensions 1 to {rank}, found {order:?}");
        return Err(Error::argument(message).with_path(path));
    }
    let dimensions = order.iter().map(|k| old.dimensions[k - 1]).collect();
    let header = Header { dimensions, ..old.clone() };
    let moving: Vec<usize> =
        order.iter().copied().filter(|k| old.dimensions[k - 1].length != 1).collect();
    let comments = file.comments_without_metadata()?;
    let header_only = moving.is_sorted() && comments.is_none();
    if let Some(lock) = lock.as_ref().filter(|_| header_only) {
        let dimensions = header.encode_dimensions();
        if dimensions.len() <= ONE_SECTOR {
            journal::overwrite(lock, &file, DIMENSIONS_OFFSET, &dimensions)?;
        } else {
            let len = file.source().len();
            journal::change(lock, &file, &header, len, journal::COPIED, |_| Ok(()))?;
        }
        return Ok(header.shape());
    }
    let slowest: Vec<usize> = order.iter().rev().map(|k| k - 1).collect();
    let array = file.array()?;
    let selected = array.select(&Selection::all(), Axes::Slowest(&slowest))?;
    let selected = if moving.is_sorted() {
        selected
    } else {
        let share = limits.memory / (2 * rayon::current_num_threads() as u64);
        selected.with_block_bytes(share.clamp(64 << 10, MAX_BLOCK_BYTES) as usize)
    };
    rewrite(&file, path, target, &header, &selected, comments)?;
    Ok(header.shape())
}

/// Exchanges the two dimensions of an array. Returns the new shape.
///
/// # Errors
/// The array does not have two dimensions.
pub fn transpose(path: &Path, target: &Target, limits: &Limits) -> Result<Shape> {
    let rank = File::open(path, limits)?.header().dimensions.len();
    if rank != 2 {
        let error = Error::argument(format!("expected 2 dimensions, found {rank}"));
        return Err(error
            .with_path(path)
            .hint(Hint::operation("taf permute", "reorders more dimensions")));
    }
    permute(path, &[2, 1], target, limits)
}
