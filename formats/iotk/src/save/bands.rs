//! Eigenvalues and occupations: one element per k-point, with all spins.

use std::ops::Range;
use std::sync::Arc;

use spile_core::computed::{Computed, Function};
use spile_core::{
    Array, ArrayDesc, Codec, Coord, DType, Dataset, Extent, Extents, Layout, Linear, NodeId, Order,
    ROOT, Report, Result, Shape, Source, Tree,
};

use crate::semantics::ASSEMBLED;

/// Hartree in eV, CODATA 2018.
pub(super) const HARTREE_EV: f64 = 27.211_386_245_988;

/// The array with the distance along the k-points.
pub(super) const PATH: &str = "k-path";

/// Numbers of bands of spin up and down, of a run with two spins.
pub(crate) type SpinBands = (u64, u64);

/// The numbers of bands in the elements `nbnd_up` and `nbnd_dw` of a description. `None` without two spins;
/// the numbers are 0 if they cannot be read.
pub(crate) fn spin_bands(tree: &Tree, source: &Source) -> Option<SpinBands> {
    let group = tree.at(&format!("{}/output/band_structure", super::ROOT_NAME))?;
    let dataset = Dataset::of_bytes(source.clone(), tree.limits());
    let number = |name: &str| {
        let array = tree.child(group, name).and_then(|id| tree.array(id));
        let array = array.filter(|desc| desc.shape.count() == Some(1))?;
        let value = dataset.open_array(array).and_then(|array| array.read::<Vec<f64>>("..."));
        value.ok()?.first().map(|number| *number as u64)
    };
    tree.child(group, "nbnd_up")?;
    Some((number("nbnd_up").unwrap_or(0), number("nbnd_dw").unwrap_or(0)))
}

/// The numbers of bands in the arrays that [`add`] has added to a tree.
pub(crate) fn added_spin_bands(tree: &Tree) -> Option<SpinBands> {
    let lengths = |name: &str| Some(tree.array(tree.at(name)?)?.shape.lengths().to_vec());
    match (
        lengths("bands").as_deref(),
        lengths("bands_up").as_deref(),
        lengths("bands_down").as_deref(),
    ) {
        (Some([2, _, bands]), ..) => Some((*bands, *bands)),
        (_, Some([_, up]), Some([_, down])) => Some((*up, *down)),
        _ => None,
    }
}

/// Consecutive elements of a k-point.
#[derive(Clone, Copy, Debug)]
struct Part {
    first: u64,
    count: u64,
}

/// Adds the array `name` of the values of `parts`, which are the elements `part` of the k-points in the band
/// structure. With two spins of the same number of bands it has both; with different numbers there
/// are two arrays. Elements that do not fit are reported.
pub(super) fn add(
    tree: &mut Tree,
    (name, part): (&str, &str),
    parts: &[NodeId],
    spins: Option<SpinBands>,
    report: &mut Report,
) -> Result<()> {
    let all = length(tree, parts);
    // Both spins of a k-point are in one element, up before down.
    let one = |first, count| vec![Part { first, count }];
    let arrays = match (spins, all) {
        (_, None) => Vec::new(),
        (None, Some(all)) => vec![(name.to_string(), one(0, all))],
        (Some((up, down)), Some(all)) if up.checked_add(down) != Some(all) => Vec::new(),
        (Some((up, down)), Some(_)) if up == down => {
            vec![(name.to_string(), [one(0, up), one(up, down)].concat())]
        }
        (Some((up, down)), Some(_)) => {
            vec![(format!("{name}_up"), one(0, up)), (format!("{name}_down"), one(up, down))]
        }
    };
    if arrays.is_empty() {
        let bands = spins.map_or(String::new(), |(up, down)| format!(" of {up} and {down} values"));
        let message = format!("expected one element per k-point, of the same size{bands}");
        report.warn("iotk-052", message).in_object(format!("{part} of ks_energies"));
    }
    let scale = (name == "bands").then_some(HARTREE_EV);
    let joint = arrays.len() == 1;
    for (name, spins) in arrays {
        let Some(mut desc) = join(tree, parts, &spins, joint)? else {
            let message = "the elements are not shown as one array: they exceed the memory limit";
            report.warn("iotk-052", message).in_object(format!("{part} of ks_energies"));
            continue;
        };
        desc.map = scale.map(|slope| Linear::new(0.0, slope));
        let path = tree.child(ROOT, PATH).filter(|id| {
            let count = tree.array(*id).and_then(|path| path.shape.count());
            count == Some(parts.len() as u64)
        });
        if let (Some(path), Some(k)) = (path, desc.dims.len().checked_sub(2)) {
            desc.coords[k] = Coord::Node(path);
        }
        let id = tree.add_array(ROOT, &name, desc)?;
        tree.push_attr(id, ASSEMBLED, format!("{part} of ks_energies"))?;
        if scale.is_some() {
            tree.push_attr(id, "units", "eV")?;
        }
    }
    Ok(())
}

/// Adds the distance along the k-points, the coordinate of the bands.
pub(super) fn add_path(tree: &mut Tree, points: NodeId) -> Result<()> {
    let Some(input) = tree.array(points).cloned() else { return Ok(()) };
    let [count, 3] = *input.shape.lengths() else { return Ok(()) };
    let computed = Computed {
        inputs: vec![input],
        function: Arc::new(Distance),
        piece: count,
        order: Order::C,
    };
    let layout = Layout::Computed(Arc::new(computed));
    let mut desc = ArrayDesc::new(DType::F64, Shape::new([count]), layout);
    desc.dims = vec!["k".into()];
    let id = tree.add_array(ROOT, PATH, desc)?;
    tree.push_attr(id, ASSEMBLED, "k-points")?;
    tree.push_attr(id, "units", "2 pi / alat")?;
    tree.push_attr(id, "long_name", "distance along the k-points")
}

