//! Errors.
//!
//! One type for all crates: a kind, the code of the violated rule, a message, a location (file, object,
//! frame, byte offset) and a hint. Each layer adds the part of the location that it knows as the error
//! is propagated.
//!
//! Codes of formats are listed in their FORMAT.md. Codes of core:
//!
//! | code | problem |
//! |---|---|
//! | `core-eof` `core-changed` `core-short` | the file ends too early; was replaced after it was opened; an encoded element is too short |
//! | `core-unknown` `core-folder` | the format is not recognised; the folder is not a dataset of the format |
//! | `core-scheme` | a URL with a scheme that is not supported |
//! | `core-limit` | a limit of memory, nodes or depth is exceeded |
//! | `core-layout` `core-chunk` `core-same` `core-computed` | ranges that do not fit the array; a chunk that cannot be decoded; references in a cycle; a computation with a wrong result |
//! | `core-metadata` | stored metadata that do not fit the arrays |
//! | `core-series` | a file of a run that cannot be opened or differs from the others |
//! | `core-scale` `core-grid` | a scaling or time base of an oscilloscope record that is not finite |
//! | `core-cell` | cell vectors that are not finite |
//! | `core-id-index` | a damaged index of particle identifiers |
//! | `core-comm` | a damaged message of another process |

mod hint;

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub use hint::Hint;

use crate::Source;
use crate::source::shown;

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Kind of an error. Determines exit codes, C error numbers and Python exception classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// An operating system error: missing file, no permission, full disk.
    Io,
    /// The file has another format.
    NotThisFormat,
    /// The file violates a rule of its format.
    Malformed,
    /// The file ends before the end of a structure.
    Truncated,
    /// Valid, but not supported by this version.
    Unsupported,
    /// Valid, but exceeds the caller's limits.
    Limit,
    /// An invalid argument of the caller.
    Argument,
    /// The target exists and overwriting was not requested.
    Exists,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Io,
        Self::NotThisFormat,
        Self::Malformed,
        Self::Truncated,
        Self::Unsupported,
        Self::Limit,
        Self::Argument,
        Self::Exists,
    ];

    /// Error number in the C interface, from 1.
    pub const fn number(self) -> i32 {
        self as i32 + 1
    }

    /// Name used in messages and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::NotThisFormat => "not this format",
            Self::Malformed => "malformed",
            Self::Truncated => "truncated",
            Self::Unsupported => "unsupported",
            Self::Limit => "limit",
            Self::Argument => "argument",
            Self::Exists => "exists",
        }
    }
}

