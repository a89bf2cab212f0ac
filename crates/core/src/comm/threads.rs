//! Ranks as threads of this process.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{Comm, SharedSink, SharedSource, agree, broadcast_number, gather_numbers};
use crate::{Error, Overwrite, Result, Sink, Source};

/// One rank of a job whose ranks are threads of this process.
pub struct Threads<'a> {
    rank: usize,
    job: &'a Job,
}

struct Job {
    size: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of completed exchanges.
    round: u64,
    contributions: Vec<Option<Vec<u8>>>,
    result: Arc<Vec<Vec<u8>>>,
    /// Number of ranks that have returned; waiting for them would block forever.
    ended: usize,
    sink: Option<Arc<Sink>>,
}

impl Threads<'_> {
    /// Runs `body` on `size` ranks concurrently and returns their results, by rank. Panics of a rank are
    /// propagated.
    pub fn run<R: Send>(size: usize, body: impl Fn(&Threads<'_>) -> R + Sync) -> Vec<R> {
        let state = State { contributions: vec![None; size], ..State::default() };
        let job = Job { size, state: Mutex::new(state), changed: Condvar::new() };
        let one = |rank| {
            let _ended = Ended(&job);
            body(&Threads { rank, job: &job })
        };
        std::thread::scope(|scope| {
            let ranks: Vec<_> = (0..size).map(|rank| scope.spawn(move || one(rank))).collect();
            let join = |rank: std::thread::ScopedJoinHandle<'_, R>| match rank.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            ranks.into_iter().map(join).collect()
        })
    }

    /// Replaces each value by the values of all ranks, combined by `join`, of which 0 is the neutral element.
    fn reduce(&self, values: &mut [u64], join: impl Fn(u64, u64) -> u64) -> Result<()> {
        let mine: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        values.fill(0);
        for other in self.allgather(&mine)?.iter() {
            for (value, raw) in values.iter_mut().zip(other.as_chunks().0) {
                *value = join(*value, u64::from_le_bytes(*raw));
            }
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.job.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a rank as ended when it is dropped, also after a panic.
struct Ended<'a>(&'a Job);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).ended += 1;
        self.0.changed.notify_all();
    }
}

impl Comm for Threads<'_> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.job.size
    }

    fn allgather(&self, mine: &[u8]) -> Result<Arc<Vec<Vec<u8>>>> {
        let mut state = self.state();
        let round = state.round;
        state.contributions[self.rank] = Some(mine.to_vec());
        if state.contributions.iter().all(Option::is_some) {
            let all = state.contributions.iter_mut().filter_map(Option::take).collect();
            state.result = Arc::new(all);
            state.round += 1;
            self.job.changed.notify_all();
        }
        while state.round == round {
            if state.ended > 0 {
                return Err(Error::argument("another rank of the job has terminated"));
            }
            state = self.job.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(state.result.clone())
    }

    fn max(&self, values: &mut [u64]) -> Result<()> {
        self.reduce(values, u64::max)
    }

    fn xor(&self, values: &mut [u64]) -> Result<()> {
        self.reduce(values, |a, b| a ^ b)
    }

    fn sum_before(&self, mine: u64) -> Result<u64> {
        let all = gather_numbers(self, mine)?;
        Ok(all[..self.rank].iter().fold(0, |sum, number| sum.saturating_add(*number)))
    }

    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<()> {
        let all = self.allgather(if self.rank == root { bytes } else { &[] })?;
        let sent = all.get(root).filter(|sent| sent.len() == bytes.len());
        let sent = sent.ok_or_else(|| Error::argument(format!("rank {root} sent no message")))?;
        bytes.copy_from_slice(sent);
        Ok(())
    }

    fn create(&self, path: &Path, overwrite: Overwrite) -> Result<Box<dyn SharedSink + '_>> {
        let mut made = Ok(());
        if self.rank == 0 {
            made =
                Sink::create(path, overwrite).map(|sink| self.state().sink = Some(Arc::new(sink)));
        }
        agree(self, made)?;
        let sink = self.state().sink.clone();
        let sink = sink.ok_or_else(|| Error::argument("the shared file was not created"))?;
        agree(self, Ok(()))?;
        self.state().sink = None;
        Ok(Box::new(ThreadsSink { comm: self, sink }))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn SharedSource + '_>> {
        let source = agree(self, Source::open(path))?;
        // The file may be growing: all ranks use the length seen by rank 0.
        let len = broadcast_number(self, 0, source.len())?;
        Ok(Box::new(ThreadsSource { source, len, root: self.rank == 0 }))
    }
}

