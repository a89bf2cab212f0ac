//! Any dataset with one array as TAF.

use std::io::Write as _;

use spile_core::dtype::Kind;
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::tree::{NodeId, Value};

use crate::metadata;
use crate::to_tree::COMMENTS;
use crate::wire::{Dimension, Header, TYPES};
use crate::write::{pad_dimensions, write_array};

/// Writes the only main array of `content` with its uniform coordinates, and the comments. Metadata
/// that the header cannot express is written as JSON in the last comment line.
///
/// # Errors
/// An element type that TAF does not have (taf-030); no array, several arrays or frames (taf-031).
pub(crate) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let tree = content.tree();
    let (id, desc, mut comments) = array_and_comments(content, limits)?;
    let resolved = tree.resolve(desc)?;
    let dtype = TYPES
        .iter()
        .map(|(_, dtype)| *dtype)
        .find(|d| (d.kind(), d.size()) == (resolved.dtype.kind(), resolved.dtype.size()))
        .ok_or_else(|| {
            let message = format!("TAF has no {} element type", resolved.dtype);
            Error::unsupported("taf-030", message)
        })?;
    let array = Array::open(content.source(), tree, desc, limits)?;
    let dimensions = dimensions(content, desc, limits)?;
    if let Some(line) = metadata::line(content, id, &dimensions, limits)? {
        if comments.last().is_some_and(|last| *last != b'\n') {
            comments.push(b'\n');
        }
        comments.extend(line.bytes());
    }
    let header = Header::new(dtype, array.map(), dimensions);
    let selected = array.select(&Selection::all(), Axes::Order(Order::F))?;
    write_array(sink, &header, &selected)?;
    sink.write_all(&comments)?;
    Ok(())
}

/// Finds the only array that is not a coordinate, and the comments: the root attribute or the array
/// with that name.
fn array_and_comments<'a>(
    content: &'a dyn Reader,
    limits: &Limits,
) -> Result<(NodeId, &'a ArrayDesc, Vec<u8>)> {
    let tree = content.tree();
    let mut comments = match tree.attrs().iter().find(|(name, _)| name == COMMENTS) {
        Some((_, Value::Text(text))) => text.clone().into_bytes(),
        Some((_, Value::Bytes(bytes))) => bytes.clone(),
        _ => Vec::new(),
    };
    let mut found = None;
    for (id, node, desc) in tree.main_arrays() {
        if node.path == COMMENTS && comments.is_empty() {
            let array = Array::open(content.source(), tree, desc, limits)?;
            comments = array.read(&Selection::all(), Axes::Stored)?;
        } else if found.is_none() && !matches!(desc.layout, Layout::PerFrame(_)) {
            found = Some((id, desc));
        } else {
            let message = "a TAF file stores one array without frames";
            return Err(Error::unsupported("taf-031", message)
                .in_object(format!("array \"{}\"", node.path))
                .hint("select one array with --select"));
        }
    }
    let (id, desc) =
        found.ok_or_else(|| Error::unsupported("taf-031", "the input has no array"))?;
    Ok((id, desc, comments))
}

/// Dimensions of an array. The grid is the coordinate if that is uniform, otherwise 1, 2, 3, ...
fn dimensions(content: &dyn Reader, desc: &ArrayDesc, limits: &Limits) -> Result<Vec<Dimension>> {
    let mut dimensions = Vec::new();
    for (length, coord) in desc.shape.lengths().iter().zip(&desc.coords) {
        let grid = match coord {
            Coord::Uniform { start, step } => Some((*start, *step)),
            Coord::Node(id) => uniform_grid(content, *id, *length, limits)?,
            Coord::None => None,
        };
        dimensions.push(match grid {
            Some((start, step)) => Dimension { length: *length, start, step },
            None => Dimension::with_default_grid(*length),
        });
    }
    Ok(pad_dimensions(dimensions))
}

/// Start and step of the coordinate array `id`; `None` if it is not real, has another length than
/// `length`, or is not uniform.
fn uniform_grid(
    content: &dyn Reader,
    id: NodeId,
    length: u64,
    limits: &Limits,
) -> Result<Option<(f64, f64)>> {
    let Some(desc) = &content.tree().node(id).array else { return Ok(None) };
    let real = matches!(desc.dtype.kind(), Kind::Float | Kind::Int | Kind::UInt);
    let framed = matches!(content.tree().resolve(desc)?.layout, Layout::PerFrame(_));
    if desc.shape.lengths() != [length] || !real || framed {
        return Ok(None);
    }
    let array = Array::open(content.source(), content.tree(), desc, limits)?;
    let points = array.read_f64(&Selection::all(), Axes::Stored)?;
    Ok(Coord::spacing(&points).ok())
}
