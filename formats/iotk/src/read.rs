//! An open IOTK file: its elements, their data, and the tree view of both.

use std::path::{Path, PathBuf};

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::{Object, Reader, Region};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{NodeId, ROOT, Tree, Value};

use crate::data::{Described, describe};
use crate::event::{Events, Form};
use crate::index::{Cursor, Element, Index, Remark};
use crate::record::{Framing, Parts, Record, Records};
use crate::regions;
use crate::schema;
use crate::wire::{Tag, Type, unescape};

/// Attributes that say how data are stored; the array has them in its type and shape.
pub(crate) const STORAGE: [&str; 18] = [
    "type",
    "size",
    "kind",
    "len",
    "fmt",
    "columns",
    "rank",
    "n1",
    "n2",
    "n3",
    "n4",
    "n5",
    "n6",
    "n7",
    "trunc",
    "spile_fmt",
    "spile_kind",
    "spile_type",
];

/// An attribute with more numbers than this stays text.
const LIST: usize = 64;

/// An open file. Opening reads all tags; data are read when they are asked for.
pub struct File {
    source: Source,
    form: Form,
    index: Index,
    tree: Tree,
    remarks: Vec<Remark>,
    /// Elements that stand for other files, and their nodes.
    links: Vec<(usize, NodeId)>,
    /// Records without tags: any other Fortran file.
    raw: Vec<Record>,
    limits: Limits,
}

