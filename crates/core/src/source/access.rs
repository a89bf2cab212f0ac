//! The time of last access.
//!
//! The system thinks about it at every read, which is 4 % of the time of reading 12 KiB that are in
//! memory. It can be told not to. But clusters delete what nobody has accessed for weeks, so the time
//! must stay true: of a file that is read on and on, some reads of every hour are noted. The system
//! itself would note one a day.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::fs::OFlags;

/// Seconds in which no read need be noted, after some were.
const QUIET: u64 = 3600;

/// Reads are noted now.
const NOTED: u64 = 0;

/// Whether the reads of an open file are noted.
pub(super) struct Access {
    opened: Instant,
    /// Until when they are not, in seconds since it was opened, or `NOTED`.
    quiet_until: AtomicU64,
}

impl Access {
    /// Of a file that was opened just now.
    pub(super) fn new() -> Self {
        Self { opened: Instant::now(), quiet_until: AtomicU64::new(NOTED) }
    }

    /// To be called now and then between reads.
    #[cold]
    pub(super) fn review(&self, file: &File) {
        self.review_at(file, self.opened.elapsed().as_secs());
    }

    fn review_at(&self, file: &File, now: u64) {
        let (flags, until) = match self.quiet_until.load(Ordering::Relaxed) {
            NOTED => (OFlags::NOATIME, now + QUIET),
            until if now >= until => (OFlags::empty(), NOTED),
            _ => return,
        };
        // Only the owner of a file may ask for this. For others reads are as they always were.
        let _ = rustix::fs::fcntl_setfl(file, flags);
        self.quiet_until.store(until, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Bytes, Source};
    use super::*;

    fn is_noted(file: &File) -> bool {
        !rustix::fs::fcntl_getfl(file).unwrap().contains(OFlags::NOATIME)
    }

    #[test]
    fn the_first_reads_are_noted() {
        let named = tempfile::NamedTempFile::new().unwrap();
        named.as_file().set_len(4 << 20).unwrap();
        let source = Source::open(named.path()).unwrap();
        let Bytes::File { file, .. } = &source.0.bytes else { panic!("not a file") };
        let noted = |offset, len| {
            source.read_vec(offset, len).unwrap();
            is_noted(file)
        };
        assert_eq!([noted(0, 1 << 12), noted(0, 1 << 20), noted(0, 3 << 20)], [true, false, false]);
    }

    #[test]
    fn some_reads_of_every_hour_are_noted() {
        let file = tempfile::tempfile().unwrap();
        let access = Access::new();
        let noted = |now| {
            access.review_at(&file, now);
            is_noted(&file)
        };
        let times = [0, 10, QUIET - 1, QUIET, QUIET + 1, 2 * QUIET, 9 * QUIET, 9 * QUIET];
        assert_eq!(times.map(noted), [false, false, false, true, false, false, true, false]);
    }
}
