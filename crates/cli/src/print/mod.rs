//! Standard output: text, tables, JSON and styles.

pub(crate) mod json;
pub(crate) mod table;
pub(crate) mod text;

use std::fs::File;
use std::io::{self, BufWriter, Write};

use anstyle::Style;
use serde::Serialize;
use spile::Dataset;
use spile::error::{Error, Result};
use spile::os;

use crate::context::{Context, Entry};
use crate::progress;

pub(crate) use json::Document;
pub(crate) use table::{Align, Table};

/// Version of the JSON output, see `docs/json.md`.
pub(crate) const SCHEMA: u32 = 1;

/// Text styles.
pub(crate) mod style {
    use anstyle::{AnsiColor, Style};

    pub(crate) const NAME: Style = Style::new().bold();
    pub(crate) const FAINT: Style = Style::new().dimmed();
    pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
    pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
    pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
    pub(crate) const CALM: Style = AnsiColor::Cyan.on_default();
}

/// JSON that starts with the fields `schema` and `spile`.
pub(crate) fn versioned(body: &impl Serialize) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Versioned<'a, T> {
        schema: u32,
        spile: &'static str,
        #[serde(flatten)]
        body: &'a T,
    }
    serde_json::to_string(&Versioned { schema: SCHEMA, spile: env!("CARGO_PKG_VERSION"), body })
}

/// `text` in a style if `colour` is set, else unchanged.
pub(crate) fn paint(colour: bool, style: Style, text: &str) -> String {
    if colour && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.into() }
}

/// Buffered standard output. Verbs print text with `writeln!(out, ..)?`, tables with [`Table`], JSON with
/// [`Output::json`] and [`Output::document`]. Write failures are errors, except that a closed pipe ends the
/// program with success.
pub(crate) struct Output {
    // The file descriptor itself: `Stdout` would scan the output for line ends.
    writer: BufWriter<Screen>,
    pub(crate) colour: bool,
    pub(crate) width: Option<usize>,
}

enum Screen {
    /// Standard output; the progress bar is removed before each write.
    Standard(File),
    /// Kept for the caller.
    Memory(Vec<u8>),
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Standard(file) => {
                progress::hide();
                file.write(bytes)
            }
            Self::Memory(kept) => kept.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Standard(file) => file.flush(),
            Self::Memory(_) => Ok(()),
        }
    }
}

impl Output {
    pub(crate) fn stdout(context: &Context) -> Result<Self> {
        let file = os::standard_output().map_err(stdout_error)?;
        let writer = BufWriter::with_capacity(64 << 10, Screen::Standard(file));
        Ok(Self { writer, colour: context.colour, width: context.width })
    }

    /// Output that is kept in memory.
    pub(crate) fn kept(context: &Context) -> Self {
        let writer = BufWriter::new(Screen::Memory(Vec::new()));
        Self { writer, colour: context.colour, width: context.width }
    }

    /// What was kept.
    pub(crate) fn into_bytes(self) -> Result<Vec<u8>> {
        match self.writer.into_inner().map_err(io::IntoInnerError::into_error)? {
            Screen::Memory(kept) => Ok(kept),
            Screen::Standard(_) => Ok(Vec::new()),
        }
    }

    /// `text` in a style if colour is enabled.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        paint(self.colour, style, text)
    }

    /// Prints one line with a JSON document.
    pub(crate) fn json(&mut self, body: &impl Serialize) -> Result<()> {
        let text = versioned(body).map_err(io::Error::from)?;
        Ok(writeln!(self, "{text}")?)
    }

    /// Prints one line with a JSON document: the name of a file and the fields of `body`.
    pub(crate) fn json_of(&mut self, entry: Entry<'_>, body: &impl Serialize) -> Result<()> {
        #[derive(Serialize)]
        struct Of<'a, T> {
            file: String,
            #[serde(flatten)]
            body: &'a T,
        }
        self.json(&Of { file: entry.name(), body })
    }

    /// Prints one line with a JSON document of these fields.
    pub(crate) fn object(&mut self, fields: &[(&str, serde_json::Value)]) -> Result<()> {
        let mut document = self.document()?;
        for (name, value) in fields {
            document.field(name, value)?;
        }
        document.end()
    }

    /// Starts a JSON document that is written field by field.
    pub(crate) fn document(&mut self) -> Result<Document<'_>> {
        Document::new(self)
    }

    /// Starts a JSON document with the name and the format of a file.
    pub(crate) fn document_of(&mut self, entry: Entry<'_>, file: &Dataset) -> Result<Document<'_>> {
        let mut document = self.document()?;
        document.field("file", &entry.name())?;
        document.field("format", file.format().map_or("", |format| format.name))?;
        Ok(document)
    }

    /// Prints the name of a file if the command has several.
    pub(crate) fn heading(&mut self, entry: Entry<'_>) -> Result<()> {
        if entry.many {
            let name = self.paint(style::NAME, &text::one_line(&entry.name()));
            writeln!(self, "{}{name}", if entry.number == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

/// Adds the path "standard output", so that the error is not attributed to the input file.
fn stdout_error(error: io::Error) -> io::Error {
    Error::io("standard output", error).into()
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes).map_err(stdout_error)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes).map_err(stdout_error)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().map_err(stdout_error)
    }
}
