//! A whole new file of version 2.1, written front to back: header, index, names, data. For content
//! that is known beforehand; frames that come one by one are the business of `write`.

use std::io::Write as _;

use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::tree::Value;

use crate::read::{HOOMD, STEP};
use crate::wire::{About, Block, Entry, Form, Header, SLOT, Type};

/// Bytes of the index that are written at once.
const PART: usize = 256 << 10;

/// A file being written.
pub(crate) struct Assembler<'a> {
    sink: &'a mut Sink,
    header: Header,
    /// Entries of the current frame, and those of frames that have ended.
    frame: Vec<Entry>,
    ended: Vec<u8>,
    written: u64,
    room: u64,
}

impl<'a> Assembler<'a> {
    /// Starts a file with room for `entries` chunks in `frames` frames under these names.
    pub(crate) fn new(
        sink: &'a mut Sink,
        about: &About,
        names: &[Vec<u8>],
        entries: u64,
        frames: u64,
    ) -> Result<Self> {
        if names.len() > 65535 {
            let message = format!("{} names, a GSD file has at most 65535", names.len());
            return Err(Error::unsupported("gsd-034", message).in_object("name list"));
        }
        let header = Header::new(Form::List, 2 << 16 | 1, about);
        let fits = |allocated: u64, needed: u64| needed.max(allocated).next_power_of_two();
        let index = Block {
            location: header.index.location,
            allocated: fits(header.index.allocated, header.form.room(entries, frames)),
        };
        let mut list: Vec<u8> = names.iter().flat_map(|name| [name, &b"\0"[..]].concat()).collect();
        let slots = fits(Form::List.first_slots(), (list.len() as u64 + 1).div_ceil(SLOT));
        let location = index.location + index.allocated * Form::List.entry_size();
        let header = header.with_blocks(index, Some(Block { location, allocated: slots }));
        list.resize((slots * SLOT) as usize, 0);
        sink.write_all_at(location, &list)?;
        sink.seek(location + list.len() as u64);
        let room = index.allocated;
        Ok(Self { sink, header, frame: Vec::new(), ended: Vec::new(), written: 0, room })
    }

    /// Adds a chunk whose data `write` puts into the sink; frames come in order.
    pub(crate) fn chunk(
        &mut self,
        frame: u64,
        id: u32,
        (kind, n, m): (Type, u64, u64),
        write: impl FnOnce(&mut Sink) -> Result<()>,
    ) -> Result<()> {
        if self.frame.first().is_some_and(|e| e.frame != frame) {
            self.end_frame()?;
        }
        let code = kind.code(Form::List).filter(|_| u32::try_from(m).is_ok());
        let Some(code) = code else {
            let message = format!("{n} x {m} {} has no place in version 2.1", kind.name());
            return Err(Error::unsupported("gsd-034", message).in_frame(frame));
        };
        let location = self.sink.position();
        write(self.sink)?;
        let wanted = n.saturating_mul(m).saturating_mul(kind.size());
        if self.sink.position() - location != wanted {
            let message = format!("{wanted} bytes of data expected");
            return Err(Error::argument(message).in_frame(frame));
        }
        let location = location as i64;
        let entry = Entry { frame, n, m, location, id, code, flags: 0, step: 0, sound: true };
        self.frame.push(entry);
        Ok(())
    }

    fn end_frame(&mut self) -> Result<()> {
        self.frame.sort_by_key(|entry| entry.id);
        for entry in self.frame.drain(..) {
            entry.encode(Form::List, &[], &mut self.ended);
        }
        if self.ended.len() >= PART { self.write_entries() } else { Ok(()) }
    }

    fn write_entries(&mut self) -> Result<()> {
        let size = Form::List.entry_size();
        let count = self.ended.len() as u64 / size;
        if self.written + count > self.room {
            return Err(Error::argument(format!("more than {} chunks", self.room)));
        }
        let at = self.header.index.location + self.written * size;
        self.sink.write_all_at(at, &self.ended)?;
        self.written += count;
        self.ended.clear();
        Ok(())
    }

    /// Writes what is left, and the header last. The sink is committed by its owner.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.end_frame()?;
        self.write_entries()?;
        // The file is as long as its tables say even if no data follow them.
        self.sink.set_len(self.sink.position())?;
        self.sink.write_all_at(0, &self.header.raw)
    }
}

