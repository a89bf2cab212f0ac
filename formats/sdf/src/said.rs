//! What the attributes of a node say; nothing, zero or empty where they do not.

use spile_core::tree::{Attrs, Value};

pub(crate) fn said<'a>(attrs: &'a Attrs, name: &str) -> Option<&'a Value> {
    attrs.iter().find(|(n, _)| n == name).map(|(_, value)| value)
}

pub(crate) fn text(attrs: &Attrs, name: &str) -> String {
    match said(attrs, name) {
        Some(Value::Text(text)) => text.clone(),
        _ => String::new(),
    }
}

pub(crate) fn whole(attrs: &Attrs, name: &str) -> i64 {
    match said(attrs, name) {
        Some(Value::Int(v)) => *v,
        Some(Value::UInt(v)) => i64::try_from(*v).unwrap_or(0),
        _ => 0,
    }
}

pub(crate) fn small(attrs: &Attrs, name: &str) -> i32 {
    i32::try_from(whole(attrs, name)).unwrap_or(0)
}

pub(crate) fn real(attrs: &Attrs, name: &str) -> Option<f64> {
    if let Some(Value::Float(v)) = said(attrs, name) { Some(*v) } else { None }
}

pub(crate) fn list(attrs: &Attrs, name: &str) -> Vec<Value> {
    if let Some(Value::List(list)) = said(attrs, name) { list.clone() } else { Vec::new() }
}

pub(crate) fn reals(attrs: &Attrs, name: &str) -> Vec<f64> {
    let one = |v: &Value| if let Value::Float(v) = v { *v } else { 0.0 };
    list(attrs, name).iter().map(one).collect()
}

pub(crate) fn texts(attrs: &Attrs, name: &str) -> Vec<String> {
    list(attrs, name).iter().map(ToString::to_string).collect()
}

pub(crate) fn count(value: &Value) -> u64 {
    if let Value::UInt(n) = value { *n } else { 0 }
}
