//! Writes any dataset as GSD: every array becomes a chunk under its path.

mod losses;

use std::io::Write as _;
use std::path::Path;

use spile_core::format::{Capabilities, FormatWriter, Loss, WriteOptions};
use spile_core::{
    Array, ArrayDesc, Attrs, DType, Dataset, Error, FrameAxis, FrameCell, FrameTable, Kind, Layout,
    Node, NodeId, Order, Result, Role, Shape, Sink, convert,
};

use crate::Gsd;
use crate::names::Names;
use crate::read::{HOOMD, STEP};
use crate::semantics::missing_value;
use crate::to_tree::CELL;
use crate::wire::{About, TYPES, Type};
use crate::write::{SequentialWriter, check_chunk, check_names};
use losses::losses;

/// Prefix of the logged quantities of the HOOMD schema.
const LOG: &str = "log/";

/// An array and the chunks it becomes.
struct Column<'a> {
    id: NodeId,
    node: &'a Node,
    /// Id of the chunk name; none for the computed cell vectors, which are not written.
    name: Option<u32>,
    /// The array itself, and the one that has its values.
    own: &'a ArrayDesc,
    desc: &'a ArrayDesc,
    kind: Type,
    /// Columns for each element.
    width: u64,
    /// Number of chunks.
    chunks: u64,
    /// The next frame that may have the array.
    next: u64,
    /// A chunk has another number of columns than 1.
    columns: bool,
    /// Smallest and largest number of dimensions of a frame.
    ranks: (usize, usize),
    /// Rows and columns in frame 0 of a logged quantity: readers take it from there where a frame lacks it.
    first: Option<(u64, u64)>,
    /// A frame lacks the quantity, and its type has no NaN.
    hides: bool,
}

impl<'a> Column<'a> {
    fn new(
        content: &'a Dataset,
        (id, node, own): (NodeId, &'a Node, &'a ArrayDesc),
        name: Option<u32>,
    ) -> Result<Self> {
        let desc = content.tree().resolve(own)?;
        let (kind, width) = match desc.map {
            Some(_) => (Type::Double, 1),
            None => chunk_type(desc.dtype)?,
        };
        Ok(Self {
            id,
            node,
            name,
            own,
            desc,
            kind,
            width,
            chunks: 0,
            next: 0,
            columns: false,
            ranks: (usize::MAX, 0),
            first: None,
            hides: false,
        })
    }

    fn context(&self, error: Error) -> Error {
        error.in_object(format!("array \"{}\"", self.node.path))
    }

    /// Keeps the size of a logged quantity in frame 0.
    fn set_first(&mut self) -> Result<()> {
        let cell = self.cell(0)?;
        self.first = cell.map(|FrameCell { shape, .. }| self.size(&shape)).transpose()?;
        Ok(())
    }

    fn table(&self) -> Option<&dyn FrameTable> {
        self.desc.layout.frames().map(|table| &**table)
    }

    /// Number of frames that may have the array; 1 for an array without frames.
    fn frames(&self) -> u64 {
        self.table().map_or(1, FrameTable::len)
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        match self.table() {
            _ if frame >= self.frames() => Ok(None),
            Some(table) => table.cell(frame),
            None => {
                let (shape, layout) = (self.desc.shape.clone(), self.desc.layout.clone());
                Ok(Some(FrameCell { shape, layout }))
            }
        }
    }

    /// Whether a frame may have the array. Call with ascending frames.
    fn may_have(&mut self, frame: u64) -> Result<bool> {
        if frame == 0 {
            self.next = 0;
        }
        if self.next < frame
            && let Some(table) = self.table()
        {
            self.next = table.next(frame)?.unwrap_or(u64::MAX);
        }
        Ok(self.next <= frame)
    }

    /// Plans the chunk of a frame. Returns false if the frame has none; fails if GSD cannot store it.
    fn plan(&mut self, frame: u64) -> Result<bool> {
        let Some(FrameCell { shape, layout }) = self.cell(frame)? else { return Ok(false) };
        let (n, m) = self.size(&shape)?;
        check_chunk(self.kind, n, m)?;
        if matches!(layout, Layout::Ragged { .. } | Layout::Encoded { .. })
            && ArrayDesc::new(self.desc.dtype, shape.clone(), layout).ragged().is_some()
        {
            let message = "GSD has no elements of different lengths";
            return Err(Error::unsupported("gsd-032", message));
        }
        self.chunks += 1;
        self.columns |= m != 1;
        let rank = shape.rank();
        self.ranks = (self.ranks.0.min(rank), self.ranks.1.max(rank));
        Ok(true)
    }

