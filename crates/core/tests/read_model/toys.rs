//! Generated files in every layout, with byte ranges scattered over the file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spile_core::chunks::{Chunk, ChunkTable, Chunks};
use spile_core::convert::swap;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::frames::{FrameCell, FrameTable};
use spile_core::layout::{ArrayDesc, Codec, Extent, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{ROOT, Tree};
use spile_core::wire::ByteOrder;

use crate::cases::{Case, Form, Via};
use crate::model::Random;

/// A file, the array in it, and its values.
pub(crate) struct Sample {
    pub source: Source,
    pub tree: Tree,
    pub desc: ArrayDesc,
    pub frame: Option<u64>,
    /// Little-endian, in stored order.
    pub values: Vec<u8>,
    /// Keeps the file until the test ends.
    _file: Option<tempfile::NamedTempFile>,
}

/// A codec: the length in four bytes, then each byte xor 0x5a. Counts calls of `decode`.
#[derive(Default)]
pub(crate) struct Xor(pub AtomicU64);

impl Xor {
    pub(crate) fn encode(plain: &[u8]) -> Vec<u8> {
        let mut out = (plain.len() as u32).to_le_bytes().to_vec();
        out.extend(plain.iter().map(|b| b ^ 0x5a));
        out
    }
}

impl Codec for Xor {
    fn name(&self) -> &'static str {
        "xor"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let expected = (out.len() as u32).to_le_bytes();
        match stored.split_first_chunk::<4>() {
            Some((length, body)) if *length == expected && body.len() == out.len() => {
                out.iter_mut().zip(body).for_each(|(o, b)| *o = b ^ 0x5a);
                Ok(())
            }
            _ => Err(Error::malformed("toy-xor", "wrong element length")),
        }
    }
}

/// A codec: two hexadecimal digits per byte.
struct Hex;

impl Codec for Hex {
    fn name(&self) -> &'static str {
        "hex"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let bad = || Error::malformed("toy-hex", "invalid hexadecimal digits");
        let text = std::str::from_utf8(stored).map_err(|_| bad())?;
        if text.len() != 2 * out.len() {
            return Err(bad());
        }
        for (k, byte) in out.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * k..2 * k + 2], 16).map_err(|_| bad())?;
        }
        Ok(())
    }
}

/// Frame 2 has the tested array, 0 and 4 have other shapes, the others do not contain it.
struct Frames {
    cell: FrameCell,
}

impl FrameTable for Frames {
    fn len(&self) -> u64 {
        6
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let other = |n: u64| FrameCell {
            shape: Shape::new([n]),
            layout: Layout::Plain { extents: Extents::one(0, n * 64), order: Order::C },
        };
        Ok(match frame {
            2 => Some(self.cell.clone()),
            0 | 4 => Some(other(frame)),
            _ => None,
        })
    }
}

/// Splits `bytes` into `parts` pieces and writes them to a file in random order with gaps.
fn scatter(random: &mut Random, bytes: &[u8], parts: u8, file: &mut Vec<u8>) -> Extents {
    let mut cuts: Vec<usize> =
        (1..parts).map(|_| random.below(bytes.len() as u64 + 1) as usize).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let mut extents = vec![Extent { offset: 0, len: 0 }; cuts.len() - 1];
    let mut order: Vec<usize> = (0..extents.len()).collect();
    for k in (1..order.len()).rev() {
        order.swap(k, random.below(k as u64 + 1) as usize);
    }
    for k in order {
        let gap = random.below(70) as usize;
        file.extend(random.bytes(gap));
        let piece = &bytes[cuts[k]..cuts[k + 1]];
        extents[k] = Extent { offset: file.len() as u64, len: piece.len() as u64 };
        file.extend_from_slice(piece);
    }
    Extents::several(extents).expect("short ranges")
}

