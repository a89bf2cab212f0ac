//! [`File`]: an open IOTK file with its index and its data.

mod values;

use std::path::{Path, PathBuf};

use spile_core::{Array, Dataset, Error, Limits, Result, Source};

use crate::element_data::{ElementData, Overflow, describe_data, describe_data_with};
use crate::event::{Events, Form};
use crate::index::{Cursor, Element, Index};
use crate::wire::record::{Framing, Record, Records};
use crate::{plane_waves, save, upf};

/// An open file. Opening reads all tags; data are read on request.
pub struct File {
    /// The bytes and the limits, without a tree.
    bytes: Dataset,
    form: Form,
    index: Index,
    /// The records of a Fortran file without tags.
    raw: Vec<Record>,
}

impl File {
    /// Opens the file at `path`.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        Self::from_source(Source::open(path)?, limits)
            .map_err(|e| e.with_path(path).with_format("iotk"))
    }

    /// Opens the file in `source`. Fails with iotk-001 if it has neither records nor tags.
    pub fn from_source(source: Source, limits: &Limits) -> Result<Self> {
        let form = Form::detect(&source)?;
        if let Form::Binary(framing) = form
            && (plane_waves::records::is_one(&source, framing)?
                || !has_tags(&source, framing, limits)?)
        {
            return Self::from_records(source, framing, limits);
        }
        let mut index = Index::build(&source, form, limits)?;
        if form == Form::Text {
            upf::add_missing_types(&mut index, &source)?;
            save::add_missing_types(&mut index, &source)?;
        }
        let empty = index.elements().is_empty() && index.head_tags().is_empty();
        if empty && form == Form::Text {
            return Err(Error::not_this_format("iotk-001", "expected a tag, found none").at(0));
        }
        let bytes = Dataset::of_bytes(source, limits);
        Ok(Self { bytes, form, index, raw: Vec::new() })
    }

    /// Opens a Fortran file without tags: every record is an array of bytes.
    fn from_records(source: Source, framing: Framing, limits: &Limits) -> Result<Self> {
        let mut raw = Vec::new();
        let mut records = Records::new(source.clone(), framing, limits);
        while let Some(record) = records.next()? {
            limits
                .allow(600 * (raw.len() as u64 + 1), "the list of records")
                .map_err(|e| e.at(record.offset))?;
            raw.push(record);
        }
        let bytes = Dataset::of_bytes(source, limits);
        Ok(Self { bytes, form: Form::Binary(framing), index: Index::default(), raw })
    }

    /// The bytes and the limits, without a tree.
    pub(crate) fn bytes(&self) -> &Dataset {
        &self.bytes
    }

    /// The bytes of the file.
    pub fn source(&self) -> &Source {
        self.bytes.source()
    }

    /// The limits that the file was opened with.
    pub fn limits(&self) -> &Limits {
        self.bytes.limits()
    }

    /// The records of a Fortran file without tags.
    pub fn raw_records(&self) -> &[Record] {
        &self.raw
    }

    /// Binary or text.
    pub fn form(&self) -> Form {
        self.form
    }

    /// The index of the elements.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// A cursor before the first element, to search by the rule of the library.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.index)
    }

    /// The events of the file, from the beginning.
    pub fn events(&self) -> Events {
        Events::new(self.source(), self.form, self.limits())
    }

    /// The description of the first piece of data of an element, or `None` if it has no data.
    pub fn data(&self, element: usize) -> Result<Option<ElementData>> {
        let known = &self.index.elements()[element];
        let Some(data) = known.data.first() else { return Ok(None) };
        describe_data(&known.tag, known.kind, data, self.form, &self.bytes)
            .map(Some)
            .map_err(|e| e.in_object(format!("element {}", self.index.path(element))))
    }

    /// The description of the first piece of data of an element for the tree: reals that are too large for their
    /// kind are infinite.
    pub(crate) fn tree_data(&self, element: usize) -> Result<Option<ElementData>> {
        let known = &self.index.elements()[element];
        let Some(data) = known.data.first() else { return Ok(None) };
        let rule = (self.form, Overflow::Infinity);
        describe_data_with(&known.tag, known.kind, data, rule, &self.bytes)
            .map(Some)
            .map_err(|e| e.in_object(format!("element {}", self.index.path(element))))
    }

    /// The first piece of data of an element as an array, or `None` if it has no data. Fails if the
    /// data do not match the tag.
    pub fn array(&self, element: usize) -> Result<Option<Array>> {
        let open = |data: ElementData| {
            let at = self.index.elements()[element].offset;
            let data = data.checked().map_err(|e| e.at(at))?;
            self.bytes.open_array(&data.array)
        };
        let array = self.data(element)?.map(open).transpose();
        array.map_err(|e| e.in_object(format!("element {}", self.index.path(element))))
    }

    /// The path of the file that `element` links to, relative to the folder of this file, or `None`
    /// without a link. Fails with iotk-015 if the path is outside of the folder `allowed`.
    pub fn link_target(&self, element: &Element, allowed: &Path) -> Result<Option<PathBuf>> {
        let Some(link) = element.link() else { return Ok(None) };
        let folder = self.source().path().and_then(Path::parent).unwrap_or(Path::new("."));
        let in_link = |e: Error| e.in_object(format!("link \"{link}\"")).at(element.offset);
        let target = folder.join(&link);
        inside(&target, allowed).map(Some).map_err(in_link)
    }
}

/// The real path of `target`. Fails with iotk-015 if it is outside of the folder `allowed`.
pub(crate) fn inside(target: &Path, allowed: &Path) -> Result<PathBuf> {
    let real = |path: &Path| path.canonicalize().map_err(|e| Error::io(path, e));
    let (target, allowed) = (real(target)?, real(allowed)?);
    if !target.starts_with(&allowed) {
        let message = "the link target is outside of the allowed folder";
        return Err(Error::unsupported("iotk-015", message));
    }
    Ok(target)
}

/// True if one of the first two records is a tag.
fn has_tags(source: &Source, framing: Framing, limits: &Limits) -> Result<bool> {
    let mut records = Records::new(source.clone(), framing, limits);
    let mut bytes = Vec::new();
    for _ in 0..2 {
        // A damaged record is reported when the file is read.
        let Ok(Some(record)) = records.next() else { return Ok(true) };
        records.beginning(&record, 80, &mut bytes)?;
        if bytes.contains(&b'<') {
            return Ok(true);
        }
    }
    Ok(false)
}
