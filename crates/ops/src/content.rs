//! The digest of a file's content, independent of how it is stored.
//!
//! `docs/json.md` describes the digested bytes; `Canon` implements that description.

use rayon::prelude::*;
use sha2::{Digest as _, Sha256};
use spile_core::{
    Array, ArrayDesc, Attrs, Axes, ByteOrder, Coord, Dataset, Node, NodeId, Order, ROOT, Result,
    Shape, Tree, Value,
};

use crate::hash::{self, BATCH, Sum, batches, quoted};
use crate::json::hex;
use crate::pick::Pick;

/// The digest of everything in a file. Equal for equal content in another byte order, element order,
/// compression, file format or order of objects.
pub fn content(dataset: &Dataset) -> Result<String> {
    hash::require_complete(dataset)?;
    let tree = dataset.tree();
    let mut canon = Canon(Sha256::new());
    canon.text("spile content 1");
    canon.frames(tree)?;
    let mut nodes: Vec<(NodeId, &Node)> = tree.iter().collect();
    nodes.sort_by(|a, b| a.1.path.cmp(&b.1.path));
    canon.number(nodes.len() as u64 + 1);
    canon.node(tree.node(ROOT));
    for batch in nodes.chunks(BATCH) {
        // Values in parallel, then everything in order.
        let sums = batch
            .par_iter()
            .map(|(_, node)| values(dataset, node).map_err(|e| e.in_object(quoted(node))))
            .collect::<Result<Vec<_>>>()?;
        for ((_, node), sum) in batch.iter().zip(sums) {
            canon.node(node);
            if let (Some(own), Some(sum)) = (&node.array, sum) {
                canon.array(tree, own)?;
                canon.0.update(sum);
            }
        }
    }
    Ok(hex(&canon.0.finalize()))
}

/// The canonical form, digested piece by piece.
struct Canon(Sha256);

impl Canon {
    fn number(&mut self, n: u64) {
        self.0.update(n.to_le_bytes());
    }

