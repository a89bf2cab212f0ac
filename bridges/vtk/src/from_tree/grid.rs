//! Arrangement of a grid as `.vti` or `.vtr`.

use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::tree::{NodeId, Value};

use super::find_grid::{self, Axis, AxisCoord, Grid};
use super::{Components, Found, Item, Kind, Plan, Snapshot, Values, unsupported};
use crate::to_tree::AXIS_NAMES;

/// Largest deviation from a uniform axis, as a fraction of its length; float32 coordinates need it.
const TOLERANCE: f64 = 1e-6;

impl Snapshot<'_> {
    /// Plans a file with the largest grid of the tree.
    pub(super) fn grid_plan(&self, kind: Kind) -> Result<Plan> {
        let grid = find_grid::find(self.tree()).ok_or_else(|| {
            unsupported("no array of one to three dimensions on a grid")
                .hint("write points as .vtu or .vtp")
        })?;
        let Grid { mut axes, points, cells, .. } = grid;
        // Lengths may differ between frames.
        for (ids, more) in [(&points, 0), (&cells, 1)] {
            if let Some(lengths) = self.lengths(ids)? {
                for (axis, length) in axes.iter_mut().zip(lengths) {
                    axis.points = length.saturating_add(more);
                }
                break;
            }
        }
        let mut lengths: Vec<u64> = axes.iter().map(|axis| axis.points).collect();
        lengths.resize(3, 1);
        let ends = lengths.iter().map(|n| format!("0 {}", i128::from(*n) - 1));
        let extent = ends.collect::<Vec<_>>().join(" ");
        let mut plan = Plan::new(kind);
        plan.grid = format!(" WholeExtent=\"{extent}\"");
        plan.piece = format!(" Extent=\"{extent}\"");
        if kind == Kind::Image {
            plan.axes.clone_from(&axes);
        } else {
            self.coordinates(&axes, &mut plan)?;
        }
        let count = |shorter: u64| -> Option<u64> {
            let along = |axis: &Axis| {
                if axis.points == 1 { 1 } else { axis.points.saturating_sub(shorter) }
            };
            axes.iter().map(along).try_fold(1_u64, u64::checked_mul)
        };
        for (section, ids, shorter) in [("PointData", points, 0), ("CellData", cells, 1)] {
            for id in ids {
                if let Some(item) = self.item(section, id, self.components(id)?)?
                    && Some(item.tuples) == count(shorter)
                {
                    plan.push(id, item);
                }
            }
        }
        Ok(plan)
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

    /// Lengths along the axes of the first array that exists in the frame.
    fn lengths(&self, ids: &[NodeId]) -> Result<Option<Vec<u64>>> {
        for id in ids {
            if let (Some(found), Some(desc)) = (self.find(*id)?, &self.tree().node(*id).array) {
                let (dims, _) = axes(desc, &found);
                return Ok(Some(dims.iter().map(|dim| found.shape.lengths()[*dim]).collect()));
            }
        }
        Ok(None)
    }

    fn components(&self, id: NodeId) -> Result<Components> {
        let (found, desc) = (self.find(id)?, &self.tree().node(id).array);
        let both = found.zip(desc.as_ref());
        Ok(Components::Fastest(both.map_or(1, |(found, desc)| axes(desc, &found).1)))
    }

    /// Start and step of an axis. Fails if it is not uniform.
    fn uniform(&self, axis: &Axis) -> Result<(f64, f64)> {
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
            let zero = Item::generated(section, name, DType::F64, 1, Values::Value(0.0));
            plan.items.push(match axes.get(axis) {
                None => zero,
                Some(Axis { coord: AxisCoord::Nodes(id), points }) => {
                    let item = self.item(section, *id, Components::One)?;
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
