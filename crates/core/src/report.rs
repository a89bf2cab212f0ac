//! Findings: what `check` has to say about a file that can be examined.

use crate::error::{Error, ErrorKind, Hint};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing, nothing wrong.
    Note,
    /// Against the letter of the format, yet everything could be read.
    Warning,
    /// Data is lost, wrong or cannot be read.
    Error,
}

impl Severity {
    /// The word that stands in reports and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One thing noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The rule; unique in the whole project.
    pub code: &'static str,
    /// The sentence.
    pub message: String,
    /// Block, chunk, tag, dimension.
    pub object: Option<String>,
    /// Frame, where the format has them.
    pub frame: Option<u64>,
    /// Byte of the file.
    pub offset: Option<u64>,
    /// A suggestion.
    pub hint: Option<Hint>,
}

impl Finding {
    /// Names the object.
    pub fn in_object(&mut self, object: impl Into<String>) -> &mut Self {
        self.object = Some(object.into());
        self
    }

    /// Names the frame.
    pub fn in_frame(&mut self, frame: u64) -> &mut Self {
        self.frame = Some(frame);
        self
    }

    /// Names the byte.
    pub fn at(&mut self, offset: u64) -> &mut Self {
        self.offset = Some(offset);
        self
    }

    /// Adds a suggestion.
    pub fn hint(&mut self, hint: impl Into<Hint>) -> &mut Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Everything noticed about one file, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Report {
    fn add(&mut self, severity: Severity, code: &'static str, message: String) -> &mut Finding {
        self.findings.push(Finding {
            severity,
            code,
            message,
            object: None,
            frame: None,
            offset: None,
            hint: None,
        });
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }

    /// Something worth knowing.
    pub fn note(&mut self, code: &'static str, message: impl Into<String>) -> &mut Finding {
        self.add(Severity::Note, code, message.into())
    }

    /// Something against the letter of the format.
    pub fn warn(&mut self, code: &'static str, message: impl Into<String>) -> &mut Finding {
        self.add(Severity::Warning, code, message.into())
    }

    /// Something that costs data.
    pub fn error(&mut self, code: &'static str, message: impl Into<String>) -> &mut Finding {
        self.add(Severity::Error, code, message.into())
    }

    /// Turns a failure to read into a finding. A failure that says nothing about the file's
    /// content (no permission, over budget) is given back: the file could not be examined.
    pub fn absorb(&mut self, error: Error) -> Result<(), Error> {
        match error.kind() {
            ErrorKind::Malformed | ErrorKind::Truncated | ErrorKind::Unsupported => {
                self.findings.push(Finding {
                    severity: Severity::Error,
                    code: error.code(),
                    message: error.message().into(),
                    object: error.object().map(Into::into),
                    frame: error.frame(),
                    offset: error.offset(),
                    hint: error.suggestion().cloned(),
                });
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// The worst severity, if there is any finding.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|f| f.severity).max()
    }
}
