//! Reading arrays of which most is not stored: elements with the fill value are counted, not read.

use rayon::prelude::*;

use super::{Axes, Selected};
use crate::select::Span;
use crate::store::Store;
use crate::{Result, convert};

/// Work for elements that are not stored, in bytes, up to which they are read as the others are.
const FEW: u64 = 16 << 20;

/// Chunks that are read at the same time.
const BATCH: u64 = 512;

/// The boxes of the selection that are stored, at most one per chunk.
type Parts<'a> = Box<dyn Iterator<Item = Result<Vec<Span>>> + Send + 'a>;

impl Selected<'_> {
    /// Reads all stored elements and discards them. Fails if one of them cannot be read.
    pub fn check(&self) -> Result<()> {
        self.fold_runs(|| (), |(), _| Ok(()), |(), _, _| {}, |(), ()| ())
    }

    /// Folds the elements on all threads, in any order; the result does not depend on the number of threads. `step`
    /// gets a block of elements. If most of the selection is not stored, only stored elements are read, and `repeat`
    /// gets the fill value and the number of the others.
    pub(crate) fn fold_runs<A: Send>(
        &self,
        start: impl Fn() -> A + Sync,
        step: impl Fn(&mut A, &[u8]) -> Result<()> + Sync,
        repeat: impl Fn(&mut A, &[u8], u64),
        merge: impl Fn(A, A) -> A,
    ) -> Result<A> {
        let Some((mut parts, fill)) = self.stored_parts() else {
            return self.fold(start, |sum, _, bytes| step(sum, bytes), merge);
        };
        let task = |spans: Vec<Span>| -> Result<(u64, A)> {
            let part = self.array.select_spans(spans, Axes::Stored)?;
            let mut sum = start();
            part.stream(|_, bytes| step(&mut sum, bytes))?;
            Ok((part.count(), sum))
        };
        let size = self.concurrent().min(BATCH) as usize;
        let (mut all, mut rest) = (start(), self.count());
        loop {
            self.array.source().ensure_running()?;
            let batch: Vec<Vec<Span>> = parts.by_ref().take(size).collect::<Result<_>>()?;
            if batch.is_empty() {
                break;
            }
            let done: Vec<(u64, A)> = batch.into_par_iter().map(task).collect::<Result<_>>()?;
            for (count, sum) in done {
                rest = rest.saturating_sub(count);
                all = merge(all, sum);
            }
        }
        if rest > 0 {
            repeat(&mut all, &fill, rest);
        }
        Ok(all)
    }

    /// The stored parts of the selection and the fill value, little-endian, as it is read; `None` unless most of the
    /// selection is not stored.
    fn stored_parts(&self) -> Option<(Parts<'_>, Vec<u8>)> {
        let array = self.array;
        let plain = self.spans.iter().all(|span| span.step == 1 || span.count == 1);
        if !plain || array.store.unstored_work(&self.spans, array.dtype.size()) <= FEW {
            return None;
        }
        let (parts, mut fill): (Parts<'_>, Vec<u8>) = match &array.store {
            Store::Fill(element) => (Box::new(std::iter::empty()), element.to_vec()),
            Store::Chunked(chunks) if !chunks.is_flat() => {
                let mut fill = chunks.fill().to_vec();
                convert::to_little(array.dtype, &mut fill);
                (Box::new(chunks.stored_parts(&self.spans)), fill)
            }
            _ => return None,
        };
        if let Some(stored) = &array.physical {
            fill = stored.convert(&fill, &mut Vec::new(), &mut Vec::new()).to_vec();
        }
        Some((parts, fill))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use crate::chunks::{Chunk, ChunkTable, Chunks};
    use crate::reduce::statistics;
    use crate::{
        Array, ArrayDesc, ByteOrder, DType, Dataset, ErrorKind, Extents, Layout, Limits, Order,
        Result, Selection, Shape, Source,
    };

    /// Every 1000th chunk is stored, at the start of the file.
    #[derive(Default)]
    struct Sparse {
        last: u64,
        calls: AtomicU64,
    }

    impl ChunkTable for Sparse {
        fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
            self.calls.fetch_add(1, Ordering::Relaxed);
            let stored = number.is_multiple_of(1000) && number <= self.last;
            Ok(stored.then(|| Chunk { extents: Extents::one(0, 60), codec: None }))
        }

        fn stored(&self) -> Option<u64> {
            Some(self.last / 1000 + 1)
        }

        fn next(&self, number: u64) -> Result<Option<u64>> {
            let next = number.next_multiple_of(1000);
            Ok((next <= self.last).then_some(next))
        }
    }

    /// Big-endian integers in chunks of 5 x 6; the fill value is -3.
    fn array(table: &Arc<Sparse>, shape: [u64; 2], memory: u64) -> Array {
        let fill = (-3_i16).to_be_bytes();
        let chunks = Chunks {
            shape: Shape::new(shape),
            chunk: Shape::new([5, 6]),
            axes: Order::C.slowest_first(2),
            table: table.clone(),
            fill: fill.to_vec().into(),
        };
        let stored: Vec<u8> = (0..30).flat_map(|k: i16| k.to_be_bytes()).collect();
        let layout = Layout::Chunked { chunks: Arc::new(chunks), first: 0 };
        let dtype = DType::I16.with_order(ByteOrder::Big);
        let limits = Limits::default().with_memory(memory);
        let dataset = Dataset::of_bytes(Source::memory(stored), &limits);
        dataset.open_array(&ArrayDesc::new(dtype, Shape::new(shape), layout)).unwrap()
    }

    #[test]
    fn chunks_that_are_not_stored_are_counted_and_not_read() {
        // 2^40 elements.
        let table = Arc::new(Sparse { last: 7_000_000, ..Sparse::default() });
        let array = array(&table, [1 << 20, 1 << 20], 512 << 20);
        let stats = statistics(&array.unlimited().unwrap()).unwrap();
        assert!(table.calls.load(Ordering::Relaxed) <= 7001);
        assert_eq!(stats.count, 1 << 40);
        let exact = stats.exact.unwrap();
        assert_eq!((exact.min, exact.max), (-3, 29));
        // No stored chunk is at an edge: 174763 chunks per row, of which the last is partial.
        let partial = (0..=7000_u64).filter(|k| (k * 1000) % 174_763 == 174_762).count();
        assert_eq!(partial, 0);
        let stored = 7001 * 30;
        assert_eq!(exact.sum, 7001 * (29 * 30 / 2) - 3 * ((1 << 40) - stored));
        array.unlimited().unwrap().check().unwrap();
    }

    #[test]
    fn sums_over_all_bytes_are_refused_with_the_limit_and_parts_are_read() {
        let table = Arc::new(Sparse { last: 7_000_000, ..Sparse::default() });
        let array = array(&table, [1 << 20, 1 << 20], 512 << 20);
        let error = array.all().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Limit);
        let error = array.unlimited().unwrap().stream(|_, _| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        let few: Selection = "0:3, 4:9".parse().unwrap();
        let few = array.read_f64(&few, crate::Axes::Stored).unwrap();
        assert_eq!(few[..6], [4.0, 5.0, -3.0, -3.0, -3.0, 10.0]);
    }

    #[test]
    fn statistics_of_runs_are_those_of_all_elements() {
        // The work for chunks that are not stored is just above the limit for reading them.
        let table = Arc::new(Sparse { last: 9_000, ..Sparse::default() });
        let array = array(&table, [1_007, 3_011], 512 << 20);
        for text in ["...", "3:777, 100:2903"] {
            let part = text.parse().unwrap();
            let part = array.select(&part, crate::Axes::Stored).unwrap();
            let work = part.array.store.unstored_work(&part.spans, 2);
            assert!(work > super::FEW, "{work}");
            let runs = statistics(&part).unwrap();
            let mut numbers = Vec::new();
            part.stream(|_, bytes| {
                numbers.extend(bytes.as_chunks::<2>().0.iter().map(|b| i16::from_le_bytes(*b)));
                Ok(())
            })
            .unwrap();
            let exact = runs.exact.unwrap();
            assert_eq!(runs.count, numbers.len() as u64);
            assert_eq!(exact.sum, numbers.iter().map(|x| i128::from(*x)).sum());
            let mean = exact.sum as f64 / numbers.len() as f64;
            let squares: f64 = numbers.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum();
            let std = (squares / (numbers.len() - 1) as f64).sqrt();
            assert!((runs.std - std).abs() < 1e-9 * std, "{} {std}", runs.std);
        }
    }
}
