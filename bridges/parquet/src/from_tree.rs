//! A tree whose arrays have the same number of rows as a table.

use std::collections::HashMap;
use std::path::Path;

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::{Error, Hint, Result};
use spile_core::format::{FormatWriter, Loss, LossKind, WriteOptions};
use spile_core::metadata::{Cast, Metadata};
use spile_core::semantics::Missing;
use spile_core::shape::{Order, Shape};
use spile_core::sink::Sink;
use spile_interchange::{Kept, Losses, Table};

use crate::Parquet;
use crate::stored::Stored;
use crate::write::File;

/// Maximum number of columns.
const MOST_COLUMNS: u64 = 16_384;

/// Approximate size of a row group in bytes.
const GROUP: u64 = 64 << 20;

/// The content as a table. Fails if it is none, or has columns that are not supported.
fn table(content: &Dataset) -> Result<Table<'_>> {
    let fits = |dtype: DType| Stored::of(dtype).is_some() && dtype.size() > 0;
    let table = Table::new(content, "parquet-011", MOST_COLUMNS, fits)?;
    let allowed = [Stored::Plain, Stored::Wide];
    for column in table.columns.iter().filter(|_| table.frames.is_some()) {
        if Stored::of(column.dtype).is_none_or(|stored| !allowed.contains(&stored)) {
            let message =
                format!("columns of {} are not supported in a table with frames", column.dtype);
            return Err(Error::unsupported("parquet-011", message)
                .in_object(format!("\"{}\"", column.node.path))
                .hint(Hint::SelectArrays));
        }
    }
    Ok(table)
}

impl FormatWriter for Parquet {
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        let table = table(content)?;
        table.pieces(u64::MAX, &mut |_| Ok(()))?;
        let mut losses = Losses::new("Parquet");
        losses.add(content, &Kept { scaling: false, ..Kept::ALL }, |_, _, _| Ok(()));
        for column in &table.columns {
            let path = &column.node.path;
            if column.count() == 0 {
                losses.push(path, LossKind::Array, "columns for an array without elements");
            } else if column.array.map.is_some() && !column.array.semantics().missing.is_none() {
                let reason = "missing values are NaN among physical values";
                losses.push_loss(Loss::new(path, LossKind::Meaning, reason));
            }
        }
        match (table.frames, content.tree().frames()) {
            (Some(_), _) => losses.add_partial_moments(content),
            (None, Some(_)) => losses.push("", LossKind::Frames, "frames without arrays in them"),
            (None, None) => {}
        }
        Ok(losses.into_vec())
    }

    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let table = table(content)?;
        let mut file = File::new(&table, sink)?;
        let row_bytes =
            table.columns.iter().map(|c| c.count() * c.dtype.size().max(4) as u64).sum::<u64>();
        let capacity = GROUP.min(content.limits().memory / 8);
        let most = (capacity / (row_bytes + 24)).clamp(1, 1 << 24);
        table.pieces(most, &mut |piece| {
            if file.pending() > 0 && file.pending() + piece.rows > most {
                file.flush()?;
            }
            file.add(&piece)
        })?;
        file.flush()?;
        file.finish(&metadata(content, &table).text(content.limits())?)?;
        Ok(Vec::new())
    }
}

/// The metadata of the tree. Scaled arrays are written as physical values, and have no scaling in the file.
fn metadata(content: &Dataset, table: &Table<'_>) -> Metadata {
    let mut physical = content.tree().clone();
    let mut casts = HashMap::new();
    for column in &table.columns {
        let path = &column.node.path;
        if column.array.shape.rank() == 0 {
            casts.insert(path.clone(), Cast::new(&Shape::scalar(), Order::C));
        }
        let array = physical.at(path).and_then(|id| physical.node_mut(id).array.as_mut());
        let Some(array) = array else { continue };
        array.dtype = column.dtype;
        if array.map.take().is_some()
            && let Some(meaning) = &mut array.meaning
        {
            meaning.missing = Missing::default();
        }
    }
    let mut metadata = Metadata::of(&physical);
    metadata.set_casts(casts);
    metadata
}
