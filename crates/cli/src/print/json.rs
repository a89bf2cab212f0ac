//! JSON documents written field by field.

use std::io::{self, Write};

use serde::Serialize;
use spile::error::Result;

use super::{Output, SCHEMA};

/// Bytes that are buffered before output starts, so that an error in the input usually leaves no
/// incomplete document on standard output.
const BUFFER_BYTES: usize = 8 << 20;

/// A JSON object that is written field by field and closed with [`Document::end`].
pub(crate) struct Document<'a> {
    out: &'a mut Output,
    buffer: Vec<u8>,
}

impl<'a> Document<'a> {
    pub(super) fn new(out: &'a mut Output) -> Result<Self> {
        let mut document = Self { out, buffer: b"{".to_vec() };
        document.field("schema", &SCHEMA)?;
        document.field("spile", env!("CARGO_PKG_VERSION"))?;
        Ok(document)
    }

    fn key(&mut self, name: &str) -> Result<()> {
        if self.buffer != b"{" {
            self.write_all(b",")?;
        }
        serde_json::to_writer(&mut self.buffer, name).map_err(io::Error::from)?;
        Ok(self.write_all(b":")?)
    }

    /// Adds a field.
    pub(crate) fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<()> {
        self.key(name)?;
        serde_json::to_writer(&mut self.buffer, value).map_err(io::Error::from)?;
        Ok(())
    }

    /// Adds a field if it has a value.
    pub(crate) fn some(&mut self, name: &str, value: Option<&impl Serialize>) -> Result<()> {
        value.map_or(Ok(()), |value| self.field(name, value))
    }

    /// Adds a field whose JSON is written by `write`.
    pub(crate) fn raw(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        self.key(name)?;
        write(self)
    }

    /// Adds a list; `fill` receives a function that adds one item.
    pub(crate) fn list<T: Serialize, R>(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut dyn FnMut(T) -> Result<()>) -> Result<R>,
    ) -> Result<R> {
        self.key(name)?;
        self.write_all(b"[")?;
        let mut first = true;
        let result = fill(&mut |item| {
            if !std::mem::take(&mut first) {
                self.write_all(b",")?;
            }
            serde_json::to_writer(&mut self.buffer, &item).map_err(io::Error::from)?;
            Ok(())
        })?;
        self.write_all(b"]")?;
        Ok(result)
    }

    /// Closes the object and ends the line.
    pub(crate) fn end(mut self) -> Result<()> {
        self.write_all(b"}\n")?;
        Ok(self.out.write_all(&self.buffer)?)
    }
}

impl Write for Document<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > BUFFER_BYTES {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
