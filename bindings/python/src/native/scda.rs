//! Writer of scda sections.

use std::path::PathBuf;

use pyo3::prelude::*;
use spile::comm::Serial;
use spile::error::Error;
use spile::sink::Overwrite;
use spile_scda::{Elements, Options, Writer};

use crate::failure::Result;

static SERIAL: Serial = Serial;

/// An scda file open for writing. Writes are atomic: the file appears at its path on `close`.
#[pyclass(unsendable, module = "spile._spile")]
pub(crate) struct Sections(Option<Writer<'static>>);

#[pymethods]
impl Sections {
    #[new]
    #[pyo3(signature = (path, user, *, vendor=None, level=9, overwrite=false))]
    fn new(
        path: PathBuf,
        user: Vec<u8>,
        vendor: Option<Vec<u8>>,
        level: u32,
        overwrite: bool,
    ) -> Result<Self> {
        let mut options = Options { level, ..Options::default() };
        if overwrite {
            options.overwrite = Overwrite::Replace;
        }
        if let Some(vendor) = vendor {
            options.vendor = vendor;
        }
        Ok(Self(Some(Writer::create(&SERIAL, &path, &user, options)?)))
    }

    fn inline(&mut self, user: &[u8], data: &[u8]) -> Result<()> {
        let wrong =
            || Error::argument(format!("an inline section has 32 bytes, found {}", data.len()));
        let data: &[u8; 32] = data.try_into().map_err(|_| wrong())?;
        Ok(self.writer()?.inline(user, 0, Some(data))?)
    }

    fn block(&mut self, user: &[u8], data: &[u8], encode: bool) -> Result<()> {
        Ok(self.writer()?.block(user, 0, data.len() as u64, Some(data), encode)?)
    }

    fn array(
        &mut self,
        user: &[u8],
        count: u64,
        size: u64,
        data: &[u8],
        encode: bool,
    ) -> Result<()> {
        Ok(self.writer()?.array(user, &[count], size, Elements::Contiguous(data), encode)?)
    }

    fn varray(&mut self, user: &[u8], sizes: Vec<u64>, data: &[u8], encode: bool) -> Result<()> {
        let (counts, data) = ([sizes.len() as u64], Elements::Contiguous(data));
        Ok(self.writer()?.varray(user, &counts, &sizes, data, encode)?)
    }

    /// Completes the file.
    fn close(&mut self) -> Result<()> {
        self.0.take().map_or(Ok(()), |writer| Ok(writer.close()?))
    }

    /// Discards the file.
    fn abandon(&mut self) {
        self.0 = None;
    }
}

impl Sections {
    fn writer(&mut self) -> Result<&mut Writer<'static>> {
        self.0.as_mut().ok_or_else(|| Error::argument("the file is closed").into())
    }
}
