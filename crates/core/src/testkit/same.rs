//! Comparison of the content of two files.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::{
    Array, ArrayDesc, Attrs, Axes, ByteOrder, Coord, Dataset, Layout, Linear, NodeId, Order,
    Result, Selection, Semantics, Tree, Value,
};

/// Fails unless `a` and `b` have the same content; see [`differences`].
///
/// # Panics
/// If the content differs or cannot be read.
pub fn assert_same_content(a: &Dataset, b: &Dataset) {
    match differences(a, b) {
        Ok(found) => {
            assert!(found.is_empty(), "the content differs:\n  {}", found.join("\n  "));
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// Differences between `a` and `b`: paths, attributes, element types (except byte order), shapes, names and
/// coordinates of dimensions, scaling, semantics, frames and values, bit for bit. Layouts are ignored.
pub fn differences(a: &Dataset, b: &Dataset) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let nodes = |dataset: &Dataset| -> BTreeMap<String, NodeId> {
        dataset.tree().iter().map(|(id, node)| (node.path.clone(), id)).collect()
    };
    let (left, right) = (nodes(a), nodes(b));
    found.extend(left.keys().filter(|p| !right.contains_key(*p)).map(|p| format!("{p}: missing")));
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
            _ => found.push(format!("{path}: a group in one file, an array in the other")),
        }
    }
    Ok(found)
}

/// The SHA-256 of every object of a file ([`Dataset::objects`]), in file order: of the little-endian stored
/// values, in stored order, before scaling.
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
    // The order of attributes is ignored.
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

/// Equal bit for bit: a NaN equals itself.
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
                found.push(format!("frame {frame} has a different step or time"));
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
    let mut compare = |what: &str, x: String, y: String| {
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
    compare("dimensions", format!("{:?}", x.dims), format!("{:?}", y.dims));
    compare("coordinates", coords(a.tree(), x), coords(b.tree(), y));
    compare("scaling", map(&x.map), map(&y.map));
    // The mesh is compared by its path.
    let semantics_text = |tree: &Tree, desc: &ArrayDesc| {
        let mesh = desc.semantics().mesh.map(|id| tree.node(id).path.clone());
        // The quantity follows from the name in formats that define it, so reading may add it.
        let semantics = Semantics { mesh: None, quantity: None, ..desc.semantics().clone() };
        format!("{semantics:?} on {mesh:?}")
    };
    compare("semantics", semantics_text(a.tree(), x), semantics_text(b.tree(), y));
    let count = |dataset: &Dataset, desc: &ArrayDesc| -> Result<Option<u64>> {
        Ok(match &dataset.tree().resolve(desc)?.layout {
            Layout::PerFrame(table) => Some(table.len()),
            _ => None,
        })
    };
    let (n, m) = (count(a, x)?, count(b, y)?);
    if n != m {
        compare("number of frames", format!("{n:?}"), format!("{m:?}"));
        return Ok(());
    }
    for frame in 0..n.unwrap_or(1) {
        let left = a.array_in_frame(id, frame)?;
        let right = b.array_in_frame(other, frame)?;
        let (Some(left), Some(right)) = (&left, &right) else {
            let presence =
                |array: &Option<Array>| format!("present in frame {frame}: {}", array.is_some());
            compare("", presence(&left), presence(&right));
            continue;
        };
        let dtype = |array: &Array| array.dtype().with_order(ByteOrder::Little).to_string();
        compare("element type", dtype(left), dtype(right));
        compare("shape", left.shape().to_string(), right.shape().to_string());
        let same_order = left.order() == right.order();
        let axes = if same_order { Axes::Stored } else { Axes::Order(Order::C) };
        compare("values (SHA-256)", hash(left, axes)?, hash(right, axes)?);
    }
    Ok(())
}
