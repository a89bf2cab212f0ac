//! Have two files the same content?

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::dataset::Dataset;
use crate::error::Result;
use crate::layout::{ArrayDesc, Coord, Layout, Linear};
use crate::read::{Array, Axes};
use crate::select::Selection;
use crate::semantics::Semantics;
use crate::shape::Order;
use crate::tree::{Attrs, NodeId, Tree, Value};
use crate::wire::ByteOrder;

/// Fails unless `a` and `b` have the same content; see [`differences`].
///
/// # Panics
/// That is its purpose.
pub fn assert_same_content(a: &Dataset, b: &Dataset) {
    match differences(a, b) {
        Ok(found) => {
            assert!(found.is_empty(), "the content is not the same:\n  {}", found.join("\n  "));
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// What is not the same in `a` and `b`: paths, attributes, element types (but not their byte
/// order), shapes, names and points of dimensions, linear maps, frames and values, bit for bit.
/// How the bytes are stored does not matter.
pub fn differences(a: &Dataset, b: &Dataset) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let nodes = |dataset: &Dataset| -> BTreeMap<String, NodeId> {
        dataset.tree().iter().map(|(id, node)| (node.path.clone(), id)).collect()
    };
    let (left, right) = (nodes(a), nodes(b));
    found.extend(left.keys().filter(|p| !right.contains_key(*p)).map(|p| format!("{p}: lost")));
    found.extend(right.keys().filter(|p| !left.contains_key(*p)).map(|p| format!("{p}: new")));
    attrs("the file", a.tree().attrs(), b.tree().attrs(), &mut found);
    frames(a.tree(), b.tree(), &mut found)?;
    for (path, x) in &left {
        let Some(y) = right.get(path) else { continue };
        let (own, other) = ((a, *x), (b, *y));
        let (x, y) = (a.tree().node(*x), b.tree().node(*y));
        attrs(path, &x.attrs, &y.attrs, &mut found);
        match (&x.array, &y.array) {
            (Some(x), Some(y)) => arrays(path, (own, x), (other, y), &mut found)?,
            (None, None) => {}
            _ => found.push(format!("{path}: a group here, an array there")),
        }
    }
    Ok(found)
}

/// The SHA-256 of every object of a file ([`Dataset::objects`]), in the order of the file: stored
/// values as little-endian bytes, in stored order, before any linear map.
pub fn object_hashes(dataset: &Dataset) -> Result<Vec<String>> {
    let mut hashes = Vec::new();
    dataset.objects(&mut |object| {
        let array = dataset.open_array(&object.array)?;
        hashes.push(hash(&array, Axes::Stored)?);
        Ok(())
    })?;
    Ok(hashes)
}

fn hash(array: &Array, axes: Axes<'_>) -> Result<String> {
    let mut sum = Sha256::new();
    array.select(&Selection::all(), axes)?.stream(|_, bytes| {
        sum.update(bytes);
        Ok(())
    })?;
    Ok(sum.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

fn attrs(path: &str, a: &Attrs, b: &Attrs, found: &mut Vec<String>) {
    // Their order is the file's own business.
    let sorted = |attrs: &Attrs| {
        let mut all: Vec<(String, Value)> = attrs.clone().into_iter().collect();
        all.sort_by(|x, y| x.0.cmp(&y.0));
        all
    };
    let (a, b) = (sorted(a), sorted(b));
    let same = |(x, y): (&(String, Value), &(String, Value))| x.0 == y.0 && same_value(&x.1, &y.1);
    if a.len() != b.len() || !a.iter().zip(&b).all(same) {
        found.push(format!("{path}: attributes {a:?} became {b:?}"));
    }
}

/// Equal bit for bit: a NaN is the same as itself.
fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(x), Value::Float(y)) => same_float(*x, *y),
        (Value::Complex(x, i), Value::Complex(y, j)) => same_float(*x, *y) && same_float(*i, *j),
        (Value::List(x), Value::List(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same_value(x, y))
        }
        _ => a == b,
    }
}

fn same_float(x: f64, y: f64) -> bool {
    x.to_bits() == y.to_bits()
}

fn frames(a: &Tree, b: &Tree, found: &mut Vec<String>) -> Result<()> {
    let count = |tree: &Tree| tree.frames().map(|f| f.len());
    if count(a) != count(b) {
        found.push(format!("{:?} frames became {:?}", count(a), count(b)));
    } else if let (Some(x), Some(y)) = (a.frames(), b.frames()) {
        for frame in 0..x.len() {
            let times = (x.time(frame)?.map(f64::to_bits), y.time(frame)?.map(f64::to_bits));
            if x.step(frame)? != y.step(frame)? || times.0 != times.1 {
                found.push(format!("frame {frame} has another step or time"));
            }
        }
    }
    Ok(())
}

fn arrays(
    path: &str,
    ((a, id), x): ((&Dataset, NodeId), &ArrayDesc),
    ((b, other), y): ((&Dataset, NodeId), &ArrayDesc),
    found: &mut Vec<String>,
) -> Result<()> {
    let mut say = |what: &str, x: String, y: String| {
        if x != y {
            found.push(format!("{path}: {what} {x} became {y}"));
        }
    };
    let map = |map: &Option<Linear>| format!("{map:?}");
    let coords = |tree: &Tree, desc: &ArrayDesc| -> String {
        let texts = desc.coords.iter().map(|coord| match coord {
            Coord::Node(id) => tree.node(*id).path.clone(),
            other => format!("{other:?}"),
        });
        texts.collect::<Vec<_>>().join(", ")
    };
    say("dimensions", format!("{:?}", x.dims), format!("{:?}", y.dims));
    say("coordinates", coords(a.tree(), x), coords(b.tree(), y));
    say("linear map", map(&x.map), map(&y.map));
    // The mesh is a node: compared by its path.
    let meaning = |tree: &Tree, desc: &ArrayDesc| {
        let mesh = desc.semantics().mesh.map(|id| tree.node(id).path.clone());
        let semantics = Semantics { mesh: None, ..desc.semantics().clone() };
        format!("{semantics:?} on {mesh:?}")
    };
    say("meaning", meaning(a.tree(), x), meaning(b.tree(), y));
    let count = |dataset: &Dataset, desc: &ArrayDesc| -> Result<Option<u64>> {
        Ok(match &dataset.tree().resolve(desc)?.layout {
            Layout::PerFrame(table) => Some(table.len()),
            _ => None,
        })
    };
    let (n, m) = (count(a, x)?, count(b, y)?);
    if n != m {
        say("number of frames", format!("{n:?}"), format!("{m:?}"));
        return Ok(());
    }
    for frame in 0..n.unwrap_or(1) {
        let left = a.array_in_frame(id, frame)?;
        let right = b.array_in_frame(other, frame)?;
        let (Some(left), Some(right)) = (&left, &right) else {
            let there =
                |array: &Option<Array>| format!("present in frame {frame}: {}", array.is_some());
            say("", there(&left), there(&right));
            continue;
        };
        let dtype = |array: &Array| array.dtype().with_order(ByteOrder::Little).to_string();
        say("element type", dtype(left), dtype(right));
        say("shape", left.shape().to_string(), right.shape().to_string());
        let same_order = left.order() == right.order();
        let axes = if same_order { Axes::Stored } else { Axes::Order(Order::C) };
        say("values (SHA-256)", hash(left, axes)?, hash(right, axes)?);
    }
    Ok(())
}
