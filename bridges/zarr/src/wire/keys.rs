//! Keys of chunks.

use spile_core::shape::Shape;

/// The chunk key encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    /// Keys start with `c`.
    pub(crate) prefix: bool,
    pub(crate) separator: char,
}

impl Keys {
    /// The number, in C order over `grid`, of the chunk with this key; `None` for other names.
    pub(crate) fn number(self, name: &str, grid: &Shape) -> Option<u64> {
        if grid.rank() == 0 {
            return (name == if self.prefix { "c" } else { "0" }).then_some(0);
        }
        let name =
            if self.prefix { name.strip_prefix('c')?.strip_prefix(self.separator)? } else { name };
        let mut number = 0_u64;
        let mut parts = name.split(self.separator);
        for length in grid.lengths() {
            let part = parts.next()?;
            let plain = part == "0" || !part.starts_with('0');
            let index: u64 = part.parse().ok().filter(|index| plain && index < length)?;
            number = number.checked_mul(*length)?.checked_add(index)?;
        }
        (parts.next().is_none() && !name.contains('+')).then_some(number)
    }

    /// Whether the keys of chunks may begin with `name`.
    pub(crate) fn may_begin(self, name: &str) -> bool {
        let first = name.chars().next();
        if self.prefix { first == Some('c') } else { first.is_some_and(|c| c.is_ascii_digit()) }
    }
}
