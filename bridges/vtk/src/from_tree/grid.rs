//! Arrangement of a grid as `.vti`, `.vtr` or `.vts`.

use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::tree::{NodeId, Value};

use super::find_grid::{self, Axis, AxisCoord, Grid, Position};
use super::plan::Found;
use super::{Item, Kind, Plan, Snapshot, Values, unsupported};
use crate::to_tree::AXIS_NAMES;

/// Largest deviation from a uniform axis, as a fraction of its length; float32 coordinates need it.
const TOLERANCE: f64 = 1e-6;

impl Snapshot<'_> {
    /// Plans a file with a grid.
    pub(super) fn grid_plan(&self, kind: Kind, grid: &Grid) -> Result<Plan> {
        let Grid { axes, points, cells, .. } = grid;
        let mut lengths: Vec<u64> = axes.iter().map(|axis| axis.points).collect();
        lengths.resize(3, 1);
        let ends = lengths.iter().map(|n| format!("0 {}", i128::from(*n) - 1));
        let extent = ends.collect::<Vec<_>>().join(" ");
        let mut plan = Plan {
            kind,
            points: [lengths[0], lengths[1], lengths[2]],
            grid: format!(" WholeExtent=\"{extent}\""),
            piece: format!(" Extent=\"{extent}\""),
            ..Plan::default()
        };
        match kind {
            Kind::Image => plan.axes.clone_from(axes),
            Kind::Structured => self.positions(grid, &mut plan)?,
            _ => self.coordinates(axes, &mut plan)?,
        }
        let count = |shorter: u64| -> Option<u64> {
            let along = |axis: &Axis| {
                if axis.points == 1 { 1 } else { axis.points.saturating_sub(shorter) }
            };
            axes.iter().map(along).try_fold(1_u64, u64::checked_mul)
        };
        for (section, ids, shorter) in [("PointData", points, 0), ("CellData", cells, 1)] {
            let mut items = Vec::new();
            for id in ids {
                if let Some(item) = self.item(section, *id, Some(self.components(*id)?))?
                    && Some(item.tuples) == count(shorter)
                {
                    items.push((*id, item));
                }
            }
            self.push_vectors(items, &mut plan);
        }
        Ok(plan)
    }

    /// Adds the points of a curvilinear grid.
    fn positions(&self, grid: &Grid, plan: &mut Plan) -> Result<()> {
        let count = grid.axes.iter().try_fold(1_u64, |all, axis| all.checked_mul(axis.points));
        let count = count.ok_or_else(|| unsupported("size of the grid overflows"))?;
        let item = match &grid.position {
            Position::Axes => return Err(unsupported("not a curvilinear grid")),
            Position::Lattice(cell) => {
                let mut axes = [(1, 0.0, 0.0); 3];
                for (to, axis) in axes.iter_mut().zip(&grid.axes) {
                    *to = match axis.coord {
                        AxisCoord::Uniform { start, step } => (axis.points, start, step),
                        _ => return Err(unsupported("coordinates on the cell are not uniform")),
                    };
                }
                plan.generated.push("Points".into());
                let values = Values::Lattice(axes, *cell);
                let item = Item::generated("Points", "Points", DType::F64, count, values);
                Item { components: 3, ..item }
            }
            Position::Array(id) => {
                let item = self.item("Points", *id, Some(3))?.ok_or_else(|| self.absent(*id))?;
                plan.written.push((*id, item.dtype));
                item
            }
            Position::Columns(ids) => self.columns(ids, plan)?,
        };
        if item.tuples != count {
            return Err(unsupported("the mesh has another length in this frame"));
        }
        plan.items.push(item);
        Ok(())
    }

    /// Attributes of an image. Fails if an axis is not uniform.
    pub(super) fn origin_and_spacing(&self, axes: &[Axis]) -> Result<String> {
        let lines = axes.iter().map(|axis| self.uniform(axis)).collect::<Result<Vec<_>>>()?;
        let text = |of: &dyn Fn(&(f64, f64)) -> f64, or: f64| {
            let rest = std::iter::repeat_n(or, 3 - lines.len());
            let all = lines.iter().map(of).chain(rest);
            all.map(|v| Value::Float(v).to_string()).collect::<Vec<_>>().join(" ")
        };
        let (origin, spacing) = (text(&|line| line.0, 0.0), text(&|line| line.1, 1.0));
        Ok(format!(" Origin=\"{origin}\" Spacing=\"{spacing}\""))
    }

    fn components(&self, id: NodeId) -> Result<u64> {
        let both = self.find(id)?.zip(self.tree().node(id).array.as_ref());
        Ok(both.map_or(1, |(found, desc)| axes(desc, &found).1))
    }

    /// Start and step of an axis. Fails if it is not uniform.
    pub(crate) fn uniform(&self, axis: &Axis) -> Result<(f64, f64)> {
        let id = match axis.coord {
            AxisCoord::Index => return Ok((0.0, 1.0)),
            AxisCoord::Uniform { start, step } => return Ok((start, step)),
            AxisCoord::Nodes(id) => id,
        };
        let points: Vec<f64> = self.open(id)?.read(":")?;
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return Ok((0.0, 1.0));
        };
        let step = (last - first) / (points.len().max(2) - 1) as f64;
        let off = |(k, x): (usize, &f64)| (first + k as f64 * step - x).abs();
        let worst = points.iter().enumerate().map(off).fold(0.0, f64::max);
        // NaN is never within the tolerance.
        if worst <= TOLERANCE * (last - first).abs() {
            return Ok((*first, step));
        }
        let path = &self.tree().node(id).path;
        Err(unsupported(format!("coordinate \"{path}\" is not uniform"))
            .hint("write .vtr, which stores all coordinates"))
    }

    /// Adds the coordinates of a rectilinear grid.
    fn coordinates(&self, axes: &[Axis], plan: &mut Plan) -> Result<()> {
        for (axis, name) in AXIS_NAMES.into_iter().enumerate() {
            let section = "Coordinates";
            plan.items.push(match axes.get(axis) {
                None => {
                    let zero = Values::Uniform { start: 0.0, step: 0.0 };
                    Item::generated(section, name, DType::F64, 1, zero)
                }
                Some(Axis { coord: AxisCoord::Nodes(id), points }) => {
                    let item = self.item(section, *id, None)?;
                    let item = item.filter(|item| item.tuples == *points).ok_or_else(|| {
                        unsupported(format!(
                            "coordinate \"{}\" has another length in this frame",
                            self.tree().node(*id).path
                        ))
                    })?;
                    plan.nodes.insert(*id);
                    plan.written.push((*id, item.dtype));
                    item
                }
                Some(Axis { coord, points }) => {
                    // The metadata have start and step; the file has all points.
                    let (start, step) = match coord {
                        AxisCoord::Uniform { start, step } => (*start, *step),
                        _ => (0.0, 1.0),
                    };
                    let path = format!("{section}/{name}");
                    plan.generated.extend([format!("{path}_mid"), path]);
                    let values = Values::Uniform { start, step };
                    Item::generated(section, name, DType::F64, *points, values)
                }
            });
        }
        Ok(())
    }
}

/// The dimensions of an array in a frame that are axes, and its number of components.
fn axes(desc: &ArrayDesc, found: &Found) -> (Vec<usize>, u64) {
    let layout = Layout::Inline([].into(), found.order);
    find_grid::axes(&ArrayDesc { layout, shape: found.shape.clone(), ..desc.clone() })
}
