//! [`File`]: an open IOTK file with its index, its data and its tree.

mod values;

use std::path::{Path, PathBuf};

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::{Object, Reader, Region};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{NodeId, ROOT, Tree, Value};

use crate::element_data::{ElementData, describe_data};
use crate::event::{Events, Form};
use crate::index::{Cursor, Diagnostic, Element, Index};
use crate::record::{Framing, Parts, Record, Records};
use crate::regions;
use crate::semantics;
use crate::wire::Type;

/// An open file. Opening reads all tags; data are read on request.
pub struct File {
    pub(crate) source: Source,
    pub(crate) form: Form,
    pub(crate) index: Index,
    pub(crate) tree: Tree,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Elements that link to other files, and their nodes.
    pub(crate) links: Vec<(usize, NodeId)>,
    /// The records of a Fortran file without tags.
    raw: Vec<Record>,
    pub(crate) limits: Limits,
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
        let form = form_of(&source)?;
        if let Form::Binary(framing) = form
            && !has_tags(&source, framing, limits)?
        {
            return Self::raw(source, framing, limits);
        }
        let index = Index::build(&source, form, limits)?;
        if index.elements().is_empty() && form == Form::Text {
            return Err(Error::not_this_format("iotk-001", "expected a tag, found none").at(0));
        }
        let mut file = Self {
            source,
            form,
            index,
            tree: Tree::new(limits),
            diagnostics: Vec::new(),
            links: Vec::new(),
            raw: Vec::new(),
            limits: *limits,
        };
        file.build_tree()?;
        semantics::add(&mut file.tree, limits).map_err(|e| e.at(0))?;
        Ok(file)
    }

    /// Opens a Fortran file without tags: every record is an array of bytes.
    fn raw(source: Source, framing: Framing, limits: &Limits) -> Result<Self> {
        let mut tree = Tree::new(limits);
        let mut raw = Vec::new();
        let mut records = Records::new(source.clone(), framing, limits);
        while let Some(record) = records.next()? {
            limits
                .allow(600 * (raw.len() as u64 + 1), "the list of records")
                .map_err(|e| e.at(record.offset))?;
            let name = format!("record.{}", raw.len() + 1);
            tree.add_array(ROOT, &name, bytes_of(&record.parts)?)
                .map_err(|e| e.at(record.offset))?;
            raw.push(record);
        }
        let (form, index) = (Form::Binary(framing), Index::default());
        let (diagnostics, links, limits) = (Vec::new(), Vec::new(), *limits);
        Ok(Self { source, form, index, tree, diagnostics, links, raw, limits })
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

    /// Elements that link to other files, and their nodes in the tree.
    pub fn links(&self) -> &[(usize, NodeId)] {
        &self.links
    }

    pub(crate) fn into_tree(self) -> Tree {
        self.tree
    }

    /// The limits that the file was opened with.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The events of the file, from the beginning.
    pub fn events(&self) -> Events {
        Events::new(&self.source, self.form, &self.limits)
    }

    /// Deviations from the format found while opening.
    pub(crate) fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        self.index.diagnostics.iter().chain(&self.diagnostics)
    }

    /// The description of the first piece of data of an element, or `None` if it has no data.
    pub fn data(&self, element: usize) -> Result<Option<ElementData>> {
        let known = &self.index.elements()[element];
        let Some(data) = known.data.first() else { return Ok(None) };
        describe_data(&known.tag, known.kind, data, self.form, &self.source, &self.limits)
            .map(Some)
            .map_err(|e| e.in_object(format!("element {}", self.index.path(element))))
    }

    /// The first piece of data of an element as an array, or `None` if it has no data. Fails if the
    /// data do not match the tag.
    pub fn array(&self, element: usize) -> Result<Option<Array>> {
        let open = |data: ElementData| {
            let at = self.index.elements()[element].offset;
            let data = data.checked().map_err(|e| e.at(at))?;
            Array::open(&self.source, &self.tree, &data.array, &self.limits)
        };
        let array = self.data(element)?.map(open).transpose();
        array.map_err(|e| e.in_object(format!("element {}", self.index.path(element))))
    }

    /// The path of the file that `element` links to, relative to the folder of this file, or `None`
    /// without a link. Fails with iotk-015 if the path is outside of the folder `allowed`.
    pub fn link_target(&self, element: &Element, allowed: &Path) -> Result<Option<PathBuf>> {
        let Some(link) = element.link() else { return Ok(None) };
        let folder = self.source.path().and_then(Path::parent).unwrap_or(Path::new("."));
        let in_link = |e: Error| e.in_object(format!("link \"{link}\"")).at(element.offset);
        let target = folder.join(&link);
        let real = |path: &Path| path.canonicalize().map_err(|e| in_link(Error::io(path, e)));
        let (target, allowed) = (real(&target)?, real(allowed)?);
        if !target.starts_with(&allowed) {
            let message = "the link target is outside of the allowed folder";
            return Err(in_link(Error::unsupported("iotk-015", message)));
        }
        Ok(Some(target))
    }
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

/// An array of the stored bytes.
fn bytes_of(parts: &Parts) -> Result<ArrayDesc> {
    let layout = Layout::Plain { extents: parts.extents()?, order: Order::C };
    Ok(ArrayDesc::new(DType::opaque(1), Shape::new([parts.len()]), layout))
}

/// The form of a file. Fails with iotk-001 if it is not an IOTK file.
fn form_of(source: &Source) -> Result<Form> {
    Form::detect(source)?.ok_or_else(|| {
        let message = "expected text that begins with a tag or Fortran records";
        Error::not_this_format("iotk-001", message).at(0)
    })
}

impl Reader for File {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn summary(&self) -> Vec<(String, Value)> {
        let form = match self.form {
            Form::Text => "text".to_string(),
            Form::Binary(framing) => {
                format!("binary, {}-byte markers, {:?}-endian", framing.marker, framing.order)
                    .to_lowercase()
            }
        };
        let mut rows = vec![("form".to_string(), Value::Text(form))];
        for name in ["version", "file_version"] {
            rows.extend(self.index.head(name).map(|v| (name.replace('_', " "), Value::Text(v))));
        }
        if self.index.qe_syntax() {
            rows.push(("syntax".into(), "qe_syntax".into()));
        }
        let roots: Vec<String> = self
            .index
            .roots()
            .iter()
            .map(|id| self.index.elements()[*id].tag.name_lossy())
            .collect();
        if let [root] = &roots[..] {
            rows.push(("root".into(), Value::Text(root.clone())));
        }
        if self.raw.is_empty() {
            rows.push(("elements".into(), (self.index.elements().len() as u64).into()));
        } else {
            rows.push(("records without tags".into(), (self.raw.len() as u64).into()));
        }
        if !self.links.is_empty() {
            rows.push(("links".into(), (self.links.len() as u64).into()));
        }
        rows.extend(semantics::summary(self));
        rows
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        regions::regions(self, each)
    }

    /// The stored data: bytes of records in the byte order of the file, or characters.
    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (id, element) in self.index.elements().iter().enumerate() {
            for data in element.data.iter() {
                each(Object {
                    path: self.index.path(id),
                    id: None,
                    frame: None,
                    kind: element.kind.map_or("text", Type::name).to_string(),
                    array: bytes_of(&data.parts)?,
                })?;
            }
        }
        for (k, record) in self.raw.iter().enumerate() {
            let (path, kind) = (format!("record.{}", k + 1), "record".to_string());
            each(Object { path, id: None, frame: None, kind, array: bytes_of(&record.parts)? })?;
        }
        Ok(())
    }
}
