//! Legacy `.vtk` files, versions 1.0 to 5.1, as the elements of the equivalent XML file. Lines of text describe
//! arrays of numbers in text or of big-endian bytes.

mod codec;
mod text;

use spile_core::error::{Error, Result};
use spile_core::layout::Extent;
use spile_core::limits::Limits;
use spile_core::source::Source;

use crate::wire::tokens;
use crate::xml::{Document, Element, Scanner};
pub(crate) use codec::{locate, texts};

/// First bytes of a file.
pub(crate) const SIGNATURE: &[u8; 22] = b"# vtk DataFile Version";

/// Cell type of polyhedra.
const POLYHEDRON: u32 = 42;

/// Format of cells of which some are polyhedra: their faces are in the list of points.
const POLYHEDRA: &str = "polyhedra";

/// Bytes of a list that are examined at once; a multiple of the size of a number.
const PART: u64 = 64 << 10;

/// Types of datasets with their names in XML files.
const DATASETS: [(&str, &str); 5] = [
    ("STRUCTURED_POINTS", "ImageData"),
    ("RECTILINEAR_GRID", "RectilinearGrid"),
    ("STRUCTURED_GRID", "StructuredGrid"),
    ("UNSTRUCTURED_GRID", "UnstructuredGrid"),
    ("POLYDATA", "PolyData"),
];

/// Types of elements with their names in XML files and their sizes in bytes. `vtkIdType` is stored as `int`.
const TYPES: [(&str, &str, u64); 14] = [
    ("char", "Int8", 1),
    ("signed_char", "Int8", 1),
    ("unsigned_char", "UInt8", 1),
    ("short", "Int16", 2),
    ("unsigned_short", "UInt16", 2),
    ("int", "Int32", 4),
    ("vtkidtype", "Int32", 4),
    ("unsigned_int", "UInt32", 4),
    ("long", "Int64", 8),
    ("vtktypeint64", "Int64", 8),
    ("unsigned_long", "UInt64", 8),
    ("vtktypeuint64", "UInt64", 8),
    ("float", "Float32", 4),
    ("double", "Float64", 8),
];

/// Parses the headers of a file.
pub(crate) fn read(source: &Source, limits: &Limits) -> Result<Document> {
    let scanner = Scanner::new(source, limits);
    let mut parser = Parser { scanner, ascii: true, version: 0, line_at: 0 };
    let version = parser.line()?.unwrap_or_default();
    let version = version[SIGNATURE.len().min(version.len())..].trim().to_string();
    parser.version = version.split('.').next().and_then(|n| n.parse().ok()).unwrap_or(3);
    let title = parser.line()?.unwrap_or_default();
    parser.ascii = match parser.required()?.to_uppercase().as_str() {
        "ASCII" => true,
        "BINARY" => false,
        other => {
            return Err(parser.malformed(format!("expected ASCII or BINARY, found \"{other}\"")));
        }
    };
    let words = parser.words()?;
    let known =
        |name: &&(&str, &str)| words.get(1).is_some_and(|word| word.eq_ignore_ascii_case(name.0));
    let (_, kind) = *DATASETS.iter().find(known).ok_or_else(|| {
        let message = format!("dataset type \"{}\" is not supported", words.join(" "));
        Error::unsupported("vtk-006", message).at(parser.line_at)
    })?;
    let mut grid = element(kind, &[]);
    let mut piece = element("Piece", &[]);
    parser.sections(&mut grid, &mut piece)?;
    grid.children.push(piece);
    let attrs = [("type", kind), ("version", &version), ("title", title.trim())];
    let mut root = element("VTKFile", &attrs);
    root.attrs.push(("byte_order".into(), "BigEndian".into()));
    root.children.push(grid);
    Ok(Document {
        root,
        comment: None,
        appended: None,
        memory: parser.scanner.memory,
        legacy: true,
    })
}

fn element(name: &str, attrs: &[(&str, &str)]) -> Element {
    let attrs = attrs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Element { name: name.into(), attrs, ..Element::default() }
}

/// The child `name` of an element, added if there is none.
fn child<'e>(parent: &'e mut Element, name: &str) -> &'e mut Element {
    let at = parent.children.iter().position(|child| child.name == name);
    let at = at.unwrap_or_else(|| {
        parent.children.push(element(name, &[]));
        parent.children.len() - 1
    });
    &mut parent.children[at]
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    ascii: bool,
    /// Major version.
    version: u32,
    /// Offset of the last line.
    line_at: u64,
}

