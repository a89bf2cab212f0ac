//! Data of a new MAT-file.

use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::read::Axes;
use spile_core::select::{Selection, Slice};
use spile_core::shape::{Order, Shape};
use spile_core::sink::Sink;

use super::builder::{Builder, Elements};
use crate::from_tree::chunks::{ChunkOptions, NamedDim};
use crate::write::{Addresses, ObjectKind};

/// Length of the user block in bytes.
pub(super) const USER_BLOCK: u64 = 512;

impl Builder<'_> {
    /// Sets the chunks of all variables. The dimensions of the file are those of the variable in reverse.
    pub(super) fn set_chunks(&mut self, mut options: ChunkOptions) -> Result<()> {
        if !options.is_set() {
            return Ok(());
        }
        for (object, elements) in &self.data {
            let ObjectKind::Dataset { dims, bytes, .. } = &self.plan.objects[*object].kind else {
                continue;
            };
            // The lengths of an empty variable.
            if self.plan.objects[*object].attributes.iter().any(|a| a.name == "MATLAB_empty") {
                continue;
            }
            let (source, is_frames) = match elements {
                Elements::Array(id) => (self.flat.tree().node(*id).array.as_ref(), false),
                Elements::Frames(id, _) => (self.content.tree().node(*id).array.as_ref(), true),
                Elements::Bytes(_) => (None, false),
            };
            let own = source.map_or(&[][..], |desc| &desc.dims[..]);
            let named = dims.iter().rev().enumerate().map(|(k, len)| {
                let frame = (is_frames && k == own.len()).then_some("frame");
                let names = own.get(k).map(String::as_str).into_iter().chain(frame).collect();
                NamedDim { len: *len, names }
            });
            let mut named: Vec<NamedDim<'_>> = named.collect();
            named.reverse();
            let count = Shape::new(&dims[..]).count().unwrap_or(0);
            let element = bytes.checked_div(count).unwrap_or(0) as usize;
            let chunking = options.chunking(&named, element, true, is_frames);
            self.plan.objects[*object].chunking = chunking;
        }
        options.check()
    }

    pub(super) fn write(&self, sink: &Sink) -> Result<()> {
        sink.write_all_at(0, &user_block())?;
        let mut addresses = self.plan.start(sink)?;
        for (object, elements) in &self.data {
            match self.plan.data_offset(&addresses, *object) {
                Some(at) => self.write_contiguous(sink, at, elements)?,
                None => self.write_chunks(sink, &mut addresses, *object, elements)?,
            }
        }
        self.plan.finish(sink, &addresses)
    }

    fn write_contiguous(&self, sink: &Sink, at: u64, elements: &Elements) -> Result<()> {
        match elements {
            Elements::Bytes(bytes) => sink.write_all_at(at, bytes),
            Elements::Array(id) => {
                let size = self.flat.tree().node(*id).array.as_ref();
                let size = size.map_or(1, |desc| desc.dtype.size()) as u64;
                let write = |first: u64, bytes: &[u8]| sink.write_all_at(at + first * size, bytes);
                self.flat.for_each(*id, Order::F, write)
            }
            Elements::Frames(id, frames) => {
                let mut end = at;
                for frame in 0..*frames {
                    let Some(array) = self.content.array_in_frame(*id, frame)? else {
                        continue;
                    };
                    let selected = array.select(&Selection::all(), Axes::Order(Order::F))?;
                    selected.stream(|_, bytes| {
                        sink.write_all_at(end, bytes)?;
                        end += bytes.len() as u64;
                        Ok(())
                    })?;
                }
                Ok(())
            }
        }
    }

    /// Writes the chunks of a variable, if it has some.
    fn write_chunks(
        &self,
        sink: &Sink,
        addresses: &mut Addresses,
        object: usize,
        elements: &Elements,
    ) -> Result<()> {
        let Some(chunking) = &self.plan.objects[object].chunking else { return Ok(()) };
        let ObjectKind::Dataset { dims, .. } = &self.plan.objects[object].kind else {
            return Ok(());
        };
        let range = |(start, len): (&u64, &u64)| Slice::range(*start, start + len);
        let ranges = |start: &[u64], lengths: &[u64]| -> Vec<Slice> {
            start.iter().zip(lengths).map(range).collect()
        };
        match elements {
            Elements::Bytes(bytes) => {
                let layout = Layout::Inline(bytes.clone(), Order::C);
                let dtype = DType::opaque(chunking.element as u32);
                let desc = ArrayDesc::new(dtype, Shape::new(&dims[..]), layout);
                let array = self.content.open_array(&desc)?;
                let read = |start: &[u64], lengths: &[u64]| {
                    let selection = Selection(ranges(start, lengths));
                    array.read_bytes(&selection, Axes::Order(Order::C))
                };
                self.plan.write_chunks(sink, addresses, object, self.content, read)
            }
            Elements::Array(id) => {
                let rank = self.flat.tree().node(*id).array.as_ref();
                let rank = rank.map_or(0, |desc| desc.shape.rank());
                let regions = self.flat.open_regions(*id, Order::F)?;
                let read = |start: &[u64], lengths: &[u64]| {
                    // The file has two dimensions at least; additional ones have length 1.
                    let own = |all: &[u64]| -> Vec<u64> {
                        all.iter().rev().take(rank).copied().collect()
                    };
                    regions.read(&own(start), &own(lengths))
                };
                self.plan.write_chunks(sink, addresses, object, self.content, read)
            }
            Elements::Frames(id, _) => {
                let read = |start: &[u64], lengths: &[u64]| {
                    let mut ranges = ranges(&start[1..], &lengths[1..]);
                    ranges.reverse();
                    let mut out = Vec::new();
                    for frame in start[0]..start[0] + lengths[0] {
                        let Some(array) = self.content.array_in_frame(*id, frame)? else {
                            continue;
                        };
                        let mut own = ranges.clone();
                        own.truncate(array.shape().rank());
                        out.extend(array.read_bytes(&Selection(own), Axes::Order(Order::F))?);
                    }
                    Ok(out)
                };
                self.plan.write_chunks(sink, addresses, object, self.content, read)
            }
        }
    }
}

/// 116 bytes of text, 8 bytes that MATLAB reserves, version 2.0 and the byte order.
fn user_block() -> Vec<u8> {
    let text = concat!(
        "MATLAB 7.3 MAT-file, Platform: spile ",
        env!("CARGO_PKG_VERSION"),
        ", Created on: Thu Jan  1 00:00:00 1970 HDF5 schema 1.00 ."
    );
    let mut block = format!("{text:<116}").into_bytes();
    block.truncate(116);
    block.extend([0; 8]);
    block.extend([0x00, 0x02, b'I', b'M']);
    block.resize(USER_BLOCK as usize, 0);
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_block_has_version_and_byte_order() {
        let block = user_block();
        assert_eq!((block.len(), &block[124..128]), (512, &[0, 2, b'I', b'M'][..]));
        assert!(block.starts_with(b"MATLAB 7.3 MAT-file"));
    }
}
