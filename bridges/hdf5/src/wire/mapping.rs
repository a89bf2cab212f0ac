//! Mappings of virtual datasets (section III.F) and serialized selections (section VIII).

use spile_core::error::{Error, Result};

use super::{Context, Fields};

/// Evenly spaced indices along one dimension: `start + k * step` for `k < count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Indices {
    pub(crate) start: u64,
    pub(crate) step: u64,
    pub(crate) count: u64,
}

/// A part of a virtual dataset and its source.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    /// Name of the file; `.` is the file itself.
    pub(crate) file: String,
    pub(crate) dataset: String,
    /// Selected indices of the source; `None` for all elements.
    pub(crate) from: Option<Vec<Indices>>,
    /// Selected indices of the virtual dataset; `None` for all elements.
    pub(crate) to: Option<Vec<Indices>>,
}

/// The mappings in a global heap object that begins at `address`. Fails with `Unsupported` for selections that are not
/// evenly spaced or not limited.
pub(crate) fn mappings(ctx: &Context, bytes: &[u8], address: u64) -> Result<Vec<Mapping>> {
    let mut fields = ctx.fields(bytes, address);
    let version = fields.version(&[0, 1], "virtual dataset mapping")?;
    let count = fields.length()?;
    let mut found: Vec<Mapping> = Vec::new();
    // Names of all mappings, for references to earlier ones.
    let mut names: Vec<(String, String)> = Vec::new();
    for _ in 0..count {
        ctx.charge(256)?;
        let flags = if version == 1 { fields.u8()? } else { 0 };
        let file = match flags {
            _ if flags & 4 != 0 => ".".to_string(),
            _ if flags & 1 != 0 => earlier(&mut fields, &names)?.0,
            _ => name(ctx, &mut fields)?,
        };
        let dataset = match flags & 2 {
            0 => name(ctx, &mut fields)?,
            _ => earlier(&mut fields, &names)?.1,
        };
        names.push((file.clone(), dataset.clone()));
        let (from, to) = (selection(&mut fields)?, selection(&mut fields)?);
        if let (Selected::Some(from), Selected::Some(to)) = (from, to) {
            found.push(Mapping { file, dataset, from, to });
        }
    }
    Ok(found)
}

/// The names of an earlier mapping.
fn earlier(fields: &mut Fields<'_>, names: &[(String, String)]) -> Result<(String, String)> {
    let k = fields.length()?;
    let known = usize::try_from(k).ok().and_then(|k| names.get(k)).cloned();
    known.ok_or_else(|| fields.malformed(format!("virtual dataset: no mapping {k}")))
}

fn name(ctx: &Context, fields: &mut Fields<'_>) -> Result<String> {
    let mut rest = fields.clone();
    let mut len = 0;
    while rest.u8()? != 0 {
        len += 1;
    }
    ctx.charge(len as u64)?;
    let name = fields.string(len)?;
    fields.skip(1)?;
    if name.contains("%b") {
        return Err(unsupported("a virtual dataset with a series of source names", fields));
    }
    Ok(name)
}

enum Selected {
    None,
    Some(Option<Vec<Indices>>),
}

fn unsupported(what: &str, fields: &Fields<'_>) -> Error {
    Error::unsupported("hdf5-033", format!("{what} is not supported")).at(fields.offset())
}

/// A serialized selection.
fn selection(fields: &mut Fields<'_>) -> Result<Selected> {
    let (kind, version) = (fields.u32()?, fields.u32()?);
    match kind {
        0 | 3 => {
            fields.skip(8)?;
            return Ok(if kind == 0 { Selected::None } else { Selected::Some(None) });
        }
        2 => {}
        _ => return Err(unsupported("a virtual dataset with a selection of points", fields)),
    }
    let (flags, width) = match version {
        1 => (0, 4),
        2 => (fields.u8()?, 8),
        3 => (fields.u8()?, usize::from(fields.u8()?)),
        _ => return Err(unsupported("this version of a selection", fields)),
    };
    // Reserved bytes and length, or only the length.
    fields.skip([0, 8, 4, 0][version as usize])?;
    let rank = fields.u32()?;
    if rank > 32 || !matches!(width, 2 | 4 | 8) {
        return Err(fields.malformed(format!("selection of rank {rank}")));
    }
    let unlimited = if width == 8 { u64::MAX } else { (1 << (8 * width)) - 1 };
    let mut all = Vec::new();
    if flags & 1 != 0 {
        for _ in 0..rank {
            let [start, stride, count, block] = [(); 4].map(|()| fields.uint(width));
            let (start, stride, count, block) = (start?, stride?, count?, block?);
            if count == unlimited || block == unlimited {
                return Err(unsupported("a virtual dataset with an unlimited selection", fields));
            }
            all.push(match (stride, count, block) {
                (_, count, 1) => Indices { start, step: stride.max(1), count },
                (_, 1, block) => Indices { start, step: 1, count: block },
                (stride, count, block) if stride == block => {
                    Indices { start, step: 1, count: count.saturating_mul(block) }
                }
                _ => return Err(unsupported("a virtual dataset with spaced blocks", fields)),
            });
        }
        return Ok(Selected::Some(Some(all)));
    }
    // Blocks by their first and last index.
    if fields.uint(width)? != 1 {
        return Err(unsupported("a virtual dataset with an irregular selection", fields));
    }
    let starts: Vec<u64> = (0..rank).map(|_| fields.uint(width)).collect::<Result<_>>()?;
    for start in starts {
        let count = fields.uint(width)?.checked_sub(start).and_then(|n| n.checked_add(1));
        let count = count.ok_or_else(|| fields.malformed("selection with a negative length"))?;
        all.push(Indices { start, step: 1, count });
    }
    Ok(Selected::Some(Some(all)))
}
