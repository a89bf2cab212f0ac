//! Atoms of any dataset as extended XYZ.
//!
//! The atoms are those of [`Dataset::atoms`], the cell that of [`Dataset::cell`]. Quantities per frame are
//! pairs of the comment line. Rows are formatted on all threads and written in order.

mod plan;

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;
use spile_core::atoms::Atoms;
use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::Result;
use spile_core::format::{FormatWriter, Loss, WriteOptions};
use spile_core::read::{Array, Axes};
use spile_core::select::{Selection, Slice};
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::tree::NodeId;
use spile_core::{Dataset, Frame};
use spile_interchange::structure::{angstroms, atomic_number};

use crate::Xyz;
use crate::wire::{Letter, looks_like_values};
use plan::{Plan, letter};

/// Rows formatted at once by one thread.
const ROWS: u64 = 1 << 13;

impl FormatWriter for Xyz {
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        Ok(Plan::new(content)?.losses(content))
    }

    /// Writes all frames; a dataset without frames is one frame.
    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let plan = Plan::new(content)?;
        let frames = content.tree().frames().map_or(1, |axis| axis.len());
        for frame in 0..frames {
            write_frame(content, &plan, frame, sink).map_err(|e| e.in_frame(frame))?;
        }
        Ok(Vec::new())
    }
}

fn write_frame(content: &Dataset, plan: &Plan, frame: u64, sink: &mut Sink) -> Result<()> {
    let atoms = content.atoms(frame)?;
    let table = AtomTable::new(content, plan, atoms.as_ref());
    let mut text = format!("{}\n", table.atoms);
    write_comment(content, plan, frame, &table, &mut text)?;
    sink.write_all(text.as_bytes())?;
    let starts: Vec<u64> = (0..table.atoms).step_by(ROWS as usize).collect();
    for some in starts.chunks(4 * rayon::current_num_threads()) {
        let format = |start: &u64| table.format(*start..(*start + ROWS).min(table.atoms));
        let formatted: Vec<String> = some.par_iter().map(format).collect::<Result<_>>()?;
        formatted.iter().try_for_each(|text| sink.write_all(text.as_bytes()))?;
    }
    Ok(())
}

/// A column or adjacent columns of the rows.
struct Column<'a> {
    name: &'a str,
    array: &'a Array,
    /// Factor of the values.
    scale: f64,
    /// The written numbers have to be those of float64.
    wide: bool,
}

/// The rows of a frame.
struct AtomTable<'a> {
    atoms: u64,
    frame: Option<&'a Atoms>,
    columns: Vec<Column<'a>>,
    /// Some species are not chemical symbols: a column of atomic numbers is added.
    numbers: bool,
}

impl<'a> AtomTable<'a> {
    fn new(content: &Dataset, plan: &'a Plan, frame: Option<&'a Atoms>) -> Self {
        let mut table = Self { atoms: 0, frame, columns: Vec::new(), numbers: false };
        let Some(atoms) = frame else { return table };
        table.atoms = atoms.count;
        let units = atoms.positions.units();
        let is_kept = |node: NodeId| plan.is_kept(content, node);
        table.columns.push(Column {
            name: plan.name(plan.arrays.positions).unwrap_or("pos"),
            array: &atoms.positions,
            scale: angstroms(units),
            wide: is_kept(plan.arrays.positions),
        });
        for column in &atoms.columns {
            // An array with another shape than in other frames may have become too wide.
            let Some(name) = plan.name(column.node) else { continue };
            let (array, wide) = (&column.array, is_kept(column.node));
            table.columns.push(Column { name, array, scale: 1.0, wide });
        }
        table.numbers = match &atoms.species {
            Some(species) => {
                let mut used = vec![false; species.names.len()];
                for code in &species.codes {
                    match used.get_mut(*code as usize) {
                        Some(used) => *used = true,
                        None => return Self { numbers: true, ..table },
                    }
                }
                let names = species.names.iter().zip(used).filter(|(_, used)| *used);
                names.map(|(name, _)| name).any(|name| atomic_number(&species_name(name)).is_none())
            }
            None => false,
        };
        // The source has such a column already, or is an XYZ file without one.
        table.numbers &= table.columns.iter().all(|column| column.name != "Z")
            && !plan.arrays.species.is_some_and(is_kept);
        table
    }

    /// The value of `Properties`.
    fn properties(&self) -> String {
        let mut text = "species:S:1".to_string();
        for column in &self.columns {
            let columns = column.array.shape().lengths().get(1).copied().unwrap_or(1);
            let letter = letter(column.array.dtype()).map_or('R', Letter::letter);
            let _ = write!(text, ":{}:{letter}:{columns}", column.name);
        }
        if self.frame.is_none() {
            text.push_str(":pos:R:3");
        }
        if self.numbers {
            text.push_str(":Z:I:1");
        }
        text
    }

    /// The text of some rows.
    fn format(&self, rows: Range<u64>) -> Result<String> {
        let Some(atoms) = self.frame else { return Ok(String::new()) };
        let mut values = Vec::new();
        for column in &self.columns {
            let mut slices = vec![Slice::ALL; column.array.shape().rank()];
            if let Some(first) = slices.first_mut() {
                *first = Slice::range(rows.start, rows.end);
            }
            let axes = Axes::Order(Order::C);
            let bytes = column.array.read_bytes(&Selection(slices), axes)?;
            values.push(bytes);
        }
        let mut text = String::new();
        let count = rows.end - rows.start;
        for row in 0..count {
            let k = usize::try_from(rows.start + row).unwrap_or(usize::MAX);
            let own = atoms.species.as_ref();
            let code = own.and_then(|species| species.codes.get(k));
            let name = match (own.and_then(|species| species.name(k)), code) {
                (Some(name), _) => species_name(name),
                // A code without a name.
                (None, Some(code)) => code.to_string(),
                (None, None) => "X".into(),
            };
            text.push_str(&name);
            for (column, bytes) in self.columns.iter().zip(&values) {
                let each = bytes.len() / usize::try_from(count).unwrap_or(1).max(1);
                let at = each * row as usize;
                column.write(&bytes[at..at + each], &mut text);
            }
            if self.numbers {
                let _ = write!(text, " {}", atomic_number(&name).unwrap_or(0));
            }
            text.push('\n');
        }
        Ok(text)
    }
}

