//! The byte map of a file, including unassigned bytes.

use serde::Serialize;
use spile_core::{Dataset, Result};

/// A byte range with a meaning, or an unassigned one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// `header`, `data`, `text`, `padding`, `unknown`, or `gap` for unassigned bytes.
    pub role: &'static str,
    /// Its name in the terms of the format.
    pub name: String,
    /// Its value as text.
    pub value: String,
    /// Number of bytes at its beginning that overlap an earlier range.
    #[serde(skip_serializing_if = "is_zero")]
    pub overlap: u64,
}

/// Totals of all ranges.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Length of the file.
    pub bytes: u64,
    /// Bytes and share of each role, in the order in which roles appear.
    pub roles: Vec<Share>,
    /// Bytes in more than one range.
    pub overlapping: u64,
    /// Bytes of ranges beyond the end of the file.
    pub past_end: u64,
}

/// Bytes of one role. Bytes in more than one range count for the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The role.
    pub role: &'static str,
    /// Bytes.
    pub bytes: u64,
    /// Percent of the file.
    pub percent: f64,
}

const GAP: &str = "gap";

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Calls `each` with every range in file order, including gaps.
pub fn map(dataset: &Dataset, each: &mut dyn FnMut(Part) -> Result<()>) -> Result<Totals> {
    let len = dataset.source().len();
    let mut totals = Totals { bytes: len, ..Totals::default() };
    let mut end = 0_u64;
    dataset.regions(&mut |region| {
        if region.offset > end && end < len {
            each(gap(end, region.offset.min(len) - end, &mut totals))?;
        }
        let region_end = region.offset.saturating_add(region.len);
        let overlap = end.min(region_end).saturating_sub(region.offset);
        totals.overlapping += overlap;
        totals.past_end = totals.past_end.max(region_end.saturating_sub(len));
        totals.add(region.kind.name(), region.len - overlap);
        end = end.max(region_end);
        each(Part {
            offset: region.offset,
            bytes: region.len,
            role: region.kind.name(),
            name: region.name,
            value: region.value,
            overlap,
        })
    })?;
    if end < len {
        each(gap(end, len - end, &mut totals))?;
    }
    for share in &mut totals.roles {
        share.percent = 100.0 * share.bytes as f64 / len.max(1) as f64;
    }
    Ok(totals)
}

fn gap(offset: u64, bytes: u64, totals: &mut Totals) -> Part {
    totals.add(GAP, bytes);
    Part { offset, bytes, role: GAP, name: String::new(), value: String::new(), overlap: 0 }
}

impl Totals {
    fn add(&mut self, role: &'static str, bytes: u64) {
        match self.roles.iter_mut().find(|s| s.role == role) {
            Some(share) => share.bytes += bytes,
            None => self.roles.push(Share { role, bytes, percent: 0.0 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_core::format::{
        Format, FormatInfo, Grade, Head, Native, Object, OpenOptions, Parsed, Region, RegionKind,
    };
    use spile_core::source::Source;
    use spile_core::tree::Tree;

    /// A format whose files have these regions.
    #[derive(Clone)]
    struct Fake(Vec<(u64, u64)>);

    static INFO: FormatInfo = FormatInfo {
        name: "fake",
        title: "Fake",
        users: "tests",
        specification: "this file",
        extensions: &[],
        read: Grade::Complete,
        write: Grade::None,
        check: Grade::None,
        salvage: Grade::None,
    };

    impl Format for Fake {
        fn info(&self) -> &'static FormatInfo {
            &INFO
        }
        fn probe(&self, _: Head<'_>) -> u8 {
            0
        }
        fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
            Ok(Parsed::new(source, Tree::new(&options.limits)).with_native(self.clone()))
        }
    }

    impl Native for Fake {
        fn regions(&self, _: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
            self.0.iter().try_for_each(|(offset, len)| {
                let (kind, name, value) = (RegionKind::Data, "r".to_string(), String::new());
                each(Region { offset: *offset, len: *len, kind, name, value })
            })
        }
        fn objects(&self, _: &Dataset, _: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
            Ok(())
        }
    }

    fn run(regions: &[(u64, u64)]) -> (Vec<(u64, u64, &'static str, u64)>, Totals) {
        let format = Fake(regions.to_vec());
        let fake = Dataset::open(&format, Source::memory([0; 100]), &OpenOptions::default());
        let fake = fake.unwrap();
        let mut parts = Vec::new();
        let totals = map(&fake, &mut |p| {
            parts.push((p.offset, p.bytes, p.role, p.overlap));
            Ok(())
        });
        (parts, totals.unwrap())
    }

    #[test]
    fn every_byte_is_accounted_for_once() {
        let (parts, totals) = run(&[(10, 20), (25, 15), (50, 10)]);
        assert_eq!(
            parts,
            [
                (0, 10, "gap", 0),
                (10, 20, "data", 0),
                (25, 15, "data", 5),
                (40, 10, "gap", 0),
                (50, 10, "data", 0),
                (60, 40, "gap", 0)
            ]
        );
        assert_eq!(totals.roles.iter().map(|s| s.bytes).sum::<u64>(), 100);
        assert_eq!((totals.overlapping, totals.past_end), (5, 0));
        assert_eq!(totals.roles[0].percent, 60.0);
    }

    #[test]
    fn a_range_past_the_end_is_counted() {
        let (_, totals) = run(&[(0, 130)]);
        assert_eq!(totals.past_end, 30);
        let (parts, totals) = run(&[(0, 50), (200, 10)]);
        assert_eq!(parts[1], (50, 50, "gap", 0));
        assert_eq!(totals.past_end, 110);
        run(&[(u64::MAX, u64::MAX)]);
    }
}
