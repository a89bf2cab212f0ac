//! Writer of files: XML, then raw appended values.

use std::fmt::Write as _;

use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::read::{Array, Axes};
use spile_core::select::{Selection, Slice};
use spile_core::shape::{Order, Shape};
use spile_core::sink::Sink;
use spile_core::tree::NodeId;
use spile_core::wire::ByteOrder;

use crate::from_tree::{Item, Kind, Plan, Snapshot, Values};
use crate::wire::type_name;
use crate::xml::escape;

/// Tuples written at once.
const BATCH: usize = 32 << 10;

/// Bytes of an array that are interleaved with others at once.
const PART: u64 = 4 << 20;

/// Size of the length field before each array in bytes.
const LENGTH: u64 = 8;

/// Sections in file order.
const SECTIONS: [&str; 10] = [
    "FieldData",
    "PointData",
    "CellData",
    "Points",
    "Coordinates",
    "Cells",
    "Verts",
    "Lines",
    "Strips",
    "Polys",
];

/// Writes a file with arrays of `snapshot`, and `metadata` in a comment. `grid` are the attributes of the element of
/// the grid.
pub(crate) fn write(
    snapshot: &Snapshot<'_>,
    plan: &Plan,
    grid: &str,
    metadata: Option<&str>,
    sink: &Sink,
) -> Result<()> {
    let mut head = head(plan.kind.name(), metadata);
    let kind = plan.kind.name();
    let _ = writeln!(head, "  <{kind}{grid}>");
    let mut offset = 0_u64;
    let mut items_at: Vec<(u64, &Item)> = Vec::new();
    for name in SECTIONS {
        let items: Vec<&Item> = plan.items.iter().filter(|item| item.section == name).collect();
        let needed = match plan.kind {
            Kind::Image => matches!(name, "PointData" | "CellData"),
            Kind::Rectilinear => matches!(name, "PointData" | "CellData" | "Coordinates"),
            Kind::Structured => matches!(name, "PointData" | "CellData" | "Points"),
            Kind::Unstructured => matches!(name, "PointData" | "CellData" | "Points" | "Cells"),
            Kind::Poly => matches!(name, "PointData" | "CellData" | "Points"),
        };
        if !items.is_empty() || needed {
            let _ = writeln!(head, "      <{name}>");
            for item in items {
                tag(&mut head, item, &format!("appended\" offset=\"{offset}"));
                head.push_str(end_tag(item));
                items_at.push((offset, item));
                offset = offset.saturating_add(LENGTH).saturating_add(item.bytes()?);
            }
            let _ = writeln!(head, "      </{name}>");
        }
        if name == "FieldData" {
            let _ = writeln!(head, "    <Piece{}>", plan.piece);
        }
    }
    let _ = writeln!(head, "    </Piece>\n  </{kind}>");
    append(snapshot, head, &items_at, sink)
}

/// Writes a multiblock file: `list` are the elements of the blocks, `fields` field data.
pub(crate) fn write_blocks(
    snapshot: &Snapshot<'_>,
    list: &str,
    fields: &[Item],
    metadata: &str,
    sink: &Sink,
) -> Result<()> {
    let kind = "vtkMultiBlockDataSet";
    let mut head = head(kind, Some(metadata));
    let _ = write!(head, "  <{kind}>\n{list}  </{kind}>\n  <FieldData>\n");
    let (mut offset, mut items_at) = (0_u64, Vec::new());
    for item in fields {
        tag(&mut head, item, &format!("appended\" offset=\"{offset}"));
        head.push_str(end_tag(item));
        items_at.push((offset, item));
        offset = offset.saturating_add(LENGTH).saturating_add(item.bytes()?);
    }
    head.push_str("  </FieldData>\n");
    append(snapshot, head, &items_at, sink)
}

/// Writes `head`, and the arrays as appended data at their offsets.
fn append(
    snapshot: &Snapshot<'_>,
    mut head: String,
    items_at: &[(u64, &Item)],
    sink: &Sink,
) -> Result<()> {
    head.push_str("  <AppendedData encoding=\"raw\">\n   _");
    sink.write_all_at(0, head.as_bytes())?;
    let start = head.len() as u64;
    let mut end = start;
    for (offset, item) in items_at {
        let (at, bytes) = (start + offset, item.bytes()?);
        sink.write_all_at(at, &bytes.to_le_bytes())?;
        write_values(snapshot, item, sink, at + LENGTH)?;
        end = at + LENGTH + bytes;
    }
    sink.write_all_at(end, b"\n  </AppendedData>\n</VTKFile>\n")
}

