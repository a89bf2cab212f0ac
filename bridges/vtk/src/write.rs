//! Writer of files: XML, then raw appended values.

use std::fmt::Write as _;

use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::read::{Array, Axes};
use spile_core::select::{Selection, Slice};
use spile_core::sink::Sink;
use spile_core::wire::ByteOrder;

use crate::from_tree::{Item, Kind, Plan, Snapshot, Values};
use crate::wire::type_name;
use crate::xml::escape;

/// Tuples written at once.
const BATCH: u64 = 32 << 10;

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

/// Writes a file with arrays of `snapshot`, and `metadata` in a comment.
pub(crate) fn write(
    snapshot: &Snapshot<'_>,
    plan: &Plan,
    metadata: &str,
    sink: &Sink,
) -> Result<()> {
    let mut head = String::from("<?xml version=\"1.0\"?>\n<VTKFile type=\"");
    let kind = plan.kind.name();
    let _ = write!(
        head,
        "{kind}\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n  \
         <!-- spile {metadata} -->\n  <{kind}{}>\n",
        plan.grid
    );
    let mut offset = 0_u64;
    let mut items_at: Vec<(u64, &Item)> = Vec::new();
    for name in SECTIONS {
        let items: Vec<&Item> = plan.items.iter().filter(|item| item.section == name).collect();
        let needed = match plan.kind {
            Kind::Image => matches!(name, "PointData" | "CellData"),
            Kind::Rectilinear => matches!(name, "PointData" | "CellData" | "Coordinates"),
            Kind::Unstructured => matches!(name, "PointData" | "CellData" | "Points" | "Cells"),
            Kind::Poly => matches!(name, "PointData" | "CellData" | "Points"),
        };
        if !items.is_empty() || needed {
            let _ = writeln!(head, "      <{name}>");
            for item in items {
                tag(&mut head, item, offset);
                items_at.push((offset, item));
                offset = offset.saturating_add(LENGTH).saturating_add(item.bytes()?);
            }
            let _ = writeln!(head, "      </{name}>");
        }
        if name == "FieldData" {
            let _ = writeln!(head, "    <Piece{}>", plan.piece);
        }
    }
    let _ = write!(head, "    </Piece>\n  </{kind}>\n  <AppendedData encoding=\"raw\">\n   _");
    sink.write_all_at(0, head.as_bytes())?;
    let start = head.len() as u64;
    for (offset, item) in items_at {
        let at = start + offset;
        sink.write_all_at(at, &item.bytes()?.to_le_bytes())?;
        write_values(snapshot, item, sink, at + LENGTH)?;
    }
    sink.write_all_at(start + offset, b"\n  </AppendedData>\n</VTKFile>\n")
}

/// Appends the tag of an array.
fn tag(head: &mut String, item: &Item, offset: u64) {
    let kind = type_name(item.dtype).unwrap_or_default();
    let _ = write!(head, "        <DataArray type=\"{kind}\" Name=\"{}\"", escape(&item.name));
    if item.components != 1 {
        let _ = write!(head, " NumberOfComponents=\"{}\"", item.components);
    }
    if item.section == "FieldData" {
        let _ = write!(head, " NumberOfTuples=\"{}\"", item.tuples);
    }
    let _ = write!(head, "{} format=\"appended\" offset=\"{offset}\"", item.attributes);
    match &item.units {
        Some(units) => {
            let key = "<InformationKey name=\"UNITS_LABEL\" location=\"vtkDataArray\">";
            let units = escape(units);
            let _ =
                writeln!(head, ">\n          {key}{units}</InformationKey>\n        </DataArray>");
        }
        None => head.push_str("/>\n"),
    }
}

/// Writes the values of an array at byte `at`.
fn write_values(snapshot: &Snapshot<'_>, item: &Item, sink: &Sink, at: u64) -> Result<()> {
    let size = item.dtype.size() as u64;
    match &item.values {
        Values::Array(id) => write_array(&snapshot.open(*id)?, sink, at),
        Values::Columns(ids) => {
            let arrays = ids.iter().map(|id| snapshot.open(*id)).collect::<Result<Vec<_>>>()?;
            batches(item.tuples, |first, count| {
                let part = Selection(vec![Slice::range(first, first + count)]);
                let columns = arrays.iter().map(|array| array.read_f64(&part, Axes::Stored));
                let columns = columns.collect::<Result<Vec<_>>>()?;
                write_points(item.dtype, &columns, count, sink, at + first * 3 * size)
            })
        }
        Values::Flat(id) => {
            let array = snapshot.open(*id)?;
            batches(item.tuples, |first, count| {
                let rows = Slice::range(first, first + count);
                let column = |k| {
                    array.read_f64(&Selection(vec![rows, Slice::range(k, k + 1)]), Axes::Stored)
                };
                write_points(
                    item.dtype,
                    &[column(0)?, column(1)?],
                    count,
                    sink,
                    at + first * 3 * size,
                )
            })
        }
        Values::Uniform { start, step } => batches(item.tuples, |k, count| {
            let value = |k: u64| (start + k as f64 * step).to_le_bytes();
            let bytes: Vec<u8> = (k..k + count).flat_map(value).collect();
            sink.write_all_at(at + k * size, &bytes)
        }),
        Values::Steps { first, step } => batches(item.tuples, |k, count| {
            let value = |k: u64| (first + k * step).to_le_bytes();
            let bytes: Vec<u8> = (k..k + count).flat_map(value).collect();
            sink.write_all_at(at + k * size, &bytes)
        }),
        Values::Fill(byte) => {
            batches(item.tuples, |k, count| sink.write_all_at(at + k, &vec![*byte; count as usize]))
        }
        Values::Value(value) => sink.write_all_at(at, &value.to_le_bytes()),
    }
}

/// Calls `each` with the first tuple and the number of tuples of every batch.
fn batches(all: u64, mut each: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
    let mut first = 0;
    while first < all {
        let count = BATCH.min(all - first);
        each(first, count)?;
        first += count;
    }
    Ok(())
}

/// Writes points of three components; missing columns are zero.
fn write_points(
    dtype: DType,
    columns: &[Vec<f64>],
    count: u64,
    sink: &Sink,
    at: u64,
) -> Result<()> {
    let zero = vec![0.0; count as usize];
    let column = |k: usize| columns.get(k).unwrap_or(&zero).iter();
    let points = column(0).zip(column(1)).zip(column(2));
    let all: Vec<f64> = points.flat_map(|((x, y), z)| [*x, *y, *z]).collect();
    let mut bytes = Vec::new();
    convert::from_f64(dtype, None, &all, &mut bytes);
    sink.write_all_at(at, &bytes)
}

/// Writes the physical values of an array.
fn write_array(array: &Array, sink: &Sink, at: u64) -> Result<()> {
    let stored = array.dtype().with_order(ByteOrder::Little);
    let selected = array.select(&Selection::all(), Axes::Order(array.order()))?;
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
