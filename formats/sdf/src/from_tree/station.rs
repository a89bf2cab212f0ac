//! Writes stations.

use spile_core::error::Result;
use spile_core::read::Axes;
use spile_core::select::{Selection, Slice};
use spile_core::tree::{Node, NodeId};

use super::attrs::{get_f64, get_f64_list, get_i32, get_string};
use super::{TreeWriter, label, unsupported};
use crate::wire::DataType;
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Meta, Station};

/// Number of rows of a station table that are assembled at a time.
const ROWS: u64 = 4096;

impl<'a> TreeWriter<'a> {
    /// Writes a station block: the columns of all tables as rows.
    pub(super) fn station(&mut self, id: NodeId, node: &'a Node) -> Result<()> {
        let attrs = &node.attrs;
        let mut station = Station {
            step0: get_i32(attrs, "step0"),
            step_inc: get_i32(attrs, "step_inc"),
            time0: get_f64(attrs, "time0").unwrap_or(0.0),
            time_inc: get_f64(attrs, "time_inc").unwrap_or(0.0),
            ..Station::default()
        };
        let mut columns = self.arrays(id);
        // The first array is the time; the others belong to no station and come last.
        let others = columns.split_off(columns.len().min(1));
        let mut positions = Vec::new();
        for child in self.children.get(&id).cloned().unwrap_or_default() {
            let table = self.tree.node(child);
            if table.array.is_some() {
                continue;
            }
            let variables = self.arrays(child);
            station.station_ids.push(table.id.clone().unwrap_or_default());
            station.station_names.push(label(table));
            station.station_nvars.push(variables.len() as u64);
            station.station_move.push(get_i32(&table.attrs, "move"));
            positions.push(get_f64_list(&table.attrs, "position"));
            columns.extend(variables);
        }
        columns.extend(others);
        let ndims = positions.first().map_or(0, Vec::len);
        station.station_x0 = (0..ndims)
            .flat_map(|d| positions.iter().map(move |p| p.get(d).copied().unwrap_or(0.0)))
            .collect();
        let mut arrays = Vec::new();
        for (id, column, desc) in columns {
            self.owned.insert(id);
            let array = self.open(desc)?;
            let datatype = DataType::of(array.dtype());
            station.variable_ids.push(column.id.clone().unwrap_or_default());
            station.variable_names.push(label(column));
            station.variable_types.push(datatype.unwrap_or_default());
            station.variable_units.push(get_string(&column.attrs, "units"));
            let mult = desc.map.map(|map| map.slope);
            station.variable_mults.get_or_insert_default().push(mult.unwrap_or(1.0));
            station.entry_len += array.dtype().size() as u64;
            station.nelements = array.shape().count().unwrap_or(0);
            arrays.push(array);
        }
        // Factors are stored only if one of them is not 1.
        station.variable_mults = station.variable_mults.filter(|m| m.iter().any(|m| *m != 1.0));
        let (rows, width) = (station.nelements, station.entry_len);
        if arrays.iter().any(|a| a.shape().lengths() != [rows]) {
            return Err(unsupported("station variables of different lengths"));
        }
        let meta = Meta::Station(Box::new(station));
        let header = self.block_header(node, BlockType::Station, DataType::Other, &meta);
        let length = rows.saturating_mul(width);
        let extent = self.writer.reserve(header, &meta, length, None)?;
        for first in (0..rows).step_by(ROWS as usize) {
            let count = ROWS.min(rows - first);
            let mut table = vec![0; (count * width) as usize];
            let mut at = 0;
            for array in &arrays {
                let size = array.dtype().size();
                let (start, stop) = (Some(first as i64), Some((first + count) as i64));
                let part = Selection(vec![Slice::Range { start, stop, step: 1 }]);
                let column = array.read(&part, Axes::Stored)?;
                let cells = table.chunks_mut(width as usize).zip(column.chunks(size));
                cells.for_each(|(row, cell)| row[at..at + size].copy_from_slice(cell));
                at += size;
            }
            self.writer.fill(extent.offset + first * width, None, &table)?;
        }
        Ok(())
    }
}
