//! A dataset as a table; see [`spile_interchange::table`].

use std::path::Path;

use spile_codecs::Encoder;
use spile_core::Dataset;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::{FormatWriter, Loss, WriteOptions};
use spile_core::sink::Sink;
use spile_interchange::Table;

use crate::Arrow;
use crate::write::File;

/// Approximate size of a record batch in bytes.
const BATCH: u64 = 32 << 20;

fn table(content: &Dataset) -> Result<Table<'_>> {
    let fits = |dtype: DType| match dtype.kind() {
        Kind::Int | Kind::UInt | Kind::Text | Kind::Opaque => dtype.size() > 0,
        Kind::Bool => dtype.size() == 1,
        Kind::Float => dtype.size() <= 8,
        _ => false,
    };
    Table::new(content, "arrow-011", fits)
}

impl FormatWriter for Arrow {
    fn options(&self) -> &'static [&'static str] {
        &["compression"]
    }

    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        Ok(table(content)?.stored_losses("Arrow"))
    }

    fn write(
        &self,
        content: &Dataset,
        sink: &mut Sink,
        options: &WriteOptions,
    ) -> Result<Vec<Loss>> {
        let encoder = options.compression.and_then(Encoder::new);
        if encoder.is_some_and(|encoder| !matches!(encoder, Encoder::Zstd(_))) {
            return Err(Error::argument("arrow files are compressed with zstd"));
        }
        let table = table(content)?;
        let row_bytes = table.fields.iter().map(|f| f.dtype.size().max(4) as u64).sum::<u64>();
        let most = (BATCH.min(content.limits().memory / 8) / row_bytes.max(1)).clamp(1, 1 << 24);
        let mut file = File::new(&table, encoder, sink)?;
        table.pieces(most, &mut |piece| {
            if file.pending() > 0 && file.pending() + table.row_count(&piece) > most {
                file.flush()?;
            }
            file.add(&piece)
        })?;
        file.flush()?;
        file.finish()?;
        Ok(Vec::new())
    }
}
