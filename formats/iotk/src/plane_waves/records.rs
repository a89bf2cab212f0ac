//! Densities and wavefunctions in Fortran records.
//!
//! | record | density | wavefunctions |
//! |---|---|---|
//! | 1 | logical: half of the G vectors; number of G vectors; number of components | number of the k-point; k (3 reals); spin; logical: half; scale factor |
//! | 2 | reciprocal lattice vectors (9 reals) | number of G vectors of this process and of all; components of a spinor; bands |
//! | 3 | Miller indices | reciprocal lattice vectors |
//! | 4 | a record per component | Miller indices |
//! | 5 | | a record per band |

use spile_core::wire::fetch;
use spile_core::{
    ArrayDesc, ByteOrder, DType, Extents, Layout, Order, Result, Shape, Source, Wire,
};

use super::{Content, PlaneWaves, Quantity, Wavefunctions, complex};
use crate::wire::record::{Framing, Record};

/// Lengths of the first two records, of a density and of wavefunctions.
const DENSITY: [u64; 2] = [12, 72];
const WAVEFUNCTIONS: [u64; 2] = [44, 16];

/// Whether the first two records have the lengths of a density or of wavefunctions.
pub(crate) fn has_lengths(head: &[u8], framing: Framing) -> bool {
    let Some(first) = framing.first(head) else { return false };
    let second = first.len() + 2 * framing.marker as usize;
    let Some(second) = head.get(second..).and_then(|rest| framing.first(rest)) else {
        return false;
    };
    let lengths = [first.len() as u64, second.len() as u64];
    lengths == DENSITY || lengths == WAVEFUNCTIONS
}

/// The plane waves in the records of a file; `None` if the lengths of the records do not fit.
pub(crate) fn parse(
    source: &Source,
    records: &[Record],
    order: ByteOrder,
) -> Result<Option<PlaneWaves>> {
    let [first, second, ..] = records else { return Ok(None) };
    let parsed = match [first.content.len(), second.content.len()] {
        DENSITY => density(source, records, order)?,
        WAVEFUNCTIONS => wavefunctions(source, records, order)?,
        _ => None,
    };
    let Some(waves) = parsed.filter(|waves| waves.stored > 0) else { return Ok(None) };
    // The half without negatives begins with G = 0.
    if waves.half {
        let indices = match &waves.miller.layout {
            Layout::Plain { extents, .. } => head(source, extents, 12)?,
            _ => Vec::new(),
        };
        if indices.iter().any(|byte| *byte != 0) {
            return Ok(None);
        }
    }
    Ok(Some(waves))
}

/// The first `len` bytes of a record.
fn head(source: &Source, extents: &Extents, len: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for piece in extents.pieces(0, len) {
        bytes.extend(source.read_vec(piece.offset, piece.len)?);
    }
    Ok(bytes)
}

fn density(source: &Source, records: &[Record], order: ByteOrder) -> Result<Option<PlaneWaves>> {
    let [first, lattice, miller, components @ ..] = records else { return Ok(None) };
    let bytes = head(source, &first.content, 12)?;
    let mut wire = Wire::new(&bytes, first.offset, order, "iotk-003");
    let (half, stored, count) = (wire.i32()? != 0, wire.i32()?, wire.i32()?);
    let Ok(stored) = u64::try_from(stored) else { return Ok(None) };
    let expected = usize::try_from(count).ok().filter(|n| (1..=4).contains(n) && *n != 3);
    let sizes = |record: &Record| Some(record.content.len()) == stored.checked_mul(16);
    if expected != Some(components.len()) || !components.iter().all(sizes) {
        return Ok(None);
    }
    let Some(miller) = indices(miller, stored, order) else { return Ok(None) };
    let arrays = components.iter().map(|record| coefficients(record, stored, order));
    let Some(arrays) = arrays.collect::<Option<Vec<ArrayDesc>>>() else { return Ok(None) };
    let reciprocal = matrix(source, lattice, order)?;
    let content = Content::Density(Quantity::Charge, arrays);
    Ok(Some(PlaneWaves { half, stored, reciprocal, miller, content }))
}

fn wavefunctions(
    source: &Source,
    records: &[Record],
    order: ByteOrder,
) -> Result<Option<PlaneWaves>> {
    let [first, sizes, lattice, miller, bands @ ..] = records else { return Ok(None) };
    let bytes = head(source, &first.content, 44)?;
    let mut wire = Wire::new(&bytes, first.offset, order, "iotk-003");
    wire.skip(4)?;
    let k = [wire.f64()?, wire.f64()?, wire.f64()?];
    wire.skip(4)?;
    let (half, scale) = (wire.i32()? != 0, wire.f64()?);
    let bytes = head(source, &sizes.content, 16)?;
    let mut wire = Wire::new(&bytes, sizes.offset, order, "iotk-003");
    wire.skip(4)?;
    let numbers = [wire.i32()?, wire.i32()?, wire.i32()?].map(u64::try_from);
    let [Ok(stored), Ok(components @ (1 | 2)), Ok(count)] = numbers else { return Ok(None) };
    // Gamma-only runs have no spinors.
    if half && components == 2 {
        return Ok(None);
    }
    let row = stored.checked_mul(16 * components);
    let fits = |record: &Record| Some(record.content.len()) == row;
    if count != bands.len() as u64 || !bands.iter().all(fits) || lattice.content.len() != 72 {
        return Ok(None);
    }
    let Some(miller) = indices(miller, stored, order) else { return Ok(None) };
    let pieces = bands.iter().flat_map(|record| record.content.parts().to_vec()).collect();
    let layout = Layout::Plain { extents: Extents::several(pieces)?, order: Order::C };
    let Some(dtype) = complex(DType::F64.with_order(order)) else { return Ok(None) };
    let shape = Shape::new([count, stored.saturating_mul(components)]);
    let coefficients = ArrayDesc::new(dtype, shape, layout);
    let reciprocal = matrix(source, lattice, order)?;
    let waves = Wavefunctions { k, components, bands: count, scale, coefficients };
    let content = Content::Wavefunctions(Box::new(waves));
    Ok(Some(PlaneWaves { half, stored, reciprocal, miller, content }))
}

/// Miller indices of `count` G vectors.
fn indices(record: &Record, count: u64, order: ByteOrder) -> Option<ArrayDesc> {
    if Some(record.content.len()) != count.checked_mul(12) {
        return None;
    }
    let layout = Layout::Plain { extents: record.content.clone(), order: Order::C };
    Some(ArrayDesc::new(DType::I32.with_order(order), Shape::new([count, 3]), layout))
}

fn coefficients(record: &Record, count: u64, order: ByteOrder) -> Option<ArrayDesc> {
    let layout = Layout::Plain { extents: record.content.clone(), order: Order::C };
    let dtype = complex(DType::F64.with_order(order))?;
    Some(ArrayDesc::new(dtype, Shape::new([count]), layout))
}

/// The reciprocal lattice vectors in a record.
fn matrix(source: &Source, record: &Record, order: ByteOrder) -> Result<[[f64; 3]; 3]> {
    let bytes = head(source, &record.content, 72)?;
    let mut wire = Wire::new(&bytes, record.offset, order, "iotk-003");
    let mut matrix = [[0.0; 3]; 3];
    for value in matrix.as_flattened_mut() {
        *value = wire.f64()?;
    }
    Ok(matrix)
}

/// Whether the file at the beginning of `source` has the first records of plane waves.
pub(crate) fn is_one(source: &Source, framing: Framing) -> Result<bool> {
    Ok(has_lengths(&fetch(source, 0, 160)?, framing))
}
