//! Lookup of attributes. A missing attribute or one of another type is zero or empty.

use spile_core::tree::{Attrs, Value};

pub(super) fn get<'a>(attrs: &'a Attrs, name: &str) -> Option<&'a Value> {
    attrs.iter().find(|(n, _)| n == name).map(|(_, value)| value)
}

pub(super) fn get_string(attrs: &Attrs, name: &str) -> String {
    match get(attrs, name) {
        Some(Value::Text(text)) => text.clone(),
        _ => String::new(),
    }
}

pub(super) fn get_i64(attrs: &Attrs, name: &str) -> i64 {
    match get(attrs, name) {
        Some(Value::Int(v)) => *v,
        Some(Value::UInt(v)) => i64::try_from(*v).unwrap_or(0),
        _ => 0,
    }
}

pub(super) fn get_i32(attrs: &Attrs, name: &str) -> i32 {
    i32::try_from(get_i64(attrs, name)).unwrap_or(0)
}

pub(super) fn get_f64(attrs: &Attrs, name: &str) -> Option<f64> {
    if let Some(Value::Float(v)) = get(attrs, name) { Some(*v) } else { None }
}

fn get_list<'a>(attrs: &'a Attrs, name: &str) -> &'a [Value] {
    if let Some(Value::List(list)) = get(attrs, name) { list } else { &[] }
}

pub(super) fn get_f64_list(attrs: &Attrs, name: &str) -> Vec<f64> {
    let value = |v: &Value| if let Value::Float(v) = v { *v } else { 0.0 };
    get_list(attrs, name).iter().map(value).collect()
}

pub(super) fn get_u64_list(attrs: &Attrs, name: &str) -> Vec<u64> {
    let value = |v: &Value| if let Value::UInt(n) = v { *n } else { 0 };
    get_list(attrs, name).iter().map(value).collect()
}

pub(super) fn get_strings(attrs: &Attrs, name: &str) -> Vec<String> {
    get_list(attrs, name).iter().map(ToString::to_string).collect()
}
