//! On-disk structures: properties of the description, header of the samples.

use std::collections::HashMap;

use spile_core::{ByteOrder, DType, Error, Result, Wire};

/// Size of the header of the samples in bytes.
pub(crate) const SAMPLES_HEADER: u64 = 8;

/// Whether a file starts like a description.
pub(crate) fn is_description(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let contains = |text: &[u8]| head.windows(text.len()).any(|window| window == text);
    head.starts_with(b"<?xml") && contains(b"<Database") && contains(b"SaveItemType=")
}

/// Properties of a description by their names; each has attributes.
pub(crate) struct Properties<'a>(HashMap<&'a str, Vec<(&'a str, &'a str)>>);

impl<'a> Properties<'a> {
    /// The attributes of all elements `Prop`. Of several with the same name, the first counts.
    pub(crate) fn parse(text: &'a str) -> Self {
        let mut all = HashMap::new();
        for element in text.split("<Prop ").skip(1) {
            let element = element.split_once('>').map_or(element, |(inside, _)| inside);
            let mut attributes = Vec::new();
            let mut rest = element;
            while let Some((name, after)) = rest.split_once("=\"") {
                let Some((value, left)) = after.split_once('"') else { break };
                attributes.push((name.trim(), value));
                rest = left;
            }
            if let Some((_, name)) = attributes.iter().find(|(key, _)| *key == "Name") {
                all.entry(*name).or_insert(attributes);
            }
        }
        Self(all)
    }

    /// An attribute of a property.
    pub(crate) fn get(&self, property: &str, attribute: &str) -> Option<&'a str> {
        let attributes = self.0.get(property)?;
        attributes.iter().find(|(name, _)| *name == attribute).map(|(_, value)| *value)
    }

    /// An attribute of a property, without a prefix such as `eRS_ONOFF_`.
    pub(crate) fn text(&self, property: &str, attribute: &str, prefix: &str) -> Result<&'a str> {
        let value = self.get(property, attribute).ok_or_else(|| {
            let message = format!("no attribute \"{attribute}\" of the property \"{property}\"");
            Error::malformed("rs-003", message).at(0)
        })?;
        Ok(value.strip_prefix(prefix).unwrap_or(value))
    }

    /// A finite number.
    pub(crate) fn number(&self, property: &str, attribute: &str) -> Result<f64> {
        let text = self.text(property, attribute, "")?;
        text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(|| {
            let message = format!("property \"{property}\": expected a number, found \"{text}\"");
            Error::malformed("rs-004", message).at(0)
        })
    }

    /// A number of samples.
    pub(crate) fn count(&self, property: &str) -> Result<u64> {
        let text = self.text(property, "Value", "")?;
        text.parse().map_err(|_| {
            let message = format!("property \"{property}\": expected a count, found \"{text}\"");
            Error::malformed("rs-005", message).at(0)
        })
    }
}

/// Header of the samples.
pub(crate) struct Samples {
    /// Code of the sample format.
    pub(crate) code: u32,
    /// Number of samples per channel and acquisition.
    pub(crate) count: u64,
}

impl Samples {
    /// Reads the header, which is at offset `base`.
    pub(crate) fn read(bytes: &[u8], base: u64) -> Result<Self> {
        let mut wire = Wire::new(bytes, base, ByteOrder::Little, "rs-002");
        Ok(Self { code: wire.u32()?, count: wire.u32()?.into() })
    }

    /// Whether a file of `len` bytes can be the samples of one to four channels of one acquisition.
    pub(crate) fn plausible(head: &[u8], len: u64) -> bool {
        let Ok(header) = Self::read(head, 0) else { return false };
        let fits = |channels: u64| {
            let row = match header.code {
                0 => channels,
                1 => 2 * channels,
                4 => 4 * channels,
                6 => 8 + 4 * channels,
                _ => return false,
            };
            SAMPLES_HEADER + row * header.count == len
        };
        header.count > 1 && (1..=4).any(fits)
    }
}

/// Element type, and code in the header of the samples, of a sample format.
pub(crate) fn sample_format(name: &str) -> Option<(DType, u32)> {
    Some(match name {
        "INT8BIT" => (DType::I8, 0),
        "INT16BIT" => (DType::I16, 1),
        "FLOAT" => (DType::F32, 4),
        "XYDOUBLEFLOAT" => (DType::F32, 6),
        _ => return None,
    })
}
