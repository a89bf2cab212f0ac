//! Writing arrays in memory as new files.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyReadonlyArray1, PyUntypedArrayMethods as _};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use spile::Dataset;
use spile::dtype::DType;
use spile::error::Error;
use spile::format::WriteOptions;
use spile::frames::{Cells, FrameCell, Moments};
use spile::layout::{ArrayDesc, Coord, Layout};
use spile::limits::Limits;
use spile::shape::{Order, Shape};
use spile::source::Source;
use spile::tree::{NodeId, ROOT, Tree};

use crate::failure::{Failure, Result};
use crate::value;
use crate::verbs::How;

/// Elements in memory: NumPy type (little-endian), shape, bytes in C order.
#[derive(FromPyObject)]
pub(crate) struct Block<'py>(String, Vec<u64>, PyReadonlyArray1<'py, u8>);

/// A group or an array: path, elements (one block, or one per frame), dimension names, coordinate of
/// each dimension (a path, `(start, step)` or `None`), attributes.
#[derive(FromPyObject)]
pub(crate) struct Node<'py>(
    String,
    Option<Blocks<'py>>,
    Vec<String>,
    Vec<Option<Points>>,
    Bound<'py, PyDict>,
);

#[derive(FromPyObject)]
pub(crate) enum Blocks<'py> {
    One(Block<'py>),
    Frames(Vec<Option<Block<'py>>>),
}

#[derive(FromPyObject)]
pub(crate) enum Points {
    Path(String),
    Uniform(f64, f64),
}

impl Block<'_> {
    pub(crate) fn cell(&self) -> Result<(DType, FrameCell)> {
        let dtype = DType::from_numpy(&self.0)
            .ok_or_else(|| Error::argument(format!("cannot write elements of type {}", self.0)))?;
        let shape = Shape::new(self.1.clone());
        if shape.bytes(dtype.size())? != self.2.len() as u64 {
            return Err(Error::argument("the number of bytes does not match type and shape").into());
        }
        let bytes = self.2.as_slice().map_err(PyErr::from)?;
        Ok((dtype, FrameCell { shape, layout: Layout::Inline(Arc::from(bytes), Order::C) }))
    }
}

impl Node<'_> {
    fn array(&self) -> Result<Option<ArrayDesc>> {
        let (dtype, shape, layout) = match &self.1 {
            None => return Ok(None),
            Some(Blocks::One(block)) => {
                let (dtype, cell) = block.cell()?;
                (dtype, cell.shape, cell.layout)
            }
            Some(Blocks::Frames(blocks)) => {
                let cells = blocks.iter().map(|b| b.as_ref().map(Block::cell).transpose());
                let cells = cells.collect::<Result<Vec<_>>>()?;
                let Some((dtype, first)) = cells.iter().flatten().next().cloned() else {
                    return Err(Error::argument("no frame contains the array").into());
                };
                if cells.iter().flatten().any(|(other, _)| *other != dtype) {
                    return Err(
                        Error::argument("an array must have the same type in all frames").into()
                    );
                }
                let cells = cells.into_iter().map(|cell| cell.map(|(_, cell)| cell)).collect();
                (dtype, first.shape, Layout::PerFrame(Arc::new(Cells(cells))))
            }
        };
        let mut desc = ArrayDesc::new(dtype, shape, layout);
        for (k, name) in self.2.iter().enumerate().take(desc.dims.len()) {
            desc.dims[k].clone_from(name);
        }
        Ok(Some(desc))
    }
}

/// Writes a tree of arrays as a new file. Returns the JSON document of `spile convert`.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Called with keywords.
#[pyo3(signature = (path, nodes, attrs, moments, *, to, overwrite, strict))]
pub(crate) fn write(
    py: Python<'_>,
    path: PathBuf,
    nodes: Vec<Node<'_>>,
    attrs: &Bound<'_, PyDict>,
    moments: Option<Vec<(Option<u64>, Option<f64>)>>,
    to: Option<String>,
    overwrite: bool,
    strict: bool,
) -> Result<String> {
    let limits = Limits::default();
    let mut tree = Tree::new(&limits);
    tree.node_mut(ROOT).attrs = value::to_attrs(attrs)?;
    let mut added: Vec<(NodeId, &Node<'_>)> = Vec::with_capacity(nodes.len());
    for node in &nodes {
        let id = match node.array().map_err(|e| named(e, &node.0))? {
            None => tree.group_at(&node.0)?,
            Some(desc) => {
                let (group, name) = node.0.rsplit_once('/').unwrap_or(("", &node.0));
                let parent = tree.group_at(group)?;
                tree.add_array(parent, name, desc)?
            }
        };
        tree.node_mut(id).attrs = value::to_attrs(&node.4)?;
        added.push((id, node));
    }
    // A coordinate can be an array that comes later.
    for (id, node) in added {
        for (k, points) in node.3.iter().enumerate() {
            let coord = match points {
                None => Coord::None,
                Some(Points::Uniform(start, step)) => Coord::Uniform { start: *start, step: *step },
                Some(Points::Path(path)) => Coord::Node(tree.find(path)?),
            };
            if let Some(slot) =
                tree.node_mut(id).array.as_mut().and_then(|array| array.coords.get_mut(k))
            {
                *slot = coord;
            }
        }
    }
    if let Some(moments) = moments {
        tree.set_frames(Arc::new(Moments(moments)));
    }
    let content = Dataset::new(Source::memory(Vec::new()), tree);
    let options = WriteOptions::default();
    let how = How { to, dry_run: false, strict, verify: false, overwrite, options };
    Ok(py.detach(|| how.convert(&content, &path))?)
}

fn named(failure: Failure, path: &str) -> Failure {
    match failure {
        Failure::Spile(error) => error.in_object(format!("\"{path}\"")).into(),
        other @ Failure::Python(_) => other,
    }
}
