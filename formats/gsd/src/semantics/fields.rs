//! The chunks of the HOOMD schema and their defaults.

use spile_core::{DType, Error, Result, convert};

use super::Values;
use super::resolve::Resolved;
use crate::read::STEP;
use crate::wire::Type;

/// Element type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `float`, or `double` since schema 2.0.
    Real,
    U8,
    U32,
    U64,
    I32,
    /// Strings, one per row, padded with NUL.
    Names,
}

/// A chunk of the schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) columns: u64,
    /// Group with one row per member; none for a fixed number of rows.
    pub(crate) per: Option<&'static str>,
    /// Number of rows if it is fixed.
    pub(crate) rows: u64,
    /// Default of a row; of all rows if their number is fixed.
    pub(crate) default: &'static [f64],
    /// Default of a field of strings.
    pub(crate) default_names: &'static [&'static str],
}

const fn scalar(name: &'static str, kind: Kind, rows: u64, default: &'static [f64]) -> Field {
    Field { name, kind, columns: 1, per: None, rows, default, default_names: &[] }
}

const fn names(name: &'static str, default_names: &'static [&'static str]) -> Field {
    Field { name, kind: Kind::Names, columns: 1, per: None, rows: 0, default: &[], default_names }
}

const fn per_member(
    name: &'static str,
    group: &'static str,
    kind: Kind,
    columns: u64,
    default: &'static [f64],
) -> Field {
    Field { name, kind, columns, per: Some(group), rows: 0, default, default_names: &[] }
}

/// The chunk with the box of periodic boundaries.
pub(crate) const BOX: &str = "configuration/box";

/// Groups with a number of members, `<group>/N`.
pub(crate) const GROUPS: [&str; 7] =
    ["particles", "bonds", "angles", "dihedrals", "impropers", "pairs", "constraints"];

/// All chunks of the schema except `log/` and `state/`.
pub(crate) const FIELDS: [Field; 40] = [
    scalar(STEP, Kind::U64, 1, &[0.0]),
    scalar("configuration/dimensions", Kind::U8, 1, &[3.0]),
    scalar(BOX, Kind::Real, 6, &[1.0, 1.0, 1.0, 0.0, 0.0, 0.0]),
    scalar("particles/N", Kind::U32, 1, &[0.0]),
    names("particles/types", &["A"]),
    names("particles/type_shapes", &["{}"]),
    per_member("particles/typeid", "particles", Kind::U32, 1, &[0.0]),
    per_member("particles/mass", "particles", Kind::Real, 1, &[1.0]),
    per_member("particles/charge", "particles", Kind::Real, 1, &[0.0]),
    per_member("particles/diameter", "particles", Kind::Real, 1, &[1.0]),
    per_member("particles/body", "particles", Kind::I32, 1, &[-1.0]),
    per_member("particles/moment_inertia", "particles", Kind::Real, 3, &[0.0; 3]),
    per_member("particles/position", "particles", Kind::Real, 3, &[0.0; 3]),
    per_member("particles/orientation", "particles", Kind::Real, 4, &[1.0, 0.0, 0.0, 0.0]),
    per_member("particles/velocity", "particles", Kind::Real, 3, &[0.0; 3]),
    per_member("particles/angmom", "particles", Kind::Real, 4, &[0.0; 4]),
    per_member("particles/image", "particles", Kind::I32, 3, &[0.0; 3]),
    scalar("bonds/N", Kind::U32, 1, &[0.0]),
    names("bonds/types", &[]),
    per_member("bonds/typeid", "bonds", Kind::U32, 1, &[0.0]),
    per_member("bonds/group", "bonds", Kind::U32, 2, &[0.0; 2]),
    scalar("angles/N", Kind::U32, 1, &[0.0]),
    names("angles/types", &[]),
    per_member("angles/typeid", "angles", Kind::U32, 1, &[0.0]),
    per_member("angles/group", "angles", Kind::U32, 3, &[0.0; 3]),
    scalar("dihedrals/N", Kind::U32, 1, &[0.0]),
    names("dihedrals/types", &[]),
    per_member("dihedrals/typeid", "dihedrals", Kind::U32, 1, &[0.0]),
    per_member("dihedrals/group", "dihedrals", Kind::U32, 4, &[0.0; 4]),
    scalar("impropers/N", Kind::U32, 1, &[0.0]),
    names("impropers/types", &[]),
    per_member("impropers/typeid", "impropers", Kind::U32, 1, &[0.0]),
    per_member("impropers/group", "impropers", Kind::U32, 4, &[0.0; 4]),
    scalar("pairs/N", Kind::U32, 1, &[0.0]),
    names("pairs/types", &[]),
    per_member("pairs/typeid", "pairs", Kind::U32, 1, &[0.0]),
    per_member("pairs/group", "pairs", Kind::U32, 2, &[0.0; 2]),
    scalar("constraints/N", Kind::U32, 1, &[0.0]),
    per_member("constraints/value", "constraints", Kind::Real, 1, &[0.0]),
    per_member("constraints/group", "constraints", Kind::U32, 2, &[0.0; 2]),
];

/// Position of a field in [`FIELDS`], at compile time.
pub(super) const fn position(name: &str) -> usize {
    let mut k = 0;
    while k < FIELDS.len() {
        let (a, b) = (FIELDS[k].name.as_bytes(), name.as_bytes());
        let mut same = if a.len() == b.len() { 0 } else { usize::MAX };
        while same < a.len() && a[same] == b[same] {
            same += 1;
        }
        if same == a.len() {
            return k;
        }
        k += 1;
    }
    panic!("unknown field")
}

/// Positions in [`FIELDS`] of `<group>/N` for each group.
pub(super) const COUNTS: [usize; GROUPS.len()] = [
    position("particles/N"),
    position("bonds/N"),
    position("angles/N"),
    position("dihedrals/N"),
    position("impropers/N"),
    position("pairs/N"),
    position("constraints/N"),
];

impl Field {
    /// Position in [`GROUPS`] of the group with one row per member.
    pub(super) fn group(&self) -> Option<usize> {
        let name = self.per?;
        GROUPS.iter().position(|group| *group == name)
    }

    /// Default of a field of strings.
    pub(super) fn default_names(&self) -> Vec<String> {
        self.default_names.iter().map(ToString::to_string).collect()
    }
}

/// A frame without this chunk has the value of frame 0.
pub(crate) fn has_fallback(name: &str) -> bool {
    name.starts_with("log/") || field(name).is_some()
}

/// The field of a chunk name.
pub(crate) fn field(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
}

/// Names of the dimensions of a chunk.
pub(crate) fn dims(name: &str) -> [&'static str; 2] {
    const MEMBERS: [&str; GROUPS.len()] =
        ["particle", "bond", "angle", "dihedral", "improper", "pair", "constraint"];
    let member = |group: &str| {
        let at = GROUPS.iter().position(|known| *known == group);
        at.map_or("value", |at| MEMBERS[at])
    };
    if let Some(logged) = name.strip_prefix("log/") {
        // Quantities per particle are logged under the name of the group.
        let group = logged.split('/').next().unwrap_or_default();
        return [member(group), "component"];
    }
    match field(name) {
        Some(Field { kind: Kind::Names, .. }) => ["type", "letter"],
        Some(Field { per: Some("particles"), columns: 4, .. }) => ["particle", "quaternion"],
        Some(Field { per: Some("particles"), .. }) => ["particle", "xyz"],
        Some(Field { per: Some(group), .. }) => [member(group), "member"],
        Some(Field { name: BOX, .. }) => ["box_part", "component"],
        _ => ["value", "component"],
    }
}

/// Strings in rows of equal length, each with a terminating NUL. There are at least two columns,
/// because the Python package reads one column as an array without columns.
pub(crate) fn encode_names<S: AsRef<str>>(names: &[S]) -> Values {
    let names = names.iter().map(AsRef::as_ref);
    let width = names.clone().map(str::len).max().unwrap_or(0).max(1) + 1;
    let mut bytes = Vec::with_capacity(width * names.len());
    let n = names.len() as u64;
    for name in names {
        bytes.extend_from_slice(name.as_bytes());
        bytes.resize(bytes.len() + width - name.len(), 0);
    }
    Values { kind: Type::Int8, n, m: width as u64, bytes }
}

/// `values` are the default of the field `name`.
pub(super) fn is_default(name: &str, values: &Values) -> bool {
    let Some(field) = field(name) else { return false };
    if field.kind == Kind::Names {
        return values.strings() == field.default_names;
    }
    // Compares bits, because -0.0 is not the default.
    let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits();
    let numbers = values.to_f64();
    let rows = field.per.map_or(1, |_| values.n as usize);
    numbers.len() == rows * field.default.len()
        && numbers.iter().zip(field.default.iter().cycle()).all(same)
}

/// The default of a field in a frame, in single precision.
pub(crate) fn default_values(field: &Field, resolved: &Resolved<'_>) -> Result<Values> {
    let (kind, dtype) = match field.kind {
        Kind::Real => (Type::Float, DType::F32),
        Kind::U8 => (Type::UInt8, DType::U8),
        Kind::U32 => (Type::UInt32, DType::U32),
        Kind::U64 => (Type::UInt64, DType::U64),
        Kind::I32 => (Type::Int32, DType::I32),
        Kind::Names => return Ok(encode_names(field.default_names)),
    };
    let row = field.default.len().max(1) as u64;
    let rows = if field.per.is_some() { resolved.rows(field) } else { 1 };
    let size = dtype.size() as u64;
    let len = resolved.limits().allow(rows.saturating_mul(row * size), "a chunk of defaults")?;
    let mut one = Vec::new();
    convert::from_f64(dtype, None, field.default, &mut one);
    let bytes = one.repeat(len / one.len().max(1));
    Ok(Values { kind, n: rows * row / field.columns, m: field.columns, bytes })
}

/// NaN for a logged quantity in a frame that lacks it, where it would otherwise get the value of frame
/// 0. Fails with gsd-035 for types without NaN.
pub(crate) fn missing_value(name: &str, kind: Type, n: u64, m: u64) -> Result<Values> {
    let one = match kind {
        Type::Float => f32::NAN.to_le_bytes().to_vec(),
        Type::Double => f64::NAN.to_le_bytes().to_vec(),
        _ => {
            let message = "some frames lack this quantity and would get the value of frame 0";
            return Err(Error::unsupported("gsd-035", message)
                .in_object(format!("chunk \"{name}\""))
                .hint("put a frame without it first"));
        }
    };
    Ok(Values { kind, n, m, bytes: one.repeat((n * m) as usize) })
}
