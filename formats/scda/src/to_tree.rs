//! The tree of a file: fields and groups from sections that follow the convention of
//! [`semantics`](crate::semantics), plain sections otherwise.

use spile_core::format::{Native, Object, Region, RegionKind};
use spile_core::metadata::{CoordMeta, coords_from_meta};
use spile_core::{
    ArrayDesc, Attrs, DType, Dataset, Error, Finding, Hint, Limits, Node, NodeId, OpenOptions,
    Order, Parsed, ROOT, Report, Result, Shape, Source, Tree, Value,
};

use crate::read::File;
use crate::section::{Section, Tables};
use crate::semantics::{Description, Field, Group, Visitor, mismatch, shorten, visit};
use crate::wire::{FILE_HEADER, FileHeader, Kind};

/// Memory of a node that the tree does not charge: the small allocations of id, shape and coordinates.
const SMALL: u64 = 4 * 32;

/// Memory of a finding; its texts are limited.
const FINDING: u64 = size_of::<Finding>() as u64 + 600;

/// Builds the tree. A description that cannot be used is a finding.
pub(crate) fn build(file: &File) -> Result<(Tree, Vec<Finding>)> {
    let mut tree = Tree::new(file.limits());
    tree.charge(file.memory(), "the list of sections")?;
    let nodes = file.sections().len().saturating_mul(size_of::<Node>());
    file.limits().allow(file.memory().saturating_add(nodes as u64), "the tree of sections")?;
    tree.reserve(file.sections().len());
    let report = Report::default();
    let mut builder =
        Builder { file, next: 0, tree, report, has_root_attrs: false, coords: Vec::new() };
    visit(&mut builder)?;
    if !builder.has_root_attrs {
        builder.add_user_string(file.header())?;
    }
    builder.link_coords();
    Ok((builder.tree, builder.report.findings))
}

/// Opens the file in `source`. Compressed sections are decoded when they are read.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let file = File::with_tables(source.clone(), true, &options.limits, Tables::Fitting)?;
    let (tree, warnings) = build(&file)?;
    let summary = summary(&file, &tree);
    let parsed = Parsed::new(source, tree).with_summary(summary).with_warnings(warnings);
    Ok(parsed.with_native(file))
}

/// Key facts; `tree` is that of the file.
fn summary(file: &File, tree: &Tree) -> Attrs {
    let header = file.header();
    let text = |bytes: &[u8]| Value::Text(String::from_utf8_lossy(bytes).into_owned());
    let mut fields = Attrs::from([
        ("version", format!("{:02x}", header.version).into()),
        ("vendor", text(&header.vendor)),
        ("user", text(&header.user)),
        ("line breaks", format!("{:?}", header.breaks).into()),
        ("sections", (file.sections().len() as u64).into()),
    ]);
    if let Some(index) = file.index() {
        let checksums = if index.has_checksums() { "with checksums" } else { "without checksums" };
        fields.push("index", checksums);
    }
    // Values of a checkpoint, such as program name and step.
    let values = tree.attrs().iter().filter(|(name, _)| *name != "user");
    fields.extend(values.map(|(name, value)| (format!("value {name}"), value.clone())));
    fields
}

impl Native for File {
    fn regions(&self, _: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut emit = |offset, len, kind, name: String, value: String| {
            if len > 0 { each(Region { offset, len, kind, name, value }) } else { Ok(()) }
        };
        let version = format!("version {:02x}", self.header().version);
        emit(0, FILE_HEADER, RegionKind::Header, "file header".into(), version)?;
        for (number, section) in self.sections().iter().enumerate() {
            for raw in section.raws() {
                let name = |part: &str| format!("section {number} {part}");
                let head = raw.data() - raw.head.offset;
                emit(raw.head.offset, head, RegionKind::Header, name("header"), raw.head.title())?;
                let value = match (section.encoded, raw.head.kind) {
                    (true, _) => "encoded".into(),
                    (false, Kind::Array) => format!("{} x {}", raw.head.count, raw.head.size),
                    (false, Kind::Varray) => format!("{} elements", raw.head.count),
                    _ => String::new(),
                };
                emit(raw.data(), raw.len, RegionKind::Data, name("data"), value)?;
                let end = raw.data_end();
                emit(end, raw.end() - end, RegionKind::Padding, name("padding"), String::new())?;
            }
        }
        if let Some(index) = self.index() {
            let (at, parts) = (index.offset(), index.parts().len());
            let value = format!("{parts} parts");
            emit(at, self.source().len() - at, RegionKind::Header, "index".into(), value)?;
        }
        Ok(())
    }

    fn objects(&self, _: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (number, section) in self.sections().iter().enumerate() {
            let path = String::from_utf8_lossy(section.user());
            let object = Object::new(path, section.kind.letter(), section.desc());
            each(Object { id: Some(number.to_string()), ..object })?;
        }
        Ok(())
    }
}

struct Builder<'a> {
    file: &'a File,
    /// Number of the next section.
    next: usize,
    tree: Tree,
    report: Report,
    has_root_attrs: bool,
    /// Coordinates of arrays; they may refer to fields later in the file.
    coords: Vec<(NodeId, Vec<Option<CoordMeta>>)>,
}

