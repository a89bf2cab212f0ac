//! Cache of decoded chunks.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use crate::{Limits, Result};

/// The cache uses at most this fraction (1/SHARE) of the memory limit.
const SHARE: u64 = 4;

/// Decoded chunks, evicted in order of insertion.
pub(super) struct Cache {
    budget: u64,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    slots: HashMap<u64, Arc<Slot>>,
    order: VecDeque<(u64, u64)>,
    bytes: u64,
}

/// Locked while the chunk is decoded.
type Slot = Mutex<Option<Arc<Vec<u8>>>>;

impl Cache {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { budget: limits.memory / SHARE, kept: Mutex::default() }
    }

    /// Bytes of decoded chunks that are kept.
    pub(super) fn budget(&self) -> u64 {
        self.budget
    }

    /// Whether chunk `number` is cached or being decoded.
    pub(super) fn has(&self, number: u64) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.slots.contains_key(&number)
    }

    /// Returns chunk `number`, decoding it if it is not cached. `None`, without `wait`, if another thread is
    /// decoding it. A poisoned lock is harmless: a slot is either empty or complete.
    pub(super) fn get(
        &self,
        number: u64,
        bytes: u64,
        wait: bool,
        decode: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Option<Arc<Vec<u8>>>> {
        let slot = self.slot(number, bytes);
        let mut content = if wait {
            slot.lock().unwrap_or_else(PoisonError::into_inner)
        } else {
            match slot.try_lock() {
                Ok(content) => content,
                Err(TryLockError::Poisoned(content)) => content.into_inner(),
                Err(TryLockError::WouldBlock) => return Ok(None),
            }
        };
        if content.is_none() {
            *content = Some(Arc::new(decode()?));
        }
        Ok(content.clone())
    }

    fn slot(&self, number: u64, bytes: u64) -> Arc<Slot> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = kept.slots.get(&number) {
            return slot.clone();
        }
        let slot = Arc::<Slot>::default();
        kept.slots.insert(number, slot.clone());
        kept.order.push_back((number, bytes));
        kept.bytes += bytes;
        // Threads that still use an evicted chunk hold a reference to it.
        while kept.bytes > self.budget && kept.order.len() > 1 {
            let Some((oldest, bytes)) = kept.order.pop_front() else { break };
            kept.slots.remove(&oldest);
            kept.bytes -= bytes;
        }
        slot
    }
}
