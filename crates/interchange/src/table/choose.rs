//! Which arrays form the table.

use std::collections::{HashMap, HashSet};

use spile_core::Dataset;
use spile_core::dataset::is_per_frame;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Hint, Result};
use spile_core::layout::{ArrayDesc, Coord};
use spile_core::limits::Budget;
use spile_core::semantics::Role;
use spile_core::tree::NodeId;

use super::{Column, MOST_COLUMNS, table_dtype};

/// The arrays of a table.
pub(super) struct Choice<'a> {
    pub(super) columns: Vec<Column<'a>>,
    /// Why the other arrays are not columns.
    pub(super) left_out: HashMap<NodeId, String>,
    /// Every element has a row.
    pub(super) long: bool,
    /// Rows of each frame; of the whole table without frames.
    pub(super) rows: Vec<u64>,
    pub(super) has_frames: bool,
}

/// Arrays with the same axes.
#[derive(Default)]
struct Group<'a> {
    columns: Vec<Column<'a>>,
    /// Number of values in all frames.
    values: u64,
    /// Rows of each frame; `None` if the frame has no array. One item without frames.
    rows: Vec<Option<u64>>,
}

impl<'a> Group<'a> {
    /// Results come before names, cells and settings; then the group with more values.
    fn weight(&self) -> (bool, u64) {
        let is_result = |column: &Column<'_>| {
            let role = column.array.semantics().role;
            matches!(role, Role::Field | Role::Points | Role::Trace | Role::Log)
        };
        (self.columns.iter().any(is_result), self.values)
    }

    /// Adds an array with these rows, unless the group has other rows.
    fn merge(&mut self, column: &Column<'a>, rows: &[Option<u64>], values: u64) -> bool {
        let differ =
            |(own, new): (&Option<u64>, &Option<u64>)| own.is_some() && new.is_some() && own != new;
        if self.rows.iter().zip(rows).any(differ) {
            return false;
        }
        self.rows.resize(self.rows.len().max(rows.len()), None);
        for (own, new) in self.rows.iter_mut().zip(rows) {
            *own = own.or(*new);
        }
        self.columns.push(column.clone());
        self.values = self.values.saturating_add(values);
        true
    }
}

/// Chooses the arrays with the same axes that have the most values. Fails with `code` if no array fits a table.
pub(super) fn choose<'a>(
    content: &'a Dataset,
    code: &'static str,
    fits: &dyn Fn(DType) -> bool,
) -> Result<Choice<'a>> {
    let tree = content.tree();
    let mut left_out = HashMap::new();
    let mut first_misfit = None;
    let mut candidates = Vec::new();
    for (id, node, array) in tree.arrays() {
        let place = |e: Error| e.in_object(format!("\"{}\"", node.path));
        let desc = tree.resolve(array).map_err(place)?;
        let dtype = table_dtype(desc);
        if !fits(dtype) || desc.ragged().is_some() {
            let reason = format!("{dtype} is not supported in table columns");
            let error = || place(Error::unsupported(code, reason.clone())).hint(Hint::SelectArrays);
            first_misfit.get_or_insert_with(error);
            left_out.insert(id, reason);
            continue;
        }
        let tail = desc.shape.lengths().get(1..).unwrap_or_default().to_vec();
        candidates.push(Column { id, node, array, tail, dtype });
    }
    let coordinates: HashSet<NodeId> = tree
        .arrays()
        .flat_map(|(_, _, array)| array.coords.iter().filter_map(Coord::node))
        .collect();
    // The positions of points are columns like their other quantities.
    let is_mesh = |column: &Column<'_>| {
        let semantics = column.array.semantics();
        semantics.role == Role::Mesh && semantics.point_set.is_none()
    };
    let is_auxiliary = |column: &Column<'_>| coordinates.contains(&column.id) || is_mesh(column);
    let (mut auxiliary, mut data): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|column| is_auxiliary(column));
    if data.is_empty() {
        if let Some(error) = first_misfit {
            return Err(error);
        }
        std::mem::swap(&mut auxiliary, &mut data);
    }
    for column in auxiliary {
        let reason = if is_mesh(&column) {
            "the mesh is no column of a table of its fields"
        } else {
            "it is the coordinate of other arrays"
        };
        left_out.insert(column.id, reason.into());
    }
    let choice = largest(content, data, left_out)?;
    if choice.columns.is_empty() {
        let reason = tree.arrays().find_map(|(id, ..)| choice.left_out.get(&id));
        let message = reason.map_or("the dataset has no arrays", String::as_str);
        return Err(Error::unsupported(code, message).hint(Hint::SelectArrays));
    }
    Ok(choice)
}

