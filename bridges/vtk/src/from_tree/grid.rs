//! The file of a grid.

use std::fmt::Write as _;

use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::tree::{NodeId, Value};

use crate::grid::{self, Axis, Grid, Line};
use crate::read::LETTERS;
use crate::write::{Form, Item, Kind, Moment, Numbers, Plan, unfit};

/// Steps of an axis may differ by this part of its length and still be called even: coordinates of
/// four bytes do.
const EVEN: f64 = 1e-6;

impl Moment<'_> {
    pub(crate) fn on_grid(&self, kind: Kind) -> Result<Plan> {
        let grid = grid::find(self.tree()).ok_or_else(|| {
            unfit("no array of one to three dimensions lies on a grid")
                .hint("points are written as .vtu or .vtp")
        })?;
        let Grid { mut axes, points, cells } = grid;
        // In a frame, lengths may be others.
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
        let mut plan = Plan {
            kind,
            grid: format!(" WholeExtent=\"{extent}\""),
            piece: format!(" Extent=\"{extent}\""),
            items: Vec::new(),
            made: Vec::new(),
            taken: Vec::new(),
        };
        if kind == Kind::Image {
            let lines = axes.iter().map(|axis| self.even(axis)).collect::<Result<Vec<_>>>()?;
            let text = |of: &dyn Fn(&(f64, f64)) -> f64, or: f64| {
                let rest = std::iter::repeat_n(or, 3 - lines.len());
                let all = lines.iter().map(of).chain(rest);
                all.map(|v| Value::Float(v).to_string()).collect::<Vec<_>>().join(" ")
            };
            let (origin, spacing) = (text(&|line| line.0, 0.0), text(&|line| line.1, 1.0));
            let _ = write!(plan.grid, " Origin=\"{origin}\" Spacing=\"{spacing}\"");
        } else {
            self.lines(&axes, &mut plan)?;
        }
        let count = |shorter: u64| -> Option<u64> {
            let along = |axis: &Axis| {
                if axis.points == 1 { 1 } else { axis.points.saturating_sub(shorter) }
            };
            axes.iter().map(along).try_fold(1_u64, u64::checked_mul)
        };
        for (section, ids, shorter) in [("PointData", points, 0), ("CellData", cells, 1)] {
            for id in ids {
                if let Some(item) = self.item(section, id, self.form(id)?)?
                    && Some(item.tuples) == count(shorter)
                {
                    plan.items.push(item);
                    plan.taken.push(id);
                }
            }
        }
        Ok(plan)
    }

    /// Lengths along the axes of the first of some arrays that the frame has.
    fn lengths(&self, ids: &[NodeId]) -> Result<Option<Vec<u64>>> {
        for id in ids {
            if let (Some(array), Some(desc)) = (self.open(*id)?, &self.tree().node(*id).array) {
                let (dims, _) = axes(desc, &array);
                return Ok(Some(dims.iter().map(|dim| array.shape().lengths()[*dim]).collect()));
            }
        }
        Ok(None)
    }

    fn form(&self, id: NodeId) -> Result<Form> {
        let (array, desc) = (self.open(id)?, &self.tree().node(id).array);
        let both = array.zip(desc.as_ref());
        Ok(Form::Grid(both.map_or(1, |(array, desc)| axes(desc, &array).1)))
    }

    /// First point and distance of an axis that is evenly spaced.
    fn even(&self, axis: &Axis) -> Result<(f64, f64)> {
        let id = match axis.line {
            Line::Index => return Ok((0.0, 1.0)),
            Line::Uniform { start, step } => return Ok((start, step)),
            Line::Nodes(id) => id,
        };
        let Some(array) = self.open(id)? else { return Ok((0.0, 1.0)) };
        let points = array.read_f64(&Selection::all(), Axes::Stored)?;
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return Ok((0.0, 1.0));
        };
        let step = (last - first) / (points.len().max(2) - 1) as f64;
        let off = |(k, x): (usize, &f64)| (first + k as f64 * step - x).abs();
        let worst = points.iter().enumerate().map(off).fold(0.0, f64::max);
        // Not even numbers are never near enough.
        if worst <= EVEN * (last - first).abs() {
            return Ok((*first, step));
        }
        let path = &self.tree().node(id).path;
        Err(unfit(format!("the points of \"{path}\" are not evenly spaced"))
            .hint("write .vtr, which keeps them all"))
    }

    /// The coordinates of a rectilinear grid.
    fn lines(&self, axes: &[Axis], plan: &mut Plan) -> Result<()> {
        for (axis, letter) in LETTERS.into_iter().enumerate() {
            let section = "Coordinates";
            let zero = Item::made(section, letter, DType::F64, 1, Numbers::Value(0.0));
            plan.items.push(match axes.get(axis) {
                None => zero,
                Some(Axis { line: Line::Nodes(id), points }) => {
                    let item = self.item(section, *id, Form::Line)?;
                    let item = item.filter(|item| item.tuples == *points);
                    plan.taken.push(*id);
                    item.ok_or_else(|| {
                        unfit(format!("\"{}\" has no points here", self.tree().node(*id).path))
                    })?
                }
                Some(Axis { line, points }) => {
                    // Counted or evenly spaced: the description says so, the file has all points.
                    let (start, step) = match line {
                        Line::Uniform { start, step } => (*start, *step),
                        _ => (0.0, 1.0),
                    };
                    let at = |k: u64| start + k as f64 * step;
                    self.limits.allow(points.saturating_mul(8), "the points of an axis")?;
                    let values: Vec<u8> = (0..*points).flat_map(|k| at(k).to_le_bytes()).collect();
                    let layout = Layout::Inline(values.into(), Order::C);
                    let desc = ArrayDesc::new(DType::F64, Shape::new([*points]), layout);
                    let (source, tree) = (self.content.source(), self.tree());
                    let array = Box::new(Array::open(source, tree, &desc, self.limits)?);
                    let path = format!("{section}/{letter}");
                    plan.made.extend([format!("{path}_mid"), path]);
                    Item::made(section, letter, DType::F64, *points, Numbers::Array(array))
                }
            });
        }
        Ok(())
    }
}

/// The dimensions of an array that are axes, and its components; only the frame knows its order.
fn axes(desc: &ArrayDesc, array: &Array) -> (Vec<usize>, u64) {
    let layout = Layout::Inline([].into(), array.order());
    grid::axes(&ArrayDesc { layout, shape: array.shape().clone(), ..desc.clone() })
}
