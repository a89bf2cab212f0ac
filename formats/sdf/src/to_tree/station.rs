//! Time histories at stations. Rows with one value per variable become one array per variable.

use spile_core::{
    ArrayDesc, Attrs, Coord, Extents, Layout, NodeId, Order, Result, Role, Shape, Tree, Value,
};

use super::builder::linear;
use crate::block::Block;
use crate::wire::FileHeader;
use crate::wire::meta::Station;

/// Attributes of the block.
pub(crate) fn attrs(station: &Station) -> Attrs {
    Attrs::from([
        ("step0", Value::Int(station.step0.into())),
        ("step_inc", Value::Int(station.step_inc.into())),
        ("time0", station.time0.into()),
        ("time_inc", station.time_inc.into()),
    ])
}

/// Number of complete rows. The stored number is updated after each row and may be higher.
pub(crate) fn rows(block: &Block, station: &Station) -> u64 {
    station.nelements.min(block.header.data_length.checked_div(station.entry_len).unwrap_or(0))
}

/// Adds the time and one group of variables per station to `group`. Returns the number of variables
/// before the first one of an unknown type, whose length is not known.
pub(crate) fn add(
    tree: &mut Tree,
    group: NodeId,
    block: &Block,
    station: &Station,
    file: &FileHeader,
) -> Result<usize> {
    let columns = columns(block, station, file);
    let readable = columns.len();
    let mut columns = columns.into_iter().enumerate();
    let Some(time) = columns.next() else { return Ok(0) };
    let time = add_column(tree, group, Coord::None, station, time)?;
    let stations = station.station_ids.len();
    for (k, nvars) in station.station_nvars.iter().enumerate() {
        let label = [&station.station_names[k], &station.station_ids[k]];
        let label = label.into_iter().find(|t| !t.is_empty()).map_or("", |t| t);
        let table = tree.add_group(group, label)?;
        let position =
            station.station_x0.iter().skip(k).step_by(stations).map(|x| Value::Float(*x)).collect();
        let mut attrs = Attrs::from([
            ("position", Value::List(position)),
            ("move", Value::Int(station.station_move[k].into())),
        ]);
        let node = tree.node_mut(table);
        node.id = Some(station.station_ids[k].clone());
        if node.name != station.station_names[k] {
            attrs.push("label", station.station_names[k].as_str());
        }
        tree.set_attrs(table, attrs)?;
        for column in columns.by_ref().take(usize::try_from(*nvars).unwrap_or(usize::MAX)) {
            add_column(tree, table, Coord::Node(time), station, column)?;
        }
    }
    // Variables that belong to no station.
    for column in columns {
        add_column(tree, group, Coord::Node(time), station, column)?;
    }
    Ok(readable)
}

/// Adds the variable with number `k` to `table`.
fn add_column(
    tree: &mut Tree,
    table: NodeId,
    coord: Coord,
    station: &Station,
    (k, (mut desc, mut attrs)): (usize, (ArrayDesc, Attrs)),
) -> Result<NodeId> {
    desc.coords = vec![coord];
    let (id, label) = (&station.variable_ids[k], &station.variable_names[k]);
    let name = if label.is_empty() { id } else { label };
    let node = tree.add_array(table, name, desc)?;
    tree.node_mut(node).id = Some(id.clone());
    if tree.node(node).name != *label {
        attrs.push("label", label.as_str());
    }
    tree.set_attrs(node, attrs)?;
    Ok(node)
}

/// The variables of a row up to the first one of an unknown type or beyond the end of the row.
fn columns(block: &Block, station: &Station, file: &FileHeader) -> Vec<(ArrayDesc, Attrs)> {
    let count = rows(block, station);
    let mut columns = Vec::new();
    let mut offset = 0_u64;
    for (k, datatype) in station.variable_types.iter().enumerate() {
        let Some(dtype) = datatype.dtype(file.order) else { break };
        let size = dtype.size() as u64;
        if offset + size > station.entry_len {
            break;
        }
        // From the first element to the last one.
        let span = count.checked_sub(1).map_or(0, |n| n * station.entry_len + size);
        let extents = Extents::one(block.header.data_location + offset, span);
        let layout = Layout::Rows { extents, stride: station.entry_len, order: Order::F };
        let mut desc = ArrayDesc::new(dtype, Shape::new([count]), layout);
        desc.dims = vec!["time".into()];
        desc.semantics_mut().role = Role::Table;
        let mut attrs = Attrs::new();
        if let Some(mults) = &station.variable_mults {
            desc.map = linear(mults[k], &mut attrs);
        }
        attrs.push_text("units", &station.variable_units[k]);
        columns.push((desc, attrs));
        offset += size;
    }
    columns
}