/// Chooses the group of results with the most values; the first of equal ones.
fn largest<'a>(
    content: &Dataset,
    data: Vec<Column<'a>>,
    mut left_out: HashMap<NodeId, String>,
) -> Result<Choice<'a>> {
    let tree = content.tree();
    let mut numbers: HashMap<(bool, String), Vec<usize>> = HashMap::new();
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut budget = Budget::new(content.limits());
    for column in data {
        let (rows, values) = match rows_and_values(content, &column)? {
            Ok(found) => found,
            Err(reason) => {
                left_out.insert(column.id, reason);
                continue;
            }
        };
        // Bytes without a type, such as stored files, are columns if there is nothing else.
        let values = if column.dtype.kind() == Kind::Opaque { 0 } else { values };
        let key = (is_per_frame(tree, column.array), axes_key(column.array));
        let same = numbers.entry(key).or_default();
        if !same.iter().any(|k| groups[*k].merge(&column, &rows, values)) {
            let bytes = (rows.len() * size_of::<Option<u64>>()) as u64;
            budget.charge(bytes, "the rows of the frames")?;
            same.push(groups.len());
            groups.push(Group { columns: vec![column], values, rows });
        }
    }
    let most = groups.iter().map(Group::weight).max();
    let chosen = groups.iter().position(|group| Some(group.weight()) == most);
    let mut chosen = chosen.map(|number| groups.swap_remove(number)).unwrap_or_default();
    let long = chosen.columns.first().is_some_and(|column| is_long(column.array));
    let has_frames = chosen.columns.iter().any(|column| is_per_frame(tree, column.array));
    let mut other_axes = String::from("its axes differ from those of the table");
    if let Some((first, others)) = chosen.columns.split_first() {
        let more = match others.len() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        other_axes = format!("{other_axes} of {}{more}", first.node.path);
    }
    // Arrays that do not say which axis they have join, and so do those without frames: they are repeated.
    for column in groups.into_iter().flat_map(|group| group.columns) {
        let in_frames = is_per_frame(tree, column.array);
        let fits = !long
            && !is_long(column.array)
            && (has_frames || !in_frames)
            && chosen.columns.iter().all(|own| are_compatible(own.array, column.array));
        let rows = if in_frames {
            rows_and_values(content, &column)?.unwrap_or_default().0
        } else {
            let rows = column.array.shape.lengths().first().copied().unwrap_or(1);
            vec![Some(rows); chosen.rows.len()]
        };
        if !fits || !chosen.merge(&column, &rows, 0) {
            left_out.insert(column.id, other_axes.clone());
        }
    }
    let Group { mut columns, rows, .. } = chosen;
    columns.sort_by_key(|column| column.id.index());
    let rows = rows.into_iter().map(|rows| rows.unwrap_or(1)).collect();
    Ok(Choice { columns, left_out, long, rows, has_frames })
}

/// Whether arrays with the same number of rows may have the same axis.
fn are_compatible(a: &ArrayDesc, b: &ArrayDesc) -> bool {
    let axis = |array: &ArrayDesc| {
        let dim = array.dims.first().filter(|dim| **dim != ArrayDesc::default_dims(1)[0]).cloned();
        let coord = array.coords.first().filter(|coord| **coord != Coord::None).cloned();
        (dim, coord)
    };
    let (one, two) = (axis(a), axis(b));
    let trace = |array: &ArrayDesc| array.semantics().role == Role::Trace;
    trace(a) == trace(b)
        && a.semantics().point_set == b.semantics().point_set
        && (one.0.is_none() || two.0.is_none() || one.0 == two.0)
        && (one.1.is_none() || two.1.is_none() || one.1 == two.1)
}

/// Rows of each frame, and the number of values of an array in all frames. The inner error is why it is not a column.
#[allow(clippy::type_complexity)] // Used in one place.
fn rows_and_values(
    content: &Dataset,
    column: &Column<'_>,
) -> Result<std::result::Result<(Vec<Option<u64>>, u64), String>> {
    let desc = content.tree().resolve(column.array)?;
    let row = column.count();
    let Some(table) = desc.layout.frames() else {
        let rows = desc.shape.lengths().first().copied().unwrap_or(1);
        return Ok(Ok((vec![Some(rows)], rows.saturating_mul(row))));
    };
    content.limits().allow(table.len().saturating_mul(32), "the rows of the frames")?;
    let (mut rows, mut sum) = (vec![None; table.len() as usize], 0_u64);
    for found in table.cells() {
        let (frame, cell) = found?;
        let lengths = cell.shape.lengths();
        if lengths.get(1..).unwrap_or_default() != column.tail {
            return Ok(Err("a row has more elements in some frames than in others".into()));
        }
        let own = lengths.first().copied().unwrap_or(1);
        sum = sum.saturating_add(own.saturating_mul(row));
        rows[frame as usize] = Some(own);
    }
    if !rows.is_empty() && rows.iter().all(|rows| *rows == Some(0)) {
        return Ok(Err("no frame has rows of it".into()));
    }
    Ok(Ok((rows, sum)))
}

/// Whether the array has one row per element: fields of several dimensions.
fn is_long(array: &ArrayDesc) -> bool {
    let unnamed = ArrayDesc::default_dims(array.dims.len());
    let named = array.dims.len() > 1 && array.dims[1..] != unnamed[1..];
    let columns = array.shape.lengths().iter().skip(1).fold(1_u64, |n, len| n.saturating_mul(*len));
    let role = array.semantics().role;
    array.dims.len() > 1
        && (role == Role::Field
            // Columns without a name are those of a waveform, also with a uniform coordinate.
            || (role == Role::Trace && named)
            || array.coords[1..].iter().any(|coord| coord.node().is_some())
            || columns > MOST_COLUMNS - 16)
}

/// Arrays with equal keys and the same number of rows are columns of one table.
fn axes_key(array: &ArrayDesc) -> String {
    let set = &array.semantics().point_set;
    if is_long(array) {
        let lengths = array.shape.lengths();
        return format!("{lengths:?} {:?} {:?} {set:?}", array.dims, array.coords);
    }
    let trace = array.semantics().role == Role::Trace;
    // Traces have time columns of their own; a single row needs no axis.
    if trace || array.shape.lengths().first().is_none_or(|rows| *rows <= 1) {
        return format!("{trace} {set:?}");
    }
    format!("{:?} {:?} {set:?}", array.dims[0], array.coords[0])
}