/// An error with its location and a hint. Boxed so that `Result<T>` stays small.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    code: &'static str,
    message: String,
    path: Option<PathBuf>,
    format: Option<&'static str>,
    object: Option<String>,
    frame: Option<u64>,
    offset: Option<u64>,
    hint: Option<Hint>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of `kind` with the code of the violated rule (empty if there is none).
    pub fn new(kind: ErrorKind, code: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            code,
            message: message.into(),
            path: None,
            format: None,
            object: None,
            frame: None,
            offset: None,
            hint: None,
            source: None,
        }))
    }

    /// A `NotThisFormat` error: the file has another format.
    pub fn not_this_format(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotThisFormat, code, message)
    }

    /// A `Malformed` error: the file violates a rule of its format.
    pub fn malformed(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, code, message)
    }

    /// A `Truncated` error: the file ends too early.
    pub fn truncated(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Truncated, code, message)
    }

    /// An `Unsupported` error: valid, but not supported.
    pub fn unsupported(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, code, message)
    }

    /// A `Limit` error: exceeds the caller's limits.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, "core-limit", message)
    }

    /// An `Argument` error: an invalid argument.
    pub fn argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Argument, "", message)
    }

    /// An operating system error on `path`.
    pub fn io(path: impl AsRef<Path>, error: io::Error) -> Self {
        let mut wrapped = Self::from(error);
        wrapped.0.path.get_or_insert_with(|| shown(path.as_ref()));
        wrapped
    }

    /// Sets the file, unless it is set already.
    pub fn with_path(mut self, path: impl AsRef<Path>) -> Self {
        self.0.path.get_or_insert_with(|| shown(path.as_ref()));
        self
    }

    /// Sets the file to that of `source`, unless it is set already or the source has none. In a source of several
    /// files it is the file with the byte of the error, whose offset becomes that in the file.
    pub fn in_source(mut self, source: &Source) -> Self {
        let part = self.0.offset.and_then(|offset| Some((offset, source.part_at(offset)?)));
        if let (Some((offset, part)), None) = (part, &self.0.path) {
            self.0.offset = Some(offset - part.start());
            return self.with_path(part.path());
        }
        match source.path() {
            Some(path) => self.with_path(path),
            None => self,
        }
    }

    /// Removes the file, for callers that know a better one.
    pub fn without_path(mut self) -> Self {
        self.0.path = None;
        self
    }

    /// Removes the byte offset, for callers that know a better one.
    pub fn without_offset(mut self) -> Self {
        self.0.offset = None;
        self
    }

    /// Sets the format, unless it is set already.
    pub fn with_format(mut self, format: &'static str) -> Self {
        self.0.format.get_or_insert(format);
        self
    }

    /// Sets the object (a block, chunk, tag or dimension), unless it is set already.
    pub fn in_object(mut self, object: impl Into<String>) -> Self {
        self.0.object.get_or_insert_with(|| object.into());
        self
    }

    /// Sets the frame, unless it is set already.
    pub fn in_frame(mut self, frame: u64) -> Self {
        self.0.frame.get_or_insert(frame);
        self
    }

    /// Sets the byte offset, unless it is set already.
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// Sets the hint, unless it is set already.
    pub fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.0.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether the content of the file is the cause, not the system or the caller.
    pub fn is_about_content(&self) -> bool {
        matches!(self.kind(), ErrorKind::Malformed | ErrorKind::Truncated | ErrorKind::Unsupported)
    }

    /// Code of the violated rule, for example `taf-004`; empty if there is none.
    pub fn code(&self) -> &'static str {
        self.0.code
    }

    /// The message without location.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Short name of the format.
    pub fn format(&self) -> Option<&'static str> {
        self.0.format
    }

    /// The object.
    pub fn object(&self) -> Option<&str> {
        self.0.object.as_deref()
    }

    /// The frame.
    pub fn frame(&self) -> Option<u64> {
        self.0.frame
    }

    /// The byte offset in the file.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The hint.
    pub fn suggestion(&self) -> Option<&Hint> {
        self.0.hint.as_ref()
    }

    /// Serialises the error for another rank of the job.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let e = &*self.0;
        let path = e.path.as_ref().map(|p| p.to_string_lossy());
        let texts = (e.code, &e.message, &e.object, path, &e.hint);
        // Numbers and text can always be serialised.
        let numbers = (e.kind.number(), e.offset, e.frame, self.os_error());
        serde_json::to_vec(&(numbers, texts)).unwrap_or_default()
    }

    /// Deserialises an error from another rank.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        type Texts = (String, String, Option<String>, Option<PathBuf>, Option<String>);
        type Numbers = (usize, Option<u64>, Option<u64>, Option<i32>);
        let parsed = serde_json::from_slice::<(Numbers, Texts)>(bytes);
        let ((kind, offset, frame, os), (code, message, object, path, hint)) = match parsed {
            Ok(parsed) => parsed,
            Err(broken) => return Self::malformed("core-comm", broken.to_string()),
        };
        let kind = *ErrorKind::ALL.get(kind.wrapping_sub(1)).unwrap_or(&ErrorKind::Io);
        let mut error = Self::new(kind, intern(&code), message);
        (error.0.offset, error.0.frame) = (offset, frame);
        (error.0.object, error.0.path) = (object, path);
        error.0.hint = hint.map(Hint::from);
        error.0.source = os.map(|number| io::Error::from_raw_os_error(number).into());
        error
    }

    /// Kind of the underlying operating system error, if there is one.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        self.io_error().map(io::Error::kind)
    }

    /// Number of the underlying operating system error (`errno`), if there is one.
    pub fn os_error(&self) -> Option<i32> {
        self.io_error()?.raw_os_error()
    }

    fn io_error(&self) -> Option<&io::Error> {
        self.0.source.as_ref()?.downcast_ref()
    }
}

