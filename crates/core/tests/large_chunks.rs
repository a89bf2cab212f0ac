//! Chunks that are larger than the share of a thread in the memory limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spile_core::chunks::{Chunk, ChunkTable, Chunks};
use spile_core::{
    ArrayDesc, Codec, DType, Dataset, Extents, Layout, Limits, ROOT, Result, Shape, Source, Tree,
};

const CHUNKS: u64 = 8;
const CHUNK: u64 = 512 << 10;

struct Counted(AtomicU64);

impl Codec for Counted {
    fn name(&self) -> &'static str {
        "counted"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        out.fill(stored[0]);
        Ok(())
    }
}

struct Table(Arc<Counted>);

impl ChunkTable for Table {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        Ok(Some(Chunk { extents: Extents::one(number, 1), codec: Some(self.0.clone()) }))
    }
}

/// The cache holds one chunk, so threads that work on several would decode each chunk for every block.
#[test]
fn threads_do_not_evict_the_chunks_of_each_other() {
    let counted = Arc::new(Counted(AtomicU64::new(0)));
    let shape = Shape::new([CHUNKS * CHUNK]);
    let chunks = Chunks {
        shape: shape.clone(),
        chunk: Shape::new([CHUNK]),
        axes: vec![0],
        table: Arc::new(Table(counted.clone())),
        fill: [0].into(),
    };
    let limits = Limits::default().with_memory(2 * CHUNK);
    let mut tree = Tree::new(&limits);
    let layout = Layout::Chunked { chunks: Arc::new(chunks), first: 0 };
    tree.add_array(ROOT, "x", ArrayDesc::new(DType::U8, shape, layout)).unwrap();
    let dataset = Dataset::new(Source::memory([1; CHUNKS as usize]), tree).with_limits(limits);
    let array = dataset.array("x").unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let all = array.all().unwrap();
    let total = pool.install(|| {
        let sum = all.fold(
            || 0_u64,
            |total, _, bytes| {
                *total += bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
                Ok(())
            },
            |a, b| a + b,
        );
        sum.unwrap()
    });
    assert_eq!((total, counted.0.swap(0, Ordering::Relaxed)), (CHUNKS * CHUNK, CHUNKS));
    pool.install(|| all.for_each(|_, _| Ok(())).unwrap());
    assert_eq!(counted.0.swap(0, Ordering::Relaxed), CHUNKS);
    pool.install(|| all.ordered(|_, _| Ok(()), Ok).unwrap());
    assert_eq!(counted.0.load(Ordering::Relaxed), CHUNKS);
}
