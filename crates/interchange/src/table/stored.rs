//! Tables in files with metadata (Parquet, Arrow): what is kept, and the tree of the columns of a file.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use spile_core::Dataset;
use spile_core::dataset::is_per_frame;
use spile_core::dtype::{DType, Kind};
use spile_core::error::Result;
use spile_core::format::{Loss, LossKind};
use spile_core::frames::Moments;
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::limits::Limits;
use spile_core::metadata::{Cast, Metadata, StoredMetadata};
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::semantics::{Missing, Role};
use spile_core::shape::Order;
use spile_core::source::Source;
use spile_core::tree::{NodeId, Tree};

use super::{Content, FRAME_COLUMNS, Field, Table};
use crate::losses::{Kept, Losses};
use columns::{Frames, ends_with_index, entire, group, shape};

mod columns;

/// Key of the metadata of the tree.
const DESCRIPTION: &str = "spile";

/// Key of the number of frames.
const FRAMES: &str = "spile.frames";

/// Key of the arrays of columns that have other names: a JSON object from names of columns to names with path and index.
/// That of a column of coordinates, which is no array, is empty.
const COLUMNS: &str = "spile.columns";

/// Key of the frames without an array: a JSON object from paths to lists of frames.
const ABSENT: &str = "spile.absent";

/// Key of the steps and times of frames without rows: a JSON object from frames to pairs.
const EMPTY: &str = "spile.empty";

/// Key of the attributes that pandas shows as `DataFrame.attrs`.
const PANDAS: &str = "PANDAS_ATTRS";

/// Follows the name of a column that ends with an index and is an array by itself.
const EMPTY_INDEX: &str = "[]";

impl Field {
    /// The name of the column in the file: `stress[0,1]`.
    pub fn title(&self) -> String {
        title(&self.name, &self.index)
    }
}

/// Name and index as the name of a column. Names of the columns of frames begin with a slash, which keeps them apart.
fn title(path: &str, index: &[u64]) -> String {
    let slash = if FRAME_COLUMNS.contains(&path) { "/" } else { "" };
    if index.is_empty() {
        let end = if ends_with_index(path) { EMPTY_INDEX } else { "" };
        return format!("{slash}{path}{end}");
    }
    let index: Vec<String> = index.iter().map(ToString::to_string).collect();
    format!("{slash}{path}[{}]", index.join(","))
}

