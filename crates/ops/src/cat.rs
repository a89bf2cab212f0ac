//! The values of an array in C order (last index fastest), whatever the order of the file.
//!
//! Memory does not grow with the array: blocks are formatted on all threads and written in order, a few
//! at a time.

mod csv;

use std::fmt::Write as _;
use std::io::Write;

use spile_core::read::Selected;
use spile_core::select::Span;
use spile_core::{Array, Axes, DType, Order, Result, Selection, convert};

use crate::json;

pub use csv::{Csv, csv};

/// Number of bytes per line of hexadecimal output.
const DUMP: u64 = 32;

/// Which values of an array with linear scaling are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Physical values: scaled, with missing values as NaN. Without either, the stored values.
    Mapped,
    /// Stored values.
    Stored,
}

/// The element type that [`raw`] writes and JSON output names.
pub fn dtype(array: &Array, values: Values) -> DType {
    shown(array, values).dtype()
}

/// The array whose elements are shown.
fn shown(array: &Array, values: Values) -> Array {
    match values {
        Values::Mapped => array.physical(),
        Values::Stored => array.clone(),
    }
}

/// Writes one line per row, columns separated by tabs. Planes of arrays with more than two dimensions are
/// separated by an empty line and a comment.
pub fn text(
    array: &Array,
    selection: &Selection,
    values: Values,
    out: &mut dyn Write,
) -> Result<()> {
    let array = &shown(array, values);
    let selected = select(array, selection)?;
    let shape = selected.shape();
    // A list of single characters is text.
    let bytes = [DType::opaque(1), DType::text(1)].contains(&array.dtype());
    if bytes && shape.rank() == 1 {
        return dump(&selected, out);
    }
    let (row, plane) = match *shape.lengths() {
        [.., rows, columns] => (columns, rows.saturating_mul(columns)),
        _ => (1, u64::MAX),
    };
    let planes = shape.rank() > 2;
    let words = Words { dtype: array.dtype(), element: convert::write_element };
    let before = |k: u64, line: &mut String| {
        if planes && k.is_multiple_of(plane) {
            plane_heading(k / plane, selected.spans(), line);
        }
    };
    let after = |k: u64, line: &mut String| {
        line.push(if (k + 1).is_multiple_of(row) { '\n' } else { '\t' });
    };
    words.write(&selected, before, after, out)
}

/// Writes bytes without a type: text as it is, anything else in hexadecimal, 32 bytes per line.
fn dump(selected: &Selected<'_>, out: &mut dyn Write) -> Result<()> {
    let printable = |text: &str| text.chars().all(|c| !c.is_control() || "\n\r\t".contains(c));
    let mut text = true;
    selected.stream(|_, bytes| {
        text &= match std::str::from_utf8(bytes) {
            Ok(whole) => printable(whole),
            // A block may end inside a character.
            Err(e) => {
                let (sure, _) = bytes.split_at(e.valid_up_to());
                e.error_len().is_none() && std::str::from_utf8(sure).is_ok_and(printable)
            }
        };
        Ok(())
    })?;
    let count = selected.count();
    let mut line = String::new();
    selected.stream(|block, bytes| {
        if text {
            out.write_all(bytes)?;
            if block.first + block.count == count && !bytes.ends_with(b"\n") {
                out.write_all(b"\n")?;
            }
            return Ok(());
        }
        line.clear();
        for (k, byte) in (block.first..).zip(bytes) {
            let _ = write!(line, "{byte:02x}");
            line.push(if (k + 1) % DUMP == 0 || k + 1 == count { '\n' } else { ' ' });
        }
        Ok(out.write_all(line.as_bytes())?)
    })
}

