//! What the exit status means.

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