impl Table<'_> {
    /// The names of the columns in the file.
    pub fn titles(&self) -> Vec<String> {
        let title = |field: &Field| match field.content {
            Content::Array { .. } => field.title(),
            _ => field.name.clone(),
        };
        self.fields.iter().map(title).collect()
    }

    /// The array of an axis that reading restores from its column.
    fn restored(&self, axis: usize) -> Option<NodeId> {
        let tree = self.content.tree();
        let id = self.axes[axis].coord.node().filter(|_| !self.long)?;
        let array = tree.node(id).array.as_ref()?;
        (is_per_frame(tree, array) == self.frames().is_some()).then_some(id)
    }

    /// Everything that a file with metadata does not keep.
    pub fn stored_losses(&self, target: &str) -> Vec<Loss> {
        let mut losses = Losses::new(target);
        let (content, tree) = (self.content, self.content.tree());
        let restored: HashSet<NodeId> =
            (0..self.axes.len()).filter_map(|axis| self.restored(axis)).collect();
        let lost = |id: NodeId| self.left_out(id).filter(|_| !restored.contains(&id));
        let kept = Kept { scaling: false, ..Kept::ALL };
        losses.add(content, &kept, |id, _, _| lost(id).map_or(Ok(()), |reason| Err(reason.into())));
        // An array that is not written and has others below it is read as a group.
        let parents: HashSet<NodeId> = tree.iter().map(|(_, node)| node.parent).collect();
        let above = tree.arrays().filter(|(id, ..)| parents.contains(id) && lost(*id).is_some());
        for (_, node, _) in above {
            for (name, _) in &node.attrs {
                losses.push_loss(Loss::attribute(&node.path, name, "its array is not written"));
            }
        }
        let written = tree.arrays().filter(|(id, ..)| lost(*id).is_none());
        for (id, node, array) in written {
            let mut lose =
                |kind, reason: &str| losses.push_loss(Loss::new(&node.path, kind, reason));
            let column = self.arrays.iter().find(|column| column.id == id);
            if column.is_some_and(|column| column.count() == 0 && !self.long) {
                lose(LossKind::Array, "an array without elements has no columns");
                continue;
            }
            let meaning = array.semantics();
            if array.map.is_some() && !meaning.missing.is_none() {
                lose(LossKind::Meaning, "missing values are NaN among physical values");
            } else if meaning.mesh.is_some_and(|mesh| lost(mesh).is_some()) {
                lose(LossKind::Meaning, "its mesh is not written");
            }
            let mut without =
                array.coords.iter().filter_map(Coord::node).filter(|id| lost(*id).is_some());
            if let Some(first) = without.next() {
                let is_axis =
                    |id: NodeId| self.axes.iter().any(|axis| axis.coord.node() == Some(id));
                let reason = if is_axis(first) && without.all(is_axis) {
                    "they are columns of the table"
                } else {
                    "the array of the coordinates is not written"
                };
                lose(LossKind::Coordinates, reason);
            }
        }
        match (self.frames(), tree.frames()) {
            (Some(_), _) => losses.add_partial_moments(content),
            (None, Some(_)) => losses.push("", LossKind::Frames, "frames without arrays in them"),
            (None, None) => {}
        }
        self.with_renamed_axes(losses.into_vec())
    }

    /// Keys and values of the metadata of a file.
    pub fn stored_metadata(&self) -> Result<Vec<(String, String)>> {
        let mut pairs = vec![(DESCRIPTION.into(), self.metadata().text(self.content.limits())?)];
        let (mut names, mut units) = (Map::new(), Map::new());
        for (field, written) in self.fields.iter().zip(self.titles()) {
            let key = match field.content {
                Content::Frame | Content::Step | Content::Time => written.clone(),
                Content::Axis(k) => match self.restored(k) {
                    Some(id) => title(&self.content.tree().node(id).path, &[]),
                    None => String::new(),
                },
                Content::Array { array, element } => {
                    let column = &self.arrays[array];
                    let tail = if self.long { &[][..] } else { &column.tail };
                    title(&column.node.path, &crate::grid::unravel(element as u64, tail))
                }
            };
            if let Some(own) = &field.units {
                units.insert(written.clone(), json!(own));
            }
            if key != written {
                names.insert(written, json!(key));
            }
        }
        if let Some(frames) = self.frames() {
            pairs.push((FRAMES.into(), frames.to_string()));
            let mut absent = Map::new();
            for column in &self.arrays {
                let Some(table) =
                    self.content.tree().resolve(column.array)?.layout.frames().cloned()
                else {
                    continue;
                };
                let mut without = Vec::new();
                for frame in 0..frames {
                    if table.cell(frame)?.is_none() || table.is_inherited(frame)? {
                        without.push(frame);
                    }
                }
                if !without.is_empty() {
                    absent.insert(column.node.path.clone(), json!(without));
                }
            }
            pairs.push((ABSENT.into(), Value::Object(absent).to_string()));
            let mut empty = Map::new();
            for frame in self.empty_frames() {
                let axis = self.content.tree().frames();
                let step = axis.map_or(Ok(None), |axis| axis.step(frame))?;
                let time = axis.map_or(Ok(None), |axis| axis.time(frame))?;
                empty.insert(frame.to_string(), json!([step, time]));
            }
            if !empty.is_empty() {
                pairs.push((EMPTY.into(), Value::Object(empty).to_string()));
            }
        }
        for (key, map) in [(COLUMNS, Value::Object(names)), (PANDAS, json!({ "units": units }))] {
            if map != json!({}) && map != json!({ "units": {} }) {
                pairs.push((key.into(), map.to_string()));
            }
        }
        Ok(pairs)
    }

    /// The metadata of the tree. Scaled arrays are written as physical values, and have no scaling in the file.
    fn metadata(&self) -> Metadata {
        let mut physical = self.content.tree().clone();
        let mut casts = HashMap::new();
        for column in &self.arrays {
            let path = &column.node.path;
            if column.array.shape.rank() == 0 || self.long {
                casts.insert(path.clone(), Cast::new(&column.array.shape, Order::C));
            }
        }
        let arrays: Vec<NodeId> = physical.arrays().map(|(id, ..)| id).collect();
        for id in arrays {
            let dtype = physical
                .node(id)
                .array
                .as_ref()
                .and_then(|own| physical.resolve(own).ok().map(super::table_dtype));
            let Some(array) = physical.node_mut(id).array.as_mut() else { continue };
            array.dtype = dtype.unwrap_or(array.dtype);
            if array.map.take().is_some()
                && let Some(meaning) = &mut array.meaning
            {
                meaning.missing = Missing::default();
            }
        }
        let mut metadata = Metadata::of(&physical);
        metadata.set_casts(casts);
        metadata
    }
}

