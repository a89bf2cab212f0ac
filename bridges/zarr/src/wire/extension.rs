//! Extensions of version 3: named objects in the metadata.

use serde_json::Value;
use spile_core::error::Result;

use super::{Object, malformed, unsupported};

/// Keys of `zarr.json` of an array.
const KEYS: [&str; 11] = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "dimension_names",
    "storage_transformers",
];

/// Fails if the metadata have storage transformers, or another key that readers may not ignore.
pub(super) fn must_be_understood(meta: &Object) -> Result<()> {
    let transformers = meta.get("storage_transformers").and_then(Value::as_array);
    if let Some(first) = transformers.and_then(|list| list.first()) {
        let (name, _) = name_and_configuration(first)?;
        return Err(unsupported(format!("storage transformer {name} is not supported")));
    }
    let optional = |value: &Value| value.get("must_understand") == Some(&Value::Bool(false));
    let unknown =
        meta.iter().find(|(key, value)| !KEYS.contains(&key.as_str()) && !optional(value));
    match unknown {
        Some((key, _)) => Err(unsupported(format!("metadata {key} are not supported"))),
        None => Ok(()),
    }
}

/// Name and configuration of an extension, which may be only a name.
pub(crate) fn name_and_configuration(value: &Value) -> Result<(&str, Object)> {
    if let Some(name) = value.as_str() {
        return Ok((name, Object::new()));
    }
    let name = value.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| malformed("extension without a name"))?;
    let configuration = value.get("configuration").and_then(Value::as_object).cloned();
    Ok((name, configuration.unwrap_or_default()))
}
