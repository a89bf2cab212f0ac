//! Requests and bytes of remote sources, counted exactly.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spile_core::chunks::{Chunk, ChunkTable, Chunks};
use spile_core::reduce::statistics;
use spile_core::source::ReadAt;
use spile_core::{
    Array, ArrayDesc, Axes, DType, Dataset, ErrorKind, Extents, Layout, Limits, Order, Result,
    Selection, Shape, Source,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A file whose bytes depend on their offset, and all requests.
#[derive(Default)]
struct Server {
    /// Offset and length of every request, in order.
    requests: Mutex<Vec<(u64, u64)>>,
    now: AtomicUsize,
    /// Most requests at the same time.
    most: AtomicUsize,
    delay: Duration,
    /// Requests wait until this number is made at the same time.
    together: usize,
    /// Requests of bytes from here on fail.
    broken: Option<u64>,
    /// The file ends here, although it is said to be longer.
    end: Option<u64>,
}

fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn bytes(offset: u64, len: u64) -> Vec<u8> {
    (offset..offset + len).map(byte).collect()
}

struct Client(Arc<Server>);

impl ReadAt for Client {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let server = &self.0;
        let now = server.now.fetch_add(1, Ordering::SeqCst) + 1;
        server.most.fetch_max(now, Ordering::SeqCst);
        server.requests.lock().unwrap().push((offset, buffer.len() as u64));
        std::thread::sleep(server.delay);
        let begin = std::time::Instant::now();
        while server.most.load(Ordering::SeqCst) < server.together && begin.elapsed().as_secs() < 30
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        server.now.fetch_sub(1, Ordering::SeqCst);
        if server.broken.is_some_and(|from| offset + buffer.len() as u64 > from) {
            return Err(io::Error::other("the server does not answer"));
        }
        let end = server.end.unwrap_or(u64::MAX).saturating_sub(offset);
        let len = buffer.len().min(end as usize);
        buffer[..len].iter_mut().zip(offset..).for_each(|(slot, at)| *slot = byte(at));
        Ok(len)
    }

    fn concurrency(&self) -> usize {
        4
    }
}

impl Server {
    fn source(self: &Arc<Self>, len: u64) -> Source {
        Source::remote(Some("https://host/file".into()), len, Box::new(Client(self.clone())), &[])
    }

    /// The requests since the last call.
    fn requests(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }

    /// Sorted, for requests that are made at the same time.
    fn sorted(&self) -> Vec<(u64, u64)> {
        let mut all = self.requests();
        all.sort_unstable();
        all
    }
}

#[test]
fn small_reads_of_a_block_are_one_request() {
    let server = Arc::new(Server::default());
    let source = server.source(10 * MIB);
    for k in 0..500 {
        assert_eq!(source.read_vec(k * 64, 64).unwrap(), bytes(k * 64, 64));
    }
    assert_eq!(server.requests(), [(0, 32 * KIB)]);
    // Adjacent missing blocks are one request, and blocks on both sides of one that is there, too.
    assert_eq!(source.read_vec(5 * MIB - 1, 2).unwrap(), bytes(5 * MIB - 1, 2));
    assert_eq!(server.requests(), [(5 * MIB - 32 * KIB, 64 * KIB)]);
    let around = source.read_vec(5 * MIB - 65 * KIB, 200 * KIB).unwrap();
    assert_eq!(around, bytes(5 * MIB - 65 * KIB, 200 * KIB));
    assert_eq!(server.requests(), [(5 * MIB - 96 * KIB, 256 * KIB)]);
    assert_eq!(source.requests(), 3);
    assert_eq!(source.bytes_read(), 352 * KIB);
}

