//! Data of a new file.

use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::layout::Layout;
use spile_core::shape::{Order, Shape};
use spile_core::sink::Sink;
use spile_core::tree::NodeId;
use spile_core::wire::ByteOrder;

use super::chunks::{ChunkOptions, NamedDim};
use super::{DataSource, Flavor, Writer, is_half};
use crate::write::{Addresses, ObjectKind};

/// Coordinates of a uniform dimension that are written at once.
const COORDINATES: u64 = 1 << 16;

impl Writer {
    /// Sets the chunks of all arrays. Uniform coordinates stay contiguous.
    pub(super) fn set_chunks(&mut self, mut options: ChunkOptions) -> Result<()> {
        if !options.is_set() {
            return Ok(());
        }
        for (object, source) in &self.data {
            let (object, DataSource::Array(id)) = (*object, *source) else { continue };
            let ObjectKind::Dataset { dims, bytes, .. } = &self.plan.objects[object].kind else {
                continue;
            };
            let Some(array) = &self.flat.tree().node(id).array else { continue };
            let file_names: Vec<&str> = self.dimensions.names(id).collect();
            let named = dims.iter().enumerate().map(|(k, len)| {
                let names = array.dims.get(k).map(String::as_str).into_iter();
                NamedDim { len: *len, names: names.chain(file_names.get(k).copied()).collect() }
            });
            let named: Vec<NamedDim<'_>> = named.collect();
            let count = Shape::new(&dims[..]).count().unwrap_or(0);
            let element = bytes.checked_div(count).unwrap_or(0) as usize;
            let shuffle = !matches!(array.dtype.kind(), Kind::Text | Kind::Opaque);
            let frames = array.dims.first().is_some_and(|name| name == "frame");
            let chunking = options.chunking(&named, element, shuffle, frames);
            self.plan.objects[object].chunking = chunking;
        }
        options.check()
    }

    /// Writes all data, then all metadata.
    pub(super) fn write(&self, sink: &Sink) -> Result<()> {
        let mut addresses = self.plan.start(sink)?;
        for (object, source) in &self.data {
            match (self.plan.data_offset(&addresses, *object), source) {
                (Some(at), _) => self.write_data(sink, at, *source)?,
                (None, DataSource::Array(id)) => {
                    let in_array = |e: Error| e.in_object(format!("\"{}\"", self.path(*id)));
                    let written = self.write_chunks(sink, &mut addresses, *object, *id);
                    written.map_err(in_array)?;
                }
                _ => {}
            }
        }
        self.plan.finish(sink, &addresses)
    }

    /// Writes the chunks of an array, if it has some.
    fn write_chunks(
        &self,
        sink: &Sink,
        addresses: &mut Addresses,
        object: usize,
        id: NodeId,
    ) -> Result<()> {
        if self.plan.objects[object].chunking.is_none() {
            return Ok(());
        }
        let rank = self.flat.tree().node(id).array.as_ref().map_or(0, |array| array.shape.rank());
        let regions = self.flat.open_regions(id, Order::C)?;
        // netCDF texts have another dimension, of their characters.
        let read = |start: &[u64], lengths: &[u64]| {
            let bytes = regions.read(&start[..rank], &lengths[..rank])?;
            Ok(self.converted(id, &bytes).unwrap_or(bytes))
        };
        self.plan.write_chunks(sink, addresses, object, self.flat.content(), read)
    }

    fn path(&self, id: NodeId) -> &str {
        &self.flat.tree().node(id).path
    }

    /// Elements in the type of the file; `None` if that is their own.
    fn converted(&self, id: NodeId, bytes: &[u8]) -> Option<Vec<u8>> {
        let dtype = self.flat.tree().node(id).array.as_ref()?.dtype;
        (self.flavor == Flavor::NetCdf && is_half(dtype)).then(|| {
            let (mut numbers, mut out) = (Vec::new(), Vec::new());
            convert::to_f64(dtype.with_order(ByteOrder::Little), None, bytes, &mut numbers);
            convert::from_f64(DType::F32, None, &numbers, &mut out);
            out
        })
    }

    fn write_data(&self, sink: &Sink, at: u64, source: DataSource) -> Result<()> {
        match source {
            DataSource::Array(id) => {
                let array = self.flat.tree().node(id).array.as_ref();
                // New files consist of zeros.
                if array.is_some_and(
                    |array| matches!(&array.layout, Layout::Fill(v) if v.iter().all(|b| *b == 0)),
                ) {
                    return Ok(());
                }
                let dtype = array.map_or(DType::U8, |array| array.dtype);
                let in_array = |e: Error| e.in_object(format!("\"{}\"", self.path(id)));
                let write = |first: u64, bytes: &[u8]| match self.converted(id, bytes) {
                    Some(converted) => sink.write_all_at(at + first * 4, &converted),
                    None => sink.write_all_at(at + first * dtype.size() as u64, bytes),
                };
                self.flat.for_each(id, Order::C, write).map_err(in_array)
            }
            DataSource::Uniform { start, step, len } => {
                let mut buffer = Vec::new();
                for first in (0..len).step_by(COORDINATES as usize) {
                    buffer.clear();
                    for k in first..len.min(first + COORDINATES) {
                        buffer.extend((start + k as f64 * step).to_le_bytes());
                    }
                    sink.write_all_at(at + first * 8, &buffer)?;
                }
                Ok(())
            }
        }
    }
}