/// Writes nested JSON lists, a bare value for a scalar, `[]` without elements.
pub fn json(
    array: &Array,
    selection: &Selection,
    values: Values,
    out: &mut dyn Write,
) -> Result<()> {
    let array = &shown(array, values);
    let selected = select(array, selection)?;
    let count = selected.count();
    if count == 0 {
        return Ok(out.write_all(b"[]")?);
    }
    // Elements in a list of each level, outermost first.
    let mut sizes: Vec<u64> = Vec::new();
    for length in selected.shape().lengths().iter().rev() {
        let below = sizes.last().copied().unwrap_or(1);
        sizes.push(below.saturating_mul(*length));
    }
    let words = Words { dtype: array.dtype(), element: json::write_element };
    let before = |k: u64, line: &mut String| {
        let opened = sizes.iter().take_while(|size| k.is_multiple_of(**size)).count();
        line.extend(std::iter::repeat_n('[', opened));
    };
    let after = |k: u64, line: &mut String| {
        let closed = sizes.iter().take_while(|size| (k + 1).is_multiple_of(**size)).count();
        line.extend(std::iter::repeat_n(']', closed));
        if k + 1 < count {
            line.push(',');
        }
    };
    words.write(&selected, before, after, out)
}

/// Writes little-endian elements of type [`dtype`], nothing else.
pub fn raw(
    array: &Array,
    selection: &Selection,
    values: Values,
    out: &mut dyn Write,
) -> Result<()> {
    let array = &shown(array, values);
    select(array, selection)?.stream(|_, block| Ok(out.write_all(block)?))
}

fn select<'a>(array: &'a Array, selection: &Selection) -> Result<Selected<'a>> {
    // The text of a block is several times as long as its bytes.
    let most = (array.limits().memory / 128).clamp(4 << 10, 4 << 20) as usize;
    Ok(array.select(selection, Axes::Order(Order::C))?.with_smaller_blocks(most))
}

/// Formats elements.
struct Words {
    dtype: DType,
    element: fn(DType, &[u8], &mut String),
}

impl Words {
    /// Writes all elements in order, each with the texts of `before` and `after` around it.
    fn write(
        &self,
        selected: &Selected<'_>,
        before: impl Fn(u64, &mut String) + Sync,
        after: impl Fn(u64, &mut String) + Sync,
        out: &mut dyn Write,
    ) -> Result<()> {
        selected.ordered(
            |block, bytes| {
                let mut text = String::with_capacity(8 * block.count as usize);
                let size = self.dtype.size();
                for k in 0..block.count {
                    let at = k as usize * size;
                    before(block.first + k, &mut text);
                    (self.element)(self.dtype, &bytes[at..at + size], &mut text);
                    after(block.first + k, &mut text);
                }
                Ok(text)
            },
            |text| Ok(out.write_all(text.as_bytes())?),
        )
    }
}

