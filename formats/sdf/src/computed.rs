//! What the C library computes from the blocks of a file, as arrays that are computed when they are
//! read: fields in the middle of cells, the ranks of a run, Cartesian grids. Only on demand
//! ([`crate::Options::derived`]).

use std::sync::Arc;

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::layout::{ArrayDesc, Codec, Coord, Extent, Extents, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::points::{DERIVED, midpoints, numbers, store};
use spile_core::shape::{Order, Shape};
use spile_core::tree::{Attrs, NodeId, Tree};
use spile_core::wire::ByteOrder;

/// Bytes that are computed at once, where a plane is not longer.
const PIECE: u64 = 256 << 10;

/// The range of an array that is one range of the file.
pub(crate) fn range(desc: &ArrayDesc) -> Option<Extent> {
    match &desc.layout {
        Layout::Plain { extents, .. } => match *extents.parts() {
            [one] => Some(one),
            _ => None,
        },
        _ => None,
    }
}

fn is_real(dtype: DType) -> bool {
    dtype.kind() == Kind::Float && matches!(dtype.size(), 4 | 8)
}

/// An array made of pieces that are computed one by one, each from some ranges of the file.
struct Pieces {
    parts: Vec<Extent>,
    starts: Vec<u64>,
    decoded: Vec<u64>,
}

impl Pieces {
    fn new() -> Self {
        Self { parts: Vec::new(), starts: vec![0], decoded: vec![0] }
    }

    /// Another piece, of `bytes`, from `parts`.
    fn add(&mut self, parts: &[Extent], bytes: u64) {
        let last = |table: &[u64]| table.last().copied().unwrap_or(0);
        let stored: u64 = parts.iter().map(|part| part.len).sum();
        self.starts.push(last(&self.starts).saturating_add(stored));
        self.decoded.push(last(&self.decoded).saturating_add(bytes));
        self.parts.extend_from_slice(parts);
    }

    fn layout(self, codec: impl Codec + 'static) -> Result<Layout> {
        Ok(Layout::Encoded {
            starts: self.starts.into(),
            decoded: self.decoded.into(),
            data: Extents::several(self.parts)?,
            codec: Arc::new(codec),
            order: Order::F,
        })
    }
}

/// What an array that is computed says, with what is also true of the one it is made from.
pub(crate) fn said(words: &str, attrs: Attrs, kept: &[&str]) -> Attrs {
    let mut all = vec![(DERIVED.to_string(), words.into())];
    all.extend(attrs.into_iter().filter(|(name, _)| kept.contains(&name.as_str())));
    all
}

/// A field that is on nodes in the directions `along`, averaged to the middle of the cells there:
/// an array `NAME_centred` beside it.
pub(crate) fn centred(
    tree: &mut Tree,
    field: NodeId,
    along: &[bool],
    axes: &[NodeId],
) -> Result<()> {
    let node = tree.node(field).clone();
    let Some(desc) = node.array.filter(|d| d.shape.rank() == along.len()) else { return Ok(()) };
    let (Some(data), Some((last, below))) = (range(&desc), along.split_last()) else {
        return Ok(());
    };
    let lengths = desc.shape.lengths();
    let enough = lengths.iter().zip(along).all(|(n, on)| *n > u64::from(*on));
    if !is_real(desc.dtype) || !enough || !along.contains(&true) {
        return Ok(());
    }
    let shape: Vec<u64> = lengths.iter().zip(along).map(|(n, on)| n - u64::from(*on)).collect();
    // Planes of the last direction, some at a time; one more where that direction is averaged.
    // No overflow: the elements are in the file, and those of the result are fewer.
    let size = desc.dtype.size() as u64;
    let [plane, new_plane] =
        [lengths, &shape].map(|n| n[..below.len()].iter().product::<u64>() * size);
    let planes = shape[below.len()];
    let step = (PIECE / plane.max(1)).max(1);
    let mut pieces = Pieces::new();
    for first in (0..planes).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
        let count = step.min(planes - first);
        let part = Extent {
            offset: data.offset.saturating_add(first * plane),
            len: (count + u64::from(*last)) * plane,
        };
        pieces.add(&[part], count * new_plane);
    }
    let lengths = lengths[..below.len()].iter().map(|n| *n as usize).collect();
    let codec = Average { dtype: desc.dtype, lengths, along: along.to_vec() };
    let dtype = desc.dtype.with_order(ByteOrder::Little);
    let layout = pieces.layout(codec)?;
    let mut new = ArrayDesc::new(dtype, Shape::new(shape), layout);
    (new.dims, new.coords, new.map) = (desc.dims, desc.coords, desc.map);
    for (axis, id) in axes.iter().enumerate().take(along.len()).filter(|(axis, _)| along[*axis]) {
        new.coords[axis] = midpoints(tree, *id)?.map_or(Coord::None, Coord::Node);
    }
    let id = tree.add_array(node.parent, &format!("{}_centred", node.name), new)?;
    tree.node_mut(id).attrs =
        said("averaged to the middle of the cells", node.attrs, &["units", "mesh"]);
    Ok(())
}

