//! One case after the other, with an eye on panics, time and memory.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::Suite;
use crate::error::human_bytes;
use crate::limits::Limits;

/// How to ask the test crate's counting allocator.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// Starts anew: what is held now does not count.
    pub reset: fn(),
    /// Most bytes held at once since then.
    pub peak: fn() -> u64,
}

/// A check gives up on a file after this many different failures.
const ENOUGH: usize = 10;

/// Memory beyond the budget that is nobody's fault: buffers of each thread, short strings.
fn allowance(limits: &Limits) -> u64 {
    limits.memory + (1 << 20) + (512 << 10) * rayon::current_num_threads() as u64
}

/// Suites of one process wait for each other here, because the meter counts for all of them.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` on every input and gives back what it complains of, each with the input's label.
///
/// The work is done on a thread of its own: one that never comes back is left behind and reported
/// instead of hanging the test.
pub(super) fn run<T: 'static>(
    suite: &Suite,
    file: &str,
    inputs: impl Iterator<Item = (String, Limits, T)> + Send + 'static,
    work: impl Fn(T, &Limits) -> Vec<String> + Send + 'static,
) -> Vec<String> {
    let _turn = turn();
    let meter = suite.meter;
    let patience = suite.patience;
    let current = Arc::new(Mutex::new((String::new(), Instant::now())));
    let now = Arc::clone(&current);
    let (sender, receiver) = channel();
    thread::spawn(move || {
        // The same complaint about many cases is told once, with the first of them.
        let mut failures: Vec<(String, String, u64)> = Vec::new();
        for (label, limits, input) in inputs {
            let began = Instant::now();
            *lock(&now) = (label.clone(), began);
            if let Some(meter) = meter {
                (meter.reset)();
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| work(input, &limits)));
            let held = meter.map_or(0, |meter| (meter.peak)());
            let taken = began.elapsed();
            let mut say = |what: String| match failures.iter_mut().find(|f| f.1 == what) {
                Some((_, _, more)) => *more += 1,
                None => failures.push((label.clone(), what, 0)),
            };
            match outcome {
                Ok(complaints) => complaints.into_iter().for_each(&mut say),
                Err(panic) => say(format!("panicked: {}", words(&*panic))),
            }
            if held > allowance(&limits) {
                let allowed = human_bytes(limits.memory);
                say(format!("held {} of memory, the budget is {allowed}", human_bytes(held)));
            }
            if taken > patience {
                say(format!("took {taken:.1?}"));
            }
            if failures.len() >= ENOUGH {
                break;
            }
        }
        let failures = failures.into_iter().map(|(label, what, more)| match more {
            0 => format!("{label}: {what}"),
            _ => format!("{label}: {what} (and {more} times more)"),
        });
        // Nobody listens any more if the time was up.
        let _ = sender.send(failures.collect::<Vec<_>>());
    });
    let failures = loop {
        match receiver.recv_timeout(Duration::from_millis(200)) {
            Ok(failures) => break failures,
            Err(RecvTimeoutError::Disconnected) => {
                break vec![format!("{}: the test itself failed", lock(&current).0)];
            }
            Err(RecvTimeoutError::Timeout) => {
                let (label, began) = lock(&current).clone();
                // A case that is only slow reports itself; this one may never end.
                if began.elapsed() > patience * 2 {
                    break vec![format!("{label}: still busy after {:.1?}", began.elapsed())];
                }
            }
        }
    };
    failures.into_iter().map(|f| format!("{file}: {f}")).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}
