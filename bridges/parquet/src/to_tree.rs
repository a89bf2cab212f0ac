//! Columns as a tree. Plain pages are read in place.

use std::sync::Arc;

use spile_core::Dataset;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::{Native, Object, OpenOptions, Parsed, Region, RegionKind};
use spile_core::frames::{FrameCell, FrameTable, Moments};
use spile_core::layout::{ArrayDesc, Codec, Extent, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::metadata::StoredMetadata;
use spile_core::read::Axes;
use spile_core::report::{Finding, Report};
use spile_core::select::Selection;
use spile_core::semantics::Role;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{Attrs, Tree};

use crate::read::{Footer, Leaf, missing, read_columns, value_of};
use crate::stored::Stored;
use crate::types::missing_number;
use crate::wire;
use crate::write::{COORDINATES, DESCRIPTION, FRAMES, RESERVED};

/// Follows the name of a column that ends with an index and is an array by itself.
pub(crate) const EMPTY_INDEX: &str = "[]";

/// Content of a file, without the values.
pub(crate) struct File {
    pub(crate) columns: Columns,
    tree: Tree,
    creator: String,
    pub(crate) warnings: Vec<Finding>,
    metadata: Option<StoredMetadata>,
}

/// The leaf columns of a file.
pub(crate) struct Columns {
    pub(crate) leaves: Vec<Leaf>,
    rows: u64,
    /// Offset of the footer.
    footer: u64,
}

impl File {
    pub(crate) fn read(source: &Source, limits: &Limits) -> Result<Self> {
        let (footer, start) = wire::read_footer(source, limits)?;
        let rows = footer.size(3).ok_or_else(|| missing("number of rows", start))?;
        let mut report = Report::default();
        let framed = value_of(&footer, FRAMES).is_some();
        let columns = Footer { content: &footer, start, rows, framed };
        let leaves = read_columns(source, &columns, limits, &mut report)?;
        // The stored metadata have the coordinates of the rows.
        let names = value_of(&footer, COORDINATES).unwrap_or_default();
        let is_coordinate = |leaf: &&Leaf| names.lines().any(|name| name == leaf.name);
        let arrays = &leaves[leaves.iter().take_while(is_coordinate).count()..];
        let mut plain = Plain { leaves: arrays, rows, frames: None, tree: Tree::new(limits) };
        if let Some(count) = value_of(&footer, FRAMES).and_then(|count| count.parse().ok()) {
            plain.frames(source, count)?;
        }
        let tree = plain.arrays(&mut report)?;
        let metadata = value_of(&footer, DESCRIPTION);
        let metadata = metadata.map(|text| StoredMetadata::new(text, DESCRIPTION).at(start));
        let (creator, warnings) = (footer.text(6).unwrap_or_default(), report.findings);
        let columns = Columns { leaves, rows, footer: start };
        Ok(Self { columns, tree, creator, warnings, metadata })
    }
}

/// Reads the metadata and the tree of the columns.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let File { columns, tree, creator, warnings, metadata } = File::read(&source, &options.limits)?;
    let summary = Attrs::from([
        ("rows", columns.rows.into()),
        ("columns", (columns.leaves.len() as u64).into()),
        ("written by", creator.into()),
    ]);
    let parsed = Parsed::new(source, tree).with_summary(summary).with_warnings(warnings);
    Ok(parsed.with_metadata(metadata).with_native(columns))
}

/// The tree without the stored metadata.
struct Plain<'a> {
    leaves: &'a [Leaf],
    rows: u64,
    /// Number of rows before each frame, then the total.
    frames: Option<Vec<u64>>,
    tree: Tree,
}