/// Means of neighbours along some directions, in planes of the last one.
struct Average {
    dtype: DType,
    /// Of the directions before the last.
    lengths: Vec<usize>,
    along: Vec<bool>,
}

impl Codec for Average {
    fn name(&self) -> &'static str {
        "average"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let mut values = numbers(self.dtype, stored);
        let planes = values.len() / self.lengths.iter().product::<usize>().max(1);
        let mut inner = 1_usize;
        for (length, on) in self.lengths.iter().copied().chain([planes]).zip(&self.along) {
            if *on {
                let pairs = |plane: &[f64]| -> Vec<f64> {
                    let next = plane.get(inner..).unwrap_or(&[]);
                    plane.iter().zip(next).map(|(a, b)| 0.5 * (a + b)).collect()
                };
                values = values.chunks((inner * length).max(1)).flat_map(pairs).collect();
            }
            inner *= length.saturating_sub(usize::from(*on));
        }
        store(self.dtype, &values, out)
    }
}

/// The ranks that shared the grid of `axes`, by the numbers of the nodes at which their parts meet: an
/// array `NAME_map` of the ranks, the first direction running fastest, and a group `NAME_grid` with
/// the borders of their parts.
pub(crate) fn ranks(
    tree: &mut Tree,
    split: NodeId,
    dims: &[u64],
    axes: &[NodeId],
    limits: &Limits,
) -> Result<()> {
    let node = tree.node(split).clone();
    let Some(desc) = node.array else { return Ok(()) };
    let borders = dims.iter().try_fold(0_u64, |sum, n| sum.checked_add(*n));
    let Some(data) = range(&desc).filter(|_| borders.is_some() && borders == desc.shape.count())
    else {
        return Ok(());
    };
    // No overflow: there are as many borders in the file.
    let shape = Shape::new(dims.iter().map(|n| n + 1).collect::<Vec<_>>());
    let count = match shape.bytes(4).and_then(|bytes| limits.allow(bytes, "the ranks")) {
        Ok(bytes) if desc.dtype.kind() == Kind::Int && axes.len() == dims.len() => bytes / 4,
        _ => return Ok(()),
    };
    let numbers: Vec<u8> = (0..count as i32).flat_map(i32::to_le_bytes).collect();
    let mut map = ArrayDesc::new(DType::I32, shape, Layout::Inline(numbers.into(), Order::F));
    let grid = tree.add_group(node.parent, &format!("{}_grid", node.name))?;
    let words = "the borders of the parts of the ranks";
    tree.node_mut(grid).attrs = said(words, Vec::new(), &[]);
    let mut start = data.offset;
    for (direction, (axis, number)) in axes.iter().zip(dims).enumerate() {
        let axis = tree.node(*axis).clone();
        let len = number * desc.dtype.size() as u64;
        let borders = Extent { offset: start, len };
        start = start.saturating_add(len);
        let Some(nodes) = axis.array.filter(|a| is_real(a.dtype)) else { continue };
        let Some(all) = range(&nodes) else { continue };
        map.dims[direction].clone_from(&axis.name);
        for (middle, length) in [(false, number + 2), (true, number + 1)] {
            let codec =
                Borders { number: desc.dtype, count: *number as usize, dtype: nodes.dtype, middle };
            let layout = Layout::Text {
                extents: Extents::several(vec![borders, all])?,
                codec: Arc::new(codec),
                order: Order::F,
            };
            let mut points = ArrayDesc::new(nodes.dtype, Shape::new([length]), layout);
            (points.dims, points.map) = (vec![axis.name.clone()], nodes.map);
            let name = if middle { format!("{}_mid", axis.name) } else { axis.name.clone() };
            let words = if middle { "the middle of the parts" } else { words };
            let id = tree.add_array(grid, &name, points)?;
            tree.node_mut(id).attrs = said(words, axis.attrs.clone(), &["units"]);
            if middle {
                map.coords[direction] = Coord::Node(id);
            }
        }
    }
    let id = tree.add_array(node.parent, &format!("{}_map", node.name), map)?;
    tree.node_mut(id).attrs = said("the rank of each part of the grid", Vec::new(), &[]);
    Ok(())
}

/// Nodes by their numbers, with the first and the last, or the middle between those.
struct Borders {
    number: DType,
    count: usize,
    dtype: DType,
    middle: bool,
}