#[test]
fn large_reads_fetch_exactly_their_bytes() {
    let server = Arc::new(Server::default());
    let source = server.source(10 * MIB);
    assert_eq!(source.read_vec(12_345, MIB).unwrap(), bytes(12_345, MIB));
    assert_eq!(server.requests(), [(12_345, MIB)]);
    // The last block is shorter.
    assert_eq!(source.read_vec(10 * MIB - 3, 3).unwrap(), bytes(10 * MIB - 3, 3));
    assert_eq!(server.requests(), [(10 * MIB - 32 * KIB, 32 * KIB)]);
    let error = source.read_vec(10 * MIB - 3, 4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert!(server.requests().is_empty());
}

#[test]
fn small_reads_that_follow_each_other_fetch_more_at_once() {
    let server = Arc::new(Server::default());
    let source = server.source(3 * MIB);
    let mut all = Vec::new();
    source
        .for_each_block(0, 3 * MIB, |block| {
            all.extend_from_slice(block);
            Ok(())
        })
        .unwrap();
    assert_eq!(all, bytes(0, 3 * MIB));
    let lengths: Vec<u64> = server.requests().iter().map(|(_, len)| len / KIB).collect();
    assert_eq!(lengths, [64, 64, 128, 256, 512, 1024, 1024]);
}

#[test]
fn the_cache_is_limited_by_the_memory_limit() {
    let server = Arc::new(Server::default());
    let source = server.source(10 * MIB);
    // A share of 1/16: two blocks.
    let limits = Limits::default().with_memory(MIB);
    Dataset::open(&Nothing, source.clone(), &(&limits).into()).unwrap();
    let block = |k: u64| source.read_vec(k * 64 * KIB, 1).unwrap();
    for k in [0, 50, 0, 50] {
        block(k);
    }
    assert_eq!(server.requests().len(), 2);
    for k in [90, 0, 90] {
        block(k);
    }
    assert_eq!(server.requests(), [(90 * 64 * KIB, 32 * KIB), (0, 32 * KIB)]);
}

/// A format without objects.
struct Nothing;

static INFO: spile_core::format::FormatInfo = spile_core::format::FormatInfo {
    name: "nothing",
    title: "Nothing",
    users: "this test",
    specification: "",
    extensions: &[],
    read: spile_core::format::Grade::Complete,
    write: spile_core::format::Grade::None,
    check: spile_core::format::Grade::None,
    salvage: spile_core::format::Grade::None,
};

impl spile_core::Format for Nothing {
    fn info(&self) -> &'static spile_core::format::FormatInfo {
        &INFO
    }

    fn probe(&self, _: spile_core::format::Head<'_>) -> spile_core::format::Score {
        0
    }

    fn open(
        &self,
        source: Source,
        options: &spile_core::OpenOptions,
    ) -> Result<spile_core::Parsed> {
        Ok(spile_core::Parsed::new(source, spile_core::Tree::new(&options.limits)))
    }
}

#[test]
fn threads_that_need_the_same_block_make_one_request() {
    let delay = Duration::from_millis(50);
    let server = Arc::new(Server { delay, ..Server::default() });
    let source = server.source(MIB);
    std::thread::scope(|scope| {
        for k in 0..8 {
            let source = &source;
            scope.spawn(move || assert_eq!(source.read_vec(k, 10).unwrap(), bytes(k, 10)));
        }
    });
    assert_eq!(server.requests(), [(0, 32 * KIB)]);
}

#[test]
fn ranges_with_small_gaps_are_one_request_and_several_requests_run_at_the_same_time() {
    let server = Arc::new(Server::default());
    let source = server.source(200 * MIB);
    // A gap of exactly 1 MiB is read over, one more byte is not.
    let near = [(0, 300 * KIB), (300 * KIB + MIB, 100)];
    let far = [(100 * MIB, 300 * KIB), (100 * MIB + 300 * KIB + MIB + 1, 300 * KIB)];
    let ranges = [far[1], near[1], far[0], near[0]];
    let found = source.read_ranges(&ranges, &Limits::default()).unwrap();
    for ((offset, len), found) in ranges.into_iter().zip(found) {
        assert_eq!(found, bytes(offset, len));
    }
    assert_eq!(server.sorted(), [(0, 300 * KIB + MIB + 100), far[0], far[1]]);
    // A request has at most 16 MiB, and four run at the same time.
    let server = Arc::new(Server { together: 4, ..Server::default() });
    let source = server.source(200 * MIB);
    let found = source.read_ranges(&[(1, 60 * MIB)], &Limits::default()).unwrap();
    assert!(found[0] == bytes(1, 60 * MIB));
    let part = |k: u64| (1 + 16 * MIB * k, if k < 3 { 16 * MIB } else { 12 * MIB });
    assert_eq!(server.sorted(), [part(0), part(1), part(2), part(3)]);
    assert_eq!(server.most.load(Ordering::SeqCst), 4);
    let error = source.read_ranges(&[(0, 60 * MIB)], &Limits::default().with_memory(MIB));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Limit);
    let error = source.read_ranges(&[(199 * MIB, 2 * MIB)], &Limits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert!(server.requests().is_empty());
}