/// A species as one field: blanks would be another column.
fn species_name(name: &str) -> String {
    let clean: String = name.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
    if clean.is_empty() { "X".into() } else { clean }
}

impl Column<'_> {
    /// Appends the elements of one row, each after a blank.
    fn write(&self, row: &[u8], out: &mut String) {
        let dtype = self.array.dtype().with_order(spile_core::wire::ByteOrder::Little);
        for element in row.chunks(dtype.size().max(1)) {
            out.push(' ');
            write_value(dtype, element, (self.scale, self.wide), out);
        }
    }
}

/// Appends a number, logical value or word.
fn write_value(dtype: DType, element: &[u8], (scale, wide): (f64, bool), out: &mut String) {
    match dtype.kind() {
        Kind::Bool => out.push(if element.iter().any(|b| *b != 0) { 'T' } else { 'F' }),
        Kind::Text => out.push_str(&species_name(&convert::text_of(element))),
        Kind::Float if scale != 1.0 || wide => {
            convert::write_f64(scale * convert::element_f64(dtype, element), out);
        }
        _ => convert::write_element(dtype, element, out),
    }
}

/// Appends the comment line.
fn write_comment(
    content: &Dataset,
    plan: &Plan,
    frame: u64,
    table: &AtomTable<'_>,
    out: &mut String,
) -> Result<()> {
    let cell = content.cell(frame)?;
    if let Some(cell) = &cell {
        let factor = angstroms(cell.units.as_deref());
        out.push_str("Lattice=\"");
        for (k, value) in cell.vectors.as_flattened().iter().enumerate() {
            out.push_str(if k == 0 { "" } else { " " });
            convert::write_f64(factor * value, out);
        }
        out.push_str("\" ");
    }
    let _ = write!(out, "Properties={}", table.properties());
    let own = match plan.pbc {
        Some(id) => content.effective_array_in_frame(id, frame)?,
        None => None,
    };
    let pbc: Option<Vec<bool>> = match (own, &cell) {
        (Some(own), _) => {
            let bytes = own.read_bytes(&Selection::all(), Axes::Order(Order::C))?;
            Some(bytes.iter().map(|byte| *byte != 0).collect())
        }
        // A vector of length 0: the system has fewer dimensions.
        (None, Some(cell)) => {
            Some(cell.vectors.iter().map(|vector| vector.iter().any(|x| *x != 0.0)).collect())
        }
        (None, None) => None,
    };
    if let Some(pbc) = pbc {
        let letters: Vec<&str> = pbc.iter().map(|pbc| if *pbc { "T" } else { "F" }).collect();
        let _ = write!(out, " pbc=\"{}\"", letters.join(" "));
    }
    let moment = content.tree().frames().is_some();
    let moment: Option<Frame> =
        moment.then(|| content.frame(i64::try_from(frame).unwrap_or(0))).transpose()?;
    if let Some(moment) = moment {
        if let Some(step) = moment.step()? {
            let _ = write!(out, " step={step}");
        }
        if let Some(time) = moment.time()? {
            out.push_str(" time=");
            convert::write_f64(time, out);
        }
    }
    for (id, key) in &plan.infos {
        let Some(array) = content.effective_array_in_frame(*id, frame)? else { continue };
        write_info(key, &array, plan.is_kept(content, *id), out)?;
    }
    out.push('\n');
    Ok(())
}

/// Appends a pair. `kept`: reading gives the same array, of the same shape.
fn write_info(key: &str, array: &Array, kept: bool, out: &mut String) -> Result<()> {
    let bytes = array.read_bytes(&Selection::all(), Axes::Order(Order::C))?;
    let dtype = array.dtype().with_order(spile_core::wire::ByteOrder::Little);
    let _ = write!(out, " {key}=");
    if dtype.kind() == Kind::Text {
        quote(&convert::text_of(&bytes), out);
        return Ok(());
    }
    let elements: Vec<String> = bytes
        .chunks(dtype.size().max(1))
        .map(|element| {
            let mut text = String::new();
            write_value(dtype, element, (1.0, kept), &mut text);
            text
        })
        .collect();
    match (array.shape().lengths(), &elements[..]) {
        ([], _) => out.push_str(&elements.join(" ")),
        (_, [one]) if !kept => out.push_str(one),
        ([rows, columns], _) if kept && *rows > 0 && *columns > 0 => {
            let rows = elements.chunks(elements.len() / (*rows as usize).max(1));
            let rows: Vec<String> = rows.map(|row| format!("[{}]", row.join(", "))).collect();
            let _ = write!(out, "[{}]", rows.join(", "));
        }
        (_, [] | [_]) => {
            let _ = write!(out, "[{}]", elements.join(", "));
        }
        _ => {
            let _ = write!(out, "\"{}\"", elements.join(" "));
        }
    }
    Ok(())
}

/// Appends a text in quotes. Text that would be read as an array of numbers begins with an escape.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    if looks_like_values(text) {
        out.push('\\');
    }
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
}
