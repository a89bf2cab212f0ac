//! Byte ranges of the source that are read as one sequence.

use std::sync::Arc;

use crate::{Error, Result};

/// A range of bytes of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// Byte ranges read as one sequence; more than one for Fortran sub-records and split blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extents(Ranges);

/// One range is the common case and needs no allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ranges {
    One(Extent),
    Several {
        parts: Arc<[Extent]>,
        /// Bytes before each part, and the total at the end.
        starts: Arc<[u64]>,
    },
}

impl Extents {
    /// One range.
    pub fn one(offset: u64, len: u64) -> Self {
        Self(Ranges::One(Extent { offset, len }))
    }

    /// Several ranges, in reading order. Fails with `Limit` if their total length exceeds 64 bits.
    pub fn several(parts: Vec<Extent>) -> Result<Self> {
        let mut starts = Vec::with_capacity(parts.len() + 1);
        let mut total = 0_u64;
        starts.push(0);
        for part in &parts {
            total = total.checked_add(part.len).ok_or_else(|| {
                Error::limit("the total length of the byte ranges exceeds 64 bits")
            })?;
            starts.push(total);
        }
        Ok(Self(match parts[..] {
            [one] => Ranges::One(one),
            _ => Ranges::Several { parts: parts.into(), starts: starts.into() },
        }))
    }

    /// These ranges with offsets increased by `by` bytes.
    pub(crate) fn shifted(&self, by: u64) -> Result<Self> {
        let shift = |part: &Extent| {
            let offset = part.offset.checked_add(by);
            offset.map(|offset| Extent { offset, len: part.len })
        };
        let parts: Option<Vec<Extent>> = self.parts().iter().map(shift).collect();
        Self::several(
            parts.ok_or_else(|| Error::limit("the byte ranges exceed the largest file size"))?,
        )
    }

    /// Total number of bytes.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Ranges::One(part) => part.len,
            Ranges::Several { starts, .. } => starts.last().copied().unwrap_or(0),
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ranges.
    pub fn parts(&self) -> &[Extent] {
        match &self.0 {
            Ranges::One(part) => std::slice::from_ref(part),
            Ranges::Several { parts, .. } => parts,
        }
    }

    /// The ranges of the source with the `len` bytes at `offset` of the concatenated ranges; fewer bytes at
    /// their end.
    pub fn pieces(&self, offset: u64, len: u64) -> impl Iterator<Item = Extent> + '_ {
        let end = offset.saturating_add(len).min(self.len());
        let first = match &self.0 {
            Ranges::One(_) => 0,
            Ranges::Several { starts, .. } => {
                starts.partition_point(|start| *start <= offset).saturating_sub(1)
            }
        };
        let parts = self.parts();
        // Bytes before a part.
        let start = move |k: usize| match &self.0 {
            Ranges::One(part) => part.len * k as u64,
            Ranges::Several { starts, .. } => starts[k],
        };
        (first..parts.len()).map_while(move |k| {
            let (from, to) = (start(k).max(offset), start(k + 1).min(end));
            (start(k) < end).then(|| Extent {
                offset: parts[k].offset.saturating_add(from - start(k)),
                len: to.saturating_sub(from),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cross_ranges() {
        let e = |offset, len| Extent { offset, len };
        let joined = Extents::several(vec![e(100, 10), e(0, 0), e(200, 5), e(300, 20)]).unwrap();
        assert_eq!(joined.len(), 35);
        let pieces: Vec<_> = joined.pieces(8, 10).filter(|p| p.len > 0).collect();
        assert_eq!(pieces, [e(108, 2), e(200, 5), e(300, 3)]);
        assert_eq!(joined.pieces(35, 10).map(|p| p.len).sum::<u64>(), 0);
        assert_eq!(joined.pieces(0, 35).map(|p| p.len).sum::<u64>(), 35);
        assert!(Extents::several(vec![e(0, u64::MAX), e(0, 1)]).is_err());
    }
}