/// `# 4, :, :`, the selection that gives this plane of the array.
fn plane_heading(number: u64, spans: &[Span], out: &mut String) {
    let mut places = vec![":".to_string(); spans.len()];
    let kept: Vec<usize> = (0..spans.len()).filter(|k| !spans[*k].dropped).collect();
    let mut rest = number;
    for k in kept.iter().rev().skip(2) {
        let span = spans[*k];
        let index = span.start as i64 + (rest % span.count) as i64 * span.step;
        places[*k] = index.to_string();
        rest /= span.count;
    }
    for (k, span) in spans.iter().enumerate().filter(|(_, s)| s.dropped) {
        places[k] = span.start.to_string();
    }
    let _ = writeln!(out, "{}# {}", if number == 0 { "" } else { "\n" }, places.join(", "));
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_core::Dataset;
    use spile_core::layout::{ArrayDesc, Layout, Linear};
    use spile_core::limits::Limits;
    use spile_core::shape::Shape;
    use spile_core::source::Source;
    use spile_core::tree::Tree;

    fn array(shape: &[u64], map: Option<Linear>) -> Array {
        let limits = Limits::default();
        let count: u64 = shape.iter().product();
        let bytes: Vec<u8> = (0..count as u8).collect();
        let mut desc = ArrayDesc::inline(DType::U8, Shape::new(shape), bytes);
        desc.map = map;
        Dataset::of_bytes(Source::memory([]), &limits).open_array(&desc).unwrap()
    }

    fn show(
        verb: fn(&Array, &Selection, Values, &mut dyn Write) -> Result<()>,
        array: &Array,
        selection: &str,
    ) -> String {
        let mut out = Vec::new();
        verb(array, &selection.parse().unwrap(), Values::Mapped, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_are_lines_and_planes_say_which_they_are() {
        assert_eq!(show(text, &array(&[3], None), ""), "0\n1\n2\n");
        assert_eq!(show(text, &array(&[2, 3], None), ""), "0\t1\t2\n3\t4\t5\n");
        assert_eq!(show(text, &array(&[2, 3], None), ":,1"), "1\n4\n");
        assert_eq!(show(text, &array(&[], None), ""), "0\n");
        assert_eq!(show(text, &array(&[0, 3], None), ""), "");
        let cube = array(&[3, 2, 2], None);
        assert_eq!(show(text, &cube, "::-2"), "# 2, :, :\n8\t9\n10\t11\n\n# 0, :, :\n0\t1\n2\t3\n");
    }

    #[test]
    fn json_nests_as_the_selection_does() {
        assert_eq!(show(json, &array(&[2, 3], None), ""), "[[0,1,2],[3,4,5]]");
        assert_eq!(show(json, &array(&[2, 3], None), "1"), "[3,4,5]");
        assert_eq!(show(json, &array(&[2, 1, 2], None), ""), "[[[0,1]],[[2,3]]]");
        assert_eq!(show(json, &array(&[2, 3], None), "1,1"), "4");
        assert_eq!(show(json, &array(&[5, 0], None), ""), "[]");
    }

    #[test]
    fn missing_values_are_not_shown_as_numbers() {
        let mut desc = ArrayDesc::inline(DType::U8, Shape::new([3]), [1, 9, 3]);
        desc.semantics_mut().missing.values.push(9.0);
        let tree = Tree::new(&Limits::default());
        let array = Dataset::new(Source::memory([]), tree).open_array(&desc).unwrap();
        assert_eq!(show(text, &array, ""), "1.0\nNaN\n3.0\n");
        assert_eq!(show(json, &array, ""), "[1.0,\"NaN\",3.0]");
    }

    #[test]
    fn maps_apply_unless_stored_values_are_wanted() {
        let mapped = array(&[2], Some(Linear::new(0.5, 2.0)));
        assert_eq!(show(text, &mapped, ""), "0.5\n2.5\n");
        let mut out = Vec::new();
        raw(&mapped, &Selection::all(), Values::Mapped, &mut out).unwrap();
        assert_eq!(out, [0.5_f64.to_le_bytes(), 2.5_f64.to_le_bytes()].concat());
        out.clear();
        raw(&mapped, &Selection::all(), Values::Stored, &mut out).unwrap();
        assert_eq!(out, [0, 1]);
    }

    #[test]
    fn many_blocks_join_without_a_seam() {
        let limits = Limits::default().with_memory(1 << 20);
        let bytes: Vec<u8> = (0..300_000_u32).flat_map(|k| (k as u16).to_le_bytes()).collect();
        let layout = Layout::Inline(bytes.into(), Order::F);
        let desc = ArrayDesc::new(DType::U16, Shape::new([100_000, 3]), layout);
        let array = Dataset::of_bytes(Source::memory([]), &limits).open_array(&desc).unwrap();
        let lines = show(text, &array, "");
        assert_eq!(lines.lines().count(), 100_000);
        for (k, line) in lines.lines().enumerate() {
            let row: Vec<String> =
                (0..3).map(|c| (k + c * 100_000) as u16).map(|v| v.to_string()).collect();
            assert_eq!(line, row.join("\t"));
        }
        let nested: Vec<[u16; 3]> = serde_json::from_str(&show(json, &array, "")).unwrap();
        assert_eq!((nested.len(), nested[99_999][2]), (100_000, 299_999_u32 as u16));
    }
}
