//! An open TAF file: its header, its array, its comments, and the tree view of them.

use std::path::Path;

use spile_core::dtype::DType;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::format::{Object, Reader, Region, Role};
use spile_core::layout::{ArrayDesc, Coord, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::reduce::{Envelope, Stats, envelope, statistics};
use spile_core::report::{Finding, Report};
use spile_core::select::{Selection, Slice};
use spile_core::shape::{Order, Shape};
use spile_core::sink::Sink;
use spile_core::source::Source;
use spile_core::tree::{ROOT, Tree, Value};

use crate::described::{self, COMMENTS, DATA};
use crate::wire::{DIMENSION, DIMENSIONS, HEADER, Header, type_name};

/// Comments up to this length are an attribute; longer ones, such as the remains of an append
/// that was interrupted, an array that is read on demand.
const COMMENT_ATTRIBUTE: u64 = 1 << 20;

/// An open TAF file. Opening reads the header only (`probe` in Table 3-1).
pub struct File {
    source: Source,
    header: Header,
    tree: Tree,
    report: Report,
    limits: Limits,
}

impl File {
    /// Opens a file.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        Self::from_source(Source::open(path)?, limits)
            .map_err(|e| e.with_path(path).with_format("taf"))
    }

    /// Opens what is in `source`.
    pub fn from_source(source: Source, limits: &Limits) -> Result<Self> {
        let header = Header::read(&source, limits)?;
        let (tree, report) = (Tree::new(limits), Report::default());
        let mut file = Self { source, header, tree, report, limits: *limits };
        let desc = file.describe();
        file.tree.add_array(ROOT, DATA, desc)?;
        file.add_comments()?;
        Ok(file)
    }

    fn describe(&self) -> ArrayDesc {
        let header = &self.header;
        let extents =
            Extents::one(header.data_offset(), header.comment_offset() - header.data_offset());
        let layout = Layout::Plain { extents, order: Order::F };
        let mut desc = ArrayDesc::new(header.dtype, header.shape(), layout);
        let uniform = |d: &crate::wire::Dimension| Coord::Uniform { start: d.start, step: d.step };
        desc.coords = header.dimensions.iter().map(uniform).collect();
        desc.map = header.map();
        desc
    }

    fn add_comments(&mut self) -> Result<()> {
        let (offset, len) = self.comment_range();
        if len == 0 {
            return Ok(());
        }
        if len > COMMENT_ATTRIBUTE {
            let layout = Layout::Plain { extents: Extents::one(offset, len), order: Order::C };
            let desc = ArrayDesc::new(DType::U8, Shape::new([len]), layout);
            self.tree.add_array(ROOT, COMMENTS, desc)?;
            return Ok(());
        }
        let text = match String::from_utf8(self.comments()?) {
            Ok(text) => text,
            Err(bytes) => {
                let value = Value::Bytes(bytes.into_bytes());
                self.tree.node_mut(ROOT).attrs.push((COMMENTS.into(), value));
                return Ok(());
            }
        };
        let (rest, description) = described::split(&text);
        let mut tree = self.tree.clone();
        if !rest.is_empty() {
            tree.node_mut(ROOT).attrs.push((COMMENTS.into(), Value::Text(rest)));
        }
        let dressed = description
            .map(|description| described::dress(description, &self.source, &tree, &self.limits));
        self.tree = match dressed {
            None => tree,
            Some(Ok(tree)) => tree,
            Some(Err(e)) if e.kind() == ErrorKind::Limit => return Err(e),
            Some(Err(e)) => {
                let message = format!("the description is not used: {}", e.message());
                let offset = self.comment_range().0;
                self.report.warn("taf-032", message).at(offset);
                tree.node_mut(ROOT).attrs = vec![(COMMENTS.into(), Value::Text(text))];
                tree
            }
        };
        Ok(())
    }

    /// Everything before the array.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// First byte and length of the comments.
    pub fn comment_range(&self) -> (u64, u64) {
        let offset = self.header.comment_offset();
        (offset, self.source.len().saturating_sub(offset))
    }

    /// The comments, byte for byte.
    pub fn comments(&self) -> Result<Vec<u8>> {
        let (offset, len) = self.comment_range();
        self.limits.allow(len, "the comments")?;
        self.source.read_vec(offset, len)
    }

    /// Writes the comments, byte for byte and however long, where `sink` stands.
    pub(crate) fn copy_comments(&self, sink: &mut Sink) -> Result<()> {
        let (offset, len) = self.comment_range();
        sink.copy_from(&self.source, offset, len)
    }

    /// The comments without the description that is among them; nothing if there is none.
    pub(crate) fn undescribed(&self) -> Result<Option<String>> {
        if self.comment_range().1 > COMMENT_ATTRIBUTE {
            return Ok(None);
        }
        let Ok(text) = String::from_utf8(self.comments()?) else { return Ok(None) };
        let (rest, description) = described::split(&text);
        Ok(description.is_some().then_some(rest))
    }

    /// The array: read it, stream it, select from it; [`Array::view_as`] is `map` in Table 3-1.
    pub fn array(&self) -> Result<Array> {
        Array::open(&self.source, &self.tree, &self.describe(), &self.limits)
    }

    /// Array elements as `f64` in stored order, and the grids (`read` in Table 3-1).
    pub fn read(&self, selection: &Selection) -> Result<(Vec<f64>, Vec<Vec<f64>>)> {
        let array = self.array()?;
        let spans = selection.resolve(array.shape())?;
        let data = array.read_f64(selection, Axes::Stored)?;
        // An empty array may have other lengths that no memory holds.
        let points = spans.iter().fold(0_u64, |sum, span| sum.saturating_add(span.count));
        self.limits.allow(points.saturating_mul(8), "the grids")?;
        let grids = spans.iter().zip(&self.header.dimensions).map(|(span, dimension)| {
            let index = |k: u64| span.start.wrapping_add_signed(k as i64 * span.step);
            (0..span.count).map(|k| dimension.at(index(k))).collect()
        });
        Ok((data, grids.collect()))
    }

    /// Number of columns: all dimensions but the first, together.
    pub fn columns(&self) -> u64 {
        let rest: Vec<u64> = self.header.dimensions[1..].iter().map(|d| d.length).collect();
        Shape::new(rest).count().unwrap_or(0)
    }

    /// The selection that is column `number`, counted from zero.
    pub fn column(&self, number: u64) -> Selection {
        let mut left = number;
        let mut slices = vec![Slice::ALL];
        for dimension in &self.header.dimensions[1..] {
            let length = dimension.length.max(1);
            slices.push(Slice::Index((left % length) as i64));
            left /= length;
        }
        Selection(slices)
    }

    /// Statistics of the array, or of one column (`summarize` in Table 3-1).
    pub fn summarize(&self, column: Option<u64>) -> Result<Stats> {
        let array = self.array()?;
        let selection = column.map_or_else(Selection::all, |c| self.column(c));
        statistics(&array.select(&selection, Axes::Stored)?)
    }

    /// Extremes of `buckets` runs of a column (`plot` in Table 3-1 draws them).
    pub fn envelope(&self, column: u64, buckets: usize) -> Result<Envelope> {
        if column >= self.columns() {
            let message = format!("there is no column {}, the file has {}", column, self.columns());
            return Err(Error::argument(message));
        }
        let array = self.array()?;
        envelope(&array.select(&self.column(column), Axes::Stored)?, buckets)
    }
}

