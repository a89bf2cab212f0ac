//! Min/max envelopes: minimum and maximum of buckets of consecutive elements, for line plots.

use crate::read::Selected;
use crate::{DType, Error, Result, convert, with_number};

use super::statistics::in_lanes;

/// Minimum and maximum of the finite values of each bucket; NaN if there are none.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// Number of elements; bucket `k` of `b` has the elements `k * count / b .. (k+1) * count / b`.
    pub count: u64,
    /// Minima, scaled.
    pub low: Vec<f64>,
    /// Maxima, scaled.
    pub high: Vec<f64>,
}

/// The envelope of the selected elements, in order, with at most `buckets` buckets and at most one per
/// element. Fails unless the elements are real numbers.
pub fn envelope(selected: &Selected<'_>, buckets: usize) -> Result<Envelope> {
    let (dtype, map) = (selected.array().dtype(), selected.array().map());
    if !dtype.is_real() {
        return Err(Error::argument(format!("a line plot needs real numbers, found {dtype}")));
    }
    let count = selected.count();
    let cut = Cut { count, buckets: (buckets as u64).clamp(1, count.max(1)) };
    let part = selected.fold(
        Part::default,
        |part, block, bytes| {
            if selected.array().missing().is_none() {
                pulp::Arch::new().dispatch(|| part.add(cut, dtype, block.first, bytes));
                return Ok(());
            }
            // Missing values are taken out before scaling, which is applied to the extremes.
            let mut numbers = Vec::new();
            convert::to_physical(dtype, None, selected.array().missing(), bytes, &mut numbers);
            let numbers = convert::little_bytes(&mut numbers);
            pulp::Arch::new().dispatch(|| part.add(cut, DType::F64, block.first, numbers));
            Ok(())
        },
        Part::merge,
    )?;
    let (mut low, mut high) = (part.low, part.high);
    for (low, high) in low.iter_mut().zip(&mut high) {
        if *low > *high {
            (*low, *high) = (f64::NAN, f64::NAN);
        }
        if let Some(map) = map {
            let (a, b) = (map.apply(*low), map.apply(*high));
            (*low, *high) = (a.min(b), a.max(b));
        }
    }
    Ok(Envelope { count, low, high })
}

#[derive(Clone, Copy)]
struct Cut {
    count: u64,
    buckets: u64,
}

impl Cut {
    fn start(self, bucket: u64) -> u64 {
        (u128::from(bucket) * u128::from(self.count) / u128::from(self.buckets)) as u64
    }

    fn bucket_of(self, index: u64) -> u64 {
        let guess = u128::from(index) * u128::from(self.buckets) / u128::from(self.count.max(1));
        let guess = guess as u64;
        guess + u64::from(self.start(guess + 1) <= index)
    }
}

/// The buckets that consecutive blocks touch.
#[derive(Default)]
struct Part {
    first: u64,
    low: Vec<f64>,
    high: Vec<f64>,
}

impl Part {
    #[inline(always)]
    fn add(&mut self, cut: Cut, dtype: DType, first: u64, bytes: &[u8]) {
        let size = dtype.size();
        let elements = (bytes.len() / size) as u64;
        let mut done = 0;
        while done < elements {
            let bucket = cut.bucket_of(first + done);
            let end = (cut.start(bucket + 1) - first).min(elements);
            let piece = &bytes[done as usize * size..end as usize * size];
            let (low, high) = extremes(dtype, piece);
            self.put(bucket, low, high);
            done = end;
        }
    }

    fn put(&mut self, bucket: u64, low: f64, high: f64) {
        if self.low.is_empty() {
            self.first = bucket;
        }
        let at = (bucket - self.first) as usize;
        if at == self.low.len() {
            self.low.push(f64::INFINITY);
            self.high.push(f64::NEG_INFINITY);
        }
        self.low[at] = self.low[at].min(low);
        self.high[at] = self.high[at].max(high);
    }

    /// Parts are merged in order: `next` starts in the last bucket of `self` or in the one after it.
    fn merge(mut self, next: Self) -> Self {
        for (k, (low, high)) in next.low.into_iter().zip(next.high).enumerate() {
            self.put(next.first + k as u64, low, high);
        }
        self
    }
}

