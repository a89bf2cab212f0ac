//! Writer of files. Buffers are not compressed unless asked for, so that they can be read in place.

use std::io::Write as _;

use spile_codecs::Encoder;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::sink::Sink;
use spile_interchange::arrow::{self, CONTINUATION, Fields, SCHEMA, VERSION};
use spile_interchange::flatbuffers::{self, Item};
use spile_interchange::table::{Piece, Table};

use crate::wire::{MAGIC, RECORD_BATCH};

/// Numbers of rows that have a value, or have none.
type Runs = Vec<(u64, bool)>;

pub(crate) struct FileWriter<'a> {
    table: &'a Table<'a>,
    encoder: Option<Encoder>,
    sink: &'a mut Sink,
    metadata: Vec<(String, String)>,
    /// Values of the current record batch, and whether each run of rows has some.
    columns: Vec<(Vec<u8>, Runs)>,
    rows: u64,
    /// Positions of the record batches.
    blocks: Vec<u8>,
}

impl<'a> FileWriter<'a> {
    /// Begins a file.
    pub(crate) fn new(
        table: &'a Table<'a>,
        encoder: Option<Encoder>,
        sink: &'a mut Sink,
    ) -> Result<Self> {
        let metadata = table.stored_metadata()?;
        let columns = table.fields.iter().map(|_| Default::default()).collect();
        let mut file =
            Self { table, encoder, sink, metadata, columns, rows: 0, blocks: Vec::new() };
        file.sink.write_all(MAGIC)?;
        file.sink.write_all(&[0; 2])?;
        let schema = file.schema();
        file.message(SCHEMA, schema, &[])?;
        Ok(file)
    }

    fn schema(&self) -> Fields {
        arrow::schema(self.table, &self.metadata)
    }

    /// Writes a message, and returns the length of its metadata.
    fn message(&mut self, kind: u8, header: Fields, body: &[u8]) -> Result<u64> {
        let bytes = arrow::message(kind, header, body.len() as u64);
        self.sink.write_all(&bytes)?;
        self.sink.write_all(body)?;
        Ok(bytes.len() as u64)
    }

    /// Adds the rows of a piece to the current record batch.
    pub(crate) fn add(&mut self, piece: &Piece) -> Result<()> {
        let rows = self.table.row_count(piece);
        let fields = self.table.fields.iter().zip(self.table.read(piece)?);
        for ((values, runs), (field, bytes)) in self.columns.iter_mut().zip(fields) {
            runs.push((rows, bytes.is_some()));
            match bytes {
                Some(bytes) => values.extend(bytes),
                // Rows without a value have a place.
                None => values.resize(values.len() + rows as usize * field.dtype.size(), 0),
            }
        }
        self.rows += rows;
        Ok(())
    }

    /// Writes the current record batch, if it has rows.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let (mut nodes, mut buffers, mut body) = (Vec::new(), Vec::new(), Vec::new());
        for (field, (values, runs)) in self.table.fields.iter().zip(&mut self.columns) {
            let values = std::mem::take(values);
            let missing: u64 = runs.iter().filter(|(_, some)| !some).map(|(rows, _)| rows).sum();
            nodes.extend(self.rows.to_le_bytes());
            nodes.extend(missing.to_le_bytes());
            let validity = if missing == 0 { Vec::new() } else { bits(runs) };
            runs.clear();
            let place = |e: Error| e.in_object(format!("\"{}\"", field.name));
            for buffer in
                std::iter::once(validity).chain(encode(field.dtype, values).map_err(place)?)
            {
                let stored = match self.encoder {
                    Some(encoder) if !buffer.is_empty() => {
                        let packed = encoder.encode(&buffer)?;
                        [(buffer.len() as i64).to_le_bytes().to_vec(), packed].concat()
                    }
                    _ => buffer,
                };
                buffers.extend((body.len() as u64).to_le_bytes());
                buffers.extend((stored.len() as u64).to_le_bytes());
                body.extend(stored);
                body.resize(body.len().next_multiple_of(64), 0);
            }
        }
        let mut header = vec![
            (0, Item::I64(self.rows.cast_signed())),
            (1, Item::Structs(nodes, 16)),
            (2, Item::Structs(buffers, 16)),
        ];
        if self.encoder.is_some() {
            header.push((3, Item::Table(vec![(0, Item::U8(1)), (1, Item::U8(0))])));
        }
        let offset = self.sink.position();
        let metadata = self.message(RECORD_BATCH, header, &body)?;
        for number in [offset, metadata, body.len() as u64] {
            self.blocks.extend(number.to_le_bytes());
        }
        self.rows = 0;
        Ok(())
    }

    /// Writes the footer.
    pub(crate) fn finish(mut self) -> Result<()> {
        // The end of the stream.
        self.sink.write_all(&CONTINUATION)?;
        self.sink.write_all(&[0; 4])?;
        let footer = flatbuffers::write(vec![
            (0, Item::I16(VERSION)),
            (1, Item::Table(self.schema())),
            (2, Item::Structs(Vec::new(), 24)),
            (3, Item::Structs(std::mem::take(&mut self.blocks), 24)),
        ]);
        self.sink.write_all(&footer)?;
        self.sink.write_all(&(footer.len() as u32).to_le_bytes())?;
        Ok(self.sink.write_all(MAGIC)?)
    }
}

/// One bit per row.
fn bits(runs: &[(u64, bool)]) -> Vec<u8> {
    let rows =
        runs.iter().flat_map(|(rows, set)| std::iter::repeat_n(u8::from(*set), *rows as usize));
    pack(&rows.collect::<Vec<u8>>())
}

/// Bytes that are 0 or not as bits.
fn pack(flags: &[u8]) -> Vec<u8> {
    let byte = |group: &[u8]| {
        group.iter().enumerate().fold(0, |byte, (k, flag)| byte | u8::from(*flag != 0) << k)
    };
    flags.chunks(8).map(byte).collect()
}

/// The buffers of a column after the validity bitmap. Fails for strings that are not UTF-8.
fn encode(dtype: DType, values: Vec<u8>) -> Result<Vec<Vec<u8>>> {
    Ok(match dtype.kind() {
        Kind::Bool => vec![pack(&values)],
        Kind::Text => {
            let (mut offsets, mut bytes) = (vec![0; 4], Vec::new());
            for text in values.chunks_exact(dtype.size()) {
                let end = text.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
                if std::str::from_utf8(&text[..end]).is_err() {
                    return Err(Error::unsupported("arrow-011", "a string is not UTF-8"));
                }
                bytes.extend_from_slice(&text[..end]);
                offsets.extend((bytes.len() as u32).to_le_bytes());
            }
            vec![offsets, bytes]
        }
        _ => vec![values],
    })
}