impl Plain<'_> {
    /// Finds the frames from the first column. Without effect if it does not number `count` frames.
    fn frames(&mut self, source: &Source, count: u64) -> Result<()> {
        let Some(first) = self.leaves.first() else { return Ok(()) };
        if first.name != RESERVED[0] || first.dtype != DType::I64 || !first.is_full() {
            return Ok(());
        }
        let content = Dataset::new(source.clone(), Tree::new(self.tree.limits()));
        let numbers = |leaf: &Leaf| -> Result<Vec<[u8; 8]>> {
            let desc = describe(&[leaf], &[], self.rows)?;
            let bytes = content.open_array(&desc)?.read_bytes(&Selection::all(), Axes::Stored)?;
            Ok(bytes.as_chunks::<8>().0.to_vec())
        };
        // Starts, steps and times.
        self.tree.charge(count.min(self.rows).saturating_mul(40), "the frames")?;
        let mut starts = Vec::new();
        for (row, number) in numbers(first)?.into_iter().enumerate() {
            let number = u64::from_le_bytes(number);
            if number == starts.len() as u64 && number < count {
                starts.push(row as u64);
            } else if number.wrapping_add(1) != starts.len() as u64 {
                return Ok(());
            }
        }
        if starts.len() as u64 != count {
            return Ok(());
        }
        let mut moments = vec![(None, None); starts.len()];
        for leaf in self.leaves.iter().skip(1).take(2).filter(|leaf| leaf.is_full()) {
            let step = leaf.name == RESERVED[1] && leaf.dtype == DType::U64;
            if !step && (leaf.name != RESERVED[2] || leaf.dtype != DType::F64) {
                continue;
            }
            let all = numbers(leaf)?;
            for (moment, row) in moments.iter_mut().zip(&starts) {
                let Some(value) = all.get(*row as usize) else { continue };
                if step {
                    moment.0 = Some(u64::from_le_bytes(*value));
                } else {
                    moment.1 = Some(f64::from_le_bytes(*value));
                }
            }
        }
        starts.push(self.rows);
        self.tree.set_frames(Arc::new(Moments(moments)));
        self.frames = Some(starts);
        Ok(())
    }

    fn arrays(mut self, report: &mut Report) -> Result<Tree> {
        let mut rest = self.leaves;
        while let Some(first) = rest.first() {
            let (mut path, mut tail, mut count) = group(rest);
            // Columns that are stored differently are separate arrays.
            let alike = |leaf: &Leaf| leaf.runs == first.runs && leaf.encoded == first.encoded;
            if !rest[..count].iter().all(alike) {
                (path, tail, count) = (first.name.clone(), Vec::new(), 1);
            }
            let (own, after) = rest.split_at(count);
            rest = after;
            // The columns of the frame axis are not arrays.
            if self.frames.is_some() && RESERVED.contains(&path.as_str()) {
                continue;
            }
            let desc = match &self.frames {
                None if first.is_full() => {
                    Some(describe(&own.iter().collect::<Vec<_>>(), &tail, self.rows)?)
                }
                Some(starts) => {
                    self.tree.charge(32 * starts.len() as u64, "the frames")?;
                    framed(own, &tail, starts)?
                }
                None => None,
            };
            let Some(mut desc) = desc else {
                let message = format!("missing values in a column of {}", first.dtype);
                let error = Error::unsupported("parquet-021", message);
                report.absorb(error.in_object(format!("\"{path}\"")))?;
                continue;
            };
            let path = path.trim_start_matches('/');
            let (group, name) = path.rsplit_once('/').unwrap_or(("", path));
            let parent = self.tree.node_at(group)?;
            desc.semantics_mut().role = Role::Table;
            let id = self.tree.add_array(parent, name, desc)?;
            for (name, value) in &first.attrs {
                self.tree.push_attr(id, name, value.as_str())?;
            }
        }
        Ok(self.tree)
    }
}

