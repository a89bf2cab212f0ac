//! Any Fortran unformatted file: its records as arrays of given types.
//!
//! ```
//! use spile_core::{Limits, Source};
//! use spile_iotk::records::{self, Template};
//!
//! let mut file = Vec::new();
//! for record in [&3_i32.to_le_bytes()[..], &[1.5_f64, 2.0, 2.5].map(f64::to_le_bytes).concat()] {
//!     let marker = (record.len() as i32).to_le_bytes();
//!     file.extend([&marker[..], record, &marker[..]].concat());
//! }
//! let template: Template = "i4=n;f8*n=x".parse()?;
//! let opened = records::open(Source::memory(file), None, &template, &Limits::default())?;
//! assert_eq!(opened.array("x")?.read::<Vec<f64>>("...")?, [1.5, 2.0, 2.5]);
//! # Ok::<(), spile_core::Error>(())
//! ```

mod template;

use std::collections::HashMap;

use spile_core::{
    ArrayDesc, Attrs, ByteOrder, DType, Dataset, Error, Extents, Kind, Layout, Limits, NodeId,
    Order, ROOT, Result, Shape, Source, Tree,
};

pub use template::Template;
use template::{Count, Field};

use crate::wire::record::{Framing, Record, Records};

/// Approximate memory of an array in bytes.
const ARRAY_BYTES: u64 = 600;

/// The framing of a file: the one given, or that in which the first record is complete. Fails with iotk-001 if
/// there is none.
pub fn framing(source: &Source, given: Option<Framing>) -> Result<Framing> {
    let found = match given {
        Some(framing) => Some(framing),
        None => Framing::detect(source)?,
    };
    found.ok_or_else(|| {
        let message =
            "expected a record of a Fortran unformatted file: its length before and after it";
        Error::not_this_format("iotk-001", message).at(0)
    })
}

/// Opens a Fortran unformatted file with the types of its records. Record `k`, counted from 1, is an array
/// `record.k` or a group with this name and an array per field; a field with a name is an array of the root.
/// Reads the markers, and the integers that are counts of other fields.
pub fn open(
    source: Source,
    given: Option<Framing>,
    template: &Template,
    limits: &Limits,
) -> Result<Dataset> {
    let framing = framing(&source, given)?;
    let mut reader = Reader {
        bytes: Dataset::of_bytes(source.clone(), limits),
        order: framing.order,
        numbers: HashMap::new(),
        tree: Tree::new(limits),
    };
    let mut records = Records::new(source.clone(), framing, limits);
    let mut number = 0_usize;
    while let Some(record) = records.next()? {
        let fields = template.record(number);
        number += 1;
        let located = |e: Error| e.in_object(format!("record {number}")).at(record.offset);
        reader.add(number, &record, fields).map_err(located)?;
    }
    if let Some(missing) = template.records().checked_sub(number).filter(|missing| *missing > 1) {
        let message = format!("expected {missing} more records");
        return Err(Error::truncated("iotk-053", message).at(source.len()));
    }
    let mut tree = reader.tree;
    let order = if framing.order == ByteOrder::Little { "little" } else { "big" };
    tree.set_attrs(
        ROOT,
        Attrs::from([("marker_bytes", framing.marker.into()), ("byte_order", order.into())]),
    )?;
    Ok(Dataset::new(source, tree))
}

struct Reader {
    /// The bytes, to read counts.
    bytes: Dataset,
    order: ByteOrder,
    /// Values of single integers with a name.
    numbers: HashMap<String, u64>,
    tree: Tree,
}

impl Reader {
    /// Adds the arrays of record `number`.
    fn add(&mut self, number: usize, record: &Record, fields: &[Field]) -> Result<()> {
        let len = record.content.len();
        let name = format!("record.{number}");
        let mut parts = Vec::new();
        let mut at = 0_u64;
        for (k, field) in fields.iter().enumerate() {
            let rest = len.saturating_sub(at);
            let lengths = self.lengths(field, rest, k + 1 == fields.len())?;
            let bytes = Shape::new(lengths.clone()).bytes(field.dtype.size())?;
            parts.push((field, lengths, at, bytes));
            at = at.checked_add(bytes).ok_or_else(|| Error::limit("the record is too long"))?;
            if at > len {
                let message = format!("expected a record of {at} bytes or more, found {len}");
                return Err(Error::malformed("iotk-053", message));
            }
            self.remember(field, &record.content, (at - bytes, bytes))?;
        }
        // A record of several equal structures is a table of them.
        let rows = if at > 0 && len.is_multiple_of(at) { len / at } else { 1 };
        if at != len && (rows < 2 || fields.iter().any(|field| field.name.is_some())) {
            let message = format!("expected a record of {at} bytes, found {len}");
            return Err(Error::malformed("iotk-053", message));
        }
        self.tree.charge(ARRAY_BYTES, "the list of records")?;
        let only = fields.len() == 1;
        let mut group: Option<NodeId> = None;
        for (k, (field, lengths, from, bytes)) in parts.into_iter().enumerate() {
            let desc = self.describe(field, &record.content, (lengths, rows), (from, bytes, at))?;
            let (parent, name) = match &field.name {
                Some(name) => (ROOT, name.clone()),
                None if only => (ROOT, name.clone()),
                None => {
                    let parent = match group {
                        Some(group) => group,
                        None => self.tree.add_group(ROOT, &name)?,
                    };
                    group = Some(parent);
                    (parent, format!("field.{}", k + 1))
                }
            };
            self.tree.add_array(parent, &name, desc)?;
        }
        Ok(())
    }

