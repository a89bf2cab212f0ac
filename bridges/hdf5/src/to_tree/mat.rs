//! MAT-files of version 7.3: variables in MATLAB's order of dimensions and with its types.

use std::sync::{Arc, OnceLock};

use spile_core::Dataset;
use spile_core::chunks::{Chunk, ChunkTable, Chunks};
use spile_core::dtype::{DType, Kind};
use spile_core::error::Result;
use spile_core::format::{OpenOptions, Parsed};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{NodeId, Tree};
use spile_core::wire::ByteOrder;

/// Most dimensions of an empty array.
const MOST_DIMENSIONS: u64 = 32;

/// Opens a MAT-file. Dimensions are in MATLAB's order, logical variables are bool.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let mut parsed = super::open(source, options)?;
    let arrays: Vec<NodeId> = parsed.tree.arrays().map(|(id, ..)| id).collect();
    for id in arrays {
        let node = parsed.tree.node(id);
        let Some(class) = node.attrs.get_str("MATLAB_class").map(str::to_string) else { continue };
        let is_empty = node.attrs.get_u64("MATLAB_empty").is_some_and(|empty| empty != 0);
        let Some(desc) = &node.array else { continue };
        let mut new = desc.clone();
        new.meaning = None;
        if is_empty {
            if let Some(lengths) = read_lengths(&parsed, desc, &options.limits)? {
                let dtype = dtype_of(&class).unwrap_or(DType::U8);
                let layout = Layout::Inline([].into(), Order::C);
                new = ArrayDesc::new(dtype, Shape::new(lengths), layout);
            }
        } else {
            let reversed: Vec<u64> = desc.shape.lengths().iter().rev().copied().collect();
            if let Some(layout) = transposed(&desc.layout) {
                new.layout = layout;
                new.shape = Shape::new(reversed);
                new.coords.reverse();
                if desc.dims != ArrayDesc::default_dims(desc.dims.len()) {
                    new.dims.reverse();
                }
            }
            if class == "logical" && new.dtype == DType::U8 {
                new.dtype = DType::new(Kind::Bool, 1, ByteOrder::Little).unwrap_or(new.dtype);
            }
        }
        parsed.tree.node_mut(id).array = Some(new);
    }
    Ok(parsed)
}

/// The layout of the same elements with the dimensions in reverse; `None` for columns of a table.
fn transposed(layout: &Layout) -> Option<Layout> {
    let chunks = match layout {
        Layout::Chunked { chunks, first: 0 } => chunks,
        // The array it refers to is transposed, too.
        Layout::Same(_) => return Some(layout.clone()),
        _ => return layout.in_order(Order::F),
    };
    let reversed =
        |shape: &Shape| Shape::new(shape.lengths().iter().rev().copied().collect::<Vec<_>>());
    let last = chunks.axes.len().checked_sub(1)?;
    let (table, grid) = (chunks.table.clone(), chunks.grid());
    let table = Arc::new(Transposed { table, grid, numbers: OnceLock::new() });
    let chunks = Chunks {
        shape: reversed(&chunks.shape),
        chunk: reversed(&chunks.chunk),
        axes: chunks.axes.iter().map(|axis| last - axis).collect(),
        table,
        fill: chunks.fill.clone(),
    };
    Some(Layout::Chunked { chunks: Arc::new(chunks), first: 0 })
}

/// Chunks that are counted with the first dimension of their grid fastest.
struct Transposed {
    table: Arc<dyn ChunkTable>,
    grid: Shape,
    /// Numbers of all stored chunks, sorted, once they were needed.
    numbers: OnceLock<Vec<u64>>,
}

impl Transposed {
    /// The number of a chunk in `to` order whose number in `from` order is `number`.
    fn renumbered(&self, number: u64, from: Order, to: Order) -> u64 {
        let (from, to) = (self.grid.strides(from), self.grid.strides(to));
        let lengths = self.grid.lengths().iter().zip(from.iter().zip(&to));
        lengths.map(|(count, (from, to))| number / (*from).max(1) % (*count).max(1) * to).sum()
    }
}

impl ChunkTable for Transposed {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        self.table.chunk(self.renumbered(number, Order::F, Order::C))
    }

    fn stored(&self) -> Option<u64> {
        self.table.stored()
    }

    fn next(&self, number: u64) -> Result<Option<u64>> {
        let numbers = if let Some(numbers) = self.numbers.get() {
            numbers
        } else {
            let (mut found, mut from) = (Vec::new(), 0);
            while let Some(stored) = self.table.next(from)? {
                found.push(self.renumbered(stored, Order::C, Order::F));
                from = stored.saturating_add(1);
            }
            found.sort_unstable();
            self.numbers.get_or_init(|| found)
        };
        let k = numbers.partition_point(|known| *known < number);
        Ok(numbers.get(k).copied())
    }
}

/// The lengths that an empty variable stores instead of elements.
fn read_lengths(parsed: &Parsed, desc: &ArrayDesc, limits: &Limits) -> Result<Option<Vec<u64>>> {
    let is_list = desc.dtype.with_order(ByteOrder::Little) == DType::U64;
    if !is_list || desc.shape.count().is_none_or(|count| count > MOST_DIMENSIONS) {
        return Ok(None);
    }
    let dataset = Dataset::new(parsed.source.clone(), Tree::new(limits));
    let bytes = dataset.open_array(desc)?.read_bytes(&Selection::all(), Axes::Order(Order::C))?;
    let (numbers, _) = bytes.as_chunks::<8>();
    let lengths: Vec<u64> = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    Ok(lengths.contains(&0).then_some(lengths))
}

/// The element type of a class.
fn dtype_of(class: &str) -> Option<DType> {
    Some(match class {
        "double" => DType::F64,
        "single" => DType::F32,
        "int8" => DType::I8,
        "int16" => DType::I16,
        "int32" => DType::I32,
        "int64" => DType::I64,
        "uint8" => DType::U8,
        "uint16" | "char" => DType::U16,
        "uint32" => DType::U32,
        "uint64" => DType::U64,
        "logical" => DType::new(Kind::Bool, 1, ByteOrder::Little)?,
        _ => return None,
    })
}
