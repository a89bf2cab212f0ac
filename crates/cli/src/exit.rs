//! Exit status.

/// The outcome of a command, in ascending severity. Status 130 is set by the shell when the program is
/// terminated by `SIGINT`, which is not caught.
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
