//! What a user can do about an error, as a value that each front end renders in its own terms.

use std::borrow::Cow;
use std::fmt;

/// A suggestion. The command line renders options, Python keyword arguments; [`fmt::Display`] is a
/// sentence with neither, for C and logs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// A sentence that holds in every front end.
    Text(Cow<'static, str>),
    /// Names close to the one that was not found.
    DidYouMean(Vec<String>),
    /// The names of all objects can be listed.
    ListObjects,
    /// The memory budget can be raised, or less be selected.
    RaiseMemory,
    /// The arrays to work on can be chosen.
    SelectArrays,
    /// The frames to work on can be chosen.
    SelectFrames,
    /// The target exists and can be replaced on request.
    Overwrite,
    /// The format can be named; these can be chosen.
    ChooseFormat(Vec<&'static str>),
    /// An operation helps: its name as on the command line (`salvage`, `gsd upgrade`) and its effect.
    Operation {
        /// For example `salvage` or `gsd upgrade`.
        name: &'static str,
        /// What it does, as in "recovers every complete frame".
        effect: Cow<'static, str>,
    },
}

impl Hint {
    /// `salvage` with its effect.
    pub fn salvage(effect: impl Into<Cow<'static, str>>) -> Self {
        Self::Operation { name: "salvage", effect: effect.into() }
    }

    /// An operation with its effect.
    pub fn operation(name: &'static str, effect: impl Into<Cow<'static, str>>) -> Self {
        Self::Operation { name, effect: effect.into() }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::DidYouMean(names) => write!(f, "did you mean {}?", names.join(" or ")),
            Self::ListObjects => f.write_str("list the objects of the file to see their names"),
            Self::RaiseMemory => f.write_str("raise the memory limit or select less"),
            Self::SelectArrays => f.write_str("select other arrays"),
            Self::SelectFrames => f.write_str("select frames"),
            Self::Overwrite => f.write_str("allow overwriting to replace it"),
            Self::ChooseFormat(names) => write!(f, "name the format: {}", names.join(", ")),
            Self::Operation { name, effect } => write!(f, "the operation \"{name}\" {effect}"),
        }
    }
}

impl From<&'static str> for Hint {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}