/// The sum of the distances between consecutive points.
struct Distance;

impl Function for Distance {
    fn name(&self) -> &'static str {
        "distance along points"
    }

    fn memory(&self, count: u64) -> u64 {
        count.saturating_mul(32)
    }

    fn compute(&self, inputs: &[Array], _: u64, out: &mut [u8]) -> Result<()> {
        let points: Vec<f64> = match inputs {
            [points] => points.read("...")?,
            _ => Vec::new(),
        };
        let points = points.as_chunks::<3>().0;
        let mut distance = 0.0;
        for (k, slot) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            if let (Some(point), Some(last)) = (points.get(k), k.checked_sub(1).map(|k| points[k]))
            {
                let square = point.iter().zip(last).map(|(a, b)| (a - b) * (a - b));
                distance += square.sum::<f64>().sqrt();
            }
            *slot = f64::to_le_bytes(distance);
        }
        Ok(())
    }
}

/// The number of elements of all `parts`, which are arrays of doubles in the same encoding; `None` if they
/// differ.
fn length(tree: &Tree, parts: &[NodeId]) -> Option<u64> {
    let desc = |id: &NodeId| tree.array(*id).filter(|desc| desc.dtype == DType::F64);
    let first = desc(parts.first()?)?;
    let same = |id: &NodeId| {
        desc(id).is_some_and(|own| {
            let encoding = std::mem::discriminant(&own.layout);
            own.shape.count() == first.shape.count()
                && encoding == std::mem::discriminant(&first.layout)
        })
    };
    let readable = matches!(first.layout, Layout::EncodedWhole { .. } | Layout::Plain { .. });
    first.shape.count().filter(|_| readable && parts.iter().all(same))
}

/// An array with the dimensions `spin`, `k`, `band`, without `spin` unless `joint`; spin `s` of a k-point
/// has the elements `spins[s]`. `None` if the text exceeds the memory limit.
fn join(
    tree: &mut Tree,
    parts: &[NodeId],
    spins: &[Part],
    joint: bool,
) -> Result<Option<ArrayDesc>> {
    let bands = spins.first().map_or(0, |part| part.count);
    let points = parts.len() as u64;
    let lengths = if joint { vec![spins.len() as u64, points, bands] } else { vec![points, bands] };
    let shape = Shape::new(lengths);
    tree.charge(64 * points, "the bands")?;
    let mut texts: Vec<(usize, Arc<dyn Codec>)> = Vec::new();
    let mut extents: Vec<Extent> = Vec::new();
    let mut plain: Vec<Extents> = Vec::new();
    let mut each = 0;
    for desc in parts.iter().filter_map(|id| tree.array(*id)) {
        each = desc.bytes()?;
        match &desc.layout {
            Layout::EncodedWhole { extents: part, codec, .. } => {
                let Ok(len) = usize::try_from(part.len()) else { return Ok(None) };
                extents.extend(part.pieces(0, part.len()));
                texts.push((len, codec.clone()));
            }
            Layout::Plain { extents: part, .. } => plain.push(part.clone()),
            _ => return Ok(None),
        }
    }
    let layout = if plain.is_empty() {
        let needed = extents.iter().fold(each, |sum, part| sum.saturating_add(part.len));
        if needed.saturating_add(shape.bytes(8)?) > tree.limits().memory {
            return Ok(None);
        }
        let index = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let bytes = |part: &Part| index(8 * part.first)..index(8 * (part.first + part.count));
        let ranges = spins.iter().map(bytes).collect();
        let codec = Arc::new(Spins { texts, ranges, each: index(each) });
        Layout::EncodedWhole { extents: Extents::several(extents)?, codec, order: Order::C }
    } else {
        let pieces = spins.iter().flat_map(|part| {
            let (from, len) = (8 * part.first, 8 * part.count);
            plain.iter().flat_map(move |extents| extents.pieces(from, len))
        });
        Layout::Plain { extents: Extents::several(pieces.collect())?, order: Order::C }
    };
    let mut desc = ArrayDesc::new(DType::F64, shape, layout);
    let dims = ["spin", "k", "band"];
    desc.dims = dims[usize::from(!joint)..].iter().map(ToString::to_string).collect();
    Ok(Some(desc))
}

/// Decodes the texts of all k-points, each with its length and codec, and sorts the values by spin.
struct Spins {
    texts: Vec<(usize, Arc<dyn Codec>)>,
    /// The bytes of each spin among those of a k-point.
    ranges: Vec<Range<usize>>,
    /// Bytes of the elements of a k-point.
    each: usize,
}

impl Codec for Spins {
    fn name(&self) -> &'static str {
        "text"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let points = self.texts.len();
        let mut values = vec![0; self.each];
        let mut rest = stored;
        for (k, (len, codec)) in self.texts.iter().enumerate() {
            let (text, tail) = rest.split_at(rest.len().min(*len));
            codec.decode(text, &mut values)?;
            for (spin, range) in self.ranges.iter().enumerate() {
                let bytes = &values[range.clone()];
                let at = (spin * points + k) * bytes.len();
                out[at..at + bytes.len()].copy_from_slice(bytes);
            }
            rest = tail;
        }
        Ok(())
    }
}
