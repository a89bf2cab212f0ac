//! Coordinate columns: which arrays are columns, which are coordinates of others, and the points of a row.

use spile_core::Dataset;
use spile_core::convert;
use spile_core::dtype::Kind;
use spile_core::error::Result;
use spile_core::layout::{ArrayDesc, Coord};
use spile_core::semantics::Role;
use spile_core::tree::{NodeId, Tree};
use spile_interchange::table::Column;

/// A column with the coordinate of a dimension, or with its index.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// Name of the column.
    pub(crate) name: String,
    pub(crate) units: Option<String>,
    pub(crate) coord: Coord,
    /// The dimension.
    pub(crate) dim: usize,
    pub(crate) len: u64,
}

impl Axis {
    /// The axis of dimension `dim` of an array.
    fn new(tree: &Tree, column: &Column<'_>, dim: usize) -> Self {
        let array = column.array;
        let (name, coord) = (array.dims[dim].clone(), array.coords[dim].clone());
        let units = match coord.node() {
            Some(id) => tree.node(id).attrs.get_str("units"),
            None => column.node.attrs.get_str(&format!("{name}_units")),
        };
        let units = units.filter(|units| !units.is_empty()).map(Into::into);
        let len = array.shape.lengths().get(dim).copied().unwrap_or(0);
        Self { name, units, coord, dim, len }
    }

    /// Whether reading takes the column for the coordinate of the rows: its points increase or decrease. Those of
    /// an array are known only when they are read.
    pub(crate) fn may_be_ordered(&self) -> bool {
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

    /// The fields of the points, in order.
    pub(crate) fn fields(&self, content: &Dataset, frame: u64) -> Result<Points> {
        Ok(match self.coord {
            Coord::None => Points::Index,
            Coord::Uniform { start, step } => Points::Uniform { start, step },
            Coord::Node(id) => {
                let Some(array) = content.array_in_frame(id, frame)? else {
                    return Ok(Points::Index);
                };
                let numbers = array.read_f64(
                    &spile_core::select::Selection::all(),
                    spile_core::read::Axes::Stored,
                )?;
                let whole =
                    matches!(array.dtype().kind(), Kind::Int | Kind::UInt) && array.map().is_none();
                Points::Listed { numbers, whole }
            }
        })
    }
}

/// The points of an axis.
#[derive(Clone, Debug)]
pub(crate) enum Points {
    Index,
    Uniform { start: f64, step: f64 },
    Listed { numbers: Vec<f64>, whole: bool },
}

impl Points {
    /// Appends point `k`; nothing if there is none.
    pub(crate) fn write(&self, k: u64, out: &mut String) {
        use std::fmt::Write as _;
        match self {
            Self::Index => {
                let _ = write!(out, "{k}");
            }
            Self::Uniform { start, step } => convert::write_f64(start + k as f64 * step, out),
            Self::Listed { numbers, whole } => match numbers.get(k as usize) {
                Some(number) if *whole => {
                    let _ = write!(out, "{number:.0}");
                }
                Some(number) => convert::write_f64(*number, out),
                None => {}
            },
        }
    }

