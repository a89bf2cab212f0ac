//! Exit status.

/// The outcome of a command, in ascending severity. `interrupt` sets the status after `SIGINT` (130) and `SIGTERM`
/// (143).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Success, or the answer is yes.
    Yes,
    /// The answer is no: differences or findings.
    No,
    /// Partial success.
    Partial,
    /// Failure.
    Error,
}

/// A command without another outcome succeeds.
impl From<()> for Exit {
    fn from((): ()) -> Self {
        Self::Yes
    }
}

impl From<Exit> for u8 {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Yes => 0,
            Exit::No => 1,
            Exit::Error => 2,
            Exit::Partial => 3,
        }
    }
}