/// Encoded elements of random lengths, unrelated to the elements of the array.
pub(crate) fn encoded(random: &mut Random, bytes: &[u8], parts: u8, file: &mut Vec<u8>) -> Layout {
    let (mut starts, mut decoded, mut data) = (vec![0], vec![0], Vec::new());
    let mut at = 0;
    while at < bytes.len() {
        // Sometimes of length 0.
        let longest = if random.below(9) == 0 { 1 } else { 1500 };
        let len = (random.below(longest) as usize).min(bytes.len() - at);
        data.extend(Xor::encode(&bytes[at..at + len]));
        at += len;
        starts.push(data.len() as u64);
        decoded.push(at as u64);
    }
    Layout::Encoded {
        starts: starts.into(),
        decoded: decoded.into(),
        data: scatter(random, &data, parts, file),
        codec: Arc::new(Xor::default()),
        order: Order::C,
    }
}

/// A table of chunks; `None` if missing.
pub(crate) struct Table(pub Vec<Option<Chunk>>);

impl ChunkTable for Table {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        self.0
            .get(number as usize)
            .cloned()
            .ok_or_else(|| Error::argument("chunk number out of bounds"))
    }
}

/// Chunks of up to 40 numbers; the values of missing chunks are set to the first value.
fn chunked(
    random: &mut Random,
    form: u8,
    shape: &[u64],
    size: usize,
    values: &mut [u8],
    stored: &mut [u8],
    file: &mut Vec<u8>,
) -> Layout {
    let rank = shape.len();
    // Sometimes larger than the array.
    let mut chunk: Vec<u64> = shape.iter().map(|n| 1 + random.below(n + 2)).collect();
    while chunk.iter().product::<u64>() > 40 {
        *chunk.iter_mut().max().expect("more than one element") /= 2;
    }
    let mut axes: Vec<usize> = (0..rank).collect();
    if form & 1 == 1 {
        axes.rotate_left(random.below(rank.max(1) as u64) as usize);
    }
    let fill: Vec<u8> = (0..size).map(|k| stored.get(k).copied().unwrap_or(0)).collect();
    let plain_fill: Vec<u8> = (0..size).map(|k| values.get(k).copied().unwrap_or(0)).collect();
    let across: Vec<u64> = shape.iter().zip(&chunk).map(|(n, c)| n.div_ceil(*c)).collect();
    let indices = |mut number: u64, lengths: &[u64]| -> Vec<u64> {
        let mut found = vec![0; lengths.len()];
        for k in (0..lengths.len()).rev() {
            (found[k], number) = (number % lengths[k], number / lengths[k]);
        }
        found
    };
    let mut table = Vec::new();
    for number in 0..across.iter().product() {
        let corner = indices(number, &across);
        let missing = form & 2 == 2 && random.below(3) == 0;
        let order: Vec<u64> = axes.iter().map(|k| chunk[*k]).collect();
        let mut bytes = Vec::new();
        for element in 0..chunk.iter().product() {
            let inside = indices(element, &order);
            let mut at = vec![0; rank];
            for (k, axis) in axes.iter().enumerate() {
                at[*axis] = corner[*axis] * chunk[*axis] + inside[k];
            }
            if at.iter().zip(shape).any(|(i, n)| i >= n) {
                bytes.extend(random.bytes(size));
                continue;
            }
            let at_byte =
                at.iter().zip(shape).fold(0, |at_byte, (i, n)| at_byte * n + i) as usize * size;
            if missing {
                stored[at_byte..at_byte + size].copy_from_slice(&fill);
                values[at_byte..at_byte + size].copy_from_slice(&plain_fill);
            }
            bytes.extend_from_slice(&stored[at_byte..at_byte + size]);
        }
        let codec: Option<Arc<dyn Codec>> = (form & 4 == 4).then(|| Arc::new(Xor::default()) as _);
        let bytes = if codec.is_some() { Xor::encode(&bytes) } else { bytes };
        let parts = 1 + random.below(3) as u8;
        let extents = scatter(random, &bytes, parts, file);
        table.push((!missing).then_some(Chunk { extents, codec }));
    }
    let table = Arc::new(Table(table));
    let (shape, chunk, fill) = (Shape::new(shape), Shape::new(chunk), fill.into());
    Layout::Chunked { chunks: Arc::new(Chunks { shape, chunk, axes, table, fill }), first: 0 }
}

