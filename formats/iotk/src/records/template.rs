//! The types of the records of a file as text.

use std::str::FromStr;

use spile_core::{ByteOrder, DType, Error, Kind, Result};

/// The types of the elements of each record: records are separated by `;` or line ends, the fields of a record
/// by `,`. The last record describes all further ones.
///
/// A field is `TYPE`, `TYPE*COUNT` or `TYPE*COUNT*COUNT`, first index fastest, and optionally `=NAME`. Types are
/// those of NumPy without byte order (`i4`, `f8`, `c16`, `S10`), `l4` for logicals. A count is a number, the name
/// of a preceding single integer, or nothing for the rest of the record. A record of one field without a count is
/// all elements of the record; several fields without names may repeat in a record, as an array of structures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Vec<Field>>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) dtype: DType,
    /// Lengths of the dimensions, first index fastest; empty for a single element.
    pub(super) counts: Vec<Count>,
    pub(super) name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Count {
    Number(u64),
    Name(String),
    Rest,
}

impl Default for Template {
    /// All records are arrays of bytes.
    fn default() -> Self {
        let field = Field { dtype: super::bytes(), counts: vec![Count::Rest], name: None };
        Self(vec![vec![field]])
    }
}

impl Template {
    /// The fields of record number `number`, counted from 0.
    pub(super) fn record(&self, number: usize) -> &[Field] {
        self.0.get(number).or(self.0.last()).map_or(&[], |fields| fields)
    }

    /// Number of records that it describes.
    pub(super) fn records(&self) -> usize {
        self.0.len()
    }
}

impl FromStr for Template {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let lines = text.split([';', '\n']).map(|line| line.split('#').next().unwrap_or_default());
        let records: Result<Vec<Vec<Field>>> =
            lines.map(str::trim).filter(|line| !line.is_empty()).map(record).collect();
        let records = records?;
        if records.is_empty() {
            return Err(Error::argument("the template of the records is empty"));
        }
        Ok(Self(records))
    }
}

fn record(text: &str) -> Result<Vec<Field>> {
    let mut fields: Vec<Field> =
        text.split(',').map(|part| field(part.trim())).collect::<Result<_>>()?;
    if let [only] = &mut fields[..]
        && only.counts.is_empty()
        && only.name.is_none()
    {
        only.counts.push(Count::Rest);
    }
    Ok(fields)
}

fn field(text: &str) -> Result<Field> {
    let bad = |what: &str| {
        let message =
            format!("{what} in \"{text}\": expected TYPE*COUNT=NAME, for example f8*3=cell");
        Error::argument(message)
    };
    let (types, name) = match text.split_once('=') {
        Some((types, name)) => (types.trim(), Some(name.trim())),
        None => (text, None),
    };
    let plain = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
    };
    if name.is_some_and(|name| !plain(name)) {
        return Err(bad("invalid name"));
    }
    let mut parts = types.split('*').map(str::trim);
    let dtype = parts.next().and_then(dtype).ok_or_else(|| bad("unknown type"))?;
    let count = |part: &str| match part {
        "" => Ok(Count::Rest),
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().map(Count::Number).map_err(|_| bad("invalid count"))
        }
        name if plain(name) => Ok(Count::Name(name.to_string())),
        _ => Err(bad("invalid count")),
    };
    let counts: Vec<Count> = parts.map(count).collect::<Result<_>>()?;
    let rests = counts.iter().rev().skip(1).filter(|count| **count == Count::Rest).count();
    if rests > 0 {
        return Err(bad("only the last count can be the rest of the record"));
    }
    Ok(Field { dtype, counts, name: name.map(String::from) })
}

/// The type `i4`, `f8`, `l4` and so on.
fn dtype(code: &str) -> Option<DType> {
    if let Some(size) = code.strip_prefix('l') {
        return DType::new(Kind::Bool, size.parse().ok()?, ByteOrder::Little);
    }
    // Fortran's wide reals are not those of NumPy.
    match code {
        "f16" => DType::new(Kind::Float, 16, ByteOrder::Little),
        "c32" => DType::new(Kind::Complex, 32, ByteOrder::Little),
        _ if code.starts_with(|c: char| c.is_ascii_alphabetic()) => DType::from_numpy(code),
        _ => None,
    }
    .filter(|dtype| dtype.size() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_has_types_counts_and_names() {
        let template: Template = "i4=n, f8*3 ; c16*2*n=c  # comment\nf8".parse().unwrap();
        assert_eq!(template.records(), 3);
        let [n, x] = template.record(0) else { panic!() };
        assert_eq!((n.name.as_deref(), n.counts.len()), (Some("n"), 0));
        assert_eq!((x.dtype, &x.counts[..]), (DType::F64, &[Count::Number(3)][..]));
        let [c] = template.record(1) else { panic!() };
        assert_eq!(c.counts, [Count::Number(2), Count::Name("n".into())]);
        assert_eq!(template.record(7), template.record(2));
        assert_eq!(template.record(2)[0].counts, [Count::Rest]);
        for bad in ["", "x4", "f8*-1", "f8*3=a b", "f8**2", "i4=", "f7", "S0", "f8,,i4"] {
            assert!(bad.parse::<Template>().is_err(), "{bad}");
        }
    }
}
