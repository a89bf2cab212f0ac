//! Variables as arrays of a tree.
//!
//! A variable that cannot be read is a finding with its name; all others are in the tree.

use std::collections::HashMap;
use std::sync::Arc;

use spile_core::Dataset;
use spile_core::chunks::{Chunk, ChunkTable, Chunks};
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::{Native, Object, OpenOptions, Parsed, Region, RegionKind};
use spile_core::layout::{ArrayDesc, Coord, Extents, Layout};
use spile_core::report::Report;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{Attrs, NodeId, ROOT, Tree, Value};
use spile_interchange::cf;

use crate::wire::{Attribute, Header, Variable};

/// The records of a file: how many, and how far apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Records {
    pub(crate) count: u64,
    /// Distance between records in bytes.
    pub(crate) size: u64,
}

/// Shape and position of a variable.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) shape: Shape,
    /// Number of bytes of the variable, or of its part of a record.
    pub(crate) bytes: u64,
    pub(crate) is_record: bool,
}

impl Header {
    /// Shape of a variable for `count` records. Fails if its dimensions are invalid.
    pub(crate) fn place(&self, variable: &Variable, count: u64) -> Result<Placed> {
        let mut lengths = Vec::with_capacity(variable.dims.len());
        let mut is_record = false;
        for (k, id) in variable.dims.iter().enumerate() {
            let dimension = usize::try_from(*id).ok().and_then(|id| self.dimensions.get(id));
            let Some(dimension) = dimension else {
                let message = format!("dimension {id} does not exist");
                return Err(Error::malformed("netcdf3-007", message).at(variable.at));
            };
            match (dimension.length, k) {
                (0, 0) => {
                    is_record = true;
                    lengths.push(count);
                }
                (0, _) => {
                    let message = "the record dimension is not the first dimension";
                    return Err(Error::malformed("netcdf3-008", message).at(variable.at));
                }
                (length, _) => lengths.push(length),
            }
        }
        let row = Shape::new(&lengths[usize::from(is_record)..]);
        let bytes = row.bytes(variable.dtype.size())?;
        Ok(Placed { shape: Shape::new(lengths), bytes, is_record })
    }

    /// Number and size of the records. A number that was not stored follows from the length of the file.
    pub(crate) fn records(&self, len: u64) -> Records {
        let placed = self.variables.iter().filter_map(|v| Some((v, self.place(v, 0).ok()?)));
        let own: Vec<_> = placed.filter(|(_, placed)| placed.is_record).collect();
        let padded = |bytes: u64| bytes.checked_next_multiple_of(4).unwrap_or(u64::MAX);
        let size = match &own[..] {
            // The parts of a single record variable are not padded.
            [(_, one)] => one.bytes,
            all => all.iter().fold(0, |n, (_, placed)| padded(placed.bytes).saturating_add(n)),
        };
        let begin = own.iter().map(|(variable, _)| variable.begin).min().unwrap_or(len);
        let stored = len.saturating_sub(begin).checked_div(size).unwrap_or(0);
        Records { count: self.numrecs.unwrap_or(stored), size }
    }
}

/// A variable that was read.
struct Stored {
    name: String,
    desc: ArrayDesc,
    begin: u64,
    bytes: u64,
    is_record: bool,
}

/// The structures of an open file.
struct File {
    header: u64,
    records: Records,
    /// In file order.
    variables: Vec<Stored>,
}

