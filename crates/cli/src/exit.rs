//! What the exit status means.

use std::process::ExitCode;

/// The outcome of a command, from best to worst. Interruption (130) is not here: the shell
/// makes it of a death by `SIGINT`, which nothing catches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Yes, or done.
    Yes,
    /// The answer is no.
    No,
    /// Some of it worked.
    Partial,
    /// It did not work.
    Error,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Yes => 0_u8,
            Exit::No => 1,
            Exit::Error => 2,
            Exit::Partial => 3,
        })
    }
}
