//! Hints: what a user can do about an error, rendered by each front end.

use std::borrow::Cow;
use std::fmt;

/// A suggestion. The command line renders options, Python keyword arguments; [`fmt::Display`] uses
/// neither, for C and logs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Text that is valid in every front end.
    Text(Cow<'static, str>),
    /// Existing names similar to one that was not found.
    DidYouMean(Vec<String>),
    /// List the objects of the file.
    ListObjects,
    /// Raise the memory limit or select less.
    RaiseMemory,
    /// Select arrays.
    SelectArrays,
    /// Select frames.
    SelectFrames,
    /// Allow overwriting.
    Overwrite,
    /// Specify the format; the candidates.
    ChooseFormat(Vec<&'static str>),
    /// Run an operation.
    Operation {
        /// Name as on the command line, for example `salvage` or `gsd upgrade`.
        name: &'static str,
        /// Effect, for example "recovers every complete frame".
        effect: Cow<'static, str>,
    },
}

impl Hint {
    /// The operation `salvage` with its effect.
    pub fn salvage(effect: impl Into<Cow<'static, str>>) -> Self {
        Self::Operation { name: "salvage", effect: effect.into() }
    }

    /// An operation with its effect.
    pub fn operation(name: &'static str, effect: impl Into<Cow<'static, str>>) -> Self {
        Self::Operation { name, effect: effect.into() }
    }
}

impl serde::Serialize for Hint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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
            Self::ChooseFormat(names) => write!(f, "specify the format: {}", names.join(", ")),
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