impl Reader for File {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn findings(&self) -> &[Finding] {
        &self.report.findings
    }

    fn summary(&self) -> Vec<(String, Value)> {
        let header = &self.header;
        let mut rows: Vec<(String, Value)> = vec![
            ("version".into(), format!("{}.{}", header.version.0, header.version.1).into()),
            ("type code".into(), u64::from(header.type_code).into()),
            ("stored as".into(), type_name(header.dtype).into()),
            ("shape".into(), header.shape().to_string().into()),
        ];
        if let Some(map) = header.map() {
            rows.push(("intercept".into(), map.intercept.into()));
            rows.push(("slope".into(), map.slope.into()));
        }
        for (k, d) in header.dimensions.iter().enumerate() {
            let end = match d.length {
                0 => String::new(),
                n => format!(", end {}", Value::Float(d.at(n - 1))),
            };
            let text =
                format!("start {}, step {}{end}", Value::Float(d.start), Value::Float(d.step));
            rows.push((format!("grid {}", k + 1), text.into()));
        }
        let (offset, len) = self.comment_range();
        rows.push(("array at byte".into(), header.data_offset().into()));
        rows.push(("comments at byte".into(), offset.into()));
        rows.push(("comment bytes".into(), len.into()));
        // Too long to be an attribute is too long to be shown.
        rows.extend(self.tree.attrs().iter().filter(|(name, _)| name == COMMENTS).cloned());
        rows
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let header = &self.header;
        let mut emit = |offset, len, role, name: &str, value: String| {
            each(Region { offset, len, role, name: name.into(), value })
        };
        let float = |x: f64| Value::Float(x).to_string();
        let magic = format!(
            "version {}.{}, type code {}",
            header.version.0, header.version.1, header.type_code
        );
        emit(0, 8, Role::Header, "magic", magic)?;
        emit(8, HEADER - 8, Role::Text, "synopsis", String::new())?;
        emit(HEADER, 8, Role::Header, "element type", type_name(header.dtype).into())?;
        emit(HEADER + 8, 8, Role::Header, "intercept", float(header.intercept))?;
        emit(HEADER + 16, 8, Role::Header, "slope", float(header.slope))?;
        let rank = header.dimensions.len();
        emit(HEADER + 24, 8, Role::Header, "dimensions", rank.to_string())?;
        for (k, d) in header.dimensions.iter().enumerate() {
            let at = DIMENSIONS + DIMENSION * k as u64;
            let name = |field: &str| format!("dimension {} {field}", k + 1);
            emit(at, 8, Role::Header, &name("length"), d.length.to_string())?;
            emit(at + 8, 8, Role::Header, &name("grid start"), float(d.start))?;
            emit(at + 16, 8, Role::Header, &name("grid step"), float(d.step))?;
        }
        let (offset, len) = self.comment_range();
        let what = format!("{} {}", header.shape(), type_name(header.dtype));
        emit(header.data_offset(), offset - header.data_offset(), Role::Data, "array", what)?;
        if len > 0 {
            emit(offset, len, Role::Text, "comments", String::new())?;
        }
        Ok(())
    }

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        let kind = type_name(self.header.dtype).to_string();
        each(Object { path: DATA.into(), id: None, frame: None, kind, array: self.describe() })
    }
}
