//! Memory accounting: structures whose number depends on the file are charged before they are built.

use spile_core::error::Result;
use spile_core::limits::Limits;

/// Bytes of all structures built from one file so far.
pub(crate) struct Budget {
    limits: Limits,
    used: u64,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { limits: *limits, used: 0 }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Adds `bytes`. Fails and adds nothing if the total exceeds the memory limit.
    pub(crate) fn charge(&mut self, bytes: u64, what: &str) -> Result<()> {
        let used = self.used.saturating_add(bytes);
        self.limits.allow(used, what)?;
        self.used = used;
        Ok(())
    }
}
