//! Any tree of groups, arrays, attributes and frames, converted to every format.

use std::sync::Arc;

use spile::dtype::{DType, Kind};
use spile::frames::{Cells, Moments};
use spile::layout::{ArrayDesc, Coord, Layout, Linear};
use spile::shape::{Order, Shape};
use spile::tree::{NodeId, ROOT, Tree, Value};
use spile::{Dataset, Result, Source};

use super::{convert, inputs};
use crate::drive::{LIMITS, show};

/// Most nodes.
const NODES: usize = 24;

const TYPES: [&str; 16] = [
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "bool",
    "text[5]",
    "opaque[3]",
    "float16",
];

/// The input as a sequence of choices; zeros at its end.
struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn text(&mut self) -> String {
        let count = self.below(12);
        String::from_utf8_lossy(self.bytes(count)).into_owned()
    }

    fn number(&mut self) -> f64 {
        let mut bytes = [0; 8];
        let taken = self.bytes(8);
        bytes[..taken.len()].copy_from_slice(taken);
        f64::from_le_bytes(bytes)
    }
}

pub fn run(data: &[u8]) {
    let (program, control) = inputs::split(data);
    match tree(&mut Choices(program)) {
        Ok(tree) => {
            let content = Dataset::new(Source::memory([]), tree);
            convert::convert(&content, inputs::target(control[0]), control[1] & 1 == 1);
        }
        Err(error) => show(&error),
    }
}

fn tree(choices: &mut Choices) -> Result<Tree> {
    let mut tree = Tree::new(&LIMITS);
    let mut groups = vec![ROOT];
    let frames = choices.below(4);
    if frames > 0 {
        let moment = |k: usize| (Some(k as u64 * 10), Some(k as f64 / 4.0));
        tree.set_frames(Arc::new(Moments((0..frames).map(moment).collect())));
    }
    while !choices.0.is_empty() && tree.len() < NODES {
        let parent = groups[choices.below(groups.len())];
        let name = choices.text();
        let id = if choices.byte().is_multiple_of(4) {
            let id = tree.add_group(parent, &name)?;
            groups.push(id);
            id
        } else {
            let desc = array(choices, frames, &tree)?;
            tree.add_array(parent, &name, desc)?
        };
        for _ in 0..choices.below(4) {
            let (name, value) = (choices.text(), value(choices, 2));
            tree.push_attr(id, &name, value)?;
        }
    }
    Ok(tree)
}

fn values(choices: &mut Choices, dtype: DType, count: u64) -> Arc<[u8]> {
    let mut bytes = choices.bytes((count as usize * dtype.size()).min(64)).to_vec();
    bytes.resize(count as usize * dtype.size(), 7);
    if dtype.kind() == Kind::Bool {
        for byte in &mut bytes {
            *byte &= 1;
        }
    }
    bytes.into()
}

fn shape(choices: &mut Choices) -> Shape {
    let rank = choices.below(4);
    Shape::new((0..rank).map(|_| choices.below(7) as u64).collect::<Vec<_>>())
}

fn array(choices: &mut Choices, frames: usize, tree: &Tree) -> Result<ArrayDesc> {
    let dtype: DType = TYPES[choices.below(TYPES.len())].parse()?;
    let shape = shape(choices);
    let kind = choices.byte();
    let order = if kind & 1 == 1 { Order::F } else { Order::C };
    let count = shape.count().unwrap_or(0);
    let layout = match kind / 2 % 4 {
        1 => Layout::Fill(values(choices, dtype, 1)),
        2 if frames > 0 => {
            let cells = (0..frames).map(|_| {
                let cell = || spile::frames::FrameCell {
                    shape: shape.clone(),
                    layout: Layout::Inline(values(choices, dtype, count), order),
                };
                let present = kind & 8 == 0;
                present.then(cell)
            });
            Layout::PerFrame(Arc::new(Cells(cells.collect())))
        }
        _ => Layout::Inline(values(choices, dtype, count), order),
    };
    let mut desc = ArrayDesc::new(dtype, shape, layout);
    for k in 0..desc.shape.rank() {
        match choices.byte() % 4 {
            1 => desc.dims[k] = choices.text(),
            2 => {
                let (start, step) = (choices.number(), choices.number());
                desc.coords[k] = Coord::Uniform { start, step };
            }
            3 => desc.coords[k] = coordinate(tree, desc.shape.lengths()[k]),
            _ => {}
        }
    }
    if kind & 16 == 16 && dtype.is_real() {
        desc.map = Some(Linear::new(choices.number(), choices.number()));
    }
    if kind & 32 == 32 && dtype.is_real() {
        desc.semantics_mut().missing.values.push(choices.number());
    }
    Ok(desc)
}

/// The first array that can be the coordinate of a dimension.
fn coordinate(tree: &Tree, length: u64) -> Coord {
    let fits = |desc: &ArrayDesc| {
        desc.shape.lengths() == [length] && desc.dtype.is_real() && desc.layout.frames().is_none()
    };
    let found: Option<NodeId> = tree.arrays().find(|(_, _, desc)| fits(desc)).map(|(id, ..)| id);
    found.map_or(Coord::None, Coord::Node)
}

fn value(choices: &mut Choices, depth: u8) -> Value {
    match choices.byte() % 9 {
        0 => Value::Bool(true),
        1 => Value::Int(choices.number() as i64),
        2 => Value::UInt(choices.number().to_bits()),
        3 => Value::Float(choices.number()),
        4 => Value::Complex(choices.number(), choices.number()),
        5 => Value::Bytes(choices.bytes(5).to_vec()),
        6 | 7 if depth > 0 => {
            Value::List((0..choices.below(4)).map(|_| value(choices, depth - 1)).collect())
        }
        _ => Value::Text(choices.text()),
    }
}
