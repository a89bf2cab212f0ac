//! Findings of `check` and warnings of `open`.

use serde::Serialize;

use crate::{Error, Hint, Parsed};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Information; not a defect.
    Note,
    /// Violates the specification, but all data can be read.
    Warning,
    /// Data are lost, wrong or unreadable.
    Error,
}

impl Severity {
    /// Name used in reports and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Severity.
    pub severity: Severity,
    /// Error code of the violated rule, unique in the project.
    pub code: &'static str,
    /// Message without location.
    pub message: String,
    /// Object: a block, chunk, tag or dimension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Frame, for formats with frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<u64>,
    /// Byte offset in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Suggestion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<Hint>,
}

impl Finding {
    /// Sets the object.
    pub fn in_object(&mut self, object: impl Into<String>) -> &mut Self {
        self.object = Some(object.into());
        self
    }

    /// Sets the frame.
    pub fn in_frame(&mut self, frame: u64) -> &mut Self {
        self.frame = Some(frame);
        self
    }

    /// Sets the byte offset.
    pub fn at(&mut self, offset: u64) -> &mut Self {
        self.offset = Some(offset);
        self
    }

    /// Sets the suggestion.
    pub fn hint(&mut self, hint: impl Into<Hint>) -> &mut Self {
        self.hint = Some(hint.into());
        self
    }
}

/// All findings about one file, in file order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The findings of `check` about an open file, or the error of opening it.
    pub fn of<T>(
        opened: Result<T, Error>,
        check: impl FnOnce(T, &mut Self) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut report = Self::default();
        match opened {
            Ok(file) => check(file, &mut report)?,
            Err(error) => report.absorb(error)?,
        }
        Ok(report)
    }

    /// The warnings of opening a file, or the error.
    pub fn of_opening(opened: Result<Parsed, Error>) -> Result<Self, Error> {
        Self::of(opened, |parsed, report| {
            report.findings = parsed.warnings;
            Ok(())
        })
    }

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

    /// Adds a finding of severity [`Severity::Note`].
    pub fn note(&mut self, code: &'static str, message: impl Into<String>) -> &mut Finding {
        self.add(Severity::Note, code, message.into())
    }

    /// Adds a finding of severity [`Severity::Warning`].
    pub fn warn(&mut self, code: &'static str, message: impl Into<String>) -> &mut Finding {
        self.add(Severity::Warning, code, message.into())
    }

    /// Adds a finding of severity [`Severity::Error`].
    pub fn error(&mut self, code: &'static str, message: impl Into<String>) -> &mut Finding {
        self.add(Severity::Error, code, message.into())
    }

    /// Adds an error about the content of the file as a finding. Other errors (no permission, memory
    /// limit) are returned, because the file could not be examined.
    pub fn absorb(&mut self, error: Error) -> Result<(), Error> {
        if !error.is_about_content() {
            return Err(error);
        }
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

    /// The highest severity; `None` if there are no findings.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|f| f.severity).max()
    }
}
