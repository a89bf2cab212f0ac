//! Memory budgets. Sizes that come from a file are checked here before memory is allocated.

use crate::error::human_bytes;
use crate::{Error, Hint, Result, cancel};

/// Resource limits for opening and reading one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Peak memory in bytes of one operation, buffers and metadata together.
    pub memory: u64,
    /// Groups and arrays in one tree.
    pub nodes: u64,
    /// Levels of nesting.
    pub depth: u32,
}

impl Default for Limits {
    /// 512 MiB of memory, 10 million nodes, 1000 levels.
    fn default() -> Self {
        Self { memory: 512 << 20, nodes: 10_000_000, depth: 1_000 }
    }
}

impl Limits {
    /// These limits with another memory budget in bytes.
    pub fn with_memory(self, memory: u64) -> Self {
        Self { memory, ..self }
    }

    /// Returns `bytes` as a length to allocate, or a `Limit` error that names `what`.
    pub fn allow(&self, bytes: u64, what: &str) -> Result<usize> {
        let fits = usize::try_from(bytes).ok().filter(|_| bytes <= self.memory);
        fits.ok_or_else(|| {
            Error::limit(format!(
                "{what} needs {}, the budget is {}",
                human_bytes(bytes),
                human_bytes(self.memory)
            ))
            .hint(Hint::RaiseMemory)
        })
    }

    /// Bytes one of `threads` workers may use for its own buffers: a small share of the budget,
    /// and never so much that the buffer falls out of the processor's cache.
    pub fn worker_buffer(&self, threads: usize) -> usize {
        let share = self.memory / (4 * threads.max(1) as u64);
        share.clamp(4 << 10, 256 << 10) as usize
    }
}

/// A running total of memory that is kept, checked against a limit.
#[derive(Clone, Debug)]
pub struct Budget {
    limits: Limits,
    used: u64,
}

impl Budget {
    /// A budget with nothing charged.
    pub fn new(limits: &Limits) -> Self {
        Self { limits: *limits, used: 0 }
    }

    /// Adds `bytes` that are about to be allocated and kept. If the total would exceed the limit, it adds
    /// nothing and fails with a `Limit` error that names `what`. Fails with `Io` if everything is
    /// [stopped](crate::cancel::stop_all): loops that build structures from files end then.
    pub fn charge(&mut self, bytes: u64, what: &str) -> Result<()> {
        cancel::ensure_running()?;
        let used = self.used.saturating_add(bytes);
        self.limits.allow(used, what)?;
        self.used = used;
        Ok(())
    }

    /// Bytes charged so far.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// The limits that it enforces.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}
