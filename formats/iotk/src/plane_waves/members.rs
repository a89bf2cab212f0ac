//! Densities and wavefunctions in files of another format, which the registry opens: HDF5.

use spile_core::{
    Array, ArrayDesc, Attrs, DType, Dataset, Kind, Layout, Order, Result, Shape, Value,
};

use super::functions::{Elements, Rows};
use super::{Content, PlaneWaves, Quantity, Wavefunctions, complex, computed};

/// Datasets of the components of a density.
const COMPONENTS: [&[&str]; 3] =
    [&["rhotot_g"], &["rhotot_g", "rhodiff_g"], &["rhotot_g", "m_x", "m_y", "m_z"]];

/// The plane waves in `dataset`; `None` if it has other content.
pub(super) fn parse(dataset: &Dataset) -> Result<Option<PlaneWaves>> {
    let tree = dataset.tree();
    let Some(id) = tree.at("MillerIndices") else { return Ok(None) };
    let Some(miller) = tree.array(id).cloned() else { return Ok(None) };
    let [stored, 3] = *miller.shape.lengths() else { return Ok(None) };
    if stored == 0 || miller.dtype.with_order(DType::I32.order()) != DType::I32 {
        return Ok(None);
    }
    let own = &tree.node(id).attrs;
    let [Some(b1), Some(b2), Some(b3)] = ["bg1", "bg2", "bg3"].map(|name| vector(own, name)) else {
        return Ok(None);
    };
    let half = dataset
        .attrs()
        .get_str("gamma_only")
        .is_some_and(|text| text.trim().trim_matches('.').eq_ignore_ascii_case("true"));
    let Some(content) = content(dataset, stored) else { return Ok(None) };
    // Gamma-only runs have no spinors.
    if half && matches!(&content, Content::Wavefunctions(waves) if waves.components == 2) {
        return Ok(None);
    }
    // The half without negatives begins with G = 0.
    if half {
        let first: Vec<i32> = Array::read(&dataset.open_array(&miller)?, "0, :")?;
        if first.iter().any(|index| *index != 0) {
            return Ok(None);
        }
    }
    Ok(Some(PlaneWaves { half, stored, reciprocal: [b1, b2, b3], miller, content }))
}

fn content(dataset: &Dataset, stored: u64) -> Option<Content> {
    let (tree, attrs) = (dataset.tree(), dataset.attrs());
    let array = |name: &str| tree.at(name).and_then(|id| tree.array(id));
    let Some(evc) = array("evc") else {
        let count = attrs.get_u64("nspin").unwrap_or(1);
        let names = COMPONENTS.iter().find(|names| names.len() as u64 == count);
        let names = names?;
        let parts = names.iter().map(|name| pairs(array(name)?, &[stored]));
        let parts: Vec<ArrayDesc> = parts.collect::<Option<_>>()?;
        return Some(Content::Density(Quantity::Charge, parts));
    };
    let components @ (1 | 2) = attrs.get_u64("npol").unwrap_or(1) else { return None };
    let [bands, _] = *evc.shape.lengths() else { return None };
    let row = stored.saturating_mul(components);
    let coefficients = pairs(evc, &[bands, row])?;
    let k = vector(attrs, "xk")?;
    let scale = attrs.get_f64("scale_factor").unwrap_or(1.0);
    let waves = Wavefunctions { k, components, bands, scale, coefficients };
    Some(Content::Wavefunctions(Box::new(waves)))
}

/// An array of pairs of reals along the last dimension as complex numbers of this shape.
fn pairs(reals: &ArrayDesc, lengths: &[u64]) -> Option<ArrayDesc> {
    let (last, others) = lengths.split_last()?;
    let expected: Vec<u64> = others.iter().copied().chain(last.checked_mul(2)).collect();
    if reals.shape.lengths() != expected
        || (reals.dtype.kind(), reals.dtype.size()) != (Kind::Float, 8)
    {
        return None;
    }
    let dtype = complex(reals.dtype)?;
    if let Some((extents, Order::C)) = reals.layout.plain() {
        let layout = Layout::Plain { extents: extents.clone(), order: Order::C };
        return Some(ArrayDesc::new(dtype, Shape::new(lengths), layout));
    }
    let elements = Elements { size: 1, mirror: None };
    let function = Rows { elements, per_band: lengths.len() > 1, stored: *last };
    Some(computed(dtype, lengths.to_vec(), vec![reals.clone()], function, (*last, Order::C)))
}

/// A list of three numbers.
fn vector(attrs: &Attrs, name: &str) -> Option<[f64; 3]> {
    let Value::List(items) = attrs.get(name)? else { return None };
    let numbers: Vec<f64> =
        items.iter().map(|item| f64::try_from(item).ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}