/// The beginning of a file, up to the metadata.
pub(crate) fn head(kind: &str, metadata: Option<&str>) -> String {
    let mut head = format!(
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"{kind}\" version=\"1.0\" \
         byte_order=\"LittleEndian\" header_type=\"UInt64\">\n"
    );
    if let Some(metadata) = metadata {
        let _ = writeln!(head, "  <!-- spile {metadata} -->");
    }
    head
}

/// Appends the tag of an array and the text before its values.
pub(crate) fn tag(head: &mut String, item: &Item, format: &str) {
    let name = escape(&item.name);
    if matches!(item.values, Values::Texts(_)) {
        let _ = write!(head, "        <Array type=\"String\" Name=\"{name}\" Labels=\"1\"");
    } else {
        let kind = type_name(item.dtype).unwrap_or_default();
        let _ = write!(head, "        <DataArray type=\"{kind}\" Name=\"{name}\"");
    }
    if item.components != 1 {
        let _ = write!(head, " NumberOfComponents=\"{}\"", item.components);
    }
    if item.section == "FieldData" {
        let _ = write!(head, " NumberOfTuples=\"{}\"", item.tuples);
    }
    for (name, value) in &item.attributes {
        let _ = write!(head, " {name}=\"{}\"", escape(value));
    }
    let _ = write!(head, " format=\"{format}\">");
    if let Some(units) = &item.units {
        let key = "<InformationKey name=\"UNITS_LABEL\" location=\"vtkDataArray\">";
        let _ = write!(head, "\n          {key}{}</InformationKey>\n        ", escape(units));
    }
}

/// The end of an array.
pub(crate) fn end_tag(item: &Item) -> &'static str {
    if matches!(item.values, Values::Texts(_)) { "</Array>\n" } else { "</DataArray>\n" }
}

/// Writes the values of an array at byte `at`.
pub(crate) fn write_values(
    snapshot: &Snapshot<'_>,
    item: &Item,
    sink: &Sink,
    at: u64,
) -> Result<()> {
    let arrays = match &item.values {
        Values::Array(id, order) => return write_array(&snapshot.open(*id)?, *order, sink, at),
        Values::Points(axes) => {
            let open = |(id, component): &(NodeId, _)| Ok((snapshot.open(*id)?, *component));
            axes.iter().map(open).collect::<Result<Vec<(Array, Option<u64>)>>>()?
        }
        Values::Uniform { .. } => Vec::new(),
        Values::Interleaved(ids) => return write_interleaved(snapshot, ids, sink, at),
        Values::Lattice(axes, cell) => {
            return write_lattice(axes, &snapshot.cell(*cell)?, sink, at);
        }
        Values::Texts(texts) => {
            let bytes = texts.iter().flat_map(|text| [text.as_bytes(), b"\0"]);
            return sink.write_all_at(at, &bytes.collect::<Vec<_>>().concat());
        }
    };
    if let Some((first, _)) = arrays.first()
        && first.shape().rank() > 1
        && arrays.iter().all(|(_, component)| component.is_none())
    {
        return write_positions(&arrays, item, sink, at);
    }
    let mut bytes = Vec::new();
    for first in (0..item.tuples).step_by(BATCH) {
        let last = item.tuples.min(first + BATCH as u64);
        let mut numbers = vec![0.0; (last - first) as usize * item.components as usize];
        if let Values::Uniform { start, step } = item.values {
            let values = (first..last).map(|k| start + k as f64 * step);
            numbers.iter_mut().zip(values).for_each(|(number, value)| *number = value);
        }
        for (axis, (array, component)) in arrays.iter().enumerate() {
            let mut part = vec![Slice::range(first, last)];
            part.extend(component.map(|k| Slice::range(k, k + 1)));
            let column = array.read_f64(&Selection(part), Axes::Stored)?;
            let numbers = numbers.iter_mut().skip(axis).step_by(item.components as usize);
            numbers.zip(column).for_each(|(number, value)| *number = value);
        }
        convert::from_f64(item.dtype, None, &numbers, &mut bytes);
        sink.write_all_at(at + first * item.components * item.dtype.size() as u64, &bytes)?;
    }
    Ok(())
}

/// Writes the physical values of an array.
fn write_array(array: &Array, order: Order, sink: &Sink, at: u64) -> Result<()> {
    let stored = array.dtype().with_order(ByteOrder::Little);
    let selected = array.select(&Selection::all(), Axes::Order(order))?;
    let size = if array.map().is_some() { 8 } else { stored.size() as u64 };
    selected.for_each(|block, bytes| {
        let at = at + block.first * size;
        if array.map().is_none() {
            return sink.write_all_at(at, bytes);
        }
        let mut numbers = Vec::new();
        convert::to_physical(stored, array.map(), array.missing(), bytes, &mut numbers);
        sink.write_all_at(at, convert::little_bytes(&mut numbers))
    })
}

