//! SIGINT and SIGTERM: running operations are cancelled, unfinished output is removed, and the exit status is that
//! of a process ended by the signal (130, 143).

use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use spile::{cancel, sink};

/// Time for running operations to return.
const GRACE: Duration = Duration::from_secs(1);

static RECEIVED: AtomicI32 = AtomicI32::new(0);

/// Installs the handler. A signal that the caller ignores, as shells do for background jobs, stays ignored. Without a
/// handler the system ends the process, which removes files without a name.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let ignored = ignored_signals();
        let mut handled = vec![SIGINT, SIGTERM];
        handled.retain(|signal| ignored >> (signal - 1) & 1 == 0);
        if let Some(wait) = system::handler(&handled) {
            std::thread::spawn(move || wait().map(end));
        }
    });
}

/// Cancels all operations and ends the process.
fn end(signal: i32) {
    RECEIVED.store(signal, Ordering::SeqCst);
    cancel::stop_all(true);
    let start = Instant::now();
    while sink::has_unfinished() && start.elapsed() < GRACE {
        std::thread::sleep(Duration::from_millis(2));
    }
    sink::remove_unfinished();
    std::process::exit(128 + signal);
}

/// Exit status if a signal was received.
pub(crate) fn status() -> Option<u8> {
    let signal = RECEIVED.load(Ordering::SeqCst);
    (signal != 0).then(|| u8::try_from(128 + signal).unwrap_or(u8::MAX))
}

/// Bit mask of the signals that the process ignores; 0 on systems other than Linux.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(unix)]
mod system {
    use signal_hook::iterator::Signals;

    /// A function that waits for the first of the signals.
    pub(super) fn handler(signals: &[i32]) -> Option<impl FnOnce() -> Option<i32> + use<>> {
        let mut signals = Signals::new(signals).ok()?;
        Some(move || signals.forever().next())
    }
}

#[cfg(not(unix))]
mod system {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// A function that waits for the first of the signals.
    pub(super) fn handler(signals: &[i32]) -> Option<impl FnOnce() -> Option<i32> + use<>> {
        let received = Arc::new(AtomicUsize::new(0));
        for &signal in signals {
            let number = usize::try_from(signal).ok()?;
            signal_hook::flag::register_usize(signal, received.clone(), number).ok()?;
        }
        Some(move || {
            loop {
                match received.load(Ordering::SeqCst) {
                    0 => std::thread::sleep(Duration::from_millis(20)),
                    signal => return i32::try_from(signal).ok(),
                }
            }
        })
    }
}
