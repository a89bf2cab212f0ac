//! Writes stations.

use spile_core::{Axes, Kind, Node, NodeId, Result, Selection, Slice};

use super::{TreeWriter, attrs, factor, label, no_type, unsupported};
use crate::wire::DataType;
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Meta, Station};

/// Number of rows of a station table that are assembled at a time.
const ROWS: u64 = 4096;

impl<'a> TreeWriter<'a> {
    /// Writes a station block: the columns of all tables as rows.
    pub(super) fn station(&mut self, id: NodeId, node: &'a Node) -> Result<()> {
        let own = &node.attrs;
        let mut station = Station {
            step0: attrs::i32(own, "step0"),
            step_inc: attrs::i32(own, "step_inc"),
            time0: own.get_f64("time0").unwrap_or(0.0),
            time_inc: own.get_f64("time_inc").unwrap_or(0.0),
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
            station.station_move.push(attrs::i32(&table.attrs, "move"));
            positions.push(attrs::f64_list(&table.attrs, "position"));
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
            let form = self.form(desc)?;
            // A column has one element of a fixed type per row; bytes without a type stay so.
            let text = form.dtype.kind() == Kind::Text && form.dtype.size() > 1;
            let datatype = DataType::of(form.dtype).filter(|_| !text);
            if datatype.is_none() && form.dtype.kind() != Kind::Opaque {
                return Err(no_type(form.dtype));
            }
            station.variable_ids.push(column.id.clone().unwrap_or_default());
            station.variable_names.push(label(column));
            station.variable_types.push(datatype.unwrap_or_default());
            station.variable_units.push(attrs::text(&column.attrs, "units"));
            let unscaled = column.attrs.get_f64("mult").unwrap_or(1.0);
            let mult = desc.map.map_or(Ok(unscaled), factor)?;
            station.variable_mults.get_or_insert_default().push(mult);
            station.entry_len += form.dtype.size() as u64;
            station.nelements = form.lengths.first().copied().unwrap_or(0);
            arrays.push((desc, form.lengths));
        }
        // Factors are stored only if one of them is not 1.
        station.variable_mults = station.variable_mults.filter(|m| m.iter().any(|m| *m != 1.0));
        let (rows, width) = (station.nelements, station.entry_len);
        if arrays.iter().any(|(_, lengths)| *lengths != [rows]) {
            return Err(unsupported("station variables of different lengths"));
        }
        let meta = Meta::Station(Box::new(station));
        let (types, length) = ((BlockType::Station, DataType::Other), rows.saturating_mul(width));
        let extent = self.write_block(id, types, &meta, length, None)?;
        if self.is_planned() {
            return Ok(());
        }
        let arrays = arrays.iter().map(|(desc, _)| self.content.open_array(desc));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        for first in (0..rows).step_by(ROWS as usize) {
            let count = ROWS.min(rows - first);
            let mut table = vec![0; (count * width) as usize];
            let mut at = 0;
            for array in &arrays {
                let size = array.dtype().size();
                let part = Selection(vec![Slice::range(first, first + count)]);
                let column = array.read_bytes(&part, Axes::Stored)?;
                let cells = table.chunks_mut(width as usize).zip(column.chunks(size));
                cells.for_each(|(row, cell)| row[at..at + size].copy_from_slice(cell));
                at += size;
            }
            self.fill_bytes(extent.offset + first * width, None, &table)?;
        }
        Ok(())
    }
}
