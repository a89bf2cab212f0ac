//! Any dataset as a MATLAB MAT-file of version 7.3: HDF5 after a user block of 512 bytes, with the class of
//! each variable in attributes.
//!
//! Groups become structs, arrays variables. The dimensions of a dataset are those of the variable in reverse.
//! Frames are the last dimension of a variable. Uniform coordinates become variables, and the units of all
//! variables are in the struct `units`.

mod builder;
mod data;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use spile_core::Dataset;
use spile_core::dtype::{DType, Kind};
use spile_core::error::Result;
use spile_core::format::{Compressor, FormatWriter, Loss, LossKind, WriteOptions};
use spile_core::layout::ArrayDesc;
use spile_core::sink::Sink;
use spile_core::wire::ByteOrder;
use spile_interchange::{Kept, Losses, flat_losses};

use super::chunks::ChunkOptions;
use crate::Mat;
use crate::write::datatype;
use builder::Builder;

/// Longest name of a variable or field.
const LONGEST: usize = 63;

/// Words that are not names.
const KEYWORDS: [&str; 20] = [
    "break",
    "case",
    "catch",
    "classdef",
    "continue",
    "else",
    "elseif",
    "end",
    "for",
    "function",
    "global",
    "if",
    "otherwise",
    "parfor",
    "persistent",
    "return",
    "spmd",
    "switch",
    "try",
    "while",
];

/// How an element type is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// As it is, with the name of the class.
    Number(&'static str),
    /// As single precision.
    Half,
    Logical,
    /// Two numbers, with the name of their class.
    Complex(&'static str),
    Char,
}

impl Class {
    fn of(dtype: DType) -> Option<Self> {
        Some(match (dtype.kind(), dtype.size()) {
            (Kind::Float, 8) => Self::Number("double"),
            (Kind::Float, 4) => Self::Number("single"),
            (Kind::Float, 2) => Self::Half,
            (Kind::Int, 1) => Self::Number("int8"),
            (Kind::Int, 2) => Self::Number("int16"),
            (Kind::Int, 4) => Self::Number("int32"),
            (Kind::Int, 8) => Self::Number("int64"),
            (Kind::UInt | Kind::Opaque, 1) => Self::Number("uint8"),
            (Kind::UInt, 2) => Self::Number("uint16"),
            (Kind::UInt, 4) => Self::Number("uint32"),
            (Kind::UInt, 8) => Self::Number("uint64"),
            (Kind::Bool, _) => Self::Logical,
            (Kind::Complex, 8) => Self::Complex("single"),
            (Kind::Complex, 16) => Self::Complex("double"),
            (Kind::Text, size) if size > 0 => Self::Char,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Number(name) | Self::Complex(name) => name,
            Self::Half => "single",
            Self::Logical => "logical",
            Self::Char => "char",
        }
    }

    /// Type and size of the stored elements of `dtype`.
    fn stored(self, dtype: DType) -> (Vec<u8>, u64) {
        let half = dtype.size() as u32 / 2;
        match self {
            Self::Number("uint8") | Self::Logical => (datatype::integer(1, false), 1),
            Self::Number(_) => {
                (datatype::of(dtype.with_order(ByteOrder::Little)), dtype.size() as u64)
            }
            Self::Half => (datatype::of(DType::F32), 4),
            Self::Complex(_) => {
                let part = datatype::of(if half == 4 { DType::F32 } else { DType::F64 });
                let members = [("real", 0, part.clone()), ("imag", half, part)];
                (datatype::compound(2 * half, &members), u64::from(2 * half))
            }
            Self::Char => (datatype::integer(2, false), 2),
        }
    }
}

impl FormatWriter for Mat {
    fn check_options(&self, content: &Dataset, _: &Path, options: &WriteOptions) -> Result<()> {
        chunked(&without_references(content)?, options, false).map(drop)
    }

    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        let content = without_references(content)?;
        let refused = refused(&content);
        let planned = Builder::planned(&content, &refused, false)?;
        let mut losses = Losses::new("MATLAB");
        losses.add(&content, &Kept::default(), |_, node, _| match refused.get(&node.path) {
            Some(reason) => Err(reason.clone()),
            None => Ok(()),
        });
        let lost = losses.into_vec();
        let gone: HashSet<String> = lost
            .iter()
            .filter(|loss| matches!(loss.kind, LossKind::Array | LossKind::Group))
            .map(|loss| loss.path.clone())
            .collect();
        // The only array of a file is the same array whatever its name.
        let only = content.tree().main_arrays().count() == 1 && planned.variables() == 1;
        let mut renamed = HashSet::new();
        let mut more = Vec::new();
        for (_, node) in content.tree().iter().filter(|(_, node)| !gone.contains(&node.path)) {
            let new = planned.path(&node.path);
            if new != Some(&node.path) {
                let new = new.map_or("another name", String::as_str);
                let reason = format!("MATLAB stores it as \"{new}\"");
                more.push(Loss::new(&node.path, LossKind::Name, reason));
                if !only {
                    renamed.insert(node.path.clone());
                }
                if !only {
                    continue;
                }
            }
            let Some(desc) = &node.array else { continue };
            let is_text = Class::of(desc.dtype) == Some(Class::Char);
            let same = match desc.dtype.kind() {
                Kind::Bool => desc.dtype.size() == 1,
                Kind::Opaque | Kind::Text => false,
                // Without elements there is no imaginary part.
                Kind::Complex if desc.shape.count() == Some(0) => false,
                _ => Class::of(desc.dtype) != Some(Class::Half),
            };
            if !same {
                more.push(Loss::new(&node.path, LossKind::Type, "MATLAB has no such type"));
            }
            if desc.shape.rank() < 2 || is_text || desc.layout.frames().is_some() {
                let reason = "variables have at least two dimensions, frames are the last";
                more.push(Loss::new(&node.path, LossKind::Shape, reason));
            }
        }
        let mut losses: Vec<Loss> =
            lost.into_iter().filter(|loss| !renamed.contains(&loss.path)).collect();
        for loss in &mut losses {
            if loss.name.as_deref() == Some("units") {
                loss.reason = "it is a field of the struct \"units\"".into();
            }
        }
        losses.extend(more);
        Ok(losses)
    }

    fn options(&self) -> &'static [&'static str] {
        &["compression", "chunks"]
    }

    fn write(
        &self,
        content: &Dataset,
        sink: &mut Sink,
        options: &WriteOptions,
    ) -> Result<Vec<Loss>> {
        chunked(&without_references(content)?, options, true)?.write(sink)?;
        Ok(Vec::new())
    }
}

