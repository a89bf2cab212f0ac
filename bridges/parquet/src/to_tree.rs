//! Columns as a tree. Plain pages are read in place.

use std::sync::Arc;

use spile_core::Dataset;
use spile_core::dtype::{DType, Kind};
use spile_core::error::Result;
use spile_core::format::{Native, Object, OpenOptions, Parsed, Region, RegionKind};
use spile_core::layout::{ArrayDesc, Codec, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::metadata::StoredMetadata;
use spile_core::report::{Finding, Report};
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{Attrs, Tree};
use spile_interchange::arrow;
use spile_interchange::table::{StoredColumn, StoredTable, missing_number};

use crate::read::{Footer, Leaf, missing, read_columns, value_of};
use crate::stored::Stored;
use crate::wire;

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
        let mut table = StoredTable::new(rows, limits, |key| value_of(&footer, key))?;
        let columns = Footer { content: &footer, start, rows, framed: table.has_frames() };
        let leaves = read_columns(source, &columns, limits, &mut report)?;
        // Parquet has no units of numbers and no durations.
        let schema = value_of(&footer, wire::ARROW_SCHEMA);
        let schema = schema.and_then(|text| base64_simd::STANDARD.decode_to_vec(text).ok());
        let units = arrow::read_units(&schema.unwrap_or_default(), limits)?;
        for leaf in &leaves {
            let (name, mut attrs) = (leaf.name.clone(), leaf.attrs.clone());
            if let Some(Some(units)) = units.get(&name).filter(|_| attrs.is_empty()) {
                attrs.push(("units", units.clone()));
            }
            table.columns.push(StoredColumn { name, array: describe(leaf, rows)?, attrs });
        }
        let (tree, metadata) = table.into_tree(source, limits)?;
        let metadata = metadata.map(|metadata| metadata.at(start));
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

/// The array of a column. Plain pages without conversion are read in place.
fn describe(leaf: &Leaf, rows: u64) -> Result<ArrayDesc> {
    let (dtype, stored) = (leaf.dtype, leaf.stored);
    let codec: Option<Arc<dyn Codec>> = match &leaf.encoded {
        Some(encoded) => Some(Arc::new(encoded.clone())),
        None if stored == Stored::Plain => None,
        None => Some(Arc::new(Page { dtype, stored })),
    };
    let (mut extents, mut starts, mut decoded) = (Vec::new(), vec![0], vec![0]);
    let (mut before, mut elements) = (0_u64, 0_u64);
    for (bytes, count) in &leaf.pages {
        extents.push(*bytes);
        before = before.saturating_add(bytes.len);
        elements = elements.saturating_add(*count);
        starts.push(before);
        decoded.push(elements.saturating_mul(dtype.size() as u64));
    }
    let (data, order) = (Extents::several(extents)?, Order::C);
    let layout = match codec {
        None => Layout::Plain { extents: data, order },
        Some(codec) => {
            Layout::Encoded { starts: starts.into(), decoded: decoded.into(), data, codec, order }
        }
    };
    let mut desc = ArrayDesc::new(dtype, Shape::new([rows]), layout);
    desc.map = leaf.map;
    if let Some(number) = missing_number(dtype).filter(|_| leaf.gaps) {
        desc.semantics_mut().missing.values.push(number);
    }
    Ok(desc)
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
            let array = describe(leaf, self.rows)?;
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
            bytes.extend(page_header(3, 24, 24).unwrap());
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