/// The array that begins with the first of these columns: its path, the lengths of the dimensions after the
/// first, and its number of columns. The first index varies fastest.
fn group(leaves: &[Leaf]) -> (String, Vec<u64>, usize) {
    let first = &leaves[0];
    if let Some(path) = first.name.strip_suffix(EMPTY_INDEX).filter(|path| ends_with_index(path)) {
        return (path.into(), Vec::new(), 1);
    }
    let Some((path, index)) = indexed(&first.name) else {
        return (first.name.clone(), Vec::new(), 1);
    };
    let others = leaves.iter().map_while(|leaf| {
        let (own, index) = indexed(&leaf.name)?;
        (own == path && leaf.dtype == first.dtype).then_some(index)
    });
    let all: Vec<Vec<u64>> = others.take_while(|own| own.len() == index.len()).collect();
    let tail: Vec<u64> =
        all.last().map_or(&[][..], |last| last).iter().map(|n| n.saturating_add(1)).collect();
    let in_order = |(k, own): (usize, &Vec<u64>)| {
        let mut rest = k as u64;
        let digits = tail.iter().map(|len| {
            let digit = rest % len;
            rest /= len;
            digit
        });
        digits.eq(own.iter().copied())
    };
    let product = tail.iter().try_fold(1_u64, |n, len| n.checked_mul(*len));
    if product == Some(all.len() as u64) && all.iter().enumerate().all(in_order) {
        return (path.into(), tail, all.len());
    }
    (first.name.clone(), Vec::new(), 1)
}

/// Splits `velocity[2,0]` into name and index; `None` if there is no index.
fn indexed(name: &str) -> Option<(&str, Vec<u64>)> {
    let (path, index) = name.strip_suffix(']')?.rsplit_once('[')?;
    let index: Option<Vec<u64>> = index.split(',').map(|n| n.parse().ok()).collect();
    Some((path, index?))
}

/// Whether a name ends with an index, which may be followed by empty ones.
pub(crate) fn ends_with_index(name: &str) -> bool {
    indexed(name.trim_end_matches(EMPTY_INDEX)).is_some()
}

/// The array of columns without frames.
fn describe(own: &[&Leaf], tail: &[u64], rows: u64) -> Result<ArrayDesc> {
    let shape = Shape::new(std::iter::once(rows).chain(tail.iter().copied()).collect::<Vec<_>>());
    let (dtype, stored) = (own[0].dtype, own[0].stored);
    let pages = own.iter().flat_map(|leaf| &leaf.pages);
    let order = if own.len() == 1 { Order::C } else { Order::F };
    let codec: Option<Arc<dyn Codec>> = match &own[0].encoded {
        Some(encoded) => Some(Arc::new(encoded.clone())),
        None => codec(dtype, stored),
    };
    let layout = layout(pages, dtype, codec, order)?;
    let mut desc = ArrayDesc::new(dtype, shape, layout);
    desc.map = own[0].map;
    if let Some(number) = missing_number(dtype).filter(|_| own[0].gaps) {
        desc.semantics_mut().missing.values.push(number);
    }
    Ok(desc)
}

/// The layout of consecutive pages.
fn layout<'a>(
    pages: impl Iterator<Item = &'a (Extent, u64)>,
    dtype: DType,
    codec: Option<Arc<dyn Codec>>,
    order: Order,
) -> Result<Layout> {
    let (mut extents, mut starts, mut decoded) = (Vec::new(), vec![0], vec![0]);
    let (mut before, mut elements) = (0_u64, 0_u64);
    for (bytes, count) in pages {
        extents.push(*bytes);
        before = before.saturating_add(bytes.len);
        elements = elements.saturating_add(*count);
        starts.push(before);
        decoded.push(elements.saturating_mul(dtype.size() as u64));
    }
    let data = Extents::several(extents)?;
    Ok(match codec {
        None => Layout::Plain { extents: data, order },
        Some(codec) => {
            Layout::Encoded { starts: starts.into(), decoded: decoded.into(), data, codec, order }
        }
    })
}

/// Codec of plain pages; `None` if elements are stored as in memory.
fn codec(dtype: DType, stored: Stored) -> Option<Arc<dyn Codec>> {
    (stored != Stored::Plain).then(|| Arc::new(Page { dtype, stored }) as Arc<dyn Codec>)
}