    /// Rows and columns of a logged quantity that a frame lacks, where readers would take the value of frame 0.
    fn gap(&self, frame: u64) -> Result<Option<(u64, u64)>> {
        let (Some(size), Some(table)) = (self.first, self.table()) else { return Ok(None) };
        let inside = (1..table.len()).contains(&frame);
        let lacks = inside && table.effective_cell(frame)?.is_none();
        Ok(lacks.then_some(size))
    }

    /// NaN marks frames without the quantity.
    fn has_nan(&self) -> bool {
        matches!(self.kind, Type::Float | Type::Double)
    }

    /// Rows and columns of a chunk.
    fn size(&self, shape: &Shape) -> Result<(u64, u64)> {
        match *shape.lengths() {
            [] => Ok((1, self.width)),
            [n] => Ok((n, self.width)),
            [n, m] if self.width == 1 => Ok((n, m)),
            _ => {
                let dtype = self.desc.dtype;
                let message = format!("expected at most 2 dimensions, found {shape} of {dtype}");
                Err(Error::unsupported("gsd-032", message))
            }
        }
    }

    /// Number of dimensions of the array in the new file.
    fn rank(&self) -> usize {
        if self.columns { 2 } else { 1 }
    }

    fn write(
        &self,
        out: &mut SequentialWriter<'_>,
        frame: u64,
        id: u32,
        array: &Array,
    ) -> Result<()> {
        let (n, m) = self.size(array.shape())?;
        let selected = array.all_in(Order::C)?;
        out.chunk(frame, id, (self.kind, n, m), |sink| {
            let mut numbers = Vec::new();
            selected.stream(|_, bytes| {
                if array.map().is_none() {
                    return Ok(sink.write_all(bytes)?);
                }
                array.to_physical(bytes, &mut numbers);
                Ok(sink.write_all(convert::little_bytes(&mut numbers))?)
            })
        })
    }
}

/// How a dataset becomes a file. Planning reads frame tables and no values.
struct Plan<'a> {
    about: About,
    /// Chunk names: the paths of the arrays, then the steps of the frame axis.
    names: Names,
    columns: Vec<Column<'a>>,
    /// The frame axis whose steps are written as chunks.
    steps: Option<&'a dyn FrameAxis>,
    /// The frame axis if the step of the last frame is written because it has no other chunk.
    filler: Option<&'a dyn FrameAxis>,
    /// Number of frames that are written, at least 1.
    frames: u64,
    /// Number of frames up to the last one with a chunk.
    used: u64,
    entries: u64,
}

impl<'a> Plan<'a> {
    fn new(content: &'a Dataset) -> Result<Self> {
        let tree = content.tree();
        let (mut names, mut columns) = (Names::new(content.limits()), Vec::new());
        let about = about(tree.attrs());
        let hoomd = about.schema == HOOMD;
        for (id, node, own) in tree.arrays() {
            let context = |e: Error| e.in_object(format!("array \"{}\"", node.path));
            if node.path.contains('\0') {
                let error = Error::unsupported("gsd-037", "chunk names cannot contain NUL");
                return Err(context(error));
            }
            let is_computed = hoomd && node.path == CELL && own.semantics().role == Role::Cell;
            let name = if is_computed { None } else { Some(names.intern(node.path.as_bytes())?) };
            columns.push(Column::new(content, (id, node, own), name).map_err(context)?);
        }
        let axis = tree.frames().map(|axis| &**axis);
        let frames = axis.map_or(1, FrameAxis::len).max(1);
        let (steps, filler) = (None, None);
        let mut plan = Self { about, names, columns, steps, filler, frames, used: 0, entries: 0 };
        if let Some(axis) = axis.filter(|_| plan.names.id(STEP.as_bytes()).is_none())
            && (!plan.is_hoomd() || has_step(axis)?)
        {
            plan.names.intern(STEP.as_bytes())?;
            plan.steps = Some(axis);
        }
        check_names(&plan.names)?;
        for frame in 0..frames {
            let before = plan.entries;
            for column in &mut plan.columns {
                let may_have = column.may_have(frame)?;
                let planned = if may_have { column.plan(frame) } else { Ok(false) };
                let mut planned = planned.map_err(|e| column.context(e).in_frame(frame))?;
                if planned && hoomd && frame == 0 && column.node.path.starts_with(LOG) {
                    column.set_first()?;
                }
                if !planned && column.gap(frame)?.is_some() {
                    planned = column.has_nan();
                    column.hides |= !planned;
                }
                plan.entries += u64::from(planned && column.name.is_some());
            }
            plan.entries += u64::from(plan.step(frame)?.is_some());
            if plan.entries > before {
                plan.used = frame + 1;
            }
        }
        if let Some(axis) = axis.filter(|axis| hoomd && plan.used < axis.len()) {
            // A chunk keeps the frames without chunks at the end.
            plan.names.intern(STEP.as_bytes())?;
            check_names(&plan.names)?;
            (plan.filler, plan.used) = (Some(axis), axis.len());
            plan.entries += 1;
        }
        Ok(plan)
    }

