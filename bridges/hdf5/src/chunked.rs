//! Chunks as a layout that core reads.

use spile_core::error::Result;
use spile_core::layout::Layout;

use crate::chunks::Piece;
use crate::codec::Filters;
use crate::datatype::Element;
use crate::space::{Chunking, Space, unsupported};
use crate::wire::Ground;

/// The layout of a dataset in chunks; `rest` is what was never written.
pub(crate) fn layout(
    ground: &Ground,
    _element: &Element,
    chunking: &Chunking,
    _space: &Space,
    _list: &[Piece],
    _decode: Filters,
    _rest: Layout,
) -> Result<Layout> {
    Err(unsupported(ground.place(chunking.address.unwrap_or(0)), "datasets in chunks"))
}
