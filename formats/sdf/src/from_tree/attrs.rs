//! Values of attributes in the types of block metadata. A missing attribute or one of another type is zero
//! or empty.

use spile_core::{Attrs, Value};

pub(super) fn text(attrs: &Attrs, name: &str) -> String {
    attrs.get_str(name).unwrap_or_default().to_string()
}

pub(super) fn i32(attrs: &Attrs, name: &str) -> i32 {
    attrs.get_i64(name).and_then(|v| v.try_into().ok()).unwrap_or(0)
}

fn list<'a>(attrs: &'a Attrs, name: &str) -> &'a [Value] {
    if let Some(Value::List(list)) = attrs.get(name) { list } else { &[] }
}

pub(super) fn f64_list(attrs: &Attrs, name: &str) -> Vec<f64> {
    list(attrs, name).iter().map(|v| f64::try_from(v).unwrap_or(0.0)).collect()
}

pub(super) fn u64_list(attrs: &Attrs, name: &str) -> Vec<u64> {
    list(attrs, name).iter().map(|v| u64::try_from(v).unwrap_or(0)).collect()
}

pub(super) fn strings(attrs: &Attrs, name: &str) -> Vec<String> {
    list(attrs, name).iter().map(ToString::to_string).collect()
}
