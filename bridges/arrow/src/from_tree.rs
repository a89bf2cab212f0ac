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
use crate::write::FileWriter;

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
        let mut file = FileWriter::new(&table, encoder, sink)?;
        table.groups(BATCH, &mut |piece, starts| {
            if starts {
                file.flush()?;
            }
            file.add(&piece)
        })?;
        file.flush()?;
        file.finish()?;
        Ok(Vec::new())
    }
}
