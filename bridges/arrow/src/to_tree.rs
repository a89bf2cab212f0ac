//! Columns as a tree.

use spile_core::Dataset;
use spile_core::error::{Error, Result};
use spile_core::format::{Native, Object, OpenOptions, Parsed, Region, RegionKind};
use spile_core::limits::Budget;
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::tree::Attrs;
use spile_interchange::table::StoredTable;

use crate::read::{Batches, Context, read_columns};
use crate::wire::{self, Block};
use spile_interchange::arrow;

pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let limits = &options.limits;
    let mut memory = Budget::new(limits);
    let index = wire::read_index(&source, limits, &mut memory)?;
    let (schema, start) = (index.schema()?, index.start);
    if schema.i16(0).unwrap_or(0) != 0 {
        let message = "big-endian files are not supported";
        return Err(Error::unsupported("arrow-006", message).at(start));
    }
    let read = |blocks, memory: &mut Budget| Batches::read(&source, blocks, index.end, memory);
    let dictionaries = read(index.dictionaries()?, &mut memory)?;
    let batches = read(index.batches()?, &mut memory)?;
    let value_of = |key: &str| arrow::value_of(schema, 2, key);
    let mut table = StoredTable::new(batches.rows, limits, value_of)?;
    let mut report = Report::default();
    let context = Context {
        source: &source,
        limits,
        batches: &batches,
        dictionaries: &dictionaries,
        framed: table.has_frames(),
        start,
        version: index.version()?,
    };
    table.columns = read_columns(&context, schema, &mut memory, &mut report)?;
    let summary = Attrs::from([
        ("rows", batches.rows.into()),
        ("columns", (table.columns.len() as u64).into()),
        ("record batches", (batches.blocks.len() as u64).into()),
    ]);
    let (tree, metadata) = table.into_tree(&source, limits)?;
    let mut blocks = dictionaries.blocks;
    blocks.extend(batches.blocks);
    blocks.sort_by_key(|block| block.offset);
    let native = Messages { blocks, end: index.end, is_stream: index.stream.is_some() };
    let parsed = Parsed::new(source, tree).with_summary(summary).with_warnings(report.findings);
    Ok(parsed.with_metadata(metadata.map(|metadata| metadata.at(start))).with_native(native))
}

/// Positions of the messages.
struct Messages {
    blocks: Vec<Block>,
    /// End of the messages.
    end: u64,
    is_stream: bool,
}

impl Native for Messages {
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut at = 0;
        let mut region = |from: u64, end: u64, kind, name: &str| -> Result<()> {
            if from < at || end <= from {
                return Ok(());
            }
            let parts = [(at, from, RegionKind::Header, "schema"), (from, end, kind, name)];
            for (offset, end, kind, name) in parts.into_iter().filter(|(from, end, ..)| end > from)
            {
                let (len, name, value) = (end - offset, name.into(), String::new());
                each(Region { offset, len, kind, name, value })?;
            }
            at = end;
            Ok(())
        };
        for Block { offset, metadata, body } in &self.blocks {
            let data = offset + metadata;
            region(*offset, data, RegionKind::Header, "record batch")?;
            region(data, data + body, RegionKind::Data, "record batch")?;
        }
        let last = if self.is_stream { "end of the stream" } else { "footer" };
        region(self.end, dataset.source().len(), RegionKind::Header, last)
    }

    fn objects(&self, dataset: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        let plain = dataset.arrays().filter(|(_, _, desc)| desc.layout.frames().is_none());
        for (_, node, desc) in plain {
            let (path, kind) = (node.path.clone(), "column".into());
            each(Object { path, id: None, frame: None, kind, array: desc.clone() })?;
        }
        Ok(())
    }
}
