//! An open scda file: the list of its sections and the tree view.

use std::path::Path;

use spile_core::error::{Error, Result};
use spile_core::format::{Object, Reader, Region, Role};
use spile_core::layout::ArrayDesc;
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::report::Finding;
use spile_core::source::Source;
use spile_core::tree::{Tree, Value};

use crate::budget::Budget;
use crate::content::Content;
use crate::section::Section;
use crate::to_tree::{NODE, to_tree};
use crate::wire::{FILE_HEADER, FileHeader, Kind};

/// An open scda file. Opening reads the section headers, the size entries of V sections and the
/// descriptions of fields. The list of sections, the tables of sizes and the tree are charged to the
/// memory limit before they are built.
pub struct File {
    source: Source,
    header: FileHeader,
    sections: Vec<Section>,
    tree: Tree,
    findings: Vec<Finding>,
    limits: Limits,
}

impl File {
    /// Opens a file. Compressed sections are decoded when they are read.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        Self::from_source(Source::open(path)?, true, limits)
            .map_err(|e| e.with_path(path).with_format("scda"))
    }

    /// Opens the file in `source`. Without `decode`, the two raw sections of a compressed section are
    /// listed separately, and fields are not recognised.
    pub fn from_source(source: Source, decode: bool, limits: &Limits) -> Result<Self> {
        let header = FileHeader::read(&source)?;
        let mut budget = Budget::new(limits);
        let mut sections: Vec<Section> = Vec::new();
        let mut offset = FILE_HEADER;
        loop {
            let number = sections.len();
            let read = Section::read(&source, offset, decode, &mut budget).and_then(|section| {
                if let Some(section) = &section {
                    budget
                        .charge(NODE + 4 * section.user().len() as u64, "the list of sections")?;
                }
                Ok(section)
            });
            let Some(section) = read.map_err(|e| e.in_object(format!("section {number}")))? else {
                break;
            };
            offset = section.end();
            sections.push(section);
            if sections.len() as u64 >= limits.nodes {
                return Err(Error::limit(format!("more than {} sections", limits.nodes)));
            }
        }
        let (tree, findings) = to_tree(&source, &header, &sections, decode, budget)?;
        Ok(Self { source, header, sections, tree, findings, limits: *limits })
    }

    /// The file header.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The sections in file order.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The data of a section as an array of bytes, which can be read, streamed and sliced.
    pub fn array(&self, section: &Section) -> Result<Array> {
        self.open_array(&section.desc())
    }

    /// The uncompressed data of a section as a byte stream with random access.
    pub fn content(&self, section: &Section) -> Result<Content> {
        Content::of(self, section)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn open_array(&self, desc: &ArrayDesc) -> Result<Array> {
        Array::open(&self.source, &self.tree, desc, &self.limits)
    }
}

impl Reader for File {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn summary(&self) -> Vec<(String, Value)> {
        let text = |bytes: &[u8]| Value::Text(String::from_utf8_lossy(bytes).into_owned());
        let mut fields = vec![
            ("version".into(), format!("{:02x}", self.header.version).into()),
            ("vendor".into(), text(&self.header.vendor)),
            ("user".into(), text(&self.header.user)),
            ("line breaks".into(), format!("{:?}", self.header.breaks).into()),
            ("sections".into(), (self.sections.len() as u64).into()),
        ];
        // Values of a checkpoint, such as program name and step.
        let values = self.tree.attrs().iter().filter(|(name, _)| name != "user");
        fields.extend(values.map(|(name, value)| (format!("value {name}"), value.clone())));
        fields
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut emit = |offset, len, role, name: String, value: String| {
            if len > 0 { each(Region { offset, len, role, name, value }) } else { Ok(()) }
        };
        let version = format!("version {:02x}", self.header.version);
        emit(0, FILE_HEADER, Role::Header, "file header".into(), version)?;
        for (number, section) in self.sections.iter().enumerate() {
            for raw in section.raws() {
                let name = |part: &str| format!("section {number} {part}");
                let head = raw.data() - raw.head.offset;
                emit(raw.head.offset, head, Role::Header, name("header"), raw.head.title())?;
                let value = match (section.encoded, raw.head.kind) {
                    (true, _) => "encoded".into(),
                    (false, Kind::Array) => format!("{} x {}", raw.head.count, raw.head.size),
                    (false, Kind::Varray) => format!("{} elements", raw.head.count),
                    _ => String::new(),
                };
                emit(raw.data(), raw.len, Role::Data, name("data"), value)?;
                let end = raw.data_end();
                emit(end, raw.end() - end, Role::Padding, name("padding"), String::new())?;
            }
        }
        Ok(())
    }

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (number, section) in self.sections.iter().enumerate() {
            each(Object {
                path: String::from_utf8_lossy(section.user()).into_owned(),
                id: Some(number.to_string()),
                frame: None,
                kind: section.kind.letter().to_string(),
                array: section.desc(),
            })?;
        }
        Ok(())
    }
}