/// The plan of a file with these chunks and this compression, with `values` or only with names. Fails if `options`
/// do not fit the content.
fn chunked<'a>(content: &'a Dataset, options: &WriteOptions, values: bool) -> Result<Builder<'a>> {
    let options = ChunkOptions::new(options, "MATLAB", &[Compressor::Gzip])?;
    let mut builder = Builder::planned(content, &refused(content), values)?;
    builder.set_chunks(options)?;
    Ok(builder)
}

/// `content` with the values of other arrays instead of references to them.
fn without_references(content: &Dataset) -> Result<Dataset> {
    let tree = content.tree();
    let same = |desc: &ArrayDesc| desc.layout.same().is_some();
    if !tree.arrays().any(|(_, _, desc)| same(desc)) {
        return Ok(content.clone());
    }
    let mut new = tree.clone();
    for (id, _, desc) in tree.arrays().filter(|(_, _, desc)| same(desc)) {
        let target = tree.resolve(desc)?.clone();
        if let Some(own) = &mut new.node_mut(id).array {
            (own.dtype, own.shape, own.layout) = (target.dtype, target.shape, target.layout);
            own.map = target.map;
        }
    }
    Ok(content.with_tree(new))
}

/// Arrays that are not written, with the reason.
fn refused(content: &Dataset) -> HashMap<String, String> {
    let losses = flat_losses(content, "MATLAB", |array| match Class::of(array.dtype) {
        _ if array.ragged().is_some() => {
            Err("MATLAB has no elements of different lengths".to_string())
        }
        Some(_) => Ok(()),
        None => Err(format!("MATLAB has no type for {}", array.dtype)),
    });
    let lost = losses.into_vec().into_iter().filter(|loss| loss.kind == LossKind::Array);
    lost.map(|loss| (loss.path, loss.reason)).collect()
}

/// A name that MATLAB accepts.
fn valid_name(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let mut out: String = name.chars().map(fits).collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic()) {
        out.insert(0, 'x');
    }
    // Room for a number after the name.
    out.truncate(LONGEST - 8);
    if KEYWORDS.contains(&out.as_str()) {
        out.push('_');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_in_matlab() {
        assert_eq!(valid_name("Electric Field"), "Electric_Field");
        assert_eq!(valid_name("2d"), "x2d");
        assert_eq!(valid_name("end"), "end_");
        assert_eq!(valid_name("_a"), "x_a");
        assert_eq!(valid_name(&"n".repeat(100)).len(), LONGEST - 8);
    }
}
