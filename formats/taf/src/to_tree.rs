//! TAF file to `Tree`: the array `data` and the comments.

use spile_core::format::{Native, Object, Region, RegionKind};
use spile_core::metadata::StoredMetadata;
use spile_core::{
    ArrayDesc, Attrs, Coord, DType, Dataset, Extents, Layout, OpenOptions, Order, Parsed, ROOT,
    Result, Role, Semantics, Shape, Source, Tree, Value,
};

use crate::metadata;
use crate::read::File;
use crate::wire::{Dimension, HEADER_OFFSET, Header, dimension_offset, type_name};

/// Name of the array in the tree.
pub(crate) const DATA: &str = "data";

/// Name of the root attribute with the comments, or of the byte array if they are long.
pub(crate) const COMMENTS: &str = "comments";

/// Longest comments in bytes that are stored as an attribute. Longer ones, for example left by an
/// interrupted append, are a byte array that is read on demand.
pub(crate) const MAX_COMMENT_ATTRIBUTE: u64 = 1 << 20;

/// Opens the file in `source`.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let file = File::from_source(source.clone(), &options.limits)?;
    let mut tree = Tree::new(&options.limits);
    tree.add_array(ROOT, DATA, array_desc(file.header()))?;
    let stored = add_comments(&file, &mut tree)?;
    let summary = summary(&file, &tree);
    let parsed = Parsed::new(source, tree).with_summary(summary).with_warnings(file.warnings());
    Ok(parsed.with_metadata(stored).with_native(file))
}

/// Adds the comments as an attribute, or as an array if they are long. Returns the metadata line.
fn add_comments(file: &File, tree: &mut Tree) -> Result<Option<StoredMetadata>> {
    let (offset, len) = file.comment_range();
    if len == 0 {
        return Ok(None);
    }
    if len > MAX_COMMENT_ATTRIBUTE {
        let layout = Layout::contiguous(offset, len, Order::C);
        let desc = ArrayDesc::new(DType::U8, Shape::new([len]), layout);
        tree.add_array(ROOT, COMMENTS, desc.with_semantics(Semantics::role(Role::Text)))?;
        return Ok(None);
    }
    let text = match String::from_utf8(file.comments()?) {
        Ok(text) => text,
        Err(error) => {
            tree.push_attr(ROOT, COMMENTS, Value::Bytes(error.into_bytes()))?;
            return Ok(None);
        }
    };
    let (comments, json) = metadata::split(&text);
    if !comments.is_empty() {
        tree.push_attr(ROOT, COMMENTS, comments)?;
    }
    Ok(json.map(|json| {
        let stored = StoredMetadata::new(json, "comments").at(offset);
        let if_ignored = Attrs::from([(COMMENTS, text.as_str().into())]);
        StoredMetadata { native_grid: true, if_ignored, ..stored }
    }))
}

fn summary(file: &File, tree: &Tree) -> Attrs {
    let header = file.header();
    let mut rows = Attrs::from([
        ("version", format!("{}.{}", header.version.0, header.version.1).into()),
        ("type code", u64::from(header.type_code).into()),
        ("stored as", type_name(header.dtype).into()),
        ("shape", header.shape().to_string().into()),
    ]);
    if let Some(map) = header.map() {
        rows.push("intercept", map.intercept);
        rows.push("slope", map.slope);
    }
    for (k, d) in header.dimensions.iter().enumerate() {
        let end = match d.length {
            0 => String::new(),
            n => format!(", end {}", Value::Float(d.grid_value(n - 1))),
        };
        let text = format!("start {}, step {}{end}", Value::Float(d.start), Value::Float(d.step));
        rows.push(format!("grid {}", k + 1), text);
    }
    let (offset, len) = file.comment_range();
    rows.push("array at byte", header.data_offset());
    rows.push("comments at byte", offset);
    rows.push("comment bytes", len);
    // Long comments are an array, not an attribute, and are not shown.
    rows.extend(tree.attrs().get(COMMENTS).map(|comments| (COMMENTS, comments.clone())));
    rows
}

impl Native for File {
    fn regions(&self, _: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let header = self.header();
        let float = |x: f64| Value::Float(x).to_string();
        let magic = format!(
            "version {}.{}, type code {}",
            header.version.0, header.version.1, header.type_code
        );
        let header_field = |offset: u64, name: &str, value: String| {
            Region::new(offset, 8, RegionKind::Header, name, value)
        };
        each(header_field(0, "magic", magic))?;
        each(Region::new(8, HEADER_OFFSET - 8, RegionKind::Text, "synopsis", ""))?;
        each(header_field(HEADER_OFFSET, "element type", type_name(header.dtype).into()))?;
        each(header_field(HEADER_OFFSET + 8, "intercept", float(header.intercept)))?;
        each(header_field(HEADER_OFFSET + 16, "slope", float(header.slope)))?;
        let rank = header.dimensions.len();
        each(header_field(HEADER_OFFSET + 24, "dimensions", rank.to_string()))?;
        for (k, d) in header.dimensions.iter().enumerate() {
            let at = dimension_offset(k);
            let name = |field: &str| format!("dimension {} {field}", k + 1);
            each(header_field(at, &name("length"), d.length.to_string()))?;
            each(header_field(at + 8, &name("grid start"), float(d.start)))?;
            each(header_field(at + 16, &name("grid step"), float(d.step)))?;
        }
        let (start, (offset, len)) = (header.data_offset(), self.comment_range());
        let value = format!("{} {}", header.shape(), type_name(header.dtype));
        each(Region::new(start, offset - start, RegionKind::Data, "array", value))?;
        if len > 0 {
            each(Region::new(offset, len, RegionKind::Text, "comments", ""))?;
        }
        Ok(())
    }

    fn objects(&self, _: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        each(Object::new(DATA, type_name(self.header().dtype), array_desc(self.header())))
    }
}

/// Descriptor of the array: element type, shape, location, grids and map of the header.
pub(crate) fn array_desc(header: &Header) -> ArrayDesc {
    let offset = header.data_offset();
    let extents = Extents::one(offset, header.comment_offset() - offset);
    let layout = Layout::Plain { extents, order: Order::F };
    let mut desc = ArrayDesc::new(header.dtype, header.shape(), layout);
    let grid = |d: &Dimension| Coord::Uniform { start: d.start, step: d.step };
    desc.coords = header.dimensions.iter().map(grid).collect();
    desc.map = header.map();
    desc.with_semantics(Semantics::role(Role::Trace))
}
