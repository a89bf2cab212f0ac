//! Arrangement of points and cells as `.vtu` or `.vtp`.

use std::fmt::Write as _;

use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::tree::NodeId;

use super::find_points::{Cells, PointSet, Points};
use super::plan::shape_attribute;
use super::{Item, Kind, Plan, Snapshot, Values, unsupported};

/// VTK cell types.
const VERTEX: u8 = 1;
const TRIANGLE: u8 = 5;
const POLYGON: u8 = 7;
const QUAD: u8 = 9;

impl Snapshot<'_> {
    /// Plans a file with a point set.
    pub(super) fn points_plan(&self, kind: Kind, set: &PointSet) -> Result<Plan> {
        let mut plan = Plan { kind, ..Plan::default() };
        let points = self.points(set, &mut plan)?;
        let count = points.tuples;
        plan.items.push(points);
        let cells = self.cells(set, count, &mut plan)?;
        for (section, ids, rows) in
            [("PointData", &set.on_points, count), ("CellData", &set.on_cells, cells)]
        {
            let mut items = Vec::new();
            for id in ids {
                if let Some(item) = self.item(section, *id, None)?
                    && item.tuples == rows
                {
                    items.push((*id, item));
                }
            }
            self.push_vectors(items, &mut plan);
        }
        let numbers = std::mem::take(&mut plan.piece);
        plan.piece = format!(" NumberOfPoints=\"{count}\"{numbers}");
        Ok(plan)
    }

    fn points(&self, set: &PointSet, plan: &mut Plan) -> Result<Item> {
        match &set.points {
            Points::Array(id) => {
                let item = self.item("Points", *id, None)?;
                let mut item = item.ok_or_else(|| self.absent(*id))?;
                plan.written.push((*id, item.dtype));
                if item.components == 2 {
                    // VTK requires three components; the array of two is written in addition.
                    plan.items.extend(self.item("PointData", *id, None)?);
                    let values = Values::Points(vec![(*id, Some(0)), (*id, Some(1))]);
                    item = Item { values, components: 3, ..item };
                    item.attributes.clear();
                    plan.generated.push("Points".into());
                }
                Ok(item)
            }
            Points::Columns(ids) => self.columns(ids, plan),
        }
    }

    /// Points from one array per axis.
    pub(super) fn columns(&self, ids: &[NodeId], plan: &mut Plan) -> Result<Item> {
        let found = ids.iter().map(|id| self.find(*id)?.ok_or_else(|| self.absent(*id)));
        let found = found.collect::<Result<Vec<_>>>()?;
        let count = found.first().and_then(|first| first.shape.count()).unwrap_or(0);
        let dtype = found.first().map_or(DType::F64, |first| first.dtype);
        let alike =
            matches!(dtype, DType::F32 | DType::F64) && found.iter().all(|own| own.dtype == dtype);
        let dtype = if alike { dtype } else { DType::F64 };
        let names: Vec<&str> = ids.iter().map(|id| self.tree().node(*id).path.as_str()).collect();
        let values = Values::Points(ids.iter().map(|id| (*id, None)).collect());
        let mut item = Item::generated("Points", "Points", dtype, count, values);
        item.components = 3;
        item.attributes = vec![("Columns", names.join("\n"))];
        if let Some(first) = found.first().filter(|first| first.shape.rank() > 1) {
            item.attributes.push(shape_attribute(&first.shape, first.order));
        }
        item.units = self.units(ids[0]);
        plan.written.extend(ids.iter().map(|id| (*id, dtype)));
        Ok(item)
    }

    /// Adds the cells. Returns their number.
    fn cells(&self, set: &PointSet, points: u64, plan: &mut Plan) -> Result<u64> {
        let poly = plan.kind == Kind::Poly;
        let (section, count, corners, cell) = match &set.cells {
            Cells::Vertices => (if poly { "Verts" } else { "Cells" }, points, 1, VERTEX),
            Cells::Faces(id) => {
                let found = self.find(*id)?.ok_or_else(|| unsupported("surface without faces"))?;
                let [count, corners] = *found.shape.lengths() else {
                    return Err(unsupported("expected faces of two dimensions"));
                };
                let cell = match corners {
                    3 => TRIANGLE,
                    4 => QUAD,
                    _ => POLYGON,
                };
                (if poly { "Polys" } else { "Cells" }, count, corners, cell)
            }
            Cells::Native(sections) => return self.native(sections, plan),
        };
        if let Cells::Faces(id) = &set.cells {
            let item = self
                .item(section, *id, None)?
                .ok_or_else(|| unsupported("surface without faces"))?;
            plan.written.push((*id, item.dtype));
            // VTK has one component per corner.
            let all = item.tuples.saturating_mul(item.components);
            let name = "connectivity".to_string();
            plan.items.push(Item { name, components: 1, tuples: all, ..item });
        } else {
            let all = Values::Uniform { start: 0.0, step: 1.0 };
            plan.items.push(Item::generated(section, "connectivity", DType::I64, points, all));
            plan.generated.push(format!("{section}/connectivity"));
        }
        let ends = Values::Uniform { start: corners as f64, step: corners as f64 };
        plan.items.push(Item::generated(section, "offsets", DType::I64, count, ends));
        plan.generated.push(format!("{section}/offsets"));
        if poly {
            let name = if section == "Verts" { "Verts" } else { "Polys" };
            let _ = write!(plan.piece, " NumberOf{name}=\"{count}\"");
        } else {
            let types = Values::Uniform { start: cell.into(), step: 0.0 };
            plan.items.push(Item::generated(section, "types", DType::U8, count, types));
            plan.generated.push(format!("{section}/types"));
            let _ = write!(plan.piece, " NumberOfCells=\"{count}\"");
        }
        Ok(count)
    }

    /// Adds the cells of a tree that was read from a VTK file.
    fn native(&self, sections: &[(&'static str, Vec<NodeId>)], plan: &mut Plan) -> Result<u64> {
        let mut count = 0_u64;
        for (section, ids) in sections {
            if (*section == "Cells") == (plan.kind == Kind::Poly) {
                let ending = if *section == "Cells" { ".vtu" } else { ".vtp" };
                let message = format!("section {section} requires {ending}");
                return Err(unsupported(message).hint(format!("write {ending}")));
            }
            for id in ids {
                let Some(mut item) = self.item(section, *id, None)? else { continue };
                item.name.clone_from(&self.tree().node(*id).name);
                if item.name == "offsets" {
                    count = count.saturating_add(item.tuples);
                    let _ = write!(plan.piece, " NumberOf{section}=\"{}\"", item.tuples);
                }
                plan.push(*id, item);
            }
        }
        Ok(count)
    }
}