/// Writes any tree: every array is a chunk under its path, in the frames that have it; arrays
/// without frames are in frame 0.
pub(crate) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let tree = content.tree();
    let about = about(content);
    let arrays: Vec<(&str, &ArrayDesc)> =
        tree.arrays().map(|(_, node, desc)| (node.path.as_str(), desc)).collect();
    let mut names: Vec<Vec<u8>> = arrays.iter().map(|(path, _)| path.as_bytes().to_vec()).collect();
    // Steps that no array tells would be lost.
    let axis = tree.frames().filter(|axis| !axis.is_empty());
    let steps =
        axis.filter(|_| about.schema != HOOMD && !arrays.iter().any(|(path, _)| *path == STEP));
    let step_id = names.len() as u32;
    if steps.is_some() {
        names.push(STEP.into());
    }
    let frames = axis.map_or(1, |axis| axis.len()).max(1);
    let cell = |desc: &ArrayDesc, frame: u64| -> Result<Option<Array>> {
        match &tree.resolve(desc)?.layout {
            Layout::PerFrame(table) if frame >= table.len() => Ok(None),
            Layout::PerFrame(_) => Array::open_frame(content.source(), tree, desc, frame, limits),
            _ if frame == 0 => Array::open(content.source(), tree, desc, limits).map(Some),
            _ => Ok(None),
        }
    };
    let mut entries = 0;
    for frame in 0..frames {
        for (_, desc) in &arrays {
            entries += u64::from(cell(desc, frame)?.is_some());
        }
        entries += u64::from(steps.is_some());
    }
    let mut out = Assembler::new(sink, &about, &names, entries, frames)?;
    for frame in 0..frames {
        for (id, (path, desc)) in arrays.iter().enumerate() {
            let place = |e: Error| e.in_object(format!("array \"{path}\"")).in_frame(frame);
            if let Some(array) = cell(desc, frame).map_err(place)? {
                write_array(&mut out, frame, id as u32, &array).map_err(place)?;
            }
        }
        if let Some(step) = steps.map(|axis| axis.step(frame)).transpose()?.flatten() {
            out.chunk(frame, step_id, (Type::UInt64, 1, 1), |sink| {
                Ok(sink.write_all(&step.to_le_bytes())?)
            })?;
        }
    }
    out.finish()
}

fn write_array(out: &mut Assembler<'_>, frame: u64, id: u32, array: &Array) -> Result<()> {
    let dtype = array.dtype();
    let (kind, width) = match array.map() {
        Some(_) => (Type::Double, 1),
        None => chunk_type(dtype)?,
    };
    let (n, m) = match *array.shape().lengths() {
        [] => (1, width),
        [n] => (n, width),
        [n, m] if width == 1 => (n, m),
        _ => {
            let message = format!("{} of {dtype}: a chunk has rows and columns", array.shape());
            return Err(Error::unsupported("gsd-032", message));
        }
    };
    let selected = array.select(&Selection::all(), Axes::Order(Order::C))?;
    out.chunk(frame, id, (kind, n, m), |sink| {
        let mut numbers = Vec::new();
        selected.stream(|_, bytes| {
            if array.map().is_none() {
                return Ok(sink.write_all(bytes)?);
            }
            convert::to_f64(dtype, array.map(), bytes, &mut numbers);
            Ok(sink.write_all(convert::little_bytes(&mut numbers))?)
        })
    })
}

/// Elements of this type are the same when they are read.
pub(crate) fn is_own_type(dtype: DType) -> bool {
    let number = matches!(dtype.kind(), Kind::UInt | Kind::Int | Kind::Float);
    number && chunk_type(dtype).is_ok()
}

/// The chunk type for elements, and how many columns one of them takes.
fn chunk_type(dtype: DType) -> Result<(Type, u64)> {
    let size = dtype.size() as u64;
    Ok(match (dtype.kind(), size) {
        (Kind::UInt | Kind::Bool, 1) => (Type::UInt8, 1),
        (Kind::UInt | Kind::Bool, 2) => (Type::UInt16, 1),
        (Kind::UInt | Kind::Bool, 4) => (Type::UInt32, 1),
        (Kind::UInt | Kind::Bool, 8) => (Type::UInt64, 1),
        (Kind::Int, 1) => (Type::Int8, 1),
        (Kind::Int, 2) => (Type::Int16, 1),
        (Kind::Int, 4) => (Type::Int32, 1),
        (Kind::Int, 8) => (Type::Int64, 1),
        (Kind::Float, 4) => (Type::Float, 1),
        (Kind::Float, 8) => (Type::Double, 1),
        (Kind::Complex, 8) => (Type::Float, 2),
        (Kind::Complex, 16) => (Type::Double, 2),
        (Kind::Text, _) => (Type::Character, size),
        (Kind::Opaque, _) => (Type::UInt8, size),
        _ => {
            return Err(Error::unsupported("gsd-031", format!("GSD has no {dtype} elements")));
        }
    })
}

/// The header that a GSD file's tree remembers, or one of our own.
fn about(content: &dyn Reader) -> About {
    let attr = |name: &str| content.tree().attrs().iter().find(|(n, _)| n == name).map(|(_, v)| v);
    let text = |name: &str, other: &str| match attr(name) {
        Some(Value::Text(text)) => text.clone(),
        _ => other.into(),
    };
    let schema_version = match attr("schema_version") {
        Some(Value::UInt(v)) => u32::try_from(*v).unwrap_or(1 << 16),
        _ => 1 << 16,
    };
    let application = concat!("spile ", env!("CARGO_PKG_VERSION"));
    About {
        application: text("application", application),
        schema: text("schema", "spile"),
        schema_version,
    }
}
