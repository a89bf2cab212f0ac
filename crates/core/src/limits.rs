//! Budgets. A number read from a file is checked here before memory is asked for.

use crate::error::{Error, Result, human_bytes};

/// What a caller is willing to spend on one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes held at once by one operation, buffers and metadata together.
    pub memory: u64,
    /// Groups and arrays in one tree.
    pub nodes: u64,
    /// Levels of nesting.
    pub depth: u32,
}

impl Default for Limits {
    /// Generous for people, small enough that a hostile file cannot take the machine down.
    fn default() -> Self {
        Self { memory: 512 << 20, nodes: 10_000_000, depth: 1_000 }
    }
}

impl Limits {
    /// The same limits with another memory budget.
    pub fn with_memory(self, memory: u64) -> Self {
        Self { memory, ..self }
    }

    /// `bytes` as a length to allocate, or a `Limit` error that names `what`.
    pub fn allow(&self, bytes: u64, what: &str) -> Result<usize> {
        let fits = usize::try_from(bytes).ok().filter(|_| bytes <= self.memory);
        fits.ok_or_else(|| {
            Error::limit(format!(
                "{what} needs {}, the budget is {}",
                human_bytes(bytes),
                human_bytes(self.memory)
            ))
            .hint("raise it with --max-memory, or select less")
        })
    }

    /// Bytes one of `threads` workers may use for its own buffers: a small share of the budget,
    /// and never so much that the buffer falls out of the processor's cache.
    pub fn worker_buffer(&self, threads: usize) -> usize {
        let share = self.memory / (4 * threads.max(1) as u64);
        share.clamp(4 << 10, 256 << 10) as usize
    }
}
