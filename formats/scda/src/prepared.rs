//! What a binding to another language adds to the next call: more arguments to compare, and its own checks.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use spile_core::Result;
use spile_core::comm::different_arguments;

pub(crate) struct Prepared {
    /// Hash of arguments that are the same on every rank.
    pub(crate) hash: u64,
    /// Hash of arguments that are the same on the ranks that pass them, and its complement; 0 on other ranks.
    pub(crate) optional: [u64; 2],
    /// Checks of this rank.
    pub(crate) checked: Result<()>,
}

impl Default for Prepared {
    fn default() -> Self {
        Self { hash: 0, optional: [0; 2], checked: Ok(()) }
    }
}

impl Prepared {
    pub(crate) fn new(
        arguments: impl Hash,
        optional: Option<impl Hash>,
        checked: Result<()>,
    ) -> Self {
        let hash = |value: &dyn Fn(&mut DefaultHasher)| {
            let mut hasher = DefaultHasher::new();
            value(&mut hasher);
            hasher.finish()
        };
        let optional = optional.map(|optional| hash(&|hasher| optional.hash(hasher)));
        let optional = optional.map_or([0; 2], |hash| [hash, !hash]);
        Self { hash: hash(&|hasher| arguments.hash(hasher)), optional, checked }
    }

    /// Adds arguments that are the same on every rank, and checks.
    pub(crate) fn and(self, arguments: impl Hash, checked: Result<()>) -> Self {
        let Self { hash, optional, checked: before } = self;
        let all = Self::new((hash, arguments), None::<()>, before.and(checked));
        Self { optional, ..all }
    }

    /// Fails if the optional arguments of two ranks differ; `most` are the maxima of [`Prepared::optional`].
    pub(crate) fn compare(most: [u64; 2]) -> Result<()> {
        if most == [0; 2] || most[0] == !most[1] { Ok(()) } else { Err(different_arguments()) }
    }
}
