//! Particles with given identifiers in all frames.

use std::collections::HashMap;

use spile_core::{Array, Axes, Error, Kind, Order, Result, Selection, Shape, Slice};

use super::ids::IdIndex;
use super::{ID, Species};

/// Number of particles read at once.
const BLOCK: u64 = 1 << 16;

/// Estimated memory in bytes per tracked particle, beside the values.
const ID_BYTES: u64 = 64;

/// The tracked particles.
#[derive(Clone, Debug)]
pub struct Tracks {
    /// Identifiers, in the order in which they were asked for.
    pub ids: Vec<u64>,
    /// Name and unit of each variable, and its values: for each frame those of all particles, NaN where a frame does not
    /// have the particle.
    pub columns: Vec<(String, String, Vec<f64>)>,
}

/// Finds the particles `ids` of a species in all frames. `variables` are expressions; none means all variables but the
/// identifiers. The identifiers of every frame are read, or found in `index`, and the blocks of the variables that
/// contain the particles.
pub fn track(
    species: &Species,
    ids: &[u64],
    variables: &[String],
    index: Option<&IdIndex>,
) -> Result<Tracks> {
    let all: Vec<String> = if variables.is_empty() {
        let names = species.variables().into_iter();
        names.filter(|name| !name.eq_ignore_ascii_case(ID)).collect()
    } else {
        variables.to_vec()
    };
    let frames = species.frames();
    let limits = species.dataset().limits();
    let count = ids.len() as u64;
    let values = frames.saturating_mul(count).saturating_mul(8 * all.len() as u64);
    limits.allow(values.saturating_add(count.saturating_mul(ID_BYTES)), "the tracked particles")?;
    let mut places: HashMap<u64, usize> = HashMap::with_capacity(ids.len());
    for (k, id) in ids.iter().enumerate() {
        if places.insert(*id, k).is_some() {
            return Err(Error::argument(format!("identifier {id} is given twice")));
        }
    }
    let mut sorted: Vec<(u64, usize)> = places.iter().map(|(id, place)| (*id, *place)).collect();
    sorted.sort_unstable();
    let size = ids.len() * frames as usize;
    let mut columns: Vec<(String, String, Vec<f64>)> = all
        .into_iter()
        .map(|name| (name.clone(), species.unit(&name), vec![f64::NAN; size]))
        .collect();
    for frame in 0..frames {
        let rows = match index {
            Some(index) => index.rows(frame, &sorted),
            None => rows(species, frame, &places),
        };
        let rows = rows.map_err(|e| e.in_frame(frame))?;
        for (name, _, values) in &mut columns {
            let Some(array) = species.values(name, frame)? else { continue };
            let start = frame as usize * ids.len();
            pick(&array, &rows, &mut values[start..start + ids.len()])?;
        }
    }
    Ok(Tracks { ids: ids.to_vec(), columns })
}

/// The rows of a frame with the identifiers `places`, ascending, and the number of each.
fn rows(species: &Species, frame: u64, places: &HashMap<u64, usize>) -> Result<Vec<(u64, usize)>> {
    let Some(array) = identifiers(species, frame)? else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for_blocks(&array, |first, ids| {
        for (row, id) in (first..).zip(ids) {
            if let Some(place) = places.get(&id) {
                rows.push((row, *place));
            }
        }
        rows.len() <= places.len()
    })?;
    if rows.len() > places.len() {
        return Err(Error::argument("identifiers are not unique in this frame"));
    }
    Ok(rows)
}

/// The identifiers in a frame; `None` if it has no particles of the species.
pub(super) fn identifiers(species: &Species, frame: u64) -> Result<Option<Array>> {
    let id = species.variable(ID).ok_or_else(|| {
        let message = format!("\"{}\" has no identifiers", species.name);
        Error::argument(message).hint("EPOCH writes them with `id = always` in the output block")
    })?;
    let Some(desc) = species.in_frame(id, frame)? else { return Ok(None) };
    species.dataset().open_array(&desc).map(Some)
}