/// Reads the header. Variables that cannot be read are warnings of severity error.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let header = Header::read(&source, &options.limits)?;
    let records = header.records(source.len());
    let mut tree = Tree::new(&options.limits);
    let mut report = Report::default();
    set_attributes(&mut tree, ROOT, &header.attributes)?;
    let mut nodes = HashMap::new();
    let mut found = Vec::new();
    for variable in &header.variables {
        let desc = match describe(&source, &header, records, variable) {
            Ok(desc) => desc,
            Err(error) => {
                report.absorb(error.in_object(format!("\"{}\"", variable.name)))?;
                continue;
            }
        };
        let rank = desc.shape.rank() as u64;
        // A coordinate variable has the name of its only dimension; texts have another one for their characters.
        let axis = variable.dims.first().filter(|_| rank == 1).copied();
        tree.charge(128 * rank + 256 + variable.name.len() as u64, "the variables")?;
        let node = tree.add_array(ROOT, &variable.name, desc)?;
        if let Some(id) = axis
            && header.dimensions.get(id as usize).is_some_and(|d| d.name == variable.name)
        {
            nodes.insert(id, node);
        }
        found.push((node, variable));
    }
    for (node, variable) in &found {
        let names = variable.dims.iter().map(|id| header.dimensions[*id as usize].name.len());
        // The native description has them again.
        tree.charge(2 * names.sum::<usize>() as u64, "the names of dimensions")?;
        if let Some(array) = &mut tree.node_mut(*node).array {
            for ((id, name), coord) in
                variable.dims.iter().zip(&mut array.dims).zip(&mut array.coords)
            {
                name.clone_from(&header.dimensions[*id as usize].name);
                if let Some(own) = nodes.get(id).filter(|own| *own != node) {
                    *coord = Coord::Node(*own);
                }
            }
        }
        set_attributes(&mut tree, *node, &variable.attributes)?;
        cf::apply(&mut tree, *node)?;
    }
    cf::set_roles(&mut tree)?;
    let mut variables = Vec::new();
    for (node, variable) in &found {
        let node = tree.node(*node);
        if let (Some(desc), Ok(placed)) = (&node.array, header.place(variable, records.count)) {
            let Placed { bytes, is_record, .. } = placed;
            let (name, desc) = (node.path.clone(), desc.clone());
            variables.push(Stored { name, desc, begin: variable.begin, bytes, is_record });
        }
    }
    variables.sort_by_key(|variable| variable.begin);
    let mut summary = Attrs::from([
        ("version", Value::from(format!("CDF-{}", header.version))),
        ("variables", Value::UInt(header.variables.len() as u64)),
    ]);
    if variables.iter().any(|variable| variable.is_record) {
        summary.push("records", Value::UInt(records.count));
    }
    let parsed = Parsed::new(source, tree).with_summary(summary).with_warnings(report.findings);
    Ok(parsed.with_native(File { header: header.len, records, variables }))
}

fn set_attributes(tree: &mut Tree, node: NodeId, attributes: &[Attribute]) -> Result<()> {
    let mut values = Attrs::new();
    for attribute in attributes {
        tree.charge(attribute.memory(), "the attributes")?;
        values.push(attribute.name.as_str(), attribute.value());
    }
    tree.set_attrs(node, values)
}

/// Describes a variable. Fails if its dimensions are invalid or its values exceed the file.
fn describe(
    source: &Source,
    header: &Header,
    records: Records,
    variable: &Variable,
) -> Result<ArrayDesc> {
    let Placed { shape, bytes, is_record } = header.place(variable, records.count)?;
    let Variable { begin, dtype, .. } = *variable;
    let total = shape.bytes(dtype.size()).map_err(|error| error.at(variable.at))?;
    // From the first to the last value.
    let span = match records.count {
        _ if !is_record => Some(total),
        0 => Some(0),
        count => (count - 1).checked_mul(records.size).and_then(|n| n.checked_add(bytes)),
    };
    let end = span.and_then(|span| begin.checked_add(span));
    if total > 0 && end.is_none_or(|end| end > source.len()) {
        let left = source.len().saturating_sub(begin);
        let expected = span.unwrap_or(u64::MAX);
        let message = format!("unexpected end of file: expected {expected} bytes, found {left}");
        return Err(Error::truncated("netcdf3-009", message).at(begin));
    }
    let extents = Extents::one(begin, span.unwrap_or(0));
    let is_scattered = is_record && records.count > 1 && records.size != bytes;
    let layout = match total {
        0 => Layout::Plain { extents: Extents::one(0, 0), order: Order::C },
        _ if !is_scattered => Layout::Plain { extents, order: Order::C },
        _ if shape.rank() == 1 => Layout::Rows { extents, stride: records.size, order: Order::C },
        _ => {
            let lengths = shape.lengths();
            let chunk = Shape::new([&[1], &lengths[1..]].concat());
            let axes = Order::C.slowest_first(shape.rank());
            let table = Arc::new(RecordTable { begin, stride: records.size, bytes });
            let fill = vec![0; dtype.size()].into();
            let chunks = Chunks { shape: shape.clone(), chunk, axes, table, fill };
            Layout::Chunked { chunks: Arc::new(chunks), first: 0 }
        }
    };
    let desc = ArrayDesc::new(dtype, shape, layout);
    // The only dimension of a record variable, or of a coordinate variable, is not the length of a string.
    let is_own = |id: &u64| {
        let dimension = usize::try_from(*id).ok().and_then(|id| header.dimensions.get(id));
        dimension.is_some_and(|dimension| dimension.name == variable.name)
    };
    let is_single = desc.shape.rank() == 1 && (is_record || variable.dims.iter().all(is_own));
    let is_text = dtype == DType::text(1) && !is_single;
    Ok(if is_text { join_characters(desc) } else { desc })
}

