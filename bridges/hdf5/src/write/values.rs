//! Values of attributes.

use spile_core::dtype::DType;
use spile_core::tree::Value;

use super::file::{Attribute, Data, LONGEST, Outline, Slot};
use super::types::{self, Bytes};

/// Which rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    Hdf5,
    NetCdf,
}

/// One element: its type and its bytes.
enum Element {
    Number(DType, Bytes),
    Text(String),
}

/// An attribute, or nothing where the file cannot say it so; the description does.
pub(super) fn attribute(
    outline: &mut Outline,
    rules: Rules,
    name: &str,
    value: &Value,
) -> Option<Attribute> {
    if name.len() > LONGEST / 2 || name.contains('\0') || name.is_empty() {
        return None;
    }
    let (dims, elements) = match value {
        Value::List(values) => rectangle(values)?,
        other => (Vec::new(), vec![other]),
    };
    // netCDF knows lines only, and complex numbers not at all.
    let (dims, elements): (Vec<u64>, Vec<Element>) = match (rules, &elements[..]) {
        (Rules::NetCdf, _) if dims.len() > 1 => return None,
        (Rules::NetCdf, [Value::Complex(re, im)]) if dims.is_empty() => {
            (vec![2], [*re, *im].map(float).into())
        }
        (Rules::NetCdf, [Value::Bytes(bytes)]) if dims.is_empty() && !bytes.is_empty() => {
            let bytes: Vec<_> =
                bytes.iter().map(|b| Element::Number(DType::U8, vec![*b])).collect();
            (vec![bytes.len() as u64], bytes)
        }
        (Rules::NetCdf, [Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_)]) => {
            // A number is a line of one there.
            (vec![1], elements.into_iter().map(|v| element(rules, v)).collect::<Option<_>>()?)
        }
        _ => (dims, elements.into_iter().map(|v| element(rules, v)).collect::<Option<_>>()?),
    };
    let (kind, data) = encode(outline, rules, &dims, elements)?;
    let name = name.to_string();
    Some(Attribute { name, kind, dims, data })
}

fn encode(
    outline: &mut Outline,
    rules: Rules,
    dims: &[u64],
    elements: Vec<Element>,
) -> Option<(Bytes, Data)> {
    if let [Element::Text(text)] = &elements[..]
        && rules == Rules::NetCdf
        && dims.is_empty()
        && text.len() < LONGEST / 2
    {
        let mut bytes = text.clone().into_bytes();
        bytes.resize(bytes.len().max(1), 0);
        return Some((types::text(bytes.len() as u32), Data::Raw(bytes)));
    }
    let mut texts = Vec::new();
    let mut numbers = Vec::new();
    let mut dtype = None;
    for element in elements {
        match element {
            Element::Text(text) if text.is_empty() => texts.push(None),
            Element::Text(text) => {
                let len = u32::try_from(text.len()).ok()?;
                texts.push(Some((len, outline.slot(Slot::Text(text.into_bytes())))));
            }
            Element::Number(own, bytes) => {
                if *dtype.get_or_insert(own) != own {
                    return None;
                }
                numbers.extend(bytes);
            }
        }
    }
    match (dtype, texts.is_empty()) {
        (Some(dtype), true) if numbers.len() < LONGEST - 1024 => {
            Some((types::of(dtype), Data::Raw(numbers)))
        }
        (None, false) if texts.len() * 16 < LONGEST / 2 => {
            Some((types::any_text(), Data::Slots(texts)))
        }
        _ => None,
    }
}

fn float(value: f64) -> Element {
    Element::Number(DType::F64, value.to_le_bytes().into())
}

fn element(rules: Rules, value: &Value) -> Option<Element> {
    Some(match value {
        Value::Bool(v) => {
            let dtype = if rules == Rules::NetCdf { "int8" } else { "bool8" };
            Element::Number(dtype.parse().ok()?, vec![u8::from(*v)])
        }
        Value::Int(v) => Element::Number(DType::I64, v.to_le_bytes().into()),
        Value::UInt(v) => Element::Number(DType::U64, v.to_le_bytes().into()),
        Value::Float(v) => float(*v),
        Value::Complex(re, im) if rules == Rules::Hdf5 => {
            let bytes = [re.to_le_bytes(), im.to_le_bytes()].concat();
            Element::Number("complex128".parse().ok()?, bytes)
        }
        // A NUL would end it for other readers.
        Value::Text(text) if !text.contains('\0') => Element::Text(text.clone()),
        Value::Bytes(bytes) if rules == Rules::Hdf5 && !bytes.is_empty() => {
            let size = u32::try_from(bytes.len()).ok().filter(|n| (*n as usize) < LONGEST / 2)?;
            Element::Number(DType::opaque(size), bytes.clone())
        }
        _ => return None,
    })
}

/// Lengths of nested lists and what is in them, if all are equally long. Lists that mix whole and
/// real numbers, or are empty, are none.
fn rectangle(values: &[Value]) -> Option<(Vec<u64>, Vec<&Value>)> {
    let first = values.first()?;
    let Value::List(_) = first else {
        let alike =
            values.iter().all(|v| std::mem::discriminant(v) == std::mem::discriminant(first));
        return alike.then(|| (vec![values.len() as u64], values.iter().collect()));
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