/// The element of a row without a value: NaN, zeros for bytes and strings. Integers of 64 bits have no NaN; their
/// smallest (unsigned: largest) number means missing.
pub fn missing_element(dtype: DType) -> Vec<u8> {
    match (dtype.kind(), dtype.size()) {
        (Kind::Float, 2) => 0x7e00_u16.to_le_bytes().to_vec(),
        (Kind::Float, 4) => f32::NAN.to_le_bytes().to_vec(),
        (Kind::Float, 8) => f64::NAN.to_le_bytes().to_vec(),
        (Kind::Int, 8) => i64::MIN.to_le_bytes().to_vec(),
        (Kind::UInt, 8) => u64::MAX.to_le_bytes().to_vec(),
        (_, size) => vec![0; size],
    }
}

/// The stored number that means missing in a column of 64-bit integers.
pub fn missing_number(dtype: DType) -> Option<f64> {
    match (dtype.kind(), dtype.size()) {
        (Kind::Int, 8) => Some(i64::MIN as f64),
        (Kind::UInt, 8) => Some(u64::MAX as f64),
        _ => None,
    }
}

/// A column of a file.
pub struct StoredColumn {
    /// Its name.
    pub name: String,
    /// One element per row.
    pub array: ArrayDesc,
    /// Attributes of the array.
    pub attrs: Vec<(&'static str, String)>,
}

/// The columns of a file, and the metadata of the table.
pub struct StoredTable {
    /// The columns.
    pub columns: Vec<StoredColumn>,
    /// Number of rows.
    pub rows: u64,
    /// Text of the metadata of the tree.
    metadata: Option<String>,
    frames: Option<u64>,
    names: Map<String, Value>,
    absent: Map<String, Value>,
    empty: Map<String, Value>,
}

impl StoredTable {
    /// A table without columns; `value_of` returns the value of a key of the file.
    pub fn new(
        rows: u64,
        limits: &Limits,
        value_of: impl Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let map = |key: &str| -> Result<Map<String, Value>> {
            let Some(text) = value_of(key) else { return Ok(Map::new()) };
            limits.allow(spile_core::metadata::json_memory(text.as_bytes()), "the metadata")?;
            Ok(serde_json::from_str(&text).unwrap_or_default())
        };
        Ok(Self {
            columns: Vec::new(),
            rows,
            metadata: value_of(DESCRIPTION),
            frames: value_of(FRAMES).and_then(|count| count.parse().ok()),
            names: map(COLUMNS)?,
            absent: map(ABSENT)?,
            empty: map(EMPTY)?,
        })
    }

    /// Whether rows without a value are those of frames without the array.
    pub fn has_frames(&self) -> bool {
        self.frames.is_some()
    }

    /// The tree of the columns, and the metadata to be applied to it.
    pub fn into_tree(
        mut self,
        source: &Source,
        limits: &Limits,
    ) -> Result<(Tree, Option<StoredMetadata>)> {
        let metadata = self.metadata.take().map(|text| StoredMetadata::new(text, DESCRIPTION));
        let names = std::mem::take(&mut self.names);
        for column in &mut self.columns {
            if let Some(key) = names.get(&column.name).and_then(Value::as_str) {
                column.name = key.into();
            }
        }
        self.columns.retain(|column| names.is_empty() || !column.name.is_empty());
        let mut tree = Tree::new(limits);
        let starts = match self.frames {
            Some(count) => self.find_frames(source, count, &mut tree)?,
            None => None,
        };
        let mut rest = &self.columns[..];
        while let Some(first) = rest.first() {
            let (path, tail, count) = group(rest);
            let (own, after) = rest.split_at(count);
            rest = after;
            // The columns of the frame axis are not arrays.
            if starts.is_some() && FRAME_COLUMNS.contains(&path.as_str()) {
                continue;
            }
            let path = path.trim_start_matches('/');
            let mut desc = match &starts {
                None => entire(own, &tail, self.rows)?,
                Some(starts) => {
                    tree.charge(32 * starts.len() as u64, "the frames")?;
                    self.in_frames(own, &tail, path, starts.clone())
                }
            };
            let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
            let parent = tree.node_at(above)?;
            desc.semantics_mut().role = Role::Table;
            let id = tree.add_array(parent, name, desc)?;
            for (name, value) in &first.attrs {
                tree.push_attr(id, name, value.as_str())?;
            }
        }
        Ok((tree, metadata))
    }

