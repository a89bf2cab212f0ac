//! `export`: an array of two dimensions as text.

use std::io::Write;

use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::shape::Order;

use crate::read::File;

/// Bytes of stored elements that are formatted at once; their text is many times longer.
const BLOCK: usize = 32 << 10;

/// Writes comments as `# ` lines, then a line a row: the grid value and the row's elements,
/// with as many digits as it takes to read them back unchanged.
pub fn export(file: &File, out: &mut dyn Write) -> Result<()> {
    let header = file.header();
    let [rows, columns] = header.dimensions[..] else {
        let rank = header.dimensions.len();
        return Err(Error::argument(format!("the array has {rank} dimensions, not two"))
            .hint("`spile cat` prints any part of it"));
    };
    for line in String::from_utf8_lossy(&file.comments()?).lines() {
        writeln!(out, "# {line}")?;
    }
    let digits = if header.dtype == DType::F32 && header.map().is_none() { 9 } else { 17 };
    let grid = |row: u64, text: &mut String| {
        convert::write_general(rows.at(row), 17, text);
    };
    if columns.length == 0 {
        // No elements, but the grid is there all the same.
        let mut text = String::new();
        for row in 0..rows.length {
            text.clear();
            grid(row, &mut text);
            writeln!(out, "{text}")?;
        }
        return Ok(());
    }
    let array = file.array()?;
    // Blocks begin and end anywhere in a row.
    let selected = array.select(&Selection::all(), Axes::Order(Order::C))?.with_block_bytes(BLOCK);
    selected.ordered(
        |block, bytes| {
            let mut numbers = Vec::new();
            convert::to_f64(header.dtype, header.map(), bytes, &mut numbers);
            let mut text = String::with_capacity(numbers.len() * 24);
            for (k, value) in numbers.iter().enumerate() {
                let element = block.first + k as u64;
                if element % columns.length == 0 {
                    grid(element / columns.length, &mut text);
                }
                text.push('\t');
                convert::write_general(*value, digits, &mut text);
                if (element + 1) % columns.length == 0 {
                    text.push('\n');
                }
            }
            Ok(text)
        },
        |text| Ok(out.write_all(text.as_bytes())?),
    )
}
