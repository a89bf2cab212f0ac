//! Values as attributes of a new file.

use spile_core::dtype::DType;
use spile_core::tree::Value;

use crate::write::datatype::{self, Bytes};
use crate::write::{Data, FilePlan, HeapObject, MAX_MESSAGE};

/// The conventions of a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavor {
    Hdf5,
    NetCdf,
}

impl Flavor {
    /// The name of the format.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hdf5 => "HDF5",
            Self::NetCdf => "NetCDF-4",
        }
    }
}

/// An element of an attribute.
enum Element {
    Number(DType, Bytes),
    Text(String),
}

/// Adds an attribute to an object. `None` if the flavor cannot express the value; the metadata JSON has it.
pub(super) fn attach_value(
    plan: &mut FilePlan,
    flavor: Flavor,
    object: usize,
    name: &str,
    value: &Value,
) -> Option<()> {
    if name.len() > MAX_MESSAGE / 2 || name.contains('\0') || name.is_empty() {
        return None;
    }
    let (dims, elements) = match value {
        Value::List(values) => rectangle(values)?,
        other => (Vec::new(), vec![other]),
    };
    // netCDF attributes have one dimension and no complex numbers.
    let (dims, elements): (Vec<u64>, Vec<Element>) = match (flavor, &elements[..]) {
        (Flavor::NetCdf, _) if dims.len() > 1 => return None,
        (Flavor::NetCdf, [Value::Complex(re, im)]) if dims.is_empty() => {
            (vec![2], [*re, *im].map(float).into())
        }
        (Flavor::NetCdf, [Value::Bytes(bytes)]) if dims.is_empty() && !bytes.is_empty() => {
            let bytes: Vec<_> =
                bytes.iter().map(|b| Element::Number(DType::U8, vec![*b])).collect();
            (vec![bytes.len() as u64], bytes)
        }
        (Flavor::NetCdf, [Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_)]) => {
            // netCDF writes numbers as arrays of length 1.
            (vec![1], elements.into_iter().map(|v| element(flavor, v)).collect::<Option<_>>()?)
        }
        _ => (dims, elements.into_iter().map(|v| element(flavor, v)).collect::<Option<_>>()?),
    };
    let (kind, data) = encode(plan, flavor, &dims, elements)?;
    plan.attach(object, name, kind, dims, data);
    Some(())
}

fn encode(
    plan: &mut FilePlan,
    flavor: Flavor,
    dims: &[u64],
    elements: Vec<Element>,
) -> Option<(Bytes, Data)> {
    if let [Element::Text(text)] = &elements[..]
        && flavor == Flavor::NetCdf
        && dims.is_empty()
        && text.len() < MAX_MESSAGE / 2
    {
        let mut bytes = text.clone().into_bytes();
        bytes.resize(bytes.len().max(1), 0);
        return Some((datatype::text(bytes.len() as u32), Data::Raw(bytes)));
    }
    let mut strings = Vec::new();
    let mut numbers = Vec::new();
    let mut dtype = None;
    for element in elements {
        match element {
            Element::Text(text) if text.is_empty() => strings.push(None),
            Element::Text(text) => {
                let len = u32::try_from(text.len()).ok()?;
                strings
                    .push(Some((len, plan.add_heap_object(HeapObject::Text(text.into_bytes())))));
            }
            Element::Number(own, bytes) => {
                if *dtype.get_or_insert(own) != own {
                    return None;
                }
                numbers.extend(bytes);
            }
        }
    }
    match (dtype, strings.is_empty()) {
        (Some(dtype), true) if numbers.len() < MAX_MESSAGE - 1024 => {
            Some((datatype::of(dtype), Data::Raw(numbers)))
        }
        (None, false) if strings.len() * 16 < MAX_MESSAGE / 2 => {
            Some((datatype::variable_length_text(), Data::Heap(strings)))
        }
        _ => None,
    }
}

fn float(value: f64) -> Element {
    Element::Number(DType::F64, value.to_le_bytes().into())
}

fn element(flavor: Flavor, value: &Value) -> Option<Element> {
    Some(match value {
        Value::Bool(v) => {
            let dtype = if flavor == Flavor::NetCdf { "int8" } else { "bool8" };
            Element::Number(dtype.parse().ok()?, vec![u8::from(*v)])
        }
        Value::Int(v) => Element::Number(DType::I64, v.to_le_bytes().into()),
        Value::UInt(v) => Element::Number(DType::U64, v.to_le_bytes().into()),
        Value::Float(v) => float(*v),
        Value::Complex(re, im) if flavor == Flavor::Hdf5 => {
            let bytes = [re.to_le_bytes(), im.to_le_bytes()].concat();
            Element::Number("complex128".parse().ok()?, bytes)
        }
        // A NUL would end the string for other readers.
        Value::Text(text) if !text.contains('\0') => Element::Text(text.clone()),
        Value::Bytes(bytes) if flavor == Flavor::Hdf5 && !bytes.is_empty() => {
            let size =
                u32::try_from(bytes.len()).ok().filter(|n| (*n as usize) < MAX_MESSAGE / 2)?;
            Element::Number(DType::opaque(size), bytes.clone())
        }
        _ => return None,
    })
}

/// Shape and elements of nested lists. `None` if lists have different lengths, are empty, or mix kinds of
/// values.
fn rectangle(values: &[Value]) -> Option<(Vec<u64>, Vec<&Value>)> {
    let first = values.first()?;
    let Value::List(_) = first else {
        let same_kind =
            values.iter().all(|v| std::mem::discriminant(v) == std::mem::discriminant(first));
        return same_kind.then(|| (vec![values.len() as u64], values.iter().collect()));
    };
    let mut lengths: Option<Vec<u64>> = None;
    let mut all = Vec::new();
    for value in values {
        let Value::List(inner) = value else { return None };
        let (dims, elements) = rectangle(inner)?;
        if *lengths.get_or_insert_with(|| dims.clone()) != dims {
            return None;
        }
        all.extend(elements);
    }
    let dims = std::iter::once(values.len() as u64).chain(lengths?).collect::<Vec<_>>();
    (dims.len() <= 32).then_some((dims, all))
}
