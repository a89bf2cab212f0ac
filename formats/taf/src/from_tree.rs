//! Any dataset with one array as TAF.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;

use spile_core::format::{FormatWriter, Loss, LossKind, WriteOptions};
use spile_core::{
    ArrayDesc, Coord, DType, Dataset, Error, Hint, Kind, NodeId, Order, ROOT, Result, Sink, Value,
};

use crate::Taf;
use crate::metadata;
use crate::to_tree::COMMENTS;
use crate::wire::{Dimension, Header, TYPES};
use crate::write::{pad_dimensions, write_array};

impl FormatWriter for Taf {
    fn keeps_scaling(&self) -> bool {
        true
    }

    /// What writing does not keep: coordinate arrays and the mesh are separate objects, and groups
    /// other than those above the array are not written. Whether a coordinate array is uniform is found
    /// while writing.
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        let tree = content.tree();
        let (id, desc, comments) = array_and_comments(content)?;
        element_type(content, desc)?;
        let mut above = HashSet::from([id]);
        let mut parent = tree.node(id).parent;
        while parent != ROOT {
            above.insert(parent);
            parent = tree.node(parent).parent;
        }
        let mut losses = Vec::new();
        let comment_array = if let Comments::Array(id) = comments { Some(id) } else { None };
        for (other, node) in tree.iter().filter(|(other, _)| !above.contains(other)) {
            if node.array.is_none() {
                losses.push(Loss::new(&node.path, LossKind::Group, "TAF has no groups"));
            } else if Some(other) != comment_array {
                let reason = "TAF stores one array; only uniform coordinates are kept, as its grid";
                losses.push(Loss::new(&node.path, LossKind::Array, reason));
            }
        }
        if desc.semantics().mesh.is_some() {
            let reason = "TAF stores one array and no mesh";
            losses.push(Loss::new(&tree.node(id).path, LossKind::Meaning, reason));
        }
        if desc.coords.iter().any(|coord| matches!(coord, Coord::Node(_))) {
            let reason = "TAF stores uniform coordinates as start and step, and no others";
            losses.push(Loss::new(&tree.node(id).path, LossKind::Coordinates, reason));
        }
        if desc.map.is_some_and(|map| map.origin != 0.0) {
            let reason = "TAF has two coefficients: the origin is rounded into the intercept";
            losses.push(Loss::new(&tree.node(id).path, LossKind::Scaling, reason));
        }
        Ok(losses)
    }

    /// Writes the only main array of `content` with its uniform coordinates, and the comments. Metadata
    /// that the header cannot express is written as JSON in the last comment line. Returns coordinates that
    /// turned out not to be uniform.
    ///
    /// # Errors
    /// An element type that TAF does not have (taf-030); several arrays or frames (taf-031); no array
    /// (taf-033).
    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let (id, desc, comments) = array_and_comments(content)?;
        let dtype = element_type(content, desc)?;
        let mut comments = match comments {
            Comments::None => Vec::new(),
            Comments::Attribute(Value::Text(text)) => text.clone().into_bytes(),
            Comments::Attribute(Value::Bytes(bytes)) => bytes.clone(),
            Comments::Attribute(other) => other.to_string().into_bytes(),
            Comments::Array(id) => content.array_at(id)?.bytes()?,
        };
        let array = content.array_at(id)?;
        let (dimensions, losses) = dimensions(content, id, desc)?;
        if let Some(line) = metadata::line(content, id, &dimensions)? {
            if comments.last().is_some_and(|last| *last != b'\n') {
                comments.push(b'\n');
            }
            comments.extend(line.bytes());
        }
        let header = Header::new(dtype, array.map(), dimensions);
        let selected = array.all_in(Order::F)?;
        write_array(sink, &header, &selected)?;
        sink.write_all(&comments)?;
        Ok(losses)
    }
}

/// The element type of TAF for an array.
fn element_type(content: &Dataset, desc: &ArrayDesc) -> Result<DType> {
    let stored = content.tree().resolve(desc)?.dtype;
    let same = |d: &DType| (d.kind(), d.size()) == (stored.kind(), stored.size());
    TYPES
        .iter()
        .map(|(_, dtype)| *dtype)
        .find(same)
        .ok_or_else(|| Error::unsupported("taf-030", format!("TAF has no {stored} element type")))
}

enum Comments<'a> {
    None,
    Attribute(&'a Value),
    Array(NodeId),
}

/// Finds the only array that is not a coordinate, and the comments: the root attribute or the array
/// with that name.
fn array_and_comments(content: &Dataset) -> Result<(NodeId, &ArrayDesc, Comments<'_>)> {
    let tree = content.tree();
    let mut comments = tree.attrs().get(COMMENTS).map_or(Comments::None, Comments::Attribute);
    let mut found = None;
    for (id, node, desc) in tree.main_arrays() {
        if node.path == COMMENTS && matches!(comments, Comments::None) {
            comments = Comments::Array(id);
        } else if found.is_none() && desc.layout.frames().is_none() {
            found = Some((id, desc));
        } else {
            let message = "a TAF file stores one array without frames";
            return Err(Error::unsupported("taf-031", message)
                .in_object(format!("array \"{}\"", node.path))
                .hint(Hint::SelectArrays));
        }
    }
    let (id, desc) =
        found.ok_or_else(|| Error::unsupported("taf-033", "the input has no array"))?;
    Ok((id, desc, comments))
}

/// Dimensions of an array. The grid is the coordinate if that is uniform, otherwise 1, 2, 3, ...;
/// coordinates that are not uniform are returned as losses.
fn dimensions(
    content: &Dataset,
    array: NodeId,
    desc: &ArrayDesc,
) -> Result<(Vec<Dimension>, Vec<Loss>)> {
    let (mut dimensions, mut losses) = (Vec::new(), Vec::new());
    for (length, coord) in desc.shape.lengths().iter().zip(&desc.coords) {
        let grid = match coord {
            Coord::Uniform { start, step } => Some((*start, *step)),
            Coord::Node(id) => uniform_grid(content, *id, *length)?,
            Coord::None => None,
        };
        if let (None, Coord::Node(id)) = (grid, coord) {
            let reason = format!("\"{}\" is not uniform", content.tree().node(*id).path);
            let path = &content.tree().node(array).path;
            losses.push(Loss::new(path, LossKind::Coordinates, reason));
        }
        dimensions.push(match grid {
            Some((start, step)) => Dimension { length: *length, start, step },
            None => Dimension::with_default_grid(*length),
        });
    }
    Ok((pad_dimensions(dimensions), losses))
}

/// Start and step of the coordinate array `id`; `None` if it is not real, has another length than
/// `length`, or is not uniform.
fn uniform_grid(content: &Dataset, id: NodeId, length: u64) -> Result<Option<(f64, f64)>> {
    let Some(desc) = content.tree().array(id) else { return Ok(None) };
    let real = matches!(desc.dtype.kind(), Kind::Float | Kind::Int | Kind::UInt);
    let per_frame = spile_core::dataset::is_per_frame(content.tree(), desc);
    if desc.shape.lengths() != [length] || !real || per_frame {
        return Ok(None);
    }
    let points = content.array_at(id)?.values()?;
    Ok(Coord::spacing(&points).ok())
}