/// The array of columns with frames; `None` if a frame has both rows with and without a value.
fn framed(own: &[Leaf], tail: &[u64], starts: &[u64]) -> Result<Option<ArrayDesc>> {
    let (dtype, stored) = (own[0].dtype, own[0].stored);
    if !matches!(stored, Stored::Plain | Stored::Wide) || own.iter().any(|l| l.encoded.is_some()) {
        return Ok(None);
    }
    let mut runs = own[0].runs.iter().copied();
    let (mut left, mut defined) = runs.next().unwrap_or((0, false));
    let mut values = 0_u64;
    let mut frames = Vec::new();
    for window in starts.windows(2) {
        let rows = window[1] - window[0];
        if left == 0 {
            (left, defined) = runs.next().unwrap_or((0, false));
        }
        if left < rows {
            return Ok(None);
        }
        left -= rows;
        frames.push(defined.then_some((values, rows)));
        values += if defined { rows } else { 0 };
    }
    let first = frames.iter().flatten().next().map_or(0, |(_, rows)| *rows);
    let columns = own.iter().map(Leaf::extents).collect::<Result<Vec<_>>>()?;
    let cells = Cells { columns, frames, tail: tail.to_vec(), dtype, stored };
    let shape = cells.shape(first);
    Ok(Some(ArrayDesc::new(dtype, shape, Layout::PerFrame(Arc::new(cells)))))
}

struct Cells {
    columns: Vec<Extents>,
    /// Number of values before each frame and its number of rows; `None` if the frame has no values.
    frames: Vec<Option<(u64, u64)>>,
    tail: Vec<u64>,
    dtype: DType,
    stored: Stored,
}

impl Cells {
    fn shape(&self, rows: u64) -> Shape {
        Shape::new(std::iter::once(rows).chain(self.tail.iter().copied()).collect::<Vec<_>>())
    }
}

impl FrameTable for Cells {
    fn len(&self) -> u64 {
        self.frames.len() as u64
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let Some((first, rows)) = self.frames.get(frame as usize).copied().flatten() else {
            return Ok(None);
        };
        let size = self.stored.width(self.dtype).unwrap_or(1) as u64;
        let parts = self.columns.iter().flat_map(|column| column.pieces(first * size, rows * size));
        let parts: Vec<(Extent, u64)> =
            parts.filter(|part| part.len > 0).map(|part| (part, part.len / size)).collect();
        let order = if self.columns.len() == 1 { Order::C } else { Order::F };
        let codec = codec(self.dtype, self.stored);
        let layout = layout(parts.iter(), self.dtype, codec, order)?;
        Ok(Some(FrameCell { shape: self.shape(rows), layout }))
    }
}

/// Codec of plain pages.
struct Page {
    dtype: DType,
    stored: Stored,
}

impl Codec for Page {
    fn name(&self) -> &'static str {
        "page"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        self.stored.decode(self.dtype, stored, out)
    }
}