pub(crate) fn sample(case: &Case) -> Sample {
    let mut random = Random(case.seed);
    let (dtype, order) = (case.dtype, case.order);
    let bytes = case.bytes() as usize;
    let mut values = random.bytes(bytes);
    if case.form == Form::Fill {
        let element = random.bytes(dtype.size());
        values = element.iter().copied().cycle().take(bytes).collect();
    }
    let mut stored = values.clone();
    if dtype.order() == ByteOrder::Big {
        swap(&mut stored, dtype.word());
    }
    let mut file = Vec::new();
    let plain = |random: &mut Random, file: &mut Vec<u8>, parts| Layout::Plain {
        extents: scatter(random, &stored, parts, file),
        order,
    };
    let layout = match case.form {
        Form::Plain(parts) => plain(&mut random, &mut file, parts),
        Form::Same | Form::PerFrame => plain(&mut random, &mut file, 2),
        Form::Inline => Layout::Inline(values.clone().into(), order),
        Form::Fill => {
            let size = dtype.size().min(values.len());
            // An empty array has a fill value, too.
            let element = if size == 0 { vec![0; dtype.size()] } else { values[..size].to_vec() };
            Layout::Fill(element.into())
        }
        Form::Encoded(parts) => {
            let mut layout = encoded(&mut random, &stored, parts, &mut file);
            if let Layout::Encoded { order: own, .. } = &mut layout {
                *own = order;
            }
            layout
        }
        Form::Text => {
            let digit = |b: u8| char::from_digit(u32::from(b), 16).expect("four bits");
            let text: String = values.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect();
            let extents = scatter(&mut random, text.as_bytes(), 3, &mut file);
            Layout::EncodedWhole { extents, codec: Arc::new(Hex), order }
        }
        Form::Rows(gap) => {
            let stride = dtype.size() + usize::from(gap);
            let mut table = Vec::new();
            for element in stored.chunks(dtype.size()) {
                // The last row ends with its element, without a gap.
                table.resize(table.len().next_multiple_of(stride), 0xee);
                table.extend_from_slice(element);
            }
            let extents = scatter(&mut random, &table, 3, &mut file);
            Layout::Rows { extents, stride: stride as u64, order }
        }
        Form::Chunked(form) => chunked(
            &mut random,
            form,
            &case.shape,
            dtype.size(),
            &mut values,
            &mut stored,
            &mut file,
        ),
        Form::Ragged => {
            let starts = [0, stored.len() as u64 / 3, stored.len() as u64].into();
            Layout::Ragged { starts, data: scatter(&mut random, &stored, 3, &mut file) }
        }
    };
    let gap = random.below(20) as usize;
    file.extend(random.bytes(gap));

    let mut tree = Tree::new(&Limits::default());
    let shape = Shape::new(case.shape.clone());
    let mut desc = match case.form {
        Form::PerFrame => {
            let table = Frames { cell: FrameCell { shape: shape.clone(), layout } };
            ArrayDesc::new(dtype, shape, Layout::PerFrame(Arc::new(table)))
        }
        Form::Ragged => ArrayDesc::new(DType::opaque(1), Shape::new([2]), layout),
        _ => ArrayDesc::new(dtype, shape, layout),
    };
    let id = tree.add_array(ROOT, "array", desc.clone()).expect("one array fits");
    if case.form == Form::Same {
        desc.layout = Layout::Same(id);
        tree.add_array(ROOT, "again", desc.clone()).expect("two arrays fit");
    }
    let (source, kept) = open(&file, case.via);
    let frame = (case.form == Form::PerFrame).then_some(2);
    Sample { source, tree, desc, frame, values, _file: kept }
}

fn open(bytes: &[u8], via: Via) -> (Source, Option<tempfile::NamedTempFile>) {
    match via {
        Via::Memory => (Source::memory(bytes), None),
        Via::Mapped => (Source::map_copy(bytes).expect("a mapped copy"), None),
        Via::Positioned => {
            let file = tempfile::NamedTempFile::new().expect("a temporary file");
            std::fs::write(file.path(), bytes).expect("written");
            (Source::open(file.path()).expect("opened"), Some(file))
        }
    }
}
