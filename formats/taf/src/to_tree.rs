//! TAF file to `Tree`: the array `data` and the comments.

use spile_core::dtype::DType;
use spile_core::error::{ErrorKind, Result};
use spile_core::layout::{ArrayDesc, Coord, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{ROOT, Tree, Value};

use crate::metadata;
use crate::wire::{Dimension, Header};

/// Name of the array in the tree.
pub(crate) const DATA: &str = "data";

/// Name of the root attribute with the comments, or of the byte array if they are long.
pub(crate) const COMMENTS: &str = "comments";

/// Longest comments in bytes that are stored as an attribute. Longer ones, for example left by an
/// interrupted append, are a byte array that is read on demand.
pub(crate) const MAX_COMMENT_ATTRIBUTE: u64 = 1 << 20;

/// Builds the tree of a file and returns it with the warnings collected on the way. JSON metadata in
/// the comments is applied; if that fails, the tree is the plain one and the report has taf-032.
pub(crate) fn to_tree(source: &Source, header: &Header, limits: &Limits) -> Result<(Tree, Report)> {
    let mut report = Report::default();
    let mut tree = Tree::new(limits);
    tree.add_array(ROOT, DATA, array_desc(header))?;
    let offset = header.comment_offset();
    let len = source.len().saturating_sub(offset);
    if len == 0 {
        return Ok((tree, report));
    }
    if len > MAX_COMMENT_ATTRIBUTE {
        let layout = Layout::Plain { extents: Extents::one(offset, len), order: Order::C };
        tree.add_array(ROOT, COMMENTS, ArrayDesc::new(DType::U8, Shape::new([len]), layout))?;
        return Ok((tree, report));
    }
    limits.allow(len, "the comments")?;
    let text = match String::from_utf8(source.read_vec(offset, len)?) {
        Ok(text) => text,
        Err(error) => {
            let value = Value::Bytes(error.into_bytes());
            tree.node_mut(ROOT).attrs.push((COMMENTS.into(), value));
            return Ok((tree, report));
        }
    };
    let (comments, json) = metadata::split(&text);
    if !comments.is_empty() {
        tree.node_mut(ROOT).attrs.push((COMMENTS.into(), Value::Text(comments)));
    }
    let Some(json) = json else { return Ok((tree, report)) };
    match metadata::apply(json, source, &tree, limits) {
        Ok(tree) => Ok((tree, report)),
        Err(error) if error.kind() == ErrorKind::Limit => Err(error),
        Err(error) => {
            let message = format!("metadata ignored: {}", error.message());
            report.warn("taf-032", message).at(offset);
            tree.node_mut(ROOT).attrs = vec![(COMMENTS.into(), Value::Text(text))];
            Ok((tree, report))
        }
    }
}

/// Descriptor of the array: element type, shape, location, grids and map of the header.
pub(crate) fn array_desc(header: &Header) -> ArrayDesc {
    let offset = header.data_offset();
    let extents = Extents::one(offset, header.comment_offset() - offset);
    let layout = Layout::Plain { extents, order: Order::F };
    let mut desc = ArrayDesc::new(header.dtype, header.shape(), layout);
    let grid = |d: &Dimension| Coord::Uniform { start: d.start, step: d.step };
    desc.coords = header.dimensions.iter().map(grid).collect();
    desc.map = header.map();
    desc
}