/// Turns the last dimension of characters into the length of strings (CF conventions, section 2.2).
fn join_characters(desc: ArrayDesc) -> ArrayDesc {
    let Some((last, rest)) = desc.shape.lengths().split_last() else { return desc };
    let Ok(size @ 1..) = u32::try_from(*last) else { return desc };
    let layout = match &desc.layout {
        Layout::Chunked { chunks, first } => {
            let shortened = |shape: &Shape| Shape::new(&shape.lengths()[..rest.len()]);
            let chunks = Chunks {
                shape: shortened(&chunks.shape),
                chunk: shortened(&chunks.chunk),
                axes: Order::C.slowest_first(rest.len()),
                fill: vec![0; size as usize].into(),
                table: chunks.table.clone(),
            };
            Layout::Chunked { chunks: Arc::new(chunks), first: *first }
        }
        other => other.clone(),
    };
    ArrayDesc::new(DType::text(size), Shape::new(rest), layout)
}

/// The parts of a variable in the records.
struct RecordTable {
    begin: u64,
    stride: u64,
    bytes: u64,
}

impl ChunkTable for RecordTable {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        let offset = number.saturating_mul(self.stride).saturating_add(self.begin);
        Ok(Some(Chunk { extents: Extents::one(offset, self.bytes), codec: None }))
    }
}

impl Native for File {
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let len = dataset.source().len();
        let mut end = 0;
        // Parts that overlap others or exceed the file are left out; gaps between parts are padding.
        let mut part = |offset: u64, own: u64, kind: RegionKind, name: &str| -> Result<()> {
            let last = offset.saturating_add(own);
            if offset < end || last > len {
                return Ok(());
            }
            let gap = (end, offset, RegionKind::Padding, "");
            for (from, to, kind, name) in [gap, (offset, last, kind, name)] {
                if to > from {
                    let value = if kind == RegionKind::Data { "data" } else { "" }.into();
                    let (name, len) = (name.to_string(), to - from);
                    each(Region { offset: from, len, kind, name, value })?;
                }
            }
            end = last;
            Ok(())
        };
        part(0, self.header, RegionKind::Header, "header")?;
        for variable in self.variables.iter().filter(|variable| !variable.is_record) {
            part(variable.begin, variable.bytes, RegionKind::Data, &variable.name)?;
        }
        for record in 0..self.records.count {
            let start = record.saturating_mul(self.records.size);
            if self.records.size == 0 || start > len {
                break;
            }
            for variable in self.variables.iter().filter(|variable| variable.is_record) {
                let offset = variable.begin.saturating_add(start);
                part(offset, variable.bytes, RegionKind::Data, &variable.name)?;
            }
        }
        part(len, 0, RegionKind::Unknown, "")
    }

    fn objects(&self, _: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for Stored { name, desc, .. } in &self.variables {
            let (path, array, kind) = (name.clone(), desc.clone(), "variable".into());
            each(Object { path, id: None, frame: None, kind, array })?;
        }
        Ok(())
    }
}