/// Calls `each` with the number of the first element and the values of each block of identifiers, until it returns
/// false.
pub(super) fn for_blocks(array: &Array, mut each: impl FnMut(u64, Vec<u64>) -> bool) -> Result<()> {
    let count = array.shape().count().unwrap_or(0);
    let (dtype, mut first) = (array.dtype(), 0);
    if !matches!(dtype.kind(), Kind::Int | Kind::UInt) || array.map().is_some() {
        return Err(Error::argument(format!("expected integers as identifiers, found {dtype}")));
    }
    while first < count {
        let end = (first + BLOCK).min(count);
        let part = Selection(vec![Slice::range(first, end)]);
        let bytes = array.read_bytes(&part, Axes::Order(Order::C))?;
        let id = |element: &[u8]| {
            // Blocks are little-endian.
            let mut wide = [0; 8];
            wide[..element.len()].copy_from_slice(element);
            u64::from_le_bytes(wide)
        };
        if !each(first, bytes.chunks_exact(dtype.size()).map(id).collect()) {
            break;
        }
        first = end;
    }
    Ok(())
}

/// Stores the elements `rows` of an array at their places in `values`.
fn pick(array: &Array, rows: &[(u64, usize)], values: &mut [f64]) -> Result<()> {
    let count = array.shape().count().unwrap_or(0);
    for block in rows.chunk_by(|a, b| a.0 / BLOCK == b.0 / BLOCK) {
        let (Some((first, _)), Some((last, _))) = (block.first(), block.last()) else { continue };
        if *last >= count {
            let shape = Shape::new([count]);
            return Err(Error::argument(format!("expected an element {last}, found {shape}")));
        }
        let part = Selection(vec![Slice::range(*first, last + 1)]);
        let read = array.read_f64(&part, Axes::Stored)?;
        for (row, place) in block {
            if let (Some(value), Some(to)) =
                (read.get((row - first) as usize), values.get_mut(*place))
            {
                *to = *value;
            }
        }
    }
    Ok(())
}

/// The identifiers of the `count` particles with the largest values of `expression` in `frame`, the largest first.
/// Values that are not finite are ignored.
pub fn top(species: &Species, count: usize, expression: &str, frame: u64) -> Result<Vec<u64>> {
    let limits = species.dataset().limits();
    let (Some(array), Some(ids)) =
        (species.values(expression, frame)?, identifiers(species, frame)?)
    else {
        return Ok(Vec::new());
    };
    let particles = ids.shape().count().unwrap_or(u64::MAX);
    let most = particles.min(count as u64).saturating_mul(ID_BYTES);
    limits.allow(most, "the selected particles")?;
    let mut best: Vec<(f64, u64)> = Vec::new();
    let mut failure = None;
    for_blocks(&ids, |first, ids| {
        let part = Selection(vec![Slice::range(first, first + ids.len() as u64)]);
        let values = match array.read_f64(&part, Axes::Stored) {
            Ok(values) => values,
            Err(error) => {
                failure = Some(error);
                return false;
            }
        };
        best.extend(values.into_iter().zip(ids).filter(|(value, _)| value.is_finite()));
        best.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        best.truncate(count);
        true
    })?;
    match failure {
        Some(error) => Err(error),
        None => Ok(best.into_iter().map(|(_, id)| id).collect()),
    }
}

/// The identifiers of the `count` particles with the largest momentum in `frame`. Fails if the species has no momenta.
pub fn fastest(species: &Species, count: usize, frame: u64) -> Result<Vec<u64>> {
    let momenta = ["px", "py", "pz"].into_iter().filter(|name| species.variable(name).is_some());
    let squares: Vec<String> = momenta.map(|name| format!("{name}^2")).collect();
    if squares.is_empty() {
        let message = format!("\"{}\" has no momenta", species.name);
        return Err(Error::argument(message).hint("give an expression to sort by"));
    }
    top(species, count, &format!("sqrt({})", squares.join(" + ")), frame)
}