impl Codec for Borders {
    fn name(&self) -> &'static str {
        "borders"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let len = (self.count * self.number.size()).min(stored.len());
        let (borders, nodes) = stored.split_at(len);
        let (borders, nodes) = (numbers(self.number, borders), numbers(self.dtype, nodes));
        let node = |number: &f64| {
            let found = nodes.get(*number as usize).filter(|_| *number >= 0.0).copied();
            found.ok_or_else(|| {
                let message = format!("a border at node {number} of {}", nodes.len());
                Error::malformed("sdf-016", message)
            })
        };
        let last = nodes.len().saturating_sub(1) as f64;
        let ends = [0.0].iter().chain(&borders).chain([&last]).map(node);
        let mut points = ends.collect::<Result<Vec<f64>>>()?;
        if self.middle {
            points = points.windows(2).map(|w| 0.5 * (w[0] + w[1])).collect();
        }
        store(self.dtype, &points, out)
    }
}

/// The nodes of a cylindrical mesh (radius, angle, height) or a spherical one (radius, angle from the
/// pole, angle around it) in Cartesian coordinates: a group `NAME_cartesian` with X, Y and Z.
pub(crate) fn cartesian(
    tree: &mut Tree,
    mesh: NodeId,
    spherical: bool,
    axes: &[NodeId],
) -> Result<()> {
    let nodes = axes.iter().map(|id| tree.node(*id).clone());
    let nodes: Vec<_> = nodes.filter_map(|node| Some((node.array?, node.attrs))).collect();
    let [(radius, attrs), (angle, _), (last, _)] = &nodes[..] else { return Ok(()) };
    let dtype = radius.dtype;
    let alike = is_real(dtype) && [angle, last].iter().all(|axis| axis.dtype == dtype);
    let (Some(along_r), Some(along_angle), Some(along_last), true) =
        (range(radius), range(angle), range(last), alike)
    else {
        return Ok(());
    };
    let count = |axis: &ArrayDesc| axis.shape.count().unwrap_or(0);
    let shape = Shape::new([count(radius), count(angle), count(last)]);
    let Ok(bytes) = shape.bytes(dtype.size()) else { return Ok(()) };
    let size = dtype.size() as u64;
    let node = tree.node(mesh).clone();
    let group = tree.add_group(node.parent, &format!("{}_cartesian", node.name))?;
    let words = "nodes in Cartesian coordinates";
    tree.node_mut(group).attrs = said(words, Vec::new(), &[]);
    for (direction, name) in ["X", "Y", "Z"].into_iter().enumerate() {
        let mut pieces = Pieces::new();
        for plane in 0..count(last) {
            let one = Extent { offset: along_last.offset.saturating_add(plane * size), len: size };
            pieces.add(&[along_r, along_angle, one], bytes / count(last));
        }
        let counts = [count(radius) as usize, count(angle) as usize];
        let maps = [radius.map, angle.map, last.map];
        let codec = Cartesian { dtype, counts, maps, spherical, direction };
        let little = dtype.with_order(ByteOrder::Little);
        let mut desc = ArrayDesc::new(little, shape.clone(), pieces.layout(codec)?);
        desc.dims = [radius, angle, last].iter().flat_map(|axis| axis.dims.clone()).collect();
        let id = tree.add_array(group, name, desc)?;
        tree.node_mut(id).attrs = said(words, attrs.clone(), &["units"]);
    }
    Ok(())
}

/// A Cartesian coordinate of the nodes that have the same last coordinate.
struct Cartesian {
    dtype: DType,
    counts: [usize; 2],
    maps: [Option<Linear>; 3],
    spherical: bool,
    direction: usize,
}

impl Codec for Cartesian {
    fn name(&self) -> &'static str {
        "cartesian"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let all = numbers(self.dtype, stored);
        let [radii, angles] = self.counts;
        let short = || Error::malformed("sdf-015", "too few coordinates");
        let meant = |axis: usize, value: f64| self.maps[axis].map_or(value, |map| map.apply(value));
        let r = all.get(..radii).ok_or_else(short)?;
        let theta = all.get(radii..).and_then(|rest| rest.get(..angles)).ok_or_else(short)?;
        let last = meant(2, all.get(radii + angles).copied().ok_or_else(short)?);
        let mut plane = Vec::with_capacity(radii * angles);
        for theta in theta {
            let (sin, cos) = meant(1, *theta).sin_cos();
            let factor = match (self.spherical, self.direction) {
                (false, 0) | (true, 2) => cos,
                (false, 1) => sin,
                (true, 0) => sin * last.cos(),
                (true, _) => sin * last.sin(),
                (false, _) => 0.0,
            };
            let height = !self.spherical && self.direction == 2;
            let point = |r: &f64| if height { last } else { meant(0, *r) * factor };
            plane.extend(r.iter().map(point));
        }
        store(self.dtype, &plane, out)
    }
}