    fn real(&mut self, v: f64) {
        self.0.update(v.to_bits().to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn shape(&mut self, shape: &Shape) {
        self.number(shape.rank() as u64);
        shape.lengths().iter().for_each(|n| self.number(*n));
    }

    /// A byte that indicates whether a value follows.
    fn option<T>(&mut self, value: Option<T>, write: impl Fn(&mut Self, T)) {
        self.0.update([u8::from(value.is_some())]);
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn frames(&mut self, tree: &Tree) -> Result<()> {
        let axis = tree.frames();
        self.option(axis.map(|a| a.len()), Self::number);
        for (axis, frame) in axis.into_iter().flat_map(|a| (0..a.len()).map(move |f| (a, f))) {
            self.option(axis.step(frame)?, Self::number);
            self.option(axis.time(frame)?, Self::real);
        }
        Ok(())
    }

    fn node(&mut self, node: &Node) {
        self.text(&node.path);
        self.0.update(if node.array.is_some() { b"a" } else { b"g" });
        self.attrs(&node.attrs);
    }

    fn attrs(&mut self, attrs: &Attrs) {
        let mut sorted: Vec<_> = attrs.iter().collect();
        // Stable: attributes of the same name stay in the order of the file.
        sorted.sort_by(|a, b| a.0.cmp(b.0));
        self.number(sorted.len() as u64);
        for (name, value) in sorted {
            self.text(name);
            self.value(value);
        }
    }

    fn value(&mut self, value: &Value) {
        // Equal signed and unsigned numbers are the same content.
        let whole = |this: &mut Self, n: i128| {
            this.0.update(b"i");
            this.0.update(n.to_le_bytes());
        };
        match value {
            Value::Bool(v) => self.0.update([b'b', u8::from(*v)]),
            Value::Int(v) => whole(self, i128::from(*v)),
            Value::UInt(v) => whole(self, i128::from(*v)),
            Value::Float(v) => {
                self.0.update(b"f");
                self.real(*v);
            }
            Value::Complex(re, im) => {
                self.0.update(b"c");
                self.real(*re);
                self.real(*im);
            }
            Value::Text(v) => {
                self.0.update(b"t");
                self.text(v);
            }
            Value::Bytes(v) => {
                self.0.update(b"y");
                self.bytes(v);
            }
            Value::List(v) => {
                self.0.update(b"l");
                self.number(v.len() as u64);
                for item in v {
                    self.value(item);
                }
            }
        }
    }

    fn array(&mut self, tree: &Tree, own: &ArrayDesc) -> Result<()> {
        let desc = tree.resolve(own)?;
        self.text(&desc.dtype.with_order(ByteOrder::Little).to_string());
        self.shape(&desc.shape);
        self.number(own.dims.len() as u64);
        own.dims.iter().for_each(|name| self.text(name));
        self.number(own.coords.len() as u64);
        for coord in &own.coords {
            match coord {
                Coord::None => self.0.update(b"n"),
                Coord::Uniform { start, step } => {
                    self.0.update(b"u");
                    self.real(*start);
                    self.real(*step);
                }
                Coord::Node(id) => {
                    self.0.update(b"p");
                    self.text(&tree.node(*id).path);
                }
            }
        }
        self.option(desc.map, |this, map| {
            let (intercept, slope) = map.coefficients();
            this.real(intercept);
            this.real(slope);
        });
        Ok(())
    }
}

/// The digest of an array's values in canonical form; none for a group.
fn values(dataset: &Dataset, node: &Node) -> Result<Option<Sum>> {
    let Some(own) = &node.array else { return Ok(None) };
    let tree = dataset.tree();
    let desc = tree.resolve(own)?;
    let mut canon = Canon(Sha256::new());
    if let Some(table) = desc.layout.frames() {
        canon.0.update(b"f");
        canon.number(table.len());
        let mut next = 0;
        let absent = |canon: &mut Canon, frames: std::ops::Range<u64>| {
            frames.for_each(|_| canon.option(None::<()>, |_, ()| {}));
        };
        let present = Pick::default().frames_of(&[&**table])?;
        batches(present, |frames| {
            let work = |frame: &u64| -> Result<Option<(Shape, Sum)>> {
                let Some(array) = dataset.open_array_in_frame(own, *frame)? else {
                    return Ok(None);
                };
                Ok(Some((array.shape().clone(), sum(&array)?)))
            };
            let cells = frames
                .par_iter()
                .map(|f| work(f).map_err(|e| e.in_frame(*f)))
                .collect::<Result<Vec<_>>>()?;
            for (frame, cell) in frames.iter().zip(cells) {
                absent(&mut canon, next..*frame);
                next = frame + 1;
                canon.option(cell, |this, (shape, sum)| {
                    this.shape(&shape);
                    this.0.update(sum);
                });
            }
            Ok(())
        })?;
        absent(&mut canon, next..table.len());
    } else {
        canon.0.update(b"v");
        canon.option(lengths(desc), |this, starts| {
            this.number(starts.len().saturating_sub(1) as u64);
            starts.windows(2).for_each(|w| this.number(w[1].saturating_sub(w[0])));
        });
        let array = dataset.open_array(own)?;
        canon.0.update(sum(&array)?);
    }
    Ok(Some(canon.0.finalize().into()))
}

/// The digest of all elements in C order, without the padding of 80-bit numbers.
fn sum(array: &Array) -> Result<Sum> {
    let (word, used) = (array.dtype().word(), array.dtype().used());
    if word == used {
        return hash::sum(array, Axes::Order(Order::C));
    }
    let mut hasher = Sha256::new();
    let mut clean = Vec::new();
    array.all_in(Order::C)?.stream(|_, block| {
        clean.clear();
        clean.extend_from_slice(block);
        clean.chunks_exact_mut(word).for_each(|word| word[used..].fill(0));
        hasher.update(&clean);
        Ok(())
    })?;
    Ok(hasher.finalize().into())
}

/// Start of each element in bytes, for elements of variable length.
fn lengths(desc: &ArrayDesc) -> Option<&[u64]> {
    let size = desc.dtype.size() as u64;
    let even = |starts: &&[u64]| starts.windows(2).all(|w| w[1].saturating_sub(w[0]) == size);
    desc.ragged().filter(|starts| !even(starts))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use spile_core::dtype::{DType, Kind};
    use spile_core::layout::{Codec, Extent, Extents, Layout};
    use spile_core::limits::Limits;
    use spile_core::source::Source;

    struct Asis;

    impl Codec for Asis {
        fn name(&self) -> &'static str {
            "as is"
        }
        fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
            out.copy_from_slice(stored);
            Ok(())
        }
    }

    /// A 2 x 3 array `a` and a scalar `b`, in this order or the other.
    fn digest(bytes: &[u8], layout: Layout, dtype: DType, swapped: bool, note: &str) -> String {
        let limits = Limits::default();
        let mut tree = Tree::new(&limits);
        let scalar = ArrayDesc::new(DType::U8, Shape::scalar(), Layout::Fill([7].into()));
        if swapped {
            tree.add_array(ROOT, "b", scalar.clone()).unwrap();
        }
        let a = tree.add_array(ROOT, "a", ArrayDesc::new(dtype, Shape::new([2, 3]), layout));
        let attrs = &mut tree.node_mut(a.unwrap()).attrs;
        let mut list = vec![("note", Value::from(note))];
        list.insert(usize::from(!swapped), ("k", Value::UInt(3)));
        attrs.extend(list);
        if !swapped {
            tree.add_array(ROOT, "b", scalar).unwrap();
        }
        content(&Dataset::new(Source::memory(bytes), tree)).unwrap()
    }

    #[test]
    fn the_digest_is_the_same_in_every_layout_and_changes_with_every_word() {
        let big = DType::U16.with_order(ByteOrder::Big);
        let plain = |extents, order| Layout::Plain { extents, order };
        let c = [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0];
        let first = digest(&c, plain(Extents::one(0, 12), Order::C), DType::U16, false, "x");
        let f_big = [0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6];
        let second = digest(&f_big, plain(Extents::one(0, 12), Order::F), big, true, "x");
        assert_eq!(first, second);
        // Computed from the description in docs/json.md by a program of its own.
        assert_eq!(first, "28d27e43cfdad67889f688dfc83ed9709f28fc26ff16766ec10c1f8d33732aaa");
        let parts = vec![Extent { offset: 6, len: 6 }, Extent { offset: 0, len: 6 }];
        let split = [4, 0, 5, 0, 6, 0, 1, 0, 2, 0, 3, 0];
        let layout = plain(Extents::several(parts).unwrap(), Order::C);
        assert_eq!(first, digest(&split, layout, DType::U16, false, "x"));

        let base = || plain(Extents::one(0, 12), Order::C);
        assert_ne!(first, digest(&c, base(), DType::U16, false, "y"));
        assert_ne!(first, digest(&c, base(), DType::I16, false, "x"));
        assert_ne!(first, digest(&c, plain(Extents::one(0, 12), Order::F), DType::U16, false, "x"));
    }

    #[test]
    fn what_lies_behind_80_bits_is_not_content() {
        let x87 = DType::new(Kind::X87, 16, ByteOrder::Little).unwrap();
        let layout = || Layout::contiguous(0, 96, Order::C);
        let number = |last: u8, room: u8| [[last; 10].as_slice(), &[room; 6]].concat().repeat(6);
        let digest = |bytes: Vec<u8>| digest(&bytes, layout(), x87, false, "x");
        assert_eq!(digest(number(1, 0)), digest(number(1, 9)));
        assert_ne!(digest(number(1, 0)), digest(number(2, 0)));
    }

    #[test]
    fn lengths_of_elements_are_content() {
        let ragged = |starts: Vec<u64>| {
            let layout = Layout::Ragged { starts: starts.into(), data: Extents::one(0, 6) };
            digest(b"abcdef", layout, DType::opaque(1), false, "x")
        };
        assert_ne!(ragged(vec![0, 1, 3, 6]), ragged(vec![0, 2, 3, 6]));
        let encoded = |starts: &[u64], dtype| {
            let (starts, codec) = (Arc::<[u64]>::from(starts), Arc::new(Asis));
            let (data, decoded) = (Extents::one(0, 12), starts.clone());
            let layout = Layout::Encoded { starts, decoded, data, codec, order: Order::C };
            digest(&[1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0], layout, dtype, false, "x")
        };
        // The parts in which an array is encoded are not content.
        let rows = encoded(&[0, 6, 12], DType::U16);
        assert_eq!(rows, encoded(&[0, 1, 12], DType::U16));
        let plain = Layout::contiguous(0, 12, Order::C);
        let whole = digest(&[1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0], plain, DType::U16, false, "x");
        assert_eq!(rows, whole);
        let plain = Layout::contiguous(0, 6, Order::C);
        let even = digest(b"abcdef", plain, DType::opaque(1), false, "x");
        assert_eq!(ragged(vec![0, 1, 2, 3, 4, 5, 6]), even);
    }
}
