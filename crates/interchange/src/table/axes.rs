//! Columns of coordinates.

use spile_core::Dataset;
use spile_core::dataset::is_per_frame;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::layout::{ArrayDesc, Coord};
use spile_core::read::Axes;
use spile_core::semantics::Role;
use spile_core::tree::Tree;

use super::{Column, FRAME_COLUMNS, Piece, read_rows, table_dtype};

/// A column with the coordinate of a dimension, or with its index.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Name of the column.
    pub name: String,
    /// Unit of the points.
    pub units: Option<String>,
    /// The coordinate; `None` if the points are indices.
    pub coord: Coord,
    /// The dimension.
    pub dim: usize,
    /// Number of points.
    pub len: u64,
    /// Type of the points.
    pub dtype: DType,
}

impl Axis {
    /// The axis of dimension `dim` of an array.
    fn new(tree: &Tree, column: &Column<'_>, dim: usize, fits: &dyn Fn(DType) -> bool) -> Self {
        let array = column.array;
        let mut coord = array.coords[dim].clone();
        let name = match coord.node() {
            // The dimension of points has the name of the species.
            Some(id) if array.semantics().point_set.is_some() => tree.node(id).name.clone(),
            _ => array.dims[dim].clone(),
        };
        let len = array.shape.lengths().get(dim).copied().unwrap_or(0);
        let units = match coord.node() {
            Some(id) => tree.node(id).attrs.get_str("units"),
            None => column.node.attrs.get_str(&format!("{name}_units")),
        };
        let units = units.filter(|units| !units.is_empty()).map(Into::into);
        let dtype = match &coord {
            Coord::None => DType::I64,
            Coord::Uniform { .. } => DType::F64,
            Coord::Node(id) => {
                let own = tree.node(*id).array.as_ref().and_then(|own| tree.resolve(own).ok());
                let fits = |own: &&ArrayDesc| {
                    own.shape.lengths() == [len] && own.ragged().is_none() && fits(table_dtype(own))
                };
                if let Some(own) = own.filter(fits) {
                    table_dtype(own)
                } else {
                    coord = Coord::None;
                    DType::I64
                }
            }
        };
        Self { name, units, coord, dim, len, dtype }
    }

    /// Whether the points may increase or decrease. Those of an array are known only when they are read.
    pub fn may_be_ordered(&self) -> bool {
        self.len > 1
            && match self.coord {
                Coord::Uniform { start, step } => {
                    let end = start + (self.len - 1) as f64 * step;
                    let largest = start.abs().max(end.abs());
                    end.is_finite() && step.abs() > 2.0 * largest * f64::EPSILON
                }
                Coord::None | Coord::Node(_) => true,
            }
    }

    /// The little-endian points of these indices.
    pub(super) fn read(
        &self,
        content: &Dataset,
        range: &Piece,
        code: &'static str,
    ) -> Result<Vec<u8>> {
        let indices = range.first..range.first + range.rows;
        Ok(match self.coord {
            Coord::None => indices.flat_map(u64::to_le_bytes).collect(),
            Coord::Uniform { start, step } => {
                indices.flat_map(|k| (start + k as f64 * step).to_le_bytes()).collect()
            }
            Coord::Node(id) => {
                let path = || format!("\"{}\"", content.tree().node(id).path);
                let array = content.array_in_frame(id, range.frame.unwrap_or(0))?;
                let fits = |array: &spile_core::read::Array| {
                    array.shape().lengths().first().is_some_and(|len| *len >= indices.end)
                };
                let array = array.filter(fits).ok_or_else(|| {
                    let message = "a frame has no coordinates for its values";
                    Error::unsupported(code, message).in_object(path())
                })?;
                read_rows(&array, range, Axes::Stored).map_err(|e| e.in_object(path()))?
            }
        })
    }
}

/// The axes of a table.
pub(super) fn axes(
    tree: &Tree,
    columns: &[Column<'_>],
    long: bool,
    has_frames: bool,
    fits: &dyn Fn(DType) -> bool,
) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    let Some(first) = columns.first() else { return axes };
    if long {
        axes.extend((0..first.array.dims.len()).map(|dim| Axis::new(tree, first, dim, fits)));
    }
    for column in columns.iter().filter(|_| !long) {
        let array = column.array;
        if matches!(array.coords.first(), None | Some(Coord::None)) || array.dims[0].is_empty() {
            continue;
        }
        let mut axis = Axis::new(tree, column, 0, fits);
        if axis.coord == Coord::None || axes.iter().any(|own| own.coord == axis.coord) {
            continue;
        }
        if axes.iter().any(|own| own.name == axis.name) {
            axis.name = format!("{}_{}", column.node.name, axis.name);
        }
        axes.push(axis);
    }
    // Points of a frame are numbered: their rows are not those of the table.
    let numbered = |column: &&Column<'_>| {
        column.array.semantics().role == Role::Points
            && !column.array.dims.is_empty()
            && is_per_frame(tree, column.array)
    };
    if let Some(points) = columns.iter().find(numbered).filter(|_| has_frames && axes.is_empty()) {
        let axis = Axis::new(tree, points, 0, fits);
        let unnamed = axis.name == ArrayDesc::default_dims(1)[0];
        axes.push(Axis { name: if unnamed { "point".into() } else { axis.name.clone() }, ..axis });
    }
    // Names of frames and arrays are not repeated.
    for k in 0..axes.len() {
        let is_array = |name: &str| columns.iter().any(|column| column.node.path == name);
        let is_earlier = |name: &str| axes[..k].iter().any(|axis| axis.name == name);
        let is_frame =
            |name: &str| name == FRAME_COLUMNS[0] || (has_frames && FRAME_COLUMNS.contains(&name));
        let mut name = axes[k].name.replace('/', "_");
        while is_frame(&name) || is_array(&name) || is_earlier(&name) {
            name.push_str("_index");
        }
        axes[k].name = name;
    }
    axes
}