/// `file: kind: object, frame 3, at byte 81920: what was expected (code)`
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &*self.0;
        if let Some(path) = &e.path {
            write!(f, "{}: ", path.display())?;
        }
        match (e.kind, e.format) {
            (ErrorKind::Io | ErrorKind::Argument | ErrorKind::Exists, _)
            | (ErrorKind::NotThisFormat, None) => {}
            (ErrorKind::NotThisFormat, Some(format)) => write!(f, "not {format}: ")?,
            (kind, _) => write!(f, "{}: ", kind.name())?,
        }
        if let Some(object) = &e.object {
            f.write_str(object)?;
        }
        if let Some(frame) = e.frame {
            write!(f, "{}frame {frame}", if e.object.is_some() { ", " } else { "" })?;
        }
        let located = e.object.is_some() || e.frame.is_some();
        if let Some(offset) = e.offset {
            write!(f, "{}at byte {offset}: ", if located { " " } else { "" })?;
        } else if located {
            f.write_str(": ")?;
        }
        f.write_str(&e.message)?;
        if !e.code.is_empty() {
            write!(f, " ({})", e.code)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ", self.0.kind)?;
        fmt::Display::fmt(self, f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        // An `Error` that was wrapped by an `io::Write` is unwrapped.
        let error = match error.downcast::<Self>() {
            Ok(own) => return own,
            Err(error) => error,
        };
        let (kind, message) = match error.kind() {
            io::ErrorKind::NotFound => (ErrorKind::Io, "no such file or folder".into()),
            io::ErrorKind::PermissionDenied => (ErrorKind::Io, "permission denied".into()),
            io::ErrorKind::AlreadyExists => (ErrorKind::Exists, "already exists".into()),
            io::ErrorKind::IsADirectory => (ErrorKind::Io, "is a folder, not a file".into()),
            io::ErrorKind::StorageFull => (ErrorKind::Io, "no space left on the device".into()),
            _ => (ErrorKind::Io, error.to_string()),
        };
        let mut wrapped = Self::new(kind, "", message);
        wrapped.0.source = Some(Box::new(error));
        wrapped
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = error.io_kind().unwrap_or(io::ErrorKind::InvalidData);
        io::Error::new(kind, error)
    }
}

/// A static string for a code from another rank. There are few distinct codes, so leaking them is harmless.
fn intern(code: &str) -> &'static str {
    static KNOWN: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.iter().find(|k| **k == code) {
        return found;
    }
    let kept: &'static str = Box::leak(code.to_string().into_boxed_str());
    known.push(kept);
    kept
}

/// Formats a number of bytes: `512 B`, `1.2 GiB`.
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be formatted as "1024.0".
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_contains_file_object_byte_and_code() {
        let error = Error::truncated("sdf-014", "expected 4.0 GiB, the file has 1.2 GiB")
            .in_object("block \"ey\"")
            .at(81920)
            .with_path("run/0042.sdf");
        assert_eq!(
            error.to_string(),
            "run/0042.sdf: truncated: block \"ey\" at byte 81920: expected 4.0 GiB, \
            the file has 1.2 GiB (sdf-014)"
        );
    }

    #[test]
    fn the_innermost_location_is_kept() {
        let error = Error::malformed("x-1", "m").at(3).at(9).with_path("a").with_path("b");
        assert_eq!((error.offset(), error.path()), (Some(3), Some(Path::new("a"))));
    }

    #[test]
    fn an_error_is_unchanged_after_conversion_to_io_error_and_back() {
        let back = Error::from(io::Error::from(Error::limit("too much").at(7)));
        assert_eq!((back.kind(), back.offset()), (ErrorKind::Limit, Some(7)));
    }

    #[test]
    fn byte_counts_use_binary_units() {
        assert_eq!(human_bytes(1023), "1023 B");
        assert_eq!(human_bytes(1536), "1.5 KiB");
        assert_eq!(human_bytes(1024 * 1024 - 1), "1.0 MiB");
    }
}
