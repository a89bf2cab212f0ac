//! A tree whose arrays have the same number of rows as a table.

use spile_core::metadata::Description;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::limits::Limits;
use spile_core::sink::Sink;
use spile_interchange::table::Table;
use spile_core::tree::{NodeId, Tree};

use crate::wire::Stored;
use crate::write::File;

/// Maximum number of columns.
const MOST_COLUMNS: u64 = 16_384;

/// Approximate size of a row group in bytes.
const GROUP: u64 = 64 << 20;

/// Writes all arrays of `content` as one table.
pub(crate) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let fits = |dtype: DType| Stored::of(dtype).is_some() && dtype.size() > 0;
    let table = Table::new(content, limits, "parquet-011", MOST_COLUMNS, fits)?;
    let allowed = [Stored::Plain, Stored::Wide];
    for column in table.columns.iter().filter(|_| table.frames.is_some()) {
        if Stored::of(column.dtype).is_none_or(|stored| !allowed.contains(&stored)) {
            let message =
                format!("columns of {} are not supported in a table with frames", column.dtype);
            return Err(Error::unsupported("parquet-011", message)
                .in_object(format!("\"{}\"", column.node.path))
                .hint("select other arrays with --select"));
        }
    }
    let mut file = File::new(&table, sink)?;
    let row_bytes =
        table.columns.iter().map(|c| c.count() * c.dtype.size().max(4) as u64).sum::<u64>();
    let capacity = GROUP.min(limits.memory / 8);
    let most = (capacity / (row_bytes + 24)).clamp(1, 1 << 24);
    table.pieces(most, &mut |piece| {
        if file.pending() > 0 && file.pending() + piece.rows > most {
            file.flush()?;
        }
        file.add(&piece)
    })?;
    file.flush()?;
    file.finish(&metadata(content.tree())?.text(limits)?)
}

/// The metadata of the tree. Scaled arrays are written as physical values, and have no scaling in the file.
fn metadata(tree: &Tree) -> Result<Description> {
    let scaled = tree.arrays().filter_map(|(id, _, own)| match tree.resolve(own) {
        Ok(desc) => desc.map.map(|_| Ok(id)),
        Err(e) => Some(Err(e)),
    });
    let scaled: Vec<NodeId> = scaled.collect::<Result<_>>()?;
    if scaled.is_empty() {
        return Ok(Description::of(tree));
    }
    let mut physical = tree.clone();
    for id in scaled {
        if let Some(array) = &mut physical.node_mut(id).array {
            (array.map, array.dtype) = (None, DType::F64);
        }
    }
    Ok(Description::of(&physical))
}