/// An array of float64 in C order after 100 bytes.
fn array(source: Source, shape: [u64; 3], limits: &Limits) -> Array {
    let shape = Shape::new(shape);
    let layout = Layout::contiguous(100, shape.bytes(8).unwrap(), Order::C);
    let dataset = Dataset::of_bytes(source, limits);
    dataset.open_array(&ArrayDesc::new(DType::F64, shape, layout)).unwrap()
}

fn read(array: &Array, selection: &str, order: Order) -> Vec<u8> {
    let selection: Selection = selection.parse().unwrap();
    array.read_bytes(&selection, Axes::Order(order)).unwrap()
}

#[test]
fn planes_take_the_cheaper_of_coalesced_ranges_and_the_whole_field() {
    let server = Arc::new(Server::default());
    let shape = [8, 512, 128];
    let len = 100 + 8 * 512 * 128 * 8;
    let limits = Limits::default();
    let local = array(Source::memory(bytes(0, len)), shape, &limits);
    let remote = array(server.source(len), shape, &limits);
    // Normal to the slowest axis: one request of exactly its bytes.
    let plane = "3, :, :";
    assert!(read(&remote, plane, Order::C) == read(&local, plane, Order::C));
    assert_eq!(server.requests(), [(100 + 3 * 512 * KIB, 512 * KIB)]);
    // The gaps of 511 KiB are read over: one request from the first to the last row.
    let rows = ":, 7, :";
    assert!(read(&remote, rows, Order::C) == read(&local, rows, Order::C));
    assert_eq!(server.requests(), [(100 + 7 * KIB, 7 * 512 * KIB + KIB)]);
    // Normal to the fastest axis: the whole field, once, in either order.
    for order in [Order::C, Order::F] {
        let plane = "..., 5";
        assert!(read(&remote, plane, order) == read(&local, plane, order));
        assert_eq!(server.requests(), [(100 + 40, 8 * 512 * KIB - KIB + 8)]);
    }
    assert!(read(&remote, "...", Order::F) == read(&local, "...", Order::F));
    assert_eq!(server.requests().iter().map(|r| r.1).sum::<u64>(), 8 * 512 * KIB);

    // Larger gaps are not read.
    let shape = [6, 2048, 128];
    let len = 100 + 6 * 2048 * KIB;
    let remote = array(server.source(len), shape, &limits);
    let local = array(Source::memory(bytes(0, len)), shape, &limits);
    assert!(read(&remote, rows, Order::C) == read(&local, rows, Order::C));
    let block = |k: u64| (k * 2 * MIB, 32 * KIB);
    assert_eq!(server.sorted(), [block(0), block(1), block(2), block(3), block(4), block(5)]);
}

