//! Reductions of arrays in one pass on all threads: statistics, histograms, min/max envelopes, rasters.

mod components;
mod envelope;
mod histogram;
mod integers;
mod raster;
mod statistics;

pub use components::{MOST_COMPONENTS, components};
pub use envelope::{Envelope, envelope};
pub use histogram::{Bins, histogram};
pub use raster::{even_cuts, raster};
pub use statistics::{ExactRange, Stats, statistics};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;
    use crate::dtype::DType;
    use crate::layout::{ArrayDesc, Linear};
    use crate::limits::Limits;
    use crate::read::Array;
    use crate::select::Selection;
    use crate::semantics::{Missing, Semantics};
    use crate::shape::Shape;
    use crate::source::Source;

    /// 2 x 3 elements with `value = 1 + 2 * stored`; -999 and values above 100 are missing.
    fn array(dtype: DType, bytes: Vec<u8>) -> Array {
        let mut desc = ArrayDesc::inline(dtype, Shape::new([2, 3]), bytes);
        desc.map = Some(Linear::new(1.0, 2.0));
        let missing = Missing { values: vec![-999.0], min: None, max: Some(100.0) };
        desc.meaning = Some(Box::new(Semantics { missing, ..Semantics::default() }));
        Dataset::of_bytes(Source::memory([]), &Limits::default()).open_array(&desc).unwrap()
    }

    #[test]
    fn missing_values_are_excluded_from_every_reduction() {
        let stored = [1_i16, -999, 3, 4, 5, 101];
        let floats = stored.iter().flat_map(|v| f64::from(*v).to_le_bytes()).collect();
        let integers = stored.iter().flat_map(|v| v.to_le_bytes()).collect();
        for array in [array(DType::I16, integers), array(DType::F64, floats)] {
            let all = array.all().unwrap();
            let stats = statistics(&all).unwrap();
            assert_eq!((stats.count, stats.finite, stats.nan), (6, 4, 2));
            assert_eq!((stats.min, stats.max, stats.mean), (3.0, 11.0, 7.5));
            assert_eq!(stats.exact, None);
            let (total, parts) = components(&array).unwrap();
            assert_eq!(total, stats);
            let ranges: Vec<_> = parts.iter().map(|p| (p.finite, p.min, p.max)).collect();
            assert_eq!(ranges, [(2, 3.0, 9.0), (1, 11.0, 11.0), (1, 7.0, 7.0)]);
            let bins = Bins::new(-2000.0, 2000.0, 2).unwrap();
            assert_eq!(histogram(&[(&all, bins)], None).unwrap(), [0.0, 4.0]);
            let envelope = envelope(&all, 3).unwrap();
            assert_eq!(envelope.low, [3.0, 7.0, 11.0]);
            assert_eq!(envelope.high, [3.0, 9.0, 11.0]);
            let image = raster(&array, &Selection::all(), (1, &[0, 1, 3]), (0, &[0, 2])).unwrap();
            assert_eq!(image, [6.0, 9.0]);
        }
    }
}
