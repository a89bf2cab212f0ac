//! `export`: an array of two dimensions as text.

use std::io::Write;

use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::read::Axes;
use spile_core::select::{Selection, Slice};

use super::crop::{Bounds, kept};
use crate::read::File;

/// Bytes of stored elements that are formatted at once; their text is many times longer.
const BLOCK: usize = 32 << 10;

/// Writes comments as `# ` lines, then a line a row: the grid value and the row's elements,
/// with as many digits as it takes to read them back unchanged.
pub fn export(file: &File, out: &mut dyn Write) -> Result<()> {
    let rank = file.header().dimensions.len();
    if rank != 2 {
        return Err(Error::argument(format!("the array has {rank} dimensions, not two"))
            .hint("`spile taf read` prints the columns of any array"));
    }
    let comments = file.comments()?;
    let comments = String::from_utf8_lossy(&comments);
    for line in comments.trim_end_matches('\n').split_terminator(['\n', '\r']) {
        // Control characters would end the line, or drive the terminal.
        let clean: String =
            line.chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect();
        writeln!(out, "# {clean}")?;
    }
    write_rows(file, Bounds::default(), out)
}

/// Writes the rows of dimension 1 inside `bounds`, each with its grid value and the elements of
/// all columns.
pub fn write_rows(file: &File, bounds: Bounds, out: &mut dyn Write) -> Result<()> {
    let header = file.header();
    let rows = header.dimensions[0];
    if rows.length == 0 && bounds == Bounds::default() {
        return Ok(());
    }
    let (first, last) = kept(rows, bounds)?;
    let digits = if header.dtype == DType::F32 && header.map().is_none() { 9 } else { 17 };
    let columns = file.columns();
    if columns == 0 {
        // A row without elements says nothing, and there may be as many as a number can say.
        return Ok(());
    }
    let array = file.array()?;
    // Rows slowest, then the columns in the order in which they are stored.
    let mut slowest = vec![0];
    slowest.extend((1..header.dimensions.len()).rev());
    let selection = Selection(vec![Slice::range(first, last + 1), Slice::Rest]);
    let selected = array.select(&selection, Axes::Slowest(&slowest))?.with_block_bytes(BLOCK);
    // Blocks begin and end anywhere in a row.
    selected.ordered(
        |block, bytes| {
            let mut numbers = Vec::new();
            convert::to_f64(header.dtype, header.map(), bytes, &mut numbers);
            let mut text = String::with_capacity(numbers.len() * 24);
            for (k, value) in numbers.iter().enumerate() {
                let element = block.first + k as u64;
                if element.is_multiple_of(columns) {
                    convert::write_general(rows.at(first + element / columns), 17, &mut text);
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
