//! Shapes, dimensions and coordinates of arrays.

use spile_core::layout::{ArrayDesc, Coord};
use spile_core::shape::{Order, Shape};

use super::{AXIS_NAMES, Dimensions};
use crate::wire::Data;

/// Sets the coordinates of an array with the lengths of the grid.
pub(super) fn set_coords(desc: &mut ArrayDesc, dims: &Dimensions, order: Order) {
    let Dimensions { mut lengths, mut coords } = dims.clone();
    if order == Order::C {
        lengths.reverse();
        coords.reverse();
    }
    if desc.shape.lengths() == lengths {
        desc.coords = coords;
    }
}

/// The array in the shape that spile has written, or on the grid; `true` for structured grids.
pub(super) fn describe(
    own: Option<&str>,
    data: &Data,
    dims: Option<(&Dimensions, bool)>,
) -> ArrayDesc {
    let Data { dtype, components, count, .. } = *data;
    let array = |shape: Shape, order: Order| {
        let layout = data.layout.in_order(order).unwrap_or_else(|| data.layout.clone());
        ArrayDesc::new(dtype, shape, layout)
    };
    if let Some((order, shape)) = own.and_then(written_shape)
        && shape.count() == Some(count)
    {
        let mut desc = array(shape, order);
        if let Some((dims, _)) = dims {
            set_coords(&mut desc, dims, order);
        }
        return desc;
    }
    if let Some((grid, true)) = dims {
        // Components vary fastest.
        let Dimensions { mut lengths, mut coords } = grid.clone();
        let mut dims: Vec<String> =
            AXIS_NAMES.iter().take(lengths.len()).map(ToString::to_string).collect();
        if components > 1 {
            lengths.insert(0, components);
            coords.insert(0, Coord::None);
            dims.insert(0, "component".into());
        }
        let mut desc = array(Shape::new(lengths), Order::F);
        (desc.dims, desc.coords) = (dims, coords);
        return desc;
    }
    let tuples = count / components;
    let shape = if components > 1 { vec![tuples, components] } else { vec![tuples] };
    let mut desc = array(Shape::new(shape), Order::C);
    if components > 1 {
        desc.dims[1] = "component".into();
    }
    desc
}

/// Parses the attribute `Shape`: element order and lengths, as in `F 3 4`.
pub(crate) fn written_shape(text: &str) -> Option<(Order, Shape)> {
    let mut fields = text.split_whitespace();
    let order = match fields.next()? {
        "C" => Order::C,
        "F" => Order::F,
        _ => return None,
    };
    let lengths: Option<Vec<u64>> = fields.map(|field| field.parse().ok()).collect();
    let lengths = lengths.filter(|lengths| lengths.len() <= 32)?;
    Some((order, Shape::new(lengths)))
}