#[test]
fn every_way_of_reading_fetches_each_byte_once() {
    let server = Arc::new(Server::default());
    let shape = [40, 512, 128];
    let data = 40 * 512 * KIB;
    for memory in [512 * MIB, 24 * MIB] {
        let limits = Limits::default().with_memory(memory);
        let local = array(Source::memory(bytes(0, 100 + data)), shape, &limits);
        let remote = array(server.source(100 + data), shape, &limits);
        // The window is 1/8 of the memory limit.
        let largest = (memory / 8).min(16 * MIB);
        let check = |what: &str, most: u64| {
            let requests = server.sorted();
            let count = requests.len() as u64;
            assert_eq!(requests.iter().map(|r| r.1).sum::<u64>(), data, "{what}: {requests:?}");
            let mut next = 100;
            for (offset, len) in requests {
                assert_eq!(offset, next, "{what}");
                // Bytes for the caller's buffer are not kept.
                assert!(len <= if what == "bytes" { 8 * MIB } else { largest }, "{what}");
                next += len;
            }
            assert!(count <= most, "{what}: {count}");
        };
        let few = data.div_ceil(largest) + data / (memory / 8) + 1;
        assert!(remote.bytes().unwrap() == local.bytes().unwrap());
        check("bytes", 3);
        let (a, b) = (statistics(&remote.all().unwrap()), statistics(&local.all().unwrap()));
        let (a, b) = (a.unwrap(), b.unwrap());
        assert_eq!((a.count, a.mean.to_bits()), (b.count, b.mean.to_bits()));
        // Two passes: the mean, and the distance to it.
        assert_eq!(server.requests().iter().map(|r| r.1).sum::<u64>(), 2 * data);
        let total = |count: &mut u64, _, block: &[u8]| {
            *count += block.len() as u64;
            Ok(())
        };
        assert_eq!(remote.all().unwrap().fold(|| 0, total, |a, b| a + b).unwrap(), data);
        check("fold", few);
        let mut all = Vec::new();
        remote
            .all()
            .unwrap()
            .stream(|_, block| {
                all.extend_from_slice(block);
                Ok(())
            })
            .unwrap();
        assert!(all == local.bytes().unwrap());
        check("stream", few);
        let sum = std::sync::atomic::AtomicU64::new(0);
        let add = |_, block: &[u8]| {
            sum.fetch_add(block.iter().map(|b| u64::from(*b)).sum(), Ordering::Relaxed);
            Ok(())
        };
        remote.all().unwrap().for_each(add).unwrap();
        assert_eq!(sum.into_inner(), all.iter().map(|b| u64::from(*b)).sum::<u64>());
        check("for_each", few);
        let mut again = Vec::new();
        let copy = |_, block: &[u8]| Ok(block.to_vec());
        let keep = |block: Vec<u8>| {
            again.extend(block);
            Ok(())
        };
        remote.all().unwrap().ordered(copy, keep).unwrap();
        assert!(again == all);
        check("ordered", few);
    }
}

/// Chunks of 256 KiB, in reverse order in the file, with 4 KiB between them.
struct Reverse(u64);

impl ChunkTable for Reverse {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        let offset = (self.0 - 1 - number) * 260 * KIB;
        Ok(Some(Chunk { extents: Extents::one(offset, 256 * KIB), codec: None }))
    }
}

#[test]
fn the_chunks_of_a_selection_are_few_requests() {
    let server = Arc::new(Server::default());
    let (shape, chunk) = (Shape::new([64, 1024, 16]), Shape::new([4, 512, 16]));
    let open = |source: Source| {
        let chunks = Chunks {
            shape: shape.clone(),
            chunk: chunk.clone(),
            axes: Order::C.slowest_first(3),
            table: Arc::new(Reverse(32)),
            fill: vec![0; 8].into(),
        };
        let layout = Layout::Chunked { chunks: Arc::new(chunks), first: 0 };
        let dataset = Dataset::of_bytes(source, &Limits::default());
        dataset.open_array(&ArrayDesc::new(DType::F64, shape.clone(), layout)).unwrap()
    };
    let len = 32 * 260 * KIB;
    let (remote, local) = (open(server.source(len)), open(Source::memory(bytes(0, len))));
    let all = read(&remote, "...", Order::C);
    assert!(all == read(&local, "...", Order::C));
    assert_eq!(server.requests(), [(0, len - 4 * KIB)]);
    // One column of chunks: every second one, 264 KiB apart.
    let some = read(&remote, "8:16, 600, :", Order::C);
    assert!(some == read(&local, "8:16, 600, :", Order::C));
    let requests = server.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
}

#[test]
fn errors_have_the_url_and_do_not_block_later_reads() {
    let broken = Arc::new(Server { broken: Some(3 * MIB), ..Server::default() });
    let remote = array(broken.source(100 + 4 * MIB), [8, 512, 128], &Limits::default());
    let error = remote.bytes().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(error.path(), Some(std::path::Path::new("https://host/file")));
    assert!(error.to_string().contains("the server does not answer"), "{error}");
    assert_eq!(read(&remote, "0, 0, :", Order::C), bytes(100, KIB));
    // The file became shorter than it was said to be.
    let shorter = Arc::new(Server { end: Some(3 * MIB), ..Server::default() });
    let source = shorter.source(100 + 4 * MIB);
    assert_eq!(source.read_vec(3 * MIB - 8, 10).unwrap_err().kind(), ErrorKind::Truncated);
    let remote = array(source, [8, 512, 128], &Limits::default());
    assert_eq!(remote.bytes().unwrap_err().kind(), ErrorKind::Truncated);
}
