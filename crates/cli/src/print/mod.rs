//! Standard output, and how things look there.

pub(crate) mod json;
pub(crate) mod table;
pub(crate) mod text;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd as _;

use anstyle::Style;
use serde::Serialize;
use spile::error::{Error, Result};
use spile::Dataset;

use crate::context::{Context, Entry};
use crate::progress;

pub(crate) use json::Document;
pub(crate) use table::{Align, Table};

/// Version of everything printed with `--json`; `docs/json.md` says when it changes.
pub(crate) const SCHEMA: u32 = 1;

/// The few styles there are.
pub(crate) mod style {
    use anstyle::{AnsiColor, Style};

    pub(crate) const NAME: Style = Style::new().bold();
    pub(crate) const FAINT: Style = Style::new().dimmed();
    pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
    pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
    pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
    pub(crate) const CALM: Style = AnsiColor::Cyan.on_default();
}

/// `text` in a style, or as it is.
pub(crate) fn paint(colour: bool, style: Style, text: &str) -> String {
    if colour && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.into() }
}

/// Standard output, buffered. Everything a verb prints goes through here: `writeln!(out, ..)?`
/// for text, [`Table`] for tables, [`Output::json`] and [`Output::document`] for JSON. A failure
/// to write is an error like any other; a closed pipe ends the program quietly.
pub(crate) struct Output {
    // The file descriptor itself: `Stdout` would look for line ends in all of it.
    writer: BufWriter<Screen>,
    pub(crate) colour: bool,
    pub(crate) width: Option<usize>,
}

/// Where the bytes go; a progress bar would be in their way.
struct Screen(File);

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        progress::hide();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Output {
    pub(crate) fn stdout(context: &Context) -> Result<Self> {
        let file = io::stdout().as_fd().try_clone_to_owned().map(File::from).map_err(named)?;
        let writer = BufWriter::with_capacity(64 << 10, Screen(file));
        Ok(Self { writer, colour: context.colour, width: context.width })
    }

    /// `text` in a style where colour is wanted.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        paint(self.colour, style, text)
    }

    /// One JSON document with `schema` and `spile` in front, on a line of its own.
    pub(crate) fn json(&mut self, body: &impl Serialize) -> Result<()> {
        #[derive(Serialize)]
        struct Whole<'a, T> {
            schema: u32,
            spile: &'static str,
            #[serde(flatten)]
            body: &'a T,
        }
        let whole = Whole { schema: SCHEMA, spile: env!("CARGO_PKG_VERSION"), body };
        let text = serde_json::to_string(&whole).map_err(io::Error::from)?;
        writeln!(self, "{text}")?;
        Ok(())
    }

    /// Starts a JSON document that may be longer than memory.
    pub(crate) fn document(&mut self) -> Result<Document<'_>> {
        Document::new(self)
    }

    /// One about a file: its name and its format come first.
    pub(crate) fn document_of(&mut self, entry: Entry<'_>, file: &Dataset) -> Result<Document<'_>> {
        let mut document = self.document()?;
        document.field("file", &entry.name())?;
        document.field("format", file.format().map_or("", |format| format.name))?;
        Ok(document)
    }

    /// The name of a file above what is said about it, where there are several.
    pub(crate) fn heading(&mut self, entry: Entry<'_>) -> Result<()> {
        if entry.many {
            let name = self.paint(style::NAME, &text::clean(&entry.name()));
            writeln!(self, "{}{name}", if entry.number == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

/// The error must not look like one of the file that was being read.
fn named(error: io::Error) -> io::Error {
    Error::io("standard output", error).into()
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes).map_err(named)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().map_err(named)
    }
}
