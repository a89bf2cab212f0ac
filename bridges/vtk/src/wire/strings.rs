//! Arrays of texts. XML files have the bytes of all texts, each ended by NUL; legacy files lines, or bytes after a length.

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::layout::{ArrayDesc, Extent, Layout};
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::tree::Tree;

use super::{Data, Encoding};
use crate::legacy;
use crate::xml::Element;

impl Encoding<'_> {
    /// Reads an array of texts, which are padded to the length of the longest one.
    pub(super) fn texts(&self, element: &Element, tuples: Option<u64>) -> Result<Data> {
        let components = element.number("NumberOfComponents", Some(1))?.max(1);
        let tuples = match (tuples, element.attr("NumberOfTuples")) {
            (None, Some(_)) => Some(element.number("NumberOfTuples", None)?),
            _ => tuples,
        };
        let (extent, all) = self.text_bytes(element)?;
        // A text takes more memory than its bytes.
        self.limits.allow((all.len() as u64).saturating_mul(40), "the texts of an array")?;
        let texts: Vec<Vec<u8>> = if self.legacy {
            let count = tuples.and_then(|n| n.checked_mul(components)).unwrap_or(0);
            legacy::texts(element, &all, count)?
        } else {
            let mut parts: Vec<&[u8]> = all.split(|byte| *byte == 0).collect();
            if parts.last().is_some_and(|last| last.is_empty()) {
                parts.pop();
            }
            parts.into_iter().map(<[u8]>::to_vec).collect()
        };
        let count = texts.len() as u64;
        let whole = count.checked_div(components).unwrap_or(0).saturating_mul(components);
        let expected = tuples.and_then(|n| n.checked_mul(components)).unwrap_or(whole);
        if count != expected {
            let message = format!("expected {expected} texts, found {count}");
            return Err(Error::malformed("vtk-005", message).at(extent.offset));
        }
        let longest = texts.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let len =
            self.limits.allow((longest as u64).saturating_mul(count), "the texts of an array")?;
        let mut bytes = vec![0; len];
        for (field, text) in bytes.chunks_exact_mut(longest).zip(&texts) {
            field[..text.len()].copy_from_slice(text);
        }
        let dtype = DType::text(u32::try_from(longest).unwrap_or(u32::MAX));
        let layout = Layout::Inline(bytes.into(), Order::C);
        Ok(Data { dtype, components, count, extent, layout })
    }

    /// The decoded bytes of an array, and where they are in the file.
    fn text_bytes(&self, element: &Element) -> Result<(Extent, Vec<u8>)> {
        if self.legacy {
            let extent = element.text.unwrap_or(Extent { offset: element.at, len: 0 });
            self.limits.allow(extent.len, "the texts of an array")?;
            return Ok((extent, self.source.read_vec(extent.offset, extent.len)?));
        }
        // The order is that of the lengths before the bytes.
        let dtype = DType::U8.with_order(self.order);
        let (layout, extent, len) = self.located(element, dtype, None)?;
        self.limits.allow(len, "the texts of an array")?;
        let desc = ArrayDesc::new(dtype, Shape::new([len]), layout);
        let content = Dataset::new(self.source.clone(), Tree::new(self.limits));
        let array = content.open_array(&desc)?;
        Ok((extent, array.read_bytes(&Selection::all(), Axes::Order(Order::C))?))
    }
}