/// Minimum and maximum of the finite values; minimum above maximum if there are none.
#[inline(always)]
fn extremes(dtype: DType, bytes: &[u8]) -> (f64, f64) {
    if dtype.is_integer() {
        return with_number!(dtype, T => {
            let (mut low, mut high) = (T::MAX, T::MIN);
            for b in bytes.as_chunks::<{ size_of::<T>() }>().0 {
                let x = T::from_le_bytes(*b);
                low = if x < low { x } else { low };
                high = if x > high { x } else { high };
            }
            (low as f64, high as f64)
        }, else (f64::NAN, f64::NAN));
    }
    with_number!(dtype, T => {
        let (mut low, mut high) = ([T::MAX; 8], [T::MIN; 8]);
        let mut any = 0_u32;
        in_lanes::<8, [u8; size_of::<T>()]>(bytes.as_chunks().0, |k, b| {
            let x = T::from_le_bytes(b);
            let finite = (x as f64).abs() < f64::INFINITY;
            any |= u32::from(finite);
            low[k] = if finite && x < low[k] { x } else { low[k] };
            high[k] = if finite && x > high[k] { x } else { high[k] };
        });
        if any == 0 {
            return (f64::INFINITY, f64::NEG_INFINITY);
        }
        let low = low.iter().fold(f64::INFINITY, |a, b| a.min(*b as f64));
        let high = high.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b as f64));
        (low, high)
    }, else {
        let finite = bytes
            .chunks_exact(dtype.size())
            .map(|b| convert::element_f64(dtype, b))
            .filter(|x| x.is_finite());
        finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;
    use crate::layout::{ArrayDesc, Linear};
    use crate::limits::Limits;
    use crate::shape::Shape;
    use crate::source::Source;

    use proptest::prelude::*;

    fn run(dtype: DType, map: Option<Linear>, bytes: &[u8], buckets: usize) -> Envelope {
        let shape = Shape::new([(bytes.len() / dtype.size()) as u64]);
        let mut desc = ArrayDesc::inline(dtype, shape, bytes);
        desc.map = map;
        let limits = Limits::default();
        let array = Dataset::of_bytes(Source::memory([]), &limits).open_array(&desc).unwrap();
        envelope(&array.all().unwrap().with_block_bytes(100), buckets).unwrap()
    }

    #[test]
    fn buckets_without_values_are_nan_and_negative_slopes_swap_the_extremes() {
        let values = [1.0, f64::NAN, f64::NAN, f64::INFINITY, 5.0, 2.0];
        let bytes: Vec<u8> = values.iter().flat_map(|v: &f64| v.to_le_bytes()).collect();
        let got = run(DType::F64, None, &bytes, 3);
        assert_eq!((got.low[0], got.high[0]), (1.0, 1.0));
        assert!(got.low[1].is_nan() && got.high[1].is_nan());
        assert_eq!((got.low[2], got.high[2]), (2.0, 5.0));
        let map = Some(Linear::new(0.0, -1.0));
        let got = run(DType::U8, map, &[1, 2, 3, 4], 1);
        assert_eq!((got.low[0], got.high[0]), (-4.0, -1.0));
        assert_eq!(run(DType::U8, None, &[], 10).low.len(), 0);
        assert_eq!(run(DType::U8, None, &[7, 8], 10).low, [7.0, 8.0]);
    }

    proptest! {
        #[test]
        fn every_bucket_matches_a_plain_search(
            values in proptest::collection::vec(any::<i16>(), 1..3000), buckets in 1_usize..700)
        {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let got = run(DType::I16, None, &bytes, buckets);
            let b = buckets.min(values.len());
            prop_assert_eq!(got.low.len(), b);
            for k in 0..b {
                let part = &values[k * values.len() / b..(k + 1) * values.len() / b];
                prop_assert_eq!(got.low[k], f64::from(*part.iter().min().unwrap()));
                prop_assert_eq!(got.high[k], f64::from(*part.iter().max().unwrap()));
            }
        }
    }
}
