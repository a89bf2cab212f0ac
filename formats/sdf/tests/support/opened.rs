//! A file opened as blocks and as a dataset.

#![allow(dead_code)]

use std::ops::Deref;
use std::path::Path;

use spile_core::error::Result;
use spile_core::format::{Checker as _, Salvage, Salvager as _};
use spile_core::read::Array;
use spile_core::report::Report;
use spile_core::sink::{Overwrite, Sink};
use spile_core::{Dataset, Limits, OpenOptions, Source};
use spile_sdf::wire::FileHeader;
use spile_sdf::{Block, File, Sdf};

pub(crate) struct Opened {
    pub(crate) file: File,
    dataset: Dataset,
}

impl Opened {
    pub(crate) fn open(path: impl AsRef<Path>) -> Result<Self> {
        let dataset = Dataset::open_path(&Sdf, &path, &OpenOptions::default())?;
        Ok(Self { file: File::open(path, dataset.limits())?, dataset })
    }

    pub(crate) fn from_source(source: Source, options: &OpenOptions) -> Result<Self> {
        let dataset = Dataset::open(&Sdf, source.clone(), options)?;
        Ok(Self { file: File::from_source(source, &options.limits)?, dataset })
    }

    pub(crate) fn header(&self) -> &FileHeader {
        self.file.header()
    }

    pub(crate) fn blocks(&self) -> &[Block] {
        self.file.blocks()
    }

    pub(crate) fn find<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Block> {
        self.file.find(key)
    }

    pub(crate) fn raw(&self, block: &Block) -> Result<Array> {
        self.file.raw(block)
    }
}

impl Deref for Opened {
    type Target = Dataset;

    fn deref(&self) -> &Dataset {
        &self.dataset
    }
}

/// A file with computed arrays.
pub(crate) fn derived(path: &Path, limits: Limits) -> Dataset {
    let options = OpenOptions::with_limits(limits).with_derived(true);
    Dataset::open_path(&Sdf, path, &options).unwrap()
}

pub(crate) fn check(source: &Source, strict: bool) -> Report {
    Sdf.check(source, &Limits::default(), strict).unwrap()
}

/// Salvages `source` to `path`.
pub(crate) fn salvage_to(source: &Source, path: &Path) -> Salvage {
    let mut sink = Sink::create(path, Overwrite::Replace).unwrap();
    let saved = Sdf.salvage(source, &mut sink, &Limits::default()).unwrap();
    sink.commit().unwrap();
    saved
}
