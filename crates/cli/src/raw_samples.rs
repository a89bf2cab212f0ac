//! The description of raw samples: `--from raw --type i16 --rate 1e9 --header 512 --channels 2 --big-endian`.
//!
//! The options are those after `--from raw`, because commands have options of the same names. They become one value,
//! `raw:type=i16,rate=1e9`, which can also be written directly.

use std::ffi::OsString;

use spile::dtype::{DType, Kind};
use spile::wire::ByteOrder;
use spile_raw::Raw;

/// Joins `--from raw` and the options after it.
pub(crate) fn joined(args: Vec<OsString>) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::with_capacity(args.len());
    let mut args = args.into_iter().peekable();
    while let Some(arg) = args.next() {
        let after_from = out.last().is_some_and(|last| last == "--from") && arg == "raw";
        if !after_from && arg != "--from=raw" {
            out.push(arg);
            continue;
        }
        let mut fields = Vec::new();
        while let Some(name) = args.peek().and_then(field) {
            args.next();
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name.to_string(), Some(value.to_string())),
                None if name == "big-endian" => (name, Some("true".into())),
                None => (name, args.next().map(|value| value.to_string_lossy().into_owned())),
            };
            fields.push(format!("{name}={}", value.unwrap_or_default()));
        }
        let prefix = if after_from { "" } else { "--from=" };
        let list = fields.join(",");
        out.push(if list.is_empty() { arg } else { format!("{prefix}raw:{list}").into() });
    }
    out
}

/// The name of an option of raw samples, with its value after `=`.
fn field(arg: &OsString) -> Option<String> {
    let option = arg.to_str()?.strip_prefix("--")?;
    let name = option.split('=').next()?;
    ["type", "rate", "header", "channels", "big-endian"].contains(&name).then(|| option.into())
}

/// The format of `type=i16,rate=1e9,header=512,channels=2,big-endian=true`; all but the type have defaults.
pub(crate) fn parse(list: &str) -> Result<Raw, String> {
    let mut raw = Raw::BYTES;
    let mut order = ByteOrder::Little;
    for field in list.split(',').filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        let bad = || format!("raw samples: invalid {name} \"{value}\"");
        // 1e6 is a number of bytes, too.
        let count = || {
            let number: f64 = value.parse().map_err(|_| bad())?;
            let whole = number >= 0.0 && number.fract() == 0.0 && number < 9e15;
            if whole { Ok(number as u64) } else { Err(bad()) }
        };
        match name {
            "type" => raw.dtype = sample_type(value).ok_or_else(bad)?,
            "rate" => raw.rate = Some(value.parse().map_err(|_| bad())?),
            "header" => raw.header = count()?,
            "channels" => raw.channels = count()?,
            "big-endian" if value == "true" => order = ByteOrder::Big,
            _ => return Err(bad()),
        }
    }
    raw.dtype = raw.dtype.with_order(order);
    Ok(raw)
}

/// `i16`, `int16` or `<i2`; `c64` is a complex number of two `f32`.
fn sample_type(name: &str) -> Option<DType> {
    let split = name.find(|c: char| c.is_ascii_digit())?;
    let (kind, bits) = name.split_at(split);
    let bits: u32 = match bits.parse() {
        Ok(bits) => bits,
        Err(_) => return None,
    };
    let kind = match kind {
        "i" | "int" => Kind::Int,
        "u" | "uint" => Kind::UInt,
        "f" | "float" | "flt" => Kind::Float,
        "c" | "complex" => Kind::Complex,
        _ => return DType::from_numpy(name),
    };
    let whole = bits.is_multiple_of(8).then_some(bits / 8)?;
    DType::new(kind, whole, ByteOrder::Little)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_after_from_raw_become_one_value() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let both = |from: &str, to: &str| assert_eq!(joined(words(from)), words(to));
        both(
            "spile plot x.dat --from raw --type i16 --rate=1e9 --header 512 -o a.png",
            "spile plot x.dat --from raw:type=i16,rate=1e9,header=512 -o a.png",
        );
        both("spile --from=raw --type f32 x", "spile --from=raw:type=f32 x");
        both(
            "spile taf create a.npy --type int16 -o b",
            "spile taf create a.npy --type int16 -o b",
        );
        both("spile x --from raw", "spile x --from raw");
    }

    #[test]
    fn descriptions_have_types_and_defaults() {
        let raw = parse("type=i16,rate=1e9,header=512,channels=2").unwrap();
        assert_eq!(raw, Raw { dtype: DType::I16, rate: Some(1e9), header: 512, channels: 2 });
        let big = parse("type=i16,big-endian=true").unwrap();
        assert_eq!(big.dtype, DType::I16.with_order(ByteOrder::Big));
        assert!(
            parse("type=i7").is_err() && parse("size=3").is_err() && parse("header=-1").is_err()
        );
        assert_eq!(sample_type("c64").map(DType::size), Some(8));
    }
}
