//! A dataset as a table; see [`spile_interchange::table`].

use std::path::Path;

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::format::{FormatWriter, Loss, WriteOptions};
use spile_core::sink::Sink;
use spile_interchange::table::{complex_losses, split_complex};
use spile_interchange::{Table, arrow};

use crate::Parquet;
use crate::stored::Stored;
use crate::wire::ARROW_SCHEMA;
use crate::write::FileWriter;
use spile_codecs::Encoder;

/// Approximate size of a row group in bytes.
const GROUP: u64 = 64 << 20;

/// That of compressed tables with frames: a frame is read by decoding its row group.
const FRAMES_GROUP: u64 = 4 << 20;

fn table(content: &Dataset) -> Result<Table<'_>> {
    let fits = |dtype: DType| Stored::of(dtype).is_some() && dtype.size() > 0;
    Table::new(content, "parquet-011", fits)
}

impl FormatWriter for Parquet {
    fn options(&self) -> &'static [&'static str] {
        &["compression"]
    }

    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        let split = split_complex(content)?;
        let losses = table(split.as_ref().unwrap_or(content))?.stored_losses("Parquet");
        Ok(complex_losses(content, losses))
    }

    fn write(
        &self,
        content: &Dataset,
        sink: &mut Sink,
        options: &WriteOptions,
    ) -> Result<Vec<Loss>> {
        let split = split_complex(content)?;
        let table = table(split.as_ref().unwrap_or(content))?;
        let encoder = options.compression.and_then(Encoder::new);
        let framed = table.frames().is_some() && encoder.is_some();
        let mut file = FileWriter::new(&table, encoder, sink)?;
        let group = if framed { FRAMES_GROUP } else { GROUP };
        table.groups(group, &mut |piece, starts| {
            if starts {
                file.flush()?;
            }
            file.add(&piece)
        })?;
        file.flush()?;
        let mut metadata = table.stored_metadata()?;
        if table.fields.iter().any(|field| field.units.is_some()) {
            // Where pyarrow finds this schema, it takes the keys and values from there, too.
            let schema = arrow::message(arrow::SCHEMA, arrow::schema(&table, &metadata), 0);
            metadata.push((ARROW_SCHEMA.into(), base64_simd::STANDARD.encode_to_string(schema)));
        }
        file.finish(&metadata)?;
        Ok(Vec::new())
    }
}
