//! A dataset as a table; see [`spile_interchange::table`].

use std::path::Path;

use spile_codecs::Encoder;
use spile_core::Dataset;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::{FormatWriter, Loss, WriteOptions};
use spile_core::sink::Sink;
use spile_interchange::Table;
use spile_interchange::table::{complex_losses, split_complex};

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

/// The compression of buffers. Fails for those that Arrow does not have.
fn encoder(options: &WriteOptions) -> Result<Option<Encoder>> {
    match options.compression.and_then(Encoder::new) {
        None => Ok(None),
        Some(zstd @ Encoder::Zstd(_)) => Ok(Some(zstd)),
        Some(_) => Err(Error::argument("arrow files are compressed with zstd")),
    }
}

impl FormatWriter for Arrow {
    fn options(&self) -> &'static [&'static str] {
        &["compression"]
    }

    fn check_options(&self, _: &Dataset, _: &Path, options: &WriteOptions) -> Result<()> {
        encoder(options).map(drop)
    }

    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        let split = split_complex(content)?;
        let losses = table(split.as_ref().unwrap_or(content))?.stored_losses("Arrow");
        Ok(complex_losses(content, losses))
    }

    fn write(
        &self,
        content: &Dataset,
        sink: &mut Sink,
        options: &WriteOptions,
    ) -> Result<Vec<Loss>> {
        let encoder = encoder(options)?;
        let split = split_complex(content)?;
        let table = table(split.as_ref().unwrap_or(content))?;
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
