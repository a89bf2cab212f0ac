//! [`File`]: header, array and comments of an open TAF file.

use std::path::Path;

use spile_core::reduce::{Envelope, Stats, envelope, statistics};
use spile_core::report::Finding;
use spile_core::{
    Array, Axes, Dataset, Error, Limits, Result, Selection, Shape, Sink, Slice, Source,
};

use crate::journal;
use crate::metadata;
use crate::to_tree::{MAX_COMMENT_ATTRIBUTE, array_desc};
use crate::wire::Header;

/// An open TAF file. Opening reads the header (`probe` in
/// Table 3-1).
pub struct File {
    source: Source,
    header: Header,
    limits: Limits,
}

impl File {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, is not TAF, or has a malformed header or a truncated array.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        Self::from_source(Source::open(path)?, limits)
            .map_err(|e| e.with_path(path).with_format("taf"))
    }

    /// Opens a TAF file given as a [`Source`]. Fails like [`File::open`].
    pub fn from_source(source: Source, limits: &Limits) -> Result<Self> {
        let header = Header::read(&source, limits)?;
        Ok(Self { source, header, limits: *limits })
    }

    /// The bytes of the file.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Warnings about the file: a change that is not finished.
    pub fn warnings(&self) -> Vec<Finding> {
        journal::finding(&self.source).into_iter().collect()
    }

    /// Opening and header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Offset and length of the comments in bytes.
    pub fn comment_range(&self) -> (u64, u64) {
        let offset = self.header.comment_offset();
        (offset, self.source.len().saturating_sub(offset))
    }

    /// Reads the comments, including the metadata line if there is one.
    pub fn comments(&self) -> Result<Vec<u8>> {
        let (offset, len) = self.comment_range();
        self.limits.allow(len, "the comments")?;
        self.source.read_vec(offset, len)
    }

    /// Copies the comments to the current position of `sink`.
    pub(crate) fn copy_comments(&self, sink: &mut Sink) -> Result<()> {
        let (offset, len) = self.comment_range();
        sink.copy_from(&self.source, offset, len)
    }

    /// The comments without the metadata line; `None` if there is no such line.
    pub(crate) fn comments_without_metadata(&self) -> Result<Option<String>> {
        if self.comment_range().1 > MAX_COMMENT_ATTRIBUTE {
            return Ok(None);
        }
        let Ok(text) = String::from_utf8(self.comments()?) else { return Ok(None) };
        let (rest, json) = metadata::split(&text);
        Ok(json.is_some().then_some(rest))
    }

    /// The array, for reading, streaming and selections. [`Array::view_as`] is `map` in Table 3-1.
    pub fn array(&self) -> Result<Array> {
        let dataset = Dataset::of_bytes(self.source.clone(), &self.limits);
        dataset.open_array(&array_desc(&self.header))
    }

    /// Reads the selected elements as mapped `f64` values, first index fastest, and the selected
    /// grid values of each dimension (`read` in Table 3-1).
    ///
    /// # Errors
    /// The selection does not match the shape, or the result exceeds the memory limit.
    pub fn read(&self, selection: &Selection) -> Result<(Vec<f64>, Vec<Vec<f64>>)> {
        let array = self.array()?;
        let spans = selection.resolve(array.shape())?;
        let data = array.read_f64(selection, Axes::Stored)?;
        // An empty array can have other dimensions of any length.
        let points = spans.iter().fold(0_u64, |sum, span| sum.saturating_add(span.count));
        self.limits.allow(points.saturating_mul(8), "the grids")?;
        let grids = spans.iter().zip(&self.header.dimensions).map(|(span, dimension)| {
            let index = |k: u64| span.start.wrapping_add_signed(k as i64 * span.step);
            (0..span.count).map(|k| dimension.grid_value(index(k))).collect()
        });
        Ok((data, grids.collect()))
    }

    /// Number of columns: the product of all lengths except the first.
    pub fn columns(&self) -> u64 {
        let rest: Vec<u64> = self.header.dimensions[1..].iter().map(|d| d.length).collect();
        Shape::new(rest).count().unwrap_or(0)
    }

    /// Selection of the column with zero-based `number`, in storage order.
    pub fn column(&self, number: u64) -> Selection {
        let mut rest = number;
        let mut slices = vec![Slice::ALL];
        for dimension in &self.header.dimensions[1..] {
            let length = dimension.length.max(1);
            slices.push(Slice::Index((rest % length) as i64));
            rest /= length;
        }
        Selection(slices)
    }

    /// Statistics of the array, or of the column with the given zero-based number (`summarize` in
    /// Table 3-1).
    pub fn summarize(&self, column: Option<u64>) -> Result<Stats> {
        let array = self.array()?;
        let selection = column.map_or_else(Selection::all, |c| self.column(c));
        statistics(&array.select(&selection, Axes::Stored)?)
    }

    /// Minimum and maximum of each of `buckets` consecutive parts of a column (the data of `plot` in
    /// Table 3-1). `column` counts from zero.
    ///
    /// # Errors
    /// There is no such column.
    pub fn envelope(&self, column: u64, buckets: usize) -> Result<Envelope> {
        if column >= self.columns() {
            let message = format!("no column {column}: the array has {} columns", self.columns());
            return Err(Error::argument(message));
        }
        let array = self.array()?;
        envelope(&array.select(&self.column(column), Axes::Stored)?, buckets)
    }
}