/// Calls `each` with the first row and the selection of parts of an array whose parts are contiguous in its element
/// order, and of about [`PART`] bytes.
fn for_parts(array: &Array, mut each: impl FnMut(u64, &Selection) -> Result<()>) -> Result<()> {
    let lengths = array.shape().lengths();
    let slowest = if array.order() == Order::C { 0 } else { lengths.len().saturating_sub(1) };
    let Some(rows) = lengths.get(slowest).copied() else { return each(0, &Selection::all()) };
    let mut others = lengths.to_vec();
    others.remove(slowest);
    let row = Shape::new(others).count().unwrap_or(u64::MAX);
    let bytes = row.saturating_mul(array.dtype().size() as u64).max(1);
    let batch = (PART / bytes).max(1);
    for first in (0..rows).step_by(usize::try_from(batch).unwrap_or(usize::MAX)) {
        let mut part: Vec<Slice> = lengths.iter().map(|n| Slice::range(0, *n)).collect();
        part[slowest] = Slice::range(first, rows.min(first.saturating_add(batch)));
        each(first.saturating_mul(row), &Selection(part))?;
    }
    Ok(())
}

/// Writes the elements of arrays of the same type and shape in turn.
fn write_interleaved(snapshot: &Snapshot<'_>, ids: &[NodeId], sink: &Sink, at: u64) -> Result<()> {
    let arrays = ids.iter().map(|id| snapshot.open(*id)).collect::<Result<Vec<Array>>>()?;
    let Some(array) = arrays.first() else { return Ok(()) };
    let physical = array.map().is_some();
    let dtype = if physical { DType::F64 } else { array.dtype().with_order(ByteOrder::Little) };
    let (size, count) = (dtype.size(), arrays.len());
    for_parts(array, |first, part| {
        let mut out = Vec::new();
        for (k, array) in arrays.iter().enumerate() {
            let bytes = if physical {
                let numbers = array.read_f64(part, Axes::Order(array.order()))?;
                let mut bytes = Vec::new();
                convert::from_f64(DType::F64, None, &numbers, &mut bytes);
                bytes
            } else {
                array.read_bytes(part, Axes::Order(array.order()))?
            };
            out.resize(bytes.len() * count, 0);
            let slots = out.chunks_exact_mut(size).skip(k).step_by(count);
            slots.zip(bytes.chunks_exact(size)).for_each(|(to, from)| to.copy_from_slice(from));
        }
        sink.write_all_at(at + first * (size * count) as u64, &out)
    })
}

/// Writes points of three components from one array of several dimensions per axis.
fn write_positions(
    arrays: &[(Array, Option<u64>)],
    item: &Item,
    sink: &Sink,
    at: u64,
) -> Result<()> {
    let (first, _) = &arrays[0];
    let mut bytes = Vec::new();
    for_parts(first, |start, part| {
        let mut numbers = Vec::new();
        for (axis, (array, _)) in arrays.iter().enumerate() {
            let column = array.read_f64(part, Axes::Order(array.order()))?;
            numbers.resize(column.len() * 3, 0.0);
            let to = numbers.iter_mut().skip(axis).step_by(3);
            to.zip(column).for_each(|(number, value)| *number = value);
        }
        convert::from_f64(item.dtype, None, &numbers, &mut bytes);
        sink.write_all_at(at + start * 3 * item.dtype.size() as u64, &bytes)
    })
}

/// Writes the points of a lattice.
fn write_lattice(
    axes: &[(u64, f64, f64); 3],
    vectors: &[[f64; 3]; 3],
    sink: &Sink,
    at: u64,
) -> Result<()> {
    let fraction = |axis: usize, k: u64| axes[axis].1 + axes[axis].2 * k as f64;
    let mut at = at;
    for z in 0..axes[2].0 {
        for y in 0..axes[1].0 {
            let mut row = Vec::with_capacity(axes[0].0 as usize * 24);
            for x in 0..axes[0].0 {
                let along = [fraction(0, x), fraction(1, y), fraction(2, z)];
                for component in 0..3 {
                    let parts = along.iter().zip(vectors).map(|(f, v)| f * v[component]);
                    row.extend(parts.sum::<f64>().to_le_bytes());
                }
            }
            sink.write_all_at(at, &row)?;
            at += row.len() as u64;
        }
    }
    Ok(())
}
