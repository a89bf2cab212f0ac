//! Runs test cases with detection of panics, timeouts and excessive memory.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::Suite;
use crate::Limits;
use crate::error::human_bytes;

/// Interface to the counting allocator of a test crate.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// Starts a measurement; memory allocated before does not count.
    pub reset: fn(),
    /// Peak of allocated bytes since the start.
    pub peak: fn() -> u64,
}

/// A check of a file stops after this number of different failures.
const ENOUGH: usize = 10;

/// Allowed memory: the limit plus buffers of each thread and short strings.
fn allowance(limits: &Limits) -> u64 {
    limits.memory + (1 << 20) + (512 << 10) * rayon::current_num_threads() as u64
}

/// Serialises the suites of one process, because the meter counts for all of them.
fn serialise() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` on every input and returns its messages, each with the label of the input.
///
/// The work is done on a separate thread: one that does not return is abandoned and reported instead of
/// blocking the test.
pub(super) fn run<T: 'static>(
    suite: &Suite,
    file: &str,
    inputs: impl Iterator<Item = (String, Limits, T)> + Send + 'static,
    work: impl Fn(T, &Limits) -> Vec<String> + Send + 'static,
) -> Vec<String> {
    let _guard = serialise();
    let meter = suite.meter;
    let patience = suite.patience;
    let current = Arc::new(Mutex::new((String::new(), Instant::now())));
    let now = Arc::clone(&current);
    let (sender, receiver) = channel();
    thread::spawn(move || {
        // A message that occurs for many cases is reported once, with the first case.
        let mut failures: Vec<(String, String, u64)> = Vec::new();
        for (label, limits, input) in inputs {
            let began = Instant::now();
            *lock(&now) = (label.clone(), began);
            if let Some(meter) = meter {
                (meter.reset)();
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| work(input, &limits)));
            let peak = meter.map_or(0, |meter| (meter.peak)());
            let taken = began.elapsed();
            let mut fail = |what: String| match failures.iter_mut().find(|f| f.1 == what) {
                Some((_, _, more)) => *more += 1,
                None => failures.push((label.clone(), what, 0)),
            };
            match outcome {
                Ok(complaints) => complaints.into_iter().for_each(&mut fail),
                Err(panic) => fail(format!("panicked: {}", message(&*panic))),
            }
            if peak > allowance(&limits) {
                let allowed = human_bytes(limits.memory);
                fail(format!("used {} of memory, the limit is {allowed}", human_bytes(peak)));
            }
            if taken > patience {
                fail(format!("took {taken:.1?}"));
            }
            if failures.len() >= ENOUGH {
                break;
            }
        }
        let failures = failures.into_iter().map(|(label, what, more)| match more {
            0 => format!("{label}: {what}"),
            _ => format!("{label}: {what} (and {more} more)"),
        });
        // The receiver is gone after a timeout.
        let _ = sender.send(failures.collect::<Vec<_>>());
    });
    let failures = loop {
        match receiver.recv_timeout(Duration::from_millis(200)) {
            Ok(failures) => break failures,
            Err(RecvTimeoutError::Disconnected) => {
                break vec![format!("{}: the test thread failed", lock(&current).0)];
            }
            Err(RecvTimeoutError::Timeout) => {
                let (label, began) = lock(&current).clone();
                // A slow case is reported by the thread; this one may never return.
                if began.elapsed() > patience * 2 {
                    break vec![format!("{label}: still running after {:.1?}", began.elapsed())];
                }
            }
        }
    };
    failures.into_iter().map(|f| format!("{file}: {f}")).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
