//! Writing: a header, then an array in stored order, then comments.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes, Selected};
use spile_core::select::Selection;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::tree::{NodeId, Value};

use crate::described::{self, COMMENTS};
use crate::wire::{Dimension, Header, TYPES};

/// Writes the elements of `selected` as the file's type from byte `at` on. Elements of the same
/// type and map are copied bit for bit; others are converted through `f64`, and the number of
/// values that had to be clipped is returned.
pub(crate) fn write_elements(
    sink: &Sink,
    at: u64,
    selected: &Selected<'_>,
    header: &Header,
) -> Result<u64> {
    let array = selected.array();
    let (from, to) = (array.dtype(), header.dtype);
    storable(from)?;
    let whole = array.map().is_none() && header.map().is_none();
    let same = (from.kind(), from.size()) == (to.kind(), to.size()) && array.map() == header.map();
    let clipped = AtomicU64::new(0);
    let size = to.size() as u64;
    selected.for_each(|block, bytes| {
        let offset = at + block.first * size;
        if same {
            return sink.write_all_at(offset, bytes);
        }
        let (mut numbers, mut stored) = (Vec::new(), Vec::new());
        let exact = || convert::recode_integers(from, to, bytes, &mut stored);
        let count = if let Some(count) = whole.then(exact).flatten() {
            count
        } else {
            convert::to_f64(from, array.map(), bytes, &mut numbers);
            convert::from_f64(to, header.map(), &numbers, &mut stored)
                .ok_or_else(|| Error::argument(format!("TAF has no {to} elements")))?
        };
        clipped.fetch_add(count, Ordering::Relaxed);
        sink.write_all_at(offset, &stored)
    })?;
    Ok(clipped.into_inner())
}

/// Elements that TAF can hold in some type of its own.
pub(crate) fn storable(dtype: DType) -> Result<()> {
    if dtype.is_real() || dtype.kind() == Kind::Bool {
        return Ok(());
    }
    let error = Error::argument(format!("{dtype} elements have no place in TAF"));
    Err(match dtype.kind() {
        Kind::Complex | Kind::ComplexX87 => {
            error.hint("store real and imaginary parts as two columns")
        }
        _ => error,
    })
}

/// Writes the header and `selected` (in the order of the header's dimensions, first index
/// fastest); the sink then stands where the comments belong.
pub(crate) fn write_array(
    sink: &mut Sink,
    header: &Header,
    selected: &Selected<'_>,
) -> Result<u64> {
    sink.write_all_at(0, &header.encode())?;
    let clipped = write_elements(sink, header.data_offset(), selected, header)?;
    sink.seek(header.comment_offset());
    Ok(clipped)
}

/// At least two dimensions: a vector becomes a column, a scalar a 1 x 1 matrix (section 2.2).
pub(crate) fn pad_dimensions(mut dimensions: Vec<Dimension>) -> Vec<Dimension> {
    while dimensions.len() < 2 {
        dimensions.push(Dimension::counting(1));
    }
    dimensions
}

/// The dimensions of an array with the grids that its coordinates give: points that are an array of
/// their own are one if they are as far apart as numbers allow.
fn dimensions_of(
    content: &dyn Reader,
    desc: &ArrayDesc,
    limits: &Limits,
) -> Result<Vec<Dimension>> {
    let mut dimensions = Vec::new();
    for (length, coord) in desc.shape.lengths().iter().zip(&desc.coords) {
        let grid = match coord {
            Coord::Uniform { start, step } => Some((*start, *step)),
            Coord::Node(id) => points(content, *id, *length, limits)?,
            Coord::None => None,
        };
        dimensions.push(match grid {
            Some((start, step)) => Dimension { length: *length, start, step },
            None => Dimension::counting(*length),
        });
    }
    Ok(pad_dimensions(dimensions))
}

/// The start and the step of points, if those make a grid.
fn points(
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

/// Writes the one array of any tree as TAF.
pub(crate) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let tree = content.tree();
    let (id, desc, mut comments) = the_array(content, limits)?;
    let resolved = tree.resolve(desc)?;
    let dtype = TYPES
        .iter()
        .map(|(_, dtype)| *dtype)
        .find(|d| (d.kind(), d.size()) == (resolved.dtype.kind(), resolved.dtype.size()))
        .ok_or_else(|| {
            Error::unsupported("taf-030", format!("TAF has no {} elements", resolved.dtype))
        })?;
    let array = Array::open(content.source(), tree, desc, limits)?;
    let dimensions = dimensions_of(content, desc, limits)?;
    if let Some(line) = described::line(content, id, &dimensions, limits)? {
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

/// The only array of a tree that is no coordinate, and its comments: an attribute, or an array called so.
fn the_array<'a>(
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
            return Err(Error::unsupported(
                "taf-031",
                "a TAF file holds one array, without frames",
            )
            .in_object(format!("array \"{}\"", node.path))
            .hint("choose one with --select"));
        }
    }
    let found = found.ok_or_else(|| Error::unsupported("taf-031", "there is no array to write"));
    let (id, desc) = found?;
    Ok((id, desc, comments))
}
