//! Attributes of the CF conventions that change what stored values mean: scaling (section 8.1) and
//! missing values (section 2.5.1).

use spile_core::semantics::Missing;
use spile_core::{
    ArrayDesc, Attrs, Coord, DType, Kind, Linear, NodeId, Result, Role, Semantics, Tree, Value,
};

/// Attributes of the linear scaling: slope and intercept.
pub const SCALING: [&str; 2] = ["scale_factor", "add_offset"];

/// Attributes of missing values.
pub const MISSING: [&str; 5] =
    ["_FillValue", "missing_value", "valid_min", "valid_max", "valid_range"];

/// The attribute of text that xarray decodes to strings.
pub const UTF8: (&str, &str) = ("_Encoding", "utf-8");

/// Arrays of this type have scaling and missing values.
pub fn is_scalable(dtype: DType) -> bool {
    dtype.is_real() && dtype.kind() != Kind::X87
}

/// The numbers of an attribute: one, or those of a list; empty for other values.
pub fn numbers(value: Option<&Value>) -> Vec<f64> {
    let list = match value {
        Some(Value::List(list)) => &list[..],
        Some(value) => std::slice::from_ref(value),
        None => &[],
    };
    let numbers: Result<Vec<f64>> = list.iter().map(f64::try_from).collect();
    numbers.unwrap_or_default()
}

fn number(value: Option<&Value>) -> Option<f64> {
    match numbers(value)[..] {
        [number] => Some(number),
        _ => None,
    }
}

/// The attribute of integers that are stored as signed ones because the format had no others.
const UNSIGNED: &str = "_Unsigned";

/// Applies the attributes of an array. Those of scaling, [`UNSIGNED`] and [`UTF8`] are removed; those of missing values
/// stay.
pub fn apply(tree: &mut Tree, id: NodeId) -> Result<()> {
    let node = tree.node_mut(id);
    if let Some(array) = &mut node.array {
        apply_unsigned(array, &mut node.attrs);
        if array.dtype.kind() == Kind::Text {
            let is_default = |value: &Value| value.to_string().eq_ignore_ascii_case(UTF8.1);
            node.attrs.retain(|name, value| name != UTF8.0 || !is_default(value));
        }
    }
    let Some(array) = node.array.as_mut().filter(|array| is_scalable(array.dtype)) else {
        return Ok(());
    };
    let [slope, intercept] = SCALING.map(|name| number(node.attrs.get(name)));
    if slope.is_some() || intercept.is_some() {
        array.map = Some(Linear::new(intercept.unwrap_or(0.0), slope.unwrap_or(1.0)));
        node.attrs.retain(|name, value| !SCALING.contains(&name) || number(Some(value)).is_none());
    }
    let missing = missing(array, &node.attrs);
    if missing.is_none() {
        return Ok(());
    }
    let bytes = size_of::<Semantics>() + 8 * missing.values.len();
    array.semantics_mut().missing = missing;
    tree.charge(bytes as u64, "missing values")
}

/// Changes the sign of an integer type by [`UNSIGNED`], and that of its missing values.
fn apply_unsigned(array: &mut ArrayDesc, attrs: &mut Attrs) {
    let (kind, bits) = (array.dtype.kind(), 8 * array.dtype.size() as u32);
    let is_unsigned = match (kind, attrs.get_str(UNSIGNED)) {
        (Kind::Int, Some("true")) => true,
        (Kind::UInt, Some("false")) => false,
        _ => return,
    };
    let kind = if is_unsigned { Kind::UInt } else { Kind::Int };
    let dtype = DType::new(kind, array.dtype.size() as u32, array.dtype.order());
    array.dtype = dtype.unwrap_or(array.dtype);
    let changed = |value: &Value| {
        let word = match value {
            Value::Int(value) => value.cast_unsigned(),
            Value::UInt(value) => *value,
            other => return other.clone(),
        };
        let unused = 64 - bits;
        if is_unsigned {
            Value::UInt(word << unused >> unused)
        } else {
            Value::Int((word << unused).cast_signed() >> unused)
        }
    };
    let all = attrs.iter().filter(|(name, _)| *name != UNSIGNED);
    let all = all.map(|(name, value)| match value {
        _ if !MISSING.contains(&name) => (name.to_string(), value.clone()),
        Value::List(list) => (name.to_string(), Value::List(list.iter().map(changed).collect())),
        value => (name.to_string(), changed(value)),
    });
    *attrs = all.collect();
}