struct ThreadsSink<'a> {
    comm: &'a Threads<'a>,
    sink: Arc<Sink>,
}

impl SharedSink for ThreadsSink<'_> {
    fn reserve(&self, end: u64) -> Result<bool> {
        SharedSink::reserve(&*self.sink, end)
    }

    fn write(&self, offset: u64, parts: &[&[u8]], longest: u64) -> Result<()> {
        SharedSink::write(&*self.sink, offset, parts, longest)
    }

    fn write_alone(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        self.sink.write_alone(offset, parts)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self { comm, sink } = *self;
        let mut done = Ok(());
        if comm.rank == 0 {
            // The other ranks drop the file before the first agreement.
            agree(comm, Ok(()))?;
            done = match Arc::try_unwrap(sink) {
                Ok(sink) => sink.commit(),
                Err(_) => Err(Error::argument("another rank is still writing the file")),
            };
        } else {
            drop(sink);
            agree(comm, Ok(()))?;
        }
        agree(comm, done)
    }
}

struct ThreadsSource {
    source: Source,
    len: u64,
    root: bool,
}

impl SharedSource for ThreadsSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, offset: u64, buffer: &mut [u8], _longest: u64) -> Result<()> {
        self.source.read_exact_at(offset, buffer)
    }

    fn read_at_root(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        if self.root { self.source.read_exact_at(offset, buffer) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn allgather_returns_the_bytes_of_all_ranks() {
        for size in [1, 2, 3, 7] {
            let all = Threads::run(size, |comm| {
                let mut sum = 0_u64;
                for round in 0..50_u8 {
                    let mine = vec![round; comm.rank()];
                    let got = comm.allgather(&mine).unwrap();
                    assert!(got.iter().enumerate().all(|(k, b)| *b == vec![round; k]));
                    sum += got.len() as u64;
                }
                sum
            });
            assert_eq!(all, vec![50 * size as u64; size]);
        }
    }

    #[test]
    fn an_error_of_one_rank_is_returned_on_all() {
        let all = Threads::run(4, |comm| {
            let mine = match comm.rank() {
                2 => Err(Error::malformed("x-7", "no").at(9).in_object("thing")),
                _ => Ok(()),
            };
            agree(comm, mine).unwrap_err()
        });
        for error in all {
            assert_eq!((error.kind(), error.code()), (ErrorKind::Malformed, "x-7"));
            assert_eq!((error.offset(), error.object()), (Some(9), Some("thing")));
        }
    }

    #[test]
    fn waiting_for_a_terminated_rank_is_an_error() {
        let all = Threads::run(3, |comm| match comm.rank() {
            1 => true,
            _ => comm.allgather(&[]).is_err(),
        });
        assert_eq!(all, [true; 3]);
    }

    #[test]
    fn a_shared_file_is_visible_when_all_ranks_have_finished_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shared");
        Threads::run(5, |comm| {
            let file = comm.create(&path, Overwrite::Never).unwrap();
            let rank = comm.rank() as u8;
            agree(comm, file.write(u64::from(rank) * 2, &[&[rank], &[rank]], 2)).unwrap();
            assert!(!path.exists());
            file.finish().unwrap();
        });
        assert_eq!(std::fs::read(&path).unwrap(), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
        let again = Threads::run(2, |comm| comm.create(&path, Overwrite::Never).err().unwrap());
        assert!(again.iter().all(|e| e.kind() == ErrorKind::Exists));
    }
}
