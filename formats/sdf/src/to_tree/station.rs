//! Time histories at stations. Rows with one value per variable become one array per variable.

use spile_core::error::Result;
use spile_core::layout::{ArrayDesc, Coord, Extents, Layout};
use spile_core::semantics::Role;
use spile_core::shape::{Order, Shape};
use spile_core::tree::{Attrs, NodeId, Tree, Value};

use super::{linear, push_text};
use crate::index::Block;
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

/// Adds the time and one group of variables per station to `group`.
pub(crate) fn add(
    tree: &mut Tree,
    group: NodeId,
    block: &Block,
    station: &Station,
    file: &FileHeader,
) -> Result<()> {
    let count = rows(block, station);
    let mut columns = Columns { block, station, file, count, next: 0, offset: 0 };
    let Some(time) = column(tree, group, None, &mut columns)? else { return Ok(()) };
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
        for _ in 0..*nvars {
            if column(tree, table, Some(time), &mut columns)?.is_none() {
                break;
            }
        }
    }
    // Variables that belong to no station.
    while column(tree, group, Some(time), &mut columns)?.is_some() {}
    Ok(())
}

/// Adds the next variable to `table`; all but the time itself have the time as coordinate. `None` if
/// there is no next variable.
fn column(
    tree: &mut Tree,
    table: NodeId,
    time: Option<NodeId>,
    columns: &mut Columns<'_>,
) -> Result<Option<NodeId>> {
    let (station, at) = (columns.station, columns.next);
    let Some((mut desc, mut attrs)) = columns.next() else { return Ok(None) };
    desc.semantics_mut().role = Role::Table;
    desc.coords = vec![time.map_or(Coord::None, Coord::Node)];
    let id = tree.add_array(table, name(station, at), desc)?;
    let node = tree.node_mut(id);
    node.id = station.variable_ids.get(at).cloned();
    if node.name != station.variable_names[at] {
        attrs.push("label", station.variable_names[at].as_str());
    }
    tree.set_attrs(id, attrs)?;
    Ok(Some(id))
}

/// Message for variables that cannot be read.
pub(crate) fn unreadable(readable: usize, all: usize) -> String {
    format!("only the first {readable} of {all} variables can be read")
}

/// Number of variables before the first one of an unknown type, whose length is not known.
pub(crate) fn readable(block: &Block, station: &Station, file: &FileHeader) -> usize {
    let mut columns = Columns { block, station, file, count: 0, next: 0, offset: 0 };
    while columns.next().is_some() {}
    columns.next
}

fn name(station: &Station, variable: usize) -> &str {
    let names = [&station.variable_names, &station.variable_ids];
    names.into_iter().filter_map(|n| n.get(variable)).find(|t| !t.is_empty()).map_or("", |t| t)
}

/// Iterator over the variables of a row.
struct Columns<'a> {
    block: &'a Block,
    station: &'a Station,
    file: &'a FileHeader,
    count: u64,
    next: usize,
    offset: u64,
}

impl Columns<'_> {
    /// The next variable; `None` after the last one or if the row is too short.
    fn next(&mut self) -> Option<(ArrayDesc, Attrs)> {
        let (station, at) = (self.station, self.next);
        let dtype = station.variable_types.get(at)?.dtype(self.file.order)?;
        let size = dtype.size() as u64;
        let end = self.offset.checked_add(size).filter(|end| *end <= station.entry_len)?;
        // From the first element to the last one.
        let span = match self.count {
            0 => 0,
            n => (n - 1) * station.entry_len + size,
        };
        let extents = Extents::one(self.block.header.data_location + self.offset, span);
        let layout = Layout::Rows { extents, stride: station.entry_len, order: Order::F };
        let mut desc = ArrayDesc::new(dtype, Shape::new([self.count]), layout);
        desc.dims = vec!["time".into()];
        let mut attrs = Attrs::new();
        if let Some(mults) = &station.variable_mults {
            desc.map = linear(mults[at], &mut attrs);
        }
        push_text(&mut attrs, "units", &station.variable_units[at]);
        (self.offset, self.next) = (end, at + 1);
        Some((desc, attrs))
    }
}
