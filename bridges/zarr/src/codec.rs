//! The codecs of chunks, by their names in the metadata.

use serde_json::Value;
use spile_codecs::{Checksum, Numeric, Step};
use spile_core::dtype::DType;
use spile_core::error::Result;

use crate::wire::{Object, malformed, numpy_element, unsupported};

/// A step of encoding, or `None` for a codec that is the identity when it decodes. `dtype` is the type of the
/// array.
pub(crate) fn step(name: &str, configuration: &Object, dtype: DType) -> Result<Option<Step>> {
    let value = |key: &str| configuration.get(key).filter(|value| !value.is_null());
    let first = |usual: bool| match value("location").and_then(Value::as_str) {
        Some("start") => true,
        Some("end") => false,
        _ => usual,
    };
    let sum = |kind, usual| Step::Checksum { kind, first: first(usual) };
    let number_type = |key: &str| match value(key) {
        None => Ok(None),
        Some(value) => {
            let found = value.as_str().and_then(numpy_element);
            let found = found.filter(|element| !element.is_utf32).map(|element| element.dtype);
            let wrong = || unsupported(format!("{name}: {key} {value} is not supported"));
            found.map(Some).ok_or_else(wrong)
        }
    };
    let number = |key: &str| {
        let number = value(key).and_then(Value::as_f64);
        number.ok_or_else(|| malformed(format!("{name}: expected a number for {key}")))
    };
    let numeric = |filter: Numeric| {
        let step = filter.is_supported().then_some(Step::Numeric(filter));
        let refused = || unsupported(format!("{name} of these data types is not supported"));
        step.map(Some).ok_or_else(refused)
    };
    Ok(Some(match name {
        "gzip" => Step::Gzip,
        "zlib" => Step::Zlib,
        "zstd" => Step::Zstd,
        "blosc" => Step::Blosc,
        "lz4" => Step::Lz4WithLength,
        "bz2" => Step::Bzip2,
        "lzma" => match value("format").and_then(Value::as_u64) {
            // The constants of Python: detected, XZ, and the older container.
            None | Some(0..=2) => Step::Xz,
            Some(_) => return Err(unsupported("lzma without a container is not supported")),
        },
        "crc32" => sum(Checksum::Crc32, true),
        "adler32" => sum(Checksum::Adler32, true),
        "crc32c" => sum(Checksum::Crc32c, false),
        "fletcher32" => Step::Fletcher32,
        "shuffle" => match value("elementsize") {
            None => Step::Shuffle(dtype.size()),
            Some(size) => {
                let size = size.as_u64().and_then(|n| usize::try_from(n).ok());
                let size = size.filter(|n| *n > 0).map(Step::Shuffle);
                size.ok_or_else(|| malformed("shuffle: expected a positive elementsize"))?
            }
        },
        "bitround" => return Ok(None),
        "packbits" => return numeric(Numeric::PackBits),
        "delta" | "fixedscaleoffset" | "quantize" => {
            let own = number_type("dtype")?.unwrap_or(dtype);
            let astype = number_type("astype")?.unwrap_or(own);
            return numeric(match name {
                "delta" => Numeric::Delta { dtype: own, astype },
                "quantize" => Numeric::AsType { dtype: own, astype },
                _ => Numeric::ScaleOffset {
                    dtype: own,
                    astype,
                    scale: number("scale")?,
                    offset: number("offset")?,
                },
            });
        }
        "astype" => {
            let own = number_type("decode_dtype")?.unwrap_or(dtype);
            let astype = number_type("encode_dtype")?;
            let astype = astype.ok_or_else(|| malformed("astype without encode_dtype"))?;
            return numeric(Numeric::AsType { dtype: own, astype });
        }
        other => return Err(unsupported(format!("codec {other} is not supported"))),
    }))
}

/// Whether the result of a step depends on the order of the elements.
pub(crate) fn depends_on_order(step: Step) -> bool {
    matches!(step, Step::Numeric(Numeric::Delta { .. } | Numeric::PackBits))
}
