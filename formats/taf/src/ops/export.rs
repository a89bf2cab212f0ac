//! `export`: a two-dimensional array as text.

use std::io::Write;

use spile_core::{Axes, DType, Error, Hint, Result, Selection, Slice, convert};

use super::crop::{Bounds, index_range};
use crate::read::File;

/// Block size in bytes of stored elements; the formatted text is many times longer.
const BLOCK_BYTES: usize = 32 << 10;

/// Writes the comments as lines that start with `# `, then one line per row: the grid value and the
/// elements, separated by tabs, with enough digits to restore the values exactly.
///
/// # Errors
/// The array does not have two dimensions.
pub fn export(file: &File, out: &mut dyn Write) -> Result<()> {
    let rank = file.header().dimensions.len();
    if rank != 2 {
        return Err(Error::argument(format!("expected 2 dimensions, found {rank}"))
            .hint(Hint::operation("taf read", "prints arrays of any number of dimensions")));
    }
    let comments = file.comments()?;
    let comments = String::from_utf8_lossy(&comments);
    for line in comments.trim_end_matches('\n').split_terminator(['\n', '\r']) {
        // Control characters could end the line or control the terminal.
        let printable: String =
            line.chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect();
        writeln!(out, "# {printable}")?;
    }
    write_rows(file, Bounds::default(), out)
}

/// Writes one line for each row inside `bounds`: the grid value of dimension 1 and the elements of
/// all columns in storage order, separated by tabs.
///
/// # Errors
/// No row is inside the bounds.
pub fn write_rows(file: &File, bounds: Bounds, out: &mut dyn Write) -> Result<()> {
    let header = file.header();
    let rows = header.dimensions[0];
    if rows.length == 0 && bounds == Bounds::default() {
        return Ok(());
    }
    let (first, last) = index_range(rows, bounds)?;
    let digits = if header.dtype == DType::F32 && header.map().is_none() { 9 } else { 17 };
    let columns = file.columns();
    if columns == 0 {
        // The number of rows without elements is not limited by the file size.
        return Ok(());
    }
    let array = file.array()?;
    // Rows slowest, then columns in storage order.
    let mut slowest = vec![0];
    slowest.extend((1..header.dimensions.len()).rev());
    let selection = Selection(vec![Slice::range(first, last + 1), Slice::Rest]);
    let selected = array.select(&selection, Axes::Slowest(&slowest))?.with_block_bytes(BLOCK_BYTES);
    // Blocks can start and end within a row.
    selected.ordered(
        |block, bytes| {
            let mut values = Vec::new();
            convert::to_f64(header.dtype, header.map(), bytes, &mut values);
            let mut text = String::with_capacity(values.len() * 24);
            for (k, value) in values.iter().enumerate() {
                let element = block.first + k as u64;
                if element.is_multiple_of(columns) {
                    convert::write_general(
                        rows.grid_value(first + element / columns),
                        17,
                        &mut text,
                    );
                }
                text.push('\t');
                convert::write_general(*value, digits, &mut text);
                if (element + 1).is_multiple_of(columns) {
                    text.push('\n');
                }
            }
            Ok(text)
        },
        |text| Ok(out.write_all(text.as_bytes())?),
    )
}