impl File {
    /// Opens a file.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        Self::from_source(Source::open(path)?, limits)
            .map_err(|e| e.with_path(path).with_format("iotk"))
    }

    /// Opens what is in `source`.
    pub fn from_source(source: Source, limits: &Limits) -> Result<Self> {
        let form = form_of(&source)?;
        if let Form::Binary(framing) = form
            && !has_tags(&source, framing, limits)?
        {
            return Self::raw(source, framing, limits);
        }
        let index = Index::build(&source, form, limits)?;
        if index.elements().is_empty() && form == Form::Text {
            return Err(Error::not_this_format("iotk-001", "there is no tag").at(0));
        }
        let mut file = Self {
            source,
            form,
            index,
            tree: Tree::new(limits),
            remarks: Vec::new(),
            links: Vec::new(),
            raw: Vec::new(),
            limits: *limits,
        };
        file.plant()?;
        schema::add(&mut file.tree, limits).map_err(|e| e.at(0))?;
        Ok(file)
    }

    /// A Fortran file without tags: every record is an array of bytes.
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
        let (remarks, links, limits) = (Vec::new(), Vec::new(), *limits);
        Ok(Self { source, form, index, tree, remarks, links, raw, limits })
    }

    /// The records of a Fortran file without tags.
    pub fn raw_records(&self) -> &[Record] {
        &self.raw
    }

    /// Binary or text.
    pub fn form(&self) -> Form {
        self.form
    }

    /// The tags.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Before the first tag, for a walk by the library's rule.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.index)
    }

    /// Elements that stand for other files, and their nodes in the tree.
    pub fn links(&self) -> &[(usize, NodeId)] {
        &self.links
    }

    pub(crate) fn into_tree(self) -> Tree {
        self.tree
    }

    /// The limits it was opened with.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The events, from the beginning.
    pub fn events(&self) -> Events {
        Events::new(&self.source, self.form, &self.limits)
    }

    /// What departs from the letter of the format without doing harm.
    pub(crate) fn remarks(&self) -> impl Iterator<Item = &Remark> {
        self.index.remarks.iter().chain(&self.remarks)
    }

    /// The data of an element, the first piece where there are several; nothing if it has none.
    pub fn data(&self, element: usize) -> Result<Option<Described>> {
        let known = &self.index.elements()[element];
        let Some(data) = known.data.first() else { return Ok(None) };
        describe(&known.tag, known.kind, data, self.form, &self.source, &self.limits)
            .map(Some)
            .map_err(|e| e.in_object(format!("element {}", self.index.path(element))))
    }

    /// The data of an element, ready to be read.
    pub fn array(&self, element: usize) -> Result<Option<Array>> {
        let open = |data: Described| {
            let at = self.index.elements()[element].offset;
            let data = data.sound().map_err(|e| e.at(at))?;
            Array::open(&self.source, &self.tree, &data.array, &self.limits)
        };
        let array = self.data(element)?.map(open).transpose();
        array.map_err(|e| e.in_object(format!("element {}", self.index.path(element))))
    }

    /// The file that a link stands for. It is looked for beside this one and must lie inside
    /// `allowed`, whatever the link says.
    pub fn link_target(&self, element: &Element, allowed: &Path) -> Result<Option<PathBuf>> {
        let Some(link) = element.link() else { return Ok(None) };
        let folder = self.source.path().and_then(Path::parent).unwrap_or(Path::new("."));
        let place = |e: Error| e.in_object(format!("link \"{link}\"")).at(element.offset);
        let target = folder.join(&link);
        let real = |path: &Path| path.canonicalize().map_err(|e| place(Error::io(path, e)));
        let (target, allowed) = (real(&target)?, real(allowed)?);
        if !target.starts_with(&allowed) {
            let message = "the link leads out of the folder that was allowed";
            return Err(place(Error::unsupported("iotk-015", message)));
        }
        Ok(Some(target))
    }

    fn plant(&mut self) -> Result<()> {
        for tag in self.index.head_tags() {
            let own = ["version", "file_version", "binary", "qe_syntax"];
            self.tree.node_mut(ROOT).attrs.extend(attributes(tag, &own));
        }
        let mut nodes: Vec<NodeId> = Vec::with_capacity(self.index.elements().len());
        for id in 0..self.index.elements().len() {
            let parent = self.index.elements()[id].parent.map_or(ROOT, |parent| nodes[parent]);
            let node = self.plant_element(id, parent)?;
            if self.index.elements()[id].tag.raw("iotk_link").is_some() {
                self.links.push((id, node));
            }
            nodes.push(node);
        }
        Ok(())
    }

    /// Adds an element below `parent`: an array where it has data and nothing else, else a group.
    fn plant_element(&mut self, id: usize, parent: NodeId) -> Result<NodeId> {
        let element = &self.index.elements()[id];
        // The type of `qe_syntax` is a tag of its own; its parent stands for both.
        if element.parent.is_some_and(|above| self.holds_type(above) == Some(id)) {
            return Ok(parent);
        }
        let carrier = self.holds_type(id).unwrap_or(id);
        let name = element.tag.title();
        let holder = &self.index.elements()[carrier];
        let alone = holder.children.is_empty() && holder.data.len() < 2;
        let mut data = self.data(carrier)?;
        if let Some(data) = data.as_mut().filter(|data| data.fault.is_none()) {
            restore(&self.index.elements()[carrier].tag, &mut data.array);
        }
        let hidden: &[&str] = if data.is_some() && alone { &STORAGE } else { &[] };
        let attrs = attributes(&element.tag, hidden);
        if let Some(data) = &data {
            let offset = self.index.elements()[carrier].offset;
            for (told, grave) in [(&data.remark, false), (&data.fault, true)] {
                if let Some((code, message)) = told.clone() {
                    self.remarks.push(Remark { code, message, offset, grave });
                }
            }
        }
        let at = self.index.elements()[id].offset;
        let node = match data {
            Some(data) if alone => self.tree.add_array(parent, &name, data.array),
            Some(data) => self.plant_pieces(parent, &name, carrier, data.array),
            None => self.tree.add_group(parent, &name),
        };
        let node = node.map_err(|e| e.at(at))?;
        let entry = self.tree.node_mut(node);
        entry.attrs = attrs;
        Ok(node)
    }

    /// Adds a group with all data of an element that has other elements, too, or several pieces.
    fn plant_pieces(
        &mut self,
        parent: NodeId,
        name: &str,
        element: usize,
        first: ArrayDesc,
    ) -> Result<NodeId> {
        let group = self.tree.add_group(parent, name)?;
        self.tree.add_array(group, "text", first)?;
        for data in &self.index.elements()[element].data[1..] {
            let (source, none) = (&self.source, Tag::default());
            let piece = describe(&none, None, data, self.form, source, &self.limits)?;
            self.tree.add_array(group, "text", piece.array)?;
        }
        Ok(group)
    }

    /// The only child of an element, if that is nothing but the type of its data.
    fn holds_type(&self, id: usize) -> Option<usize> {
        let element = &self.index.elements()[id];
        let [child] = element.children[..] else { return None };
        let inner = &self.index.elements()[child];
        let typed = inner.tag.raw("type").is_none() && Type::named(inner.tag.name()).is_some();
        let own = typed && inner.kind.is_some() && inner.children.is_empty();
        (own && element.data.is_empty() && element.kind.is_none()).then_some(child)
    }
}