    /// The array of a field whose bytes begin at byte `from` of each of `rows` structures of `stride` bytes.
    fn describe(
        &self,
        field: &Field,
        content: &Extents,
        (mut lengths, rows): (Vec<u64>, u64),
        (from, bytes, stride): (u64, u64, u64),
    ) -> Result<ArrayDesc> {
        let dtype = field.dtype.with_order(self.order);
        if rows < 2 || bytes == stride {
            if rows > 1 {
                lengths = vec![lengths.iter().product::<u64>().saturating_mul(rows)];
            }
            let pieces = content.pieces(from, bytes.saturating_mul(rows)).collect();
            let layout = Layout::Plain { extents: Extents::several(pieces)?, order: Order::F };
            return Ok(ArrayDesc::new(dtype, Shape::new(lengths), layout));
        }
        let count: u64 = lengths.iter().product();
        if count != 1 {
            let message =
                "a repeated structure has fields of one element; write the elements as fields";
            return Err(Error::argument(message));
        }
        let end = stride.saturating_mul(rows - 1).saturating_add(bytes);
        let pieces = content.pieces(from, end).collect();
        let extents = Extents::several(pieces)?;
        let layout = Layout::Rows { extents, stride, order: Order::C };
        Ok(ArrayDesc::new(dtype, Shape::new([rows]), layout))
    }

    /// The shape of a field, of which at most `rest` bytes are in the record.
    fn lengths(&self, field: &Field, rest: u64, last: bool) -> Result<Vec<u64>> {
        let size = field.dtype.size().max(1) as u64;
        let mut lengths: Vec<u64> = Vec::new();
        for count in &field.counts {
            lengths.push(match count {
                Count::Number(number) => *number,
                Count::Name(name) => *self.numbers.get(name).ok_or_else(|| {
                    let message = format!("no single integer \"{name}\" precedes the field");
                    Error::argument(message)
                })?,
                Count::Rest if !last => {
                    return Err(Error::argument("only the last field of a record takes its rest"));
                }
                Count::Rest => {
                    let row = lengths.iter().try_fold(size, |all, n| all.checked_mul(*n));
                    let row = row.filter(|row| *row > 0 && rest.is_multiple_of(*row));
                    row.map(|row| rest / row).ok_or_else(|| {
                        let message =
                            format!("{rest} bytes are not a multiple of the element size");
                        Error::malformed("iotk-053", message)
                    })?
                }
            });
        }
        Ok(lengths)
    }

    /// Reads the value of a single integer with a name.
    fn remember(&mut self, field: &Field, content: &Extents, (at, len): (u64, u64)) -> Result<()> {
        let Some(name) = &field.name else { return Ok(()) };
        if !field.counts.is_empty() || !matches!(field.dtype.kind(), Kind::Int | Kind::UInt) {
            return Ok(());
        }
        let extents = Extents::several(content.pieces(at, len).collect())?;
        let layout = Layout::Plain { extents, order: Order::C };
        let dtype = field.dtype.with_order(self.order);
        let array = self.bytes.open_array(&ArrayDesc::new(dtype, Shape::scalar(), layout))?;
        if let Some(value) = array.read::<Vec<f64>>("...")?.first() {
            self.tree.charge(128 + name.len() as u64, "the named integers")?;
            self.numbers.insert(name.clone(), *value as u64);
        }
        Ok(())
    }
}

/// Calls `each` with the number of every record, counted from 1, and its location.
pub fn each_record(
    source: &Source,
    framing: Framing,
    limits: &Limits,
    mut each: impl FnMut(u64, &Record) -> Result<()>,
) -> Result<()> {
    let mut records = Records::new(source.clone(), framing, limits);
    let mut number = 0;
    while let Some(record) = records.next()? {
        number += 1;
        each(number, &record)?;
    }
    Ok(())
}

/// The type of an element without a template: bytes.
pub(crate) fn bytes() -> DType {
    DType::opaque(1)
}