fn missing(array: &ArrayDesc, attrs: &Attrs) -> Missing {
    let mut values = Vec::new();
    for value in MISSING[..2].iter().flat_map(|name| numbers(attrs.get(name))) {
        if !values.iter().any(|own: &f64| own.to_bits() == value.to_bits()) {
            values.push(value);
        }
    }
    // Limits of scaled integers that are floats are limits of the scaled values.
    let is_scaled = |value: &Value| {
        let first = if let Value::List(list) = value { list.first() } else { Some(value) };
        array.dtype.is_integer() && matches!(first, Some(Value::Float(_)))
    };
    let stored = |name: &str, number: f64| match (array.map, attrs.get(name)) {
        (Some(map), Some(value)) if is_scaled(value) => map.inverse(number),
        _ => number,
    };
    let limit = |name: &str| number(attrs.get(name)).map(|number| stored(name, number));
    let (mut min, mut max) = (limit("valid_min"), limit("valid_max"));
    if let [low, high] = numbers(attrs.get("valid_range"))[..] {
        (min, max) = (Some(stored("valid_range", low)), Some(stored("valid_range", high)));
    }
    let is_swapped = array.map.is_some_and(|map| map.slope < 0.0)
        && MISSING[2..].iter().filter_map(|name| attrs.get(name)).any(is_scaled);
    if is_swapped {
        std::mem::swap(&mut min, &mut max);
    }
    Missing { values, min, max }
}

/// The attributes that tell other readers about the scaling and the missing values of an array with the
/// attributes `own`.
pub fn attributes(array: &ArrayDesc, own: &Attrs) -> Attrs {
    let mut attrs = scaling_attributes(array);
    let Missing { values, min, max } = &array.semantics().missing;
    if MISSING.iter().any(|name| own.contains(name)) {
        return attrs;
    }
    let value = |number: f64| match array.dtype.kind() {
        Kind::Int if number.fract() == 0.0 => Value::Int(number as i64),
        Kind::UInt if number.fract() == 0.0 => Value::UInt(number as u64),
        _ => Value::Float(number),
    };
    match values[..] {
        [] => {}
        [one] => attrs.push("missing_value", value(one)),
        _ => attrs.push("missing_value", Value::List(values.iter().copied().map(value).collect())),
    }
    attrs.extend(min.map(|min| ("valid_min", value(min))));
    attrs.extend(max.map(|max| ("valid_max", value(max))));
    attrs
}

/// The scaling of an array as attributes.
pub fn scaling_attributes(array: &ArrayDesc) -> Attrs {
    let Some(map) = array.map else { return Attrs::new() };
    let (intercept, slope) = map.coefficients();
    SCALING.into_iter().zip([slope, intercept].map(Value::Float)).collect()
}

