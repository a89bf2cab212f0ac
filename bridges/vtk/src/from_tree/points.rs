//! The file of points, and of what connects them.

use std::fmt::Write as _;

use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::read::Array;
use spile_core::tree::NodeId;
use spile_core::wire::ByteOrder;

use crate::cloud::{self, Cells, Cloud, Points};
use crate::write::{Form, Item, Kind, Moment, Numbers, Plan, unfit};
use crate::xml::escape;

/// VTK's numbers of cell types.
const VERTEX: u8 = 1;
const TRIANGLE: u8 = 5;
const POLYGON: u8 = 7;
const QUAD: u8 = 9;

impl Moment<'_> {
    pub(crate) fn on_points(&self, kind: Kind) -> Result<Plan> {
        let cloud = cloud::find(self.tree()).ok_or_else(|| {
            unfit(
                "there are no points: no array called position of two or three numbers each, no \
                   particles",
            )
            .hint("grids are written as .vti or .vtr")
        })?;
        let mut plan = Plan {
            kind,
            grid: String::new(),
            piece: String::new(),
            items: Vec::new(),
            made: Vec::new(),
            taken: Vec::new(),
        };
        let points = self.points(&cloud, &mut plan)?;
        let count = points.tuples;
        plan.items.push(points);
        let cells = self.cells(&cloud, count, &mut plan)?;
        for (section, ids, rows) in
            [("PointData", &cloud.on_points, count), ("CellData", &cloud.on_cells, cells)]
        {
            for id in ids {
                if let Some(item) = self.item(section, *id, Form::Rows)?
                    && item.tuples == rows
                {
                    plan.items.push(item);
                    plan.taken.push(*id);
                }
            }
        }
        let numbers = std::mem::take(&mut plan.piece);
        plan.piece = format!(" NumberOfPoints=\"{count}\"{numbers}");
        Ok(plan)
    }

    fn points(&self, cloud: &Cloud, plan: &mut Plan) -> Result<Item> {
        match &cloud.points {
            Points::Whole(id) => {
                let path = self.tree().node(*id).path.clone();
                let nothing = || unfit(format!("\"{path}\" is not in this frame"));
                let mut item = self.item("Points", *id, Form::Rows)?.ok_or_else(nothing)?;
                plan.taken.push(*id);
                if item.components == 2
                    && let Numbers::Array(array) = item.numbers
                {
                    // VTK has three directions; the tree gets its two back from another array.
                    plan.items.extend(self.item("PointData", *id, Form::Rows)?);
                    item = Item { numbers: Numbers::Flat(array), components: 3, ..item };
                    item.more.clear();
                    plan.made.push("Points".into());
                }
                Ok(item)
            }
            Points::Columns(ids) => {
                let mut arrays = Vec::new();
                for id in ids {
                    let path = &self.tree().node(*id).path;
                    let array = self.open(*id)?;
                    arrays.push(array.ok_or_else(|| unfit(format!("\"{path}\" is not here")))?);
                }
                let count = arrays.first().and_then(|array| array.shape().count()).unwrap_or(0);
                let one = |array: &Array| {
                    let dtype = array.dtype().with_order(ByteOrder::Little);
                    if array.map().is_none() { dtype } else { DType::F64 }
                };
                let dtype = arrays.first().map_or(DType::F64, one);
                let alike = matches!(dtype, DType::F32 | DType::F64)
                    && arrays.iter().all(|array| one(array) == dtype);
                let dtype = if alike { dtype } else { DType::F64 };
                let names: Vec<&str> =
                    ids.iter().map(|id| self.tree().node(*id).path.as_str()).collect();
                let numbers = Numbers::Columns(arrays);
                let mut item = Item::made("Points", "Points", dtype, count, numbers);
                item.components = 3;
                item.more = format!(" Columns=\"{}\"", escape(&names.join("\n")));
                plan.taken.extend(ids);
                Ok(item)
            }
        }
    }

    /// What connects the points; the number of cells.
    fn cells(&self, cloud: &Cloud, points: u64, plan: &mut Plan) -> Result<u64> {
        let poly = plan.kind == Kind::Poly;
        let (section, count, corners, cell) = match &cloud.cells {
            Cells::Each => (if poly { "Verts" } else { "Cells" }, points, 1, VERTEX),
            Cells::Faces(id) => {
                let array = self.open(*id)?.ok_or_else(|| unfit("a surface without faces"))?;
                let [count, corners] = *array.shape().lengths() else {
                    return Err(unfit("faces that are no list of corners"));
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
        if let Cells::Faces(id) = &cloud.cells {
            plan.taken.push(*id);
            let item = self.item(section, *id, Form::Rows)?.ok_or_else(|| unfit("no faces"))?;
            // One corner an element: VTK has no tuples here.
            let all = item.tuples.saturating_mul(item.components);
            let name = "connectivity".to_string();
            plan.items.push(Item { name, components: 1, tuples: all, ..item });
        } else {
            let all = Numbers::Steps { first: 0, step: 1 };
            plan.items.push(Item::made(section, "connectivity", DType::I64, points, all));
            plan.made.push(format!("{section}/connectivity"));
        }
        let ends = Numbers::Steps { first: corners, step: corners };
        plan.items.push(Item::made(section, "offsets", DType::I64, count, ends));
        plan.made.push(format!("{section}/offsets"));
        if poly {
            let word = if section == "Verts" { "Verts" } else { "Polys" };
            let _ = write!(plan.piece, " NumberOf{word}=\"{count}\"");
        } else {
            let types = Numbers::Fill(cell);
            plan.items.push(Item::made(section, "types", DType::U8, count, types));
            plan.made.push(format!("{section}/types"));
            let _ = write!(plan.piece, " NumberOfCells=\"{count}\"");
        }
        Ok(count)
    }

    fn native(&self, sections: &[(&'static str, Vec<NodeId>)], plan: &mut Plan) -> Result<u64> {
        let mut count = 0_u64;
        for (section, ids) in sections {
            if (*section == "Cells") == (plan.kind == Kind::Poly) {
                let word = if *section == "Cells" { ".vtu" } else { ".vtp" };
                return Err(
                    unfit(format!("cells as {word} has them")).hint(format!("write {word}"))
                );
            }
            for id in ids {
                let Some(item) = self.item(section, *id, Form::Rows)? else { continue };
                if item.name == "offsets" {
                    count = count.saturating_add(item.tuples);
                    let _ = write!(plan.piece, " NumberOf{section}=\"{}\"", item.tuples);
                }
                plan.items.push(item);
                plan.taken.push(*id);
            }
        }
        Ok(count)
    }
}