impl Visitor for Builder<'_> {
    type Section = usize;

    fn next(&mut self) -> Result<Option<usize>> {
        let number = self.next;
        self.next += 1;
        Ok((number < self.file.sections().len()).then_some(number))
    }

    fn header<'s>(&'s self, number: &'s usize) -> (Kind, &'s [u8], u64, u64) {
        let section = &self.file.sections()[*number];
        (section.kind, section.user(), section.count, section.size)
    }

    fn text(&mut self, number: &usize) -> Result<Vec<u8>> {
        let section = &self.file.sections()[*number];
        Description::allow(section.len, self.file.limits())?;
        self.file.array(section)?.bytes()
    }

    fn plain(&mut self, number: &usize) -> Result<()> {
        let section = &self.file.sections()[*number];
        let name = String::from_utf8_lossy(section.user());
        self.tree.charge(SMALL, "the tree of sections")?;
        let node = self.tree.add_array(ROOT, &name, section.desc())?;
        self.tree.node_mut(node).id = Some(number.to_string());
        self.tree.push_attr(node, "section", section.kind.letter().to_string())?;
        if section.is_unlisted() {
            let count = section.count;
            let message = format!(
                "the sizes of {count} elements exceed the memory limit: the section is shown as stored bytes"
            );
            self.report
                .warn("scda-024", message)
                .in_object(format!("section {number}, {}", section.title()))
                .at(section.offset())
                .hint(Hint::RaiseMemory);
        }
        Ok(())
    }

    fn group(&mut self, group: Group) -> Result<()> {
        self.charge(&group.group, &group.attrs, 0)?;
        let node = self.tree.node_at(&group.group)?;
        self.has_root_attrs |= node == ROOT;
        self.tree.node_mut(node).attrs.extend(group.attrs);
        Ok(())
    }

    fn field(&mut self, field: Field, shape: Shape, number: &usize) -> Result<()> {
        let section = &self.file.sections()[*number];
        check_items(&field, section, &shape)?;
        self.charge(&field.name, &field.attrs, shape.rank())?;
        let order = if field.fortran_order { Order::F } else { Order::C };
        let mut desc = ArrayDesc::new(field.dtype, shape, section.layout(order));
        if section.kind == Kind::Varray && desc.shape.bytes(field.dtype.size())? == section.len {
            // Ragged data with as many items as elements: as bytes they do not look like an array.
            desc.dtype = DType::opaque(1);
        }
        if !field.dims.is_empty() {
            desc.dims = field.dims;
        }
        desc.map = field.map.as_ref().map(Into::into);
        let (group, name) = field.name.rsplit_once('/').unwrap_or(("", &field.name));
        let parent = self.tree.node_at(group)?;
        let id = self.tree.add_array(parent, name, desc)?;
        let node = self.tree.node_mut(id);
        node.id = Some(number.to_string());
        node.attrs = field.attrs;
        if !field.coords.is_empty() {
            self.coords.push((id, field.coords));
        }
        Ok(())
    }

    fn reject(&mut self, number: &usize, why: &Error) -> Result<()> {
        self.tree.charge(FINDING, "the list of findings")?;
        let section = &self.file.sections()[*number];
        let message = format!("invalid field or group description: {}", shorten(why.message()));
        self.report
            .warn("scda-023", message)
            .in_object(format!("section {number}, {}", section.title()))
            .at(section.offset())
            .hint("it is shown as a plain section");
        Ok(())
    }
}

impl Builder<'_> {
    /// Adds the user string of the file, unless the root has a description.
    fn add_user_string(&mut self, header: &FileHeader) -> Result<()> {
        if header.user.is_empty() {
            return Ok(());
        }
        let text = match String::from_utf8(header.user.clone()) {
            Ok(text) => Value::Text(text),
            Err(_) => Value::Bytes(header.user.clone()),
        };
        self.tree.push_attr(ROOT, "user", text)
    }

    /// Charges attributes and dimensions of an array. Fails before any node is added if the path is too
    /// deep or too long.
    fn charge(&mut self, path: &str, attrs: &Attrs, rank: usize) -> Result<()> {
        let limits = self.file.limits();
        check_depth(path, limits)?;
        let mut missing = 0;
        let mut prefix = path;
        while !prefix.is_empty() && self.tree.at(prefix).is_none() {
            // Name and path of the node, and the path in the table of duplicate names.
            missing += size_of::<Node>() as u64 + 3 * prefix.len() as u64;
            limits.allow(missing, "a path of groups")?;
            prefix = prefix.rsplit_once('/').map_or("", |(group, _)| group);
        }
        let bytes = attrs.memory().saturating_add(SMALL + rank as u64 * 64);
        self.tree.charge(bytes, "the metadata")
    }

    /// Resolves coordinates that refer to other fields.
    fn link_coords(&mut self) {
        for (id, coords) in std::mem::take(&mut self.coords) {
            let find = |path: &str| {
                let found = self.tree.at(path)?;
                self.tree.array(found).is_some().then_some(found)
            };
            let rank = self.tree.array(id).map_or(0, |array| array.shape.rank());
            let coords = coords_from_meta(&coords, rank, find);
            if let Some(array) = self.tree.array_mut(id) {
                array.coords = coords;
            }
        }
    }
}

fn check_depth(path: &str, limits: &Limits) -> Result<()> {
    let depth = path.split('/').count();
    if depth <= limits.depth as usize {
        return Ok(());
    }
    Err(mismatch(format!("expected a path of at most {} parts, found {depth}", limits.depth)))
}

/// Fails if the data of the section cannot be shown as the field.
fn check_items(field: &Field, section: &Section, shape: &Shape) -> Result<()> {
    if section.is_unlisted() {
        return Err(mismatch("the sizes of the elements exceed the memory limit"));
    }
    if field.fortran_order && section.encoded && shape.rank() > 1 {
        return Err(mismatch("compressed elements in Fortran order are not supported"));
    }
    let item = field.bytes()?;
    let starts = section.element_starts().unwrap_or_default();
    match starts.windows(2).position(|w| !(w[1] - w[0]).is_multiple_of(item)) {
        Some(k) => {
            let size = starts[k + 1] - starts[k];
            Err(mismatch(format!(
                "element {k}: expected items of {item} bytes, found {size} bytes"
            )))
        }
        None => Ok(()),
    }
}