/// Sets the roles of arrays that have none: numbers on coordinates are fields, strings are text.
pub fn set_roles(tree: &mut Tree) -> Result<()> {
    let role = |array: &ArrayDesc| match array.dtype.kind() {
        _ if array.semantics().role != Role::Data => None,
        Kind::Text => Some(Role::Text),
        Kind::Opaque => None,
        _ => array.coords.iter().any(|coord| *coord != Coord::None).then_some(Role::Field),
    };
    let roles = tree.arrays().filter_map(|(id, _, array)| Some((id, role(array)?)));
    let roles: Vec<(NodeId, Role)> = roles.collect();
    tree.charge((roles.len() * size_of::<Semantics>()) as u64, "the roles of arrays")?;
    for (id, role) in roles {
        if let Some(array) = tree.array_mut(id) {
            array.semantics_mut().role = role;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_core::layout::Layout;
    use spile_core::limits::Limits;
    use spile_core::shape::Shape;
    use spile_core::tree::ROOT;

    fn applied(dtype: DType, attrs: Attrs) -> (ArrayDesc, Attrs) {
        let mut tree = Tree::new(&Limits::default());
        let layout = Layout::Fill(vec![0; dtype.size()].into());
        let array = ArrayDesc::new(dtype, Shape::new([3]), layout);
        let id = tree.add_array(ROOT, "a", array).unwrap();
        tree.set_attrs(id, attrs).unwrap();
        apply(&mut tree, id).unwrap();
        let node = tree.node(id);
        (node.array.clone().unwrap(), node.attrs.clone())
    }

    #[test]
    fn the_encoding_of_text_is_not_an_attribute() {
        let attrs = || Attrs::from([("_Encoding", Value::from("UTF-8")), ("units", "m".into())]);
        assert_eq!(applied(DType::text(3), attrs()).1, Attrs::from([("units", Value::from("m"))]));
        assert_eq!(applied(DType::U8, attrs()).1, attrs());
        let other = Attrs::from([("_Encoding", Value::from("latin-1"))]);
        assert_eq!(applied(DType::text(3), other.clone()).1, other);
    }

    #[test]
    fn missing_values_apply_to_stored_values_and_stay_attributes() {
        let attrs = Attrs::from([
            ("scale_factor", Value::Float(0.5)),
            ("_FillValue", Value::Int(-999)),
            ("missing_value", Value::List(vec![Value::Int(-999), Value::Int(-998)])),
            ("valid_range", Value::List(vec![Value::Int(-10), Value::Int(10)])),
        ]);
        let (array, attrs) = applied(DType::I16, attrs);
        assert_eq!(array.map, Some(Linear::new(0.0, 0.5)));
        let missing = &array.semantics().missing;
        assert_eq!(missing.values, [-999.0, -998.0]);
        assert_eq!((missing.min, missing.max), (Some(-10.0), Some(10.0)));
        assert_eq!(
            attrs.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            [MISSING[0], MISSING[1], MISSING[4]]
        );
        let written = attributes(&array, &attrs);
        assert_eq!((written.get_f64("scale_factor"), written.len()), (Some(0.5), 2));
    }

    #[test]
    fn limits_of_scaled_values_become_limits_of_stored_values() {
        let attrs = Attrs::from([
            ("scale_factor", Value::Float(-0.5)),
            ("add_offset", Value::Float(1.0)),
            ("valid_min", Value::Float(0.0)),
            ("valid_max", Value::Float(6.0)),
        ]);
        let (array, _) = applied(DType::I16, attrs);
        let missing = &array.semantics().missing;
        assert_eq!((missing.min, missing.max), (Some(-10.0), Some(2.0)));
    }

    #[test]
    fn unsigned_integers_in_signed_types_are_unsigned() {
        let attrs = Attrs::from([("_Unsigned", "true".into()), ("_FillValue", Value::Int(-1))]);
        let (array, attrs) = applied(DType::I8, attrs);
        assert_eq!((array.dtype, attrs.len()), (DType::U8, 1));
        assert_eq!(array.semantics().missing.values, [255.0]);
        assert_eq!(attrs.get("_FillValue"), Some(&Value::UInt(255)));
        let attrs =
            Attrs::from([("_Unsigned", "false".into()), ("missing_value", Value::UInt(65535))]);
        let (array, _) = applied(DType::U16, attrs);
        assert_eq!((array.dtype, array.semantics().missing.values[0]), (DType::I16, -1.0));
    }

    #[test]
    fn missing_values_of_other_formats_become_attributes() {
        let (mut array, attrs) = applied(DType::I16, Attrs::new());
        assert!(array.meaning.is_none());
        array.semantics_mut().missing = Missing { values: vec![-1.0], min: None, max: Some(7.0) };
        let expected = [("missing_value", Value::Int(-1)), ("valid_max", Value::Int(7))];
        assert_eq!(attributes(&array, &attrs), Attrs::from(expected));
    }
}