impl Parser<'_> {
    fn malformed(&self, message: impl Into<String>) -> Error {
        Error::malformed("vtk-003", message).at(self.line_at)
    }

    /// Reads all sections after the type of the dataset.
    fn sections(&mut self, grid: &mut Element, piece: &mut Element) -> Result<()> {
        // Section of the attributes, and their number of tuples.
        let (mut section, mut tuples) = ("FieldData", 0);
        let mut components = 1;
        loop {
            let line = self.next_line()?;
            let words: Vec<String> = line.split_whitespace().map(String::from).collect();
            let Some(keyword) = words.first().map(|word| word.to_uppercase()) else {
                return Ok(());
            };
            match keyword.as_str() {
                "POINT_DATA" => (section, tuples) = ("PointData", self.number(&words, 1)?),
                "CELL_DATA" => (section, tuples) = ("CellData", self.number(&words, 1)?),
                "METADATA" => {
                    let owner = if section == "FieldData" { &mut *grid } else { &mut *piece };
                    let owner = owner.children.iter_mut().find(|child| child.name == section);
                    self.metadata(components, owner.and_then(|owner| owner.children.last_mut()))?;
                }
                "FIELD" => {
                    for _ in 0..self.number::<u64>(&words, 2)? {
                        let words = self.words()?;
                        if words[0] == "NULL_ARRAY" {
                            continue;
                        }
                        components = self.number(&words, 1)?;
                        let count = self.number(&words, 2)?;
                        let kind = words.get(3).cloned().unwrap_or_default();
                        let array = self.array(&words[0], &kind, components, count)?;
                        let owner = if section == "FieldData" { &mut *grid } else { &mut *piece };
                        child(owner, section).children.push(array);
                        if self.optional("METADATA")?.is_some() {
                            let array = child(owner, section).children.last_mut();
                            self.metadata(components, array)?;
                        }
                    }
                }
                "LOOKUP_TABLE" => {
                    // The colors of scalars: red, green, blue and opacity.
                    let name = format!("lookup_table_{}", words.get(1).map_or("", String::as_str));
                    let array = self.colors(&name, 4, self.number(&words, 2)?)?;
                    child(grid, "FieldData").children.push(array);
                }
                _ if section == "FieldData" => self.geometry(&keyword, &words, grid, piece)?,
                _ => {
                    let array = self.attribute(&keyword, &words, tuples)?;
                    components = array.number("NumberOfComponents", Some(1))?;
                    child(piece, section).children.push(array);
                }
            }
        }
    }

    /// Reads a section of the geometry.
    fn geometry(
        &mut self,
        keyword: &str,
        words: &[String],
        grid: &mut Element,
        piece: &mut Element,
    ) -> Result<()> {
        let rest = || words[1..].join(" ");
        match keyword {
            "DIMENSIONS" => {
                let mut ends = Vec::new();
                for axis in 1..4 {
                    ends.push(format!("0 {}", self.number::<i64>(words, axis)?.saturating_sub(1)));
                }
                grid.attrs.push(("WholeExtent".into(), ends.join(" ")));
            }
            "EXTENT" => grid.attrs.push(("WholeExtent".into(), rest())),
            "ORIGIN" => grid.attrs.push(("Origin".into(), rest())),
            "SPACING" | "ASPECT_RATIO" => grid.attrs.push(("Spacing".into(), rest())),
            "DIRECTION" => grid.attrs.push(("Direction".into(), rest())),
            "POINTS" => {
                let count: u64 = self.number(words, 1)?;
                let kind = words.get(2).map_or("float", String::as_str);
                let array = self.array("Points", kind, 3, count)?;
                child(piece, "Points").children.push(array);
                piece.attrs.push(("NumberOfPoints".into(), count.to_string()));
            }
            "X_COORDINATES" | "Y_COORDINATES" | "Z_COORDINATES" => {
                let kind = words.get(2).map_or("float", String::as_str);
                let array = self.array(&words[0], kind, 1, self.number(words, 1)?)?;
                child(piece, "Coordinates").children.push(array);
            }
            "CELL_TYPES" => {
                let array = self.array("types", "int", 1, self.number(words, 1)?)?;
                let cells = child(piece, "Cells");
                let has_polyhedra =
                    array.text.map_or(Ok(false), |text| self.has_polyhedra(text))?;
                cells.children.push(array);
                for array in cells.children.iter_mut().filter(|_| has_polyhedra) {
                    array.attrs.retain(|(name, _)| name != "format");
                    array.attrs.push(("format".into(), POLYHEDRA.into()));
                }
            }
            "CELLS" => self.cells("Cells", words, piece)?,
            "VERTICES" => self.cells("Verts", words, piece)?,
            "LINES" => self.cells("Lines", words, piece)?,
            "TRIANGLE_STRIPS" => self.cells("Strips", words, piece)?,
            "POLYGONS" => self.cells("Polys", words, piece)?,
            _ => return Err(self.unknown(keyword)),
        }
        Ok(())
    }

    /// Whether a list of cell types contains the one of polyhedra.
    fn has_polyhedra(&self, Extent { offset, len }: Extent) -> Result<bool> {
        let mut at = offset;
        let mut rest = Vec::new();
        while at < offset + len {
            let part = (offset + len - at).min(PART);
            rest.extend(self.scanner.source.read_vec(at, part)?);
            at += part;
            let types = rest.as_chunks::<4>().0;
            if !self.ascii && types.iter().any(|kind| u32::from_be_bytes(*kind) == POLYHEDRON) {
                return Ok(true);
            }
            let is_last = at == offset + len;
            // The last word may continue in the next part.
            let end = rest.iter().rposition(u8::is_ascii_whitespace).filter(|_| !is_last);
            let end = end.unwrap_or(rest.len());
            if self.ascii && tokens(&rest[..end]).any(|word| word == b"42") {
                return Ok(true);
            }
            rest.drain(..if self.ascii { end } else { rest.len() });
        }
        Ok(false)
    }

    fn unknown(&self, keyword: &str) -> Error {
        let keyword: String = keyword.chars().take(40).collect();
        let message = format!("section \"{keyword}\" is not supported");
        Error::unsupported("vtk-006", message).at(self.line_at)
    }

    /// Reads the points of cells: from version 5 on offsets and connectivity, before that a list with the number of
    /// points of each cell before its points.
    fn cells(&mut self, section: &str, words: &[String], piece: &mut Element) -> Result<()> {
        let (first, all) = (self.number::<u64>(words, 1)?, self.number::<u64>(words, 2)?);
        let count = if self.version < 5 {
            let cells = first;
            let links = all.checked_sub(cells);
            let links = links.ok_or_else(|| self.malformed("more cells than numbers"))?;
            let text = self.values(4, 8, all)?;
            for (name, count) in [("connectivity", links), ("offsets", cells)] {
                let format = if self.ascii { "ascii list" } else { "list" };
                let array = self.described(name, "Int64", (1, count), format, text)?;
                child(piece, section).children.push(array);
            }
            cells
        } else {
            for (name, count) in [("offsets", first), ("connectivity", all)] {
                let words = self.words()?;
                let kind = words.get(1).map_or("", String::as_str);
                let mut array = self.array(name, kind, 1, count)?;
                if name == "offsets" && first > 0 {
                    // In XML files the first offset, 0, is omitted.
                    self.skip_first(&mut array, kind)?;
                }
                child(piece, section).children.push(array);
            }
            first.saturating_sub(1)
        };
        piece.attrs.push((format!("NumberOf{section}"), count.to_string()));
        Ok(())
    }

    /// Removes the first number of an array.
    fn skip_first(&mut self, array: &mut Element, kind: &str) -> Result<()> {
        let count = array.number("NumberOfTuples", None)?.saturating_sub(1);
        if let Some((_, value)) = array.attrs.iter_mut().find(|(name, _)| name == "NumberOfTuples")
        {
            *value = count.to_string();
        }
        let Some(text) = &mut array.text else { return Ok(()) };
        let end = text.offset + text.len;
        let size = known_type(kind).map_or(0, |(_, size)| size);
        let after = self.scanner.at;
        self.scanner.at = text.offset;
        let first = if self.ascii { self.tokens(1)?.len } else { size };
        self.scanner.at = after;
        *text =
            Extent { offset: end.min(text.offset + first), len: text.len.saturating_sub(first) };
        Ok(())
    }

    /// Reads an array on points or cells.
    fn attribute(&mut self, keyword: &str, words: &[String], tuples: u64) -> Result<Element> {
        let name = words.get(1).map_or("", String::as_str);
        let kind = words.get(2).map_or("", String::as_str);
        let components = match keyword {
            "SCALARS" => {
                let components = if words.len() > 3 { self.number(words, 3)? } else { 1 };
                self.optional("LOOKUP_TABLE")?;
                components
            }
            "COLOR_SCALARS" => return self.colors(name, self.number(words, 2)?, tuples),
            "VECTORS" | "NORMALS" => 3,
            "TENSORS" => 9,
            "TENSORS6" => 6,
            "TEXTURE_COORDINATES" => {
                let kind = words.get(3).map_or("", String::as_str);
                return self.array(name, kind, self.number(words, 2)?, tuples);
            }
            "GLOBAL_IDS" | "PEDIGREE_IDS" | "EDGE_FLAGS" => 1,
            _ => return Err(self.unknown(keyword)),
        };
        self.array(name, kind, components, tuples)
    }

    /// Colors: bytes, in text files fractions of 255.
    fn colors(&mut self, name: &str, components: u64, tuples: u64) -> Result<Element> {
        let count = self.product(components, tuples)?;
        let text = self.values(1, 8, count)?;
        let format = if self.ascii { "ascii colors" } else { "raw" };
        self.described(name, "UInt8", (components, tuples), format, text)
    }

    /// An array whose values begin at the next line.
    fn array(&mut self, name: &str, kind: &str, components: u64, tuples: u64) -> Result<Element> {
        let count = self.product(components, tuples)?;
        let kind = kind.to_lowercase();
        if matches!(kind.as_str(), "string" | "utf8_string") {
            let text = self.strings(count)?;
            let format = if self.ascii { "ascii" } else { "" };
            return self.described(name, "String", (components, tuples), format, text);
        }
        let (xml, size, bits) = match known_type(&kind) {
            Some((xml, size)) => (xml, size, 8),
            None if kind == "bit" => ("UInt8", 1, 1),
            None => {
                let message = format!("data type \"{kind}\" is not supported");
                return Err(Error::unsupported("vtk-010", message).at(self.line_at));
            }
        };
        let text = self.values(size, bits, count)?;
        let format = match (self.ascii, bits) {
            (true, _) => "ascii numbers",
            (false, 8) => "raw",
            (false, _) => "bits",
        };
        self.described(name, xml, (components, tuples), format, text)
    }

    fn product(&self, components: u64, tuples: u64) -> Result<u64> {
        let count = components.checked_mul(tuples);
        count.ok_or_else(|| self.malformed("number of elements overflows"))
    }

    fn described(
        &mut self,
        name: &str,
        kind: &str,
        (components, tuples): (u64, u64),
        format: &str,
        text: Extent,
    ) -> Result<Element> {
        let (components, tuples) = (components.to_string(), tuples.to_string());
        let name = String::from_utf8_lossy(&decoded(name.as_bytes())).into_owned();
        let attrs = [
            ("type", kind),
            ("Name", &name),
            ("NumberOfComponents", &components),
            ("NumberOfTuples", &tuples),
            ("format", format),
        ];
        self.scanner.charge_element(attrs.len() as u64, name.len() as u64)?;
        Ok(Element { at: self.line_at, text: Some(text), ..element("DataArray", &attrs) })
    }

    /// Range of `count` numbers of `size` bytes, of which `bits` of 8 bits are stored; skips them.
    fn values(&mut self, size: u64, bits: u64, count: u64) -> Result<Extent> {
        if self.ascii {
            return self.tokens(count);
        }
        let bytes = count.checked_mul(size);
        let bytes = bytes.ok_or_else(|| self.malformed("number of elements overflows"))?;
        self.skip(if bits == 1 { bytes.div_ceil(8) } else { bytes })
    }

    /// Reads the metadata of an array up to a blank line: names of components, and keys, of which the unit is kept.
    fn metadata(&mut self, components: u64, array: Option<&mut Element>) -> Result<()> {
        let mut units = None;
        let mut is_unit = false;
        while let Some(line) = self.line()?.filter(|line| !line.trim().is_empty()) {
            if line.starts_with("COMPONENT_NAMES") {
                for _ in 0..components {
                    if self.line()?.is_none() {
                        break;
                    }
                }
            } else if line.starts_with("NAME ") {
                is_unit = line.starts_with("NAME UNITS_LABEL ");
            } else if is_unit && line.starts_with("DATA ") {
                let (at, len) = (self.line_at + 5, line.len() as u64 - 5);
                units = Some(Extent { offset: at, len });
            }
        }
        if let Some((array, text)) = array.zip(units) {
            self.scanner.charge_element(1, 16)?;
            let key = element("InformationKey", &[("name", "UNITS_LABEL")]);
            array.children.push(Element { at: self.line_at, text: Some(text), ..key });
        }
        Ok(())
    }
}

/// Name in XML files and size in bytes of a type.
fn known_type(kind: &str) -> Option<(&'static str, u64)> {
    let found = TYPES.iter().find(|(known, ..)| known.eq_ignore_ascii_case(kind));
    found.map(|(_, xml, size)| (*xml, *size))
}

/// A name or text with the bytes of `%20` and similar codes.
fn decoded(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = name;
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).filter(|_| *first == b'%');
        let code =
            code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        out.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[2..] } else { tail };
    }
    out
}