    /// Whether the points increase, or decrease.
    pub(crate) fn are_ordered(&self) -> bool {
        let Self::Listed { numbers, .. } = self else { return true };
        let finite = numbers.iter().all(|number| number.is_finite());
        let rising = numbers.windows(2).all(|pair| pair[0] < pair[1]);
        finite && numbers.len() > 1 && (rising || numbers.windows(2).all(|pair| pair[0] > pair[1]))
    }
}

/// The axes of a table, and whether it has one row per element instead of one row per first index.
pub(crate) fn axes(tree: &Tree, columns: &[Column<'_>]) -> (Vec<Axis>, bool) {
    let Some(first) = columns.first() else { return (Vec::new(), false) };
    let rank = first.array.dims.len();
    let same = |column: &Column<'_>| {
        let (own, other) = (first.array, column.array);
        (&own.dims, &own.coords) == (&other.dims, &other.coords)
            && own.shape.lengths().get(1..) == other.shape.lengths().get(1..)
    };
    // Columns without a name are those of a waveform, also with a uniform coordinate.
    let unnamed = ArrayDesc::default_dims(rank);
    let is_field = |array: &ArrayDesc| {
        let is_trace = array.semantics().role == Role::Trace && array.dims[1..] != unnamed[1..];
        array.semantics().role == Role::Field
            || is_trace
            || array.coords[1..].iter().any(|coord| coord.node().is_some())
    };
    let long = rank > 1 && columns.iter().all(same) && columns.iter().any(|c| is_field(c.array));
    let mut axes: Vec<Axis> = Vec::new();
    if long {
        axes.extend((0..rank).map(|dim| Axis::new(tree, first, dim)));
    } else {
        for column in columns {
            let array = column.array;
            if matches!(array.coords.first(), None | Some(Coord::None)) || array.dims[0].is_empty()
            {
                continue;
            }
            let mut axis = Axis::new(tree, column, 0);
            if axes.iter().any(|own| own.coord == axis.coord) {
                continue;
            }
            if axes.iter().any(|own| own.name == axis.name) {
                axis.name = format!("{}_{}", column.node.name, axis.name);
            }
            axes.push(axis);
        }
    }
    // Names that reading takes for something else, and those of arrays.
    for k in 0..axes.len() {
        let is_array = |name: &str| columns.iter().any(|column| column.node.path == name);
        let is_earlier = |name: &str| axes[..k].iter().any(|axis| axis.name == name);
        let mut name = axes[k].name.replace('/', "_");
        while name == "frame" || is_array(&name) || is_earlier(&name) {
            name.push_str("_index");
        }
        axes[k].name = name;
    }
    (axes, long)
}

/// Why an array is not a column: it is the coordinate of others, or the mesh of arrays with another number of
/// rows. `None` if it is a column.
pub(crate) fn not_a_column(tree: &Tree) -> impl Fn(NodeId) -> Option<&'static str> {
    let used: Vec<NodeId> = tree
        .arrays()
        .flat_map(|(_, _, array)| array.coords.iter().filter_map(Coord::node))
        .collect();
    let is_mesh = |id: NodeId| {
        tree.node(id).array.as_ref().is_some_and(|array| array.semantics().role == Role::Mesh)
    };
    let data: Vec<NodeId> =
        tree.arrays().map(|(id, ..)| id).filter(|id| !used.contains(id) && !is_mesh(*id)).collect();
    let lengths = |id: NodeId| {
        let array = tree.node(id).array.as_ref()?;
        Some(tree.resolve(array).ok()?.shape.lengths().to_vec())
    };
    let rows = data.first().and_then(|id| lengths(*id));
    let mut reasons = vec![None; tree.len() + 1];
    for (id, ..) in tree.arrays() {
        // Only coordinates of data are columns of coordinates.
        let is_used = |other: &NodeId| {
            let array = tree.node(*other).array.as_ref();
            array.is_some_and(|array| array.coords.contains(&Coord::Node(id)))
        };
        let own = lengths(id);
        reasons[id.index()] = if data.is_empty() || data.contains(&id) {
            None
        } else if data.iter().any(is_used) {
            Some("it is a column of coordinates")
        } else if is_mesh(id)
            && (own.as_ref().map(Vec::len) != rows.as_ref().map(Vec::len)
                || own.as_ref().and_then(|l| l.first()) != rows.as_ref().and_then(|l| l.first()))
        {
            Some("the mesh is no column of a table of its fields")
        } else {
            None
        };
    }
    move |id| reasons[id.index()]
}

/// Whether arrays have coordinates of their own, so that column `name` is not the coordinate of all: `C2_time`.
pub(crate) fn is_one_of_several<'a>(name: &str, others: impl Iterator<Item = &'a str>) -> bool {
    let mut others = others.filter_map(|other| other.strip_suffix(name));
    others.any(|stem| stem.ends_with('_'))
}