    fn is_hoomd(&self) -> bool {
        self.about.schema == HOOMD
    }

    /// The step that is written as a chunk of a frame.
    fn step(&self, frame: u64) -> Result<Option<u64>> {
        if let Some(axis) = self.filler.filter(|axis| frame + 1 == axis.len()) {
            return Ok(Some(axis.step(frame)?.unwrap_or(0)));
        }
        let axis = self.steps.filter(|axis| frame < axis.len());
        axis.map_or(Ok(None), |axis| axis.step(frame))
    }
}

impl FormatWriter for Gsd {
    fn capabilities(&self) -> Option<Capabilities> {
        Some(Capabilities {
            rank: 2,
            order: Order::C,
            frames: true,
            dtype: is_native_type,
            byte: DType::U8,
            name: |name| !name.contains('\0'),
            adds: &[STEP],
        })
    }

    fn is_own(&self, content: &Dataset) -> bool {
        about(content.tree().attrs()).schema == HOOMD
    }

    fn keeps_scaling(&self) -> bool {
        true
    }

    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        losses(content)
    }

    /// Writes all arrays of `content` as chunks. Arrays without frames are written to frame 0.
    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let mut plan = Plan::new(content)?;
        let (about, names) = (&plan.about, &plan.names);
        let mut out = SequentialWriter::new(sink, about, names, plan.entries, plan.frames)?;
        for frame in 0..plan.frames {
            for column in &mut plan.columns {
                let Some(name) = column.name.filter(|_| frame < column.frames()) else { continue };
                let may_have = column.may_have(frame)?;
                let column = &*column;
                let context = |e: Error| column.context(e).in_frame(frame);
                let array =
                    if may_have { content.array_in_frame(column.id, frame) } else { Ok(None) };
                if let Some(array) = array.map_err(context)? {
                    column.write(&mut out, frame, name, &array).map_err(context)?;
                } else if let Some((n, m)) = column.gap(frame)?.filter(|_| column.has_nan()) {
                    let bytes = n.saturating_mul(m).saturating_mul(column.kind.size());
                    content.limits().allow(bytes, "a logged quantity").map_err(context)?;
                    let values = missing_value(&column.node.path, column.kind, n, m)?;
                    out.bytes(frame, name, (column.kind, n, m), &values.bytes)?;
                }
            }
            if let (Some(step), Some(id)) = (plan.step(frame)?, names.id(STEP.as_bytes())) {
                out.bytes(frame, id, (Type::UInt64, 1, 1), &step.to_le_bytes())?;
            }
        }
        out.finish()?;
        Ok(Vec::new())
    }
}

/// A frame has a step other than 0.
fn has_step(axis: &dyn FrameAxis) -> Result<bool> {
    for frame in 0..axis.len() {
        if axis.step(frame)?.is_some_and(|step| step != 0) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// GSD has this element type.
fn is_native_type(dtype: DType) -> bool {
    let number = matches!(dtype.kind(), Kind::UInt | Kind::Int | Kind::Float);
    number && chunk_type(dtype).is_ok()
}

/// Chunk type for elements of `dtype`, and the number of columns per element.
fn chunk_type(dtype: DType) -> Result<(Type, u64)> {
    let size = dtype.size() as u64;
    let number = |kind: Kind, columns: u64| {
        let same = |known: &&Type| known.dtype().kind() == kind && known.size() * columns == size;
        TYPES.iter().find(same).map(|known| (*known, columns))
    };
    let found = match dtype.kind() {
        kind @ (Kind::UInt | Kind::Int | Kind::Float) => number(kind, 1),
        Kind::Bool => number(Kind::UInt, 1),
        Kind::Complex => number(Kind::Float, 2),
        Kind::Text => Some((Type::Character, size)),
        Kind::Opaque => Some((Type::UInt8, size)),
        _ => None,
    };
    found.ok_or_else(|| Error::unsupported("gsd-031", format!("GSD has no {dtype} elements")))
}

/// Application and schema from the attributes of a dataset that was read from GSD, else defaults.
fn about(attrs: &Attrs) -> About {
    let text = |name: &str, other: &str| attrs.get_str(name).unwrap_or(other).to_string();
    let version = attrs.get_u64("schema_version").and_then(|version| version.try_into().ok());
    About {
        application: text("application", concat!("spile ", env!("CARGO_PKG_VERSION"))),
        schema: text("schema", "spile"),
        schema_version: version.unwrap_or(1 << 16),
    }
}