impl Native for Columns {
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut all = vec![(0, 4, RegionKind::Header, "magic")];
        for leaf in &self.leaves {
            let chunks = leaf.chunks.iter();
            all.extend(
                chunks.map(|c| (c.offset, c.offset + c.len, RegionKind::Data, &leaf.name[..])),
            );
        }
        all.push((self.footer, dataset.source().len(), RegionKind::Header, "metadata"));
        all.sort_by_key(|(offset, ..)| *offset);
        let mut at = 0;
        for region in all {
            let (offset, end, ..) = region;
            if offset < at || end <= offset {
                continue;
            }
            for (offset, end, kind, name) in [(at, offset, RegionKind::Unknown, "not read"), region]
            {
                if end > offset {
                    let (len, name, value) = (end - offset, name.into(), String::new());
                    each(Region { offset, len, kind, name, value })?;
                }
            }
            at = end;
        }
        Ok(())
    }

    fn objects(&self, _: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for leaf in self.leaves.iter().filter(|leaf| leaf.is_full()) {
            let kind = match leaf.dtype.kind() {
                Kind::Text => "text".into(),
                _ => leaf.dtype.to_string(),
            };
            let array = describe(&[leaf], &[], self.rows)?;
            each(Object { path: leaf.name.clone(), id: None, frame: None, kind, array })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parquet;
    use crate::thrift::{self, Struct, Value as Field};
    use crate::wire::{MAGIC, page_header};
    use spile_core::error::ErrorKind;
    use spile_core::format::Checker as _;

    /// A file with three rows: `x` and `y` of float64 around columns that cannot be read.
    fn file() -> Vec<u8> {
        let element = |name: &str| Struct::default().with(3, Field::Short(0)).with(4, name.into());
        let leaf = |name: &str, physical: i32, converted: Option<i32>| {
            let own = Struct::default().with(1, Field::Short(physical));
            let own = own.with(3, Field::Short(0)).with(4, name.into());
            converted.map_or(own.clone(), |converted| own.with(6, Field::Short(converted)))
        };
        let repeated = Struct::default().with(1, Field::Short(1)).with(3, Field::Short(2));
        let schema = [
            Struct::default().with(4, "schema".into()).with(5, Field::Short(7)),
            leaf("x", 5, None),
            leaf("span", 7, Some(21)),
            element("list").with(5, Field::Short(2)).with(6, Field::Short(3)),
            leaf("a", 5, None),
            element("b").with(5, Field::Short(1)),
            leaf("c", 5, None),
            leaf("price", 6, Some(5)),
            repeated.with(4, "tags".into()),
            leaf("cut", 5, None),
            leaf("y", 5, None),
        ];
        let mut bytes = MAGIC.to_vec();
        let mut chunks = Vec::new();
        for k in 0..8 {
            let (offset, rows) = (bytes.len() as i64, if k == 6 { 2 } else { 3 });
            bytes.extend(page_header(3, 24).unwrap());
            bytes.extend((0..3).flat_map(|row| f64::from(10 * k + row).to_le_bytes()));
            let size = bytes.len() as i64 - offset;
            let meta = Struct::default()
                .with(4, Field::Short(0))
                .with(5, Field::Int(rows))
                .with(7, Field::Int(size))
                .with(9, Field::Int(offset));
            let chunk = Struct::default().with(3, Field::Struct(meta));
            chunks.push(Field::Struct(chunk));
        }
        let group = Struct::default().with(1, Field::List(chunks));
        let footer = Struct::default()
            .with(2, Field::List(schema.map(Field::Struct).to_vec()))
            .with(3, Field::Int(3))
            .with(4, Field::List(vec![Field::Struct(group)]));
        let start = bytes.len();
        thrift::write(&footer, &mut bytes);
        bytes.extend(((bytes.len() - start) as u32).to_le_bytes());
        bytes.extend(MAGIC);
        bytes
    }

    #[test]
    fn a_column_that_cannot_be_read_is_reported_and_hides_no_other() {
        let source = Source::memory(file());
        let file = Dataset::open(&Parquet, source.clone(), &OpenOptions::default()).unwrap();
        let found = |findings: &[Finding]| -> Vec<(String, &str, &str)> {
            let found = findings.iter();
            found
                .map(|f| (f.object.clone().unwrap_or_default(), f.severity.name(), f.code))
                .collect()
        };
        let expected = |severity: &'static str| {
            let names = ["\"span\"", "\"list\"", "\"price\"", "\"tags\""];
            let mut all = names.map(|name| (name.to_string(), severity, "parquet-020")).to_vec();
            all.push(("\"cut\"".to_string(), "error", "parquet-005"));
            all
        };
        assert_eq!(found(file.warnings()), expected("error"));
        assert_eq!(file.warnings()[0].message, "type INTERVAL is not supported");
        assert_eq!(file.warnings()[1].message, "columns of lists are not supported");
        // The columns that are not supported are valid.
        let report = Parquet.check(&source, &Limits::default(), false).unwrap();
        assert_eq!(found(&report.findings), expected("warning"));
        let paths: Vec<_> = file.arrays().map(|(_, node, _)| node.path.as_str()).collect();
        assert_eq!(paths, ["x", "y"]);
        assert_eq!(file.array("y").unwrap().read::<Vec<f64>>(":").unwrap(), [70.0, 71.0, 72.0]);
    }

    #[test]
    fn columns_are_charged_to_the_memory_budget() {
        let limits = Limits::default().with_memory(30 << 10);
        assert!(File::read(&Source::memory(file()), &limits).is_ok());
        let small = limits.with_memory(7 << 10);
        let error = File::read(&Source::memory(file()), &small).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Limit);
    }
}