    /// Rows before each frame, then the total, from the first column; `None` if it does not number `count` frames. Sets
    /// the frames of the tree.
    fn find_frames(
        &self,
        source: &Source,
        count: u64,
        tree: &mut Tree,
    ) -> Result<Option<Arc<[u64]>>> {
        let is = |column: &&StoredColumn, k: usize, dtype: DType| {
            column.name == FRAME_COLUMNS[k] && column.array.dtype == dtype
        };
        let Some(first) = self.columns.first().filter(|first| is(first, 0, DType::I64)) else {
            return Ok(None);
        };
        let content = Dataset::new(source.clone(), Tree::new(tree.limits()));
        let numbers = |column: &StoredColumn| -> Result<Vec<[u8; 8]>> {
            let array = content.open_array(&column.array)?;
            Ok(array.read_bytes(&Selection::all(), Axes::Stored)?.as_chunks::<8>().0.to_vec())
        };
        // Starts, steps and times.
        tree.charge(count.saturating_mul(40), "the frames")?;
        let mut starts = Vec::new();
        for (row, number) in numbers(first)?.into_iter().enumerate() {
            let number = u64::from_le_bytes(number);
            if number >= count || number.saturating_add(1) < starts.len() as u64 {
                return Ok(None);
            }
            // Frames without rows are before this one.
            starts.resize(starts.len().max(number as usize + 1), row as u64);
        }
        if starts.len() as u64 != count && self.empty.is_empty() {
            return Ok(None);
        }
        starts.resize(count as usize, self.rows);
        let mut moments = vec![(None, None); starts.len()];
        for column in self.columns.iter().skip(1).take(2) {
            let is_step = is(&column, 1, DType::U64);
            if !is_step && !is(&column, 2, DType::F64) {
                continue;
            }
            let all = numbers(column)?;
            for (moment, row) in moments.iter_mut().zip(&starts) {
                let Some(value) = all.get(*row as usize) else { continue };
                if is_step {
                    moment.0 = Some(u64::from_le_bytes(*value));
                } else {
                    moment.1 = Some(f64::from_le_bytes(*value));
                }
            }
        }
        for (frame, values) in &self.empty {
            let moment = frame.parse().ok().and_then(|frame: usize| moments.get_mut(frame));
            if let Some(moment) = moment {
                let value = |k: usize| values.get(k).cloned().unwrap_or_default();
                *moment = (value(0).as_u64(), value(1).as_f64());
            }
        }
        starts.push(self.rows);
        tree.set_frames(Arc::new(Moments(moments)));
        Ok(Some(starts.into()))
    }

    fn in_frames(
        &self,
        own: &[StoredColumn],
        tail: &[u64],
        path: &str,
        starts: Arc<[u64]>,
    ) -> ArrayDesc {
        let absent = self.absent.get(path).and_then(Value::as_array);
        let absent: HashSet<u64> = absent.into_iter().flatten().filter_map(Value::as_u64).collect();
        let columns: Vec<ArrayDesc> = own.iter().map(|column| column.array.clone()).collect();
        let first = (0..starts.len() as u64 - 1).find(|frame| !absent.contains(frame));
        let rows = first.map_or(0, |k| starts[k as usize + 1] - starts[k as usize]);
        let frames = Frames { columns, tail: tail.to_vec(), starts, absent };
        let (shape, dtype) = (shape(rows, tail), own[0].array.dtype);
        ArrayDesc::new(dtype, shape, Layout::PerFrame(Arc::new(frames)))
    }
}
