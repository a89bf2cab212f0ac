//! Writes any tree as GSD: every array becomes a chunk under its path.

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

use crate::names::Names;
use crate::read::{HOOMD, STEP};
use crate::wire::{About, Type};
use crate::write::SequentialWriter;

/// Writes all arrays of `content` as chunks. Arrays without frames are written to frame 0.
pub(crate) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let tree = content.tree();
    let about = about(content);
    let arrays: Vec<(&str, &ArrayDesc)> =
        tree.arrays().map(|(_, node, desc)| (node.path.as_str(), desc)).collect();
    let mut names = Names::default();
    for (path, _) in &arrays {
        names.intern(path.as_bytes(), limits)?;
    }
    // Steps of the frame axis are written as a chunk unless an array contains them.
    let axis = tree.frames().filter(|axis| !axis.is_empty());
    let steps =
        axis.filter(|_| about.schema != HOOMD && !arrays.iter().any(|(path, _)| *path == STEP));
    let step_id = if steps.is_some() { names.intern(STEP.as_bytes(), limits)? } else { 0 };
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
    let mut out = SequentialWriter::new(sink, &about, &names, entries, frames)?;
    for frame in 0..frames {
        for (id, (path, desc)) in arrays.iter().enumerate() {
            let context = |e: Error| e.in_object(format!("array \"{path}\"")).in_frame(frame);
            if let Some(array) = cell(desc, frame).map_err(context)? {
                write_array(&mut out, frame, id as u32, &array).map_err(context)?;
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

fn write_array(out: &mut SequentialWriter<'_>, frame: u64, id: u32, array: &Array) -> Result<()> {
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
            let message =
                format!("expected at most 2 dimensions, found {} of {dtype}", array.shape());
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

/// GSD has this element type.
pub(crate) fn is_native_type(dtype: DType) -> bool {
    let number = matches!(dtype.kind(), Kind::UInt | Kind::Int | Kind::Float);
    number && chunk_type(dtype).is_ok()
}

/// Chunk type for elements of `dtype`, and the number of columns per element.
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

/// Application and schema from the attributes of a tree that was read from GSD, else defaults.
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