/// Bytes that were written as integers for want of a type, as what they were.
fn restore(tag: &Tag, array: &mut ArrayDesc) {
    let Some(was) = tag.text_of("spile_type").and_then(|word| word.parse::<DType>().ok()) else {
        return;
    };
    let (size, lengths) = (was.size() as u64, array.shape.lengths());
    if was.kind() != Kind::Opaque
        || size == 0
        || (array.dtype.kind(), array.dtype.size()) != (Kind::Int, 1)
    {
        return;
    }
    let shape = match lengths {
        _ if size == 1 => lengths.to_vec(),
        [all] if tag.raw("rank").is_none() && all.is_multiple_of(size) => vec![all / size],
        [first, rest @ ..] if tag.raw("rank").is_some() && *first == size => rest.to_vec(),
        _ => return,
    };
    let (shape, layout) = (Shape::new(shape), array.layout.clone());
    *array = ArrayDesc::new(was, shape, layout);
}

/// One of the first two records of an IOTK file is a tag.
fn has_tags(source: &Source, framing: Framing, limits: &Limits) -> Result<bool> {
    let mut records = Records::new(source.clone(), framing, limits);
    let mut bytes = Vec::new();
    for _ in 0..2 {
        // A damaged record is told about by whoever reads on.
        let Ok(Some(record)) = records.next() else { return Ok(true) };
        records.beginning(&record, 80, &mut bytes)?;
        if bytes.contains(&b'<') {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Bytes as they lie in the file.
fn bytes_of(parts: &Parts) -> Result<ArrayDesc> {
    let layout = Layout::Plain { extents: parts.extents()?, order: Order::C };
    Ok(ArrayDesc::new(DType::opaque(1), Shape::new([parts.len()]), layout))
}

/// The form of a file, or why it is none of ours.
fn form_of(source: &Source) -> Result<Form> {
    Form::detect(source)?.ok_or_else(|| {
        let message = "neither text that begins with a tag nor whole Fortran records";
        Error::not_this_format("iotk-001", message).at(0)
    })
}

/// The attributes of a tag, but for hidden ones, as values: numbers where they are numbers.
/// Logicals stay text, because `F` may as well be fluorine.
fn attributes(tag: &Tag, hidden: &[&str]) -> Vec<(String, Value)> {
    let value = |name: &str, raw: &[u8]| {
        let plain = unescape(raw);
        match std::str::from_utf8(&plain) {
            Ok(text) => typed(name, text),
            Err(_) => Value::Bytes(plain.to_vec()),
        }
    };
    tag.attributes()
        .filter(|a| !hidden.iter().any(|name| name.as_bytes() == a.name))
        .map(|a| {
            let name = String::from_utf8_lossy(a.name).into_owned();
            let value = value(&name, a.value);
            (name, value)
        })
        .collect()
}

fn typed(name: &str, text: &str) -> Value {
    let word = |word: &str| -> Option<Value> {
        if let Ok(number) = word.parse() {
            return Some(Value::Int(number));
        }
        // A bare `inf` or `nan` is a word, and so is what no double can hold.
        word.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Float)
    };
    let text_value = || Value::Text(text.to_string());
    // A version is no number: 1.10 is not 1.1.
    if name.to_ascii_lowercase().ends_with("version") {
        return text_value();
    }
    if let Some((re, im)) = text.split_once(',') {
        let number = |part: &str| part.trim().parse::<f64>().ok();
        let half = |part: &str| number(part).filter(|x| x.is_finite() && part.contains('.'));
        return match (half(re), half(im)) {
            (Some(re), Some(im)) => Value::Complex(re, im),
            _ => text_value(),
        };
    }
    let words: Vec<&str> = text.split_ascii_whitespace().take(LIST + 1).collect();
    if words.is_empty() || words.len() > LIST {
        return text_value();
    }
    match words.iter().map(|w| word(w)).collect::<Option<Vec<Value>>>() {
        Some(mut values) if values.len() == 1 => values.remove(0),
        Some(values) => Value::List(values),
        None => text_value(),
    }
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
        let roots: Vec<String> =
            self.index.roots().iter().map(|id| self.index.elements()[*id].tag.title()).collect();
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
        rows.extend(schema::summary(self));
        rows
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        regions::regions(self, each)
    }

    /// The data as they are stored: bytes of records in the file's own order, or characters.
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
