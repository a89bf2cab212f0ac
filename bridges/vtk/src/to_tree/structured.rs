//! Structured grids: extents and coordinates.

use spile_core::error::Result;
use spile_core::layout::Coord;
use spile_core::semantics::{Role, Semantics};
use spile_interchange::midpoints::midpoints;

use super::{AXIS_NAMES, Builder, Dimensions, arrays};
use crate::xml::Element;

impl Builder<'_> {
    /// Dimensions of the points and cells of a structured grid.
    pub(super) fn structured(
        &mut self,
        grid: &Element,
        piece: &Element,
    ) -> Result<(Dimensions, Dimensions)> {
        let extent: [i64; 6] = match piece.attr("Extent") {
            Some(_) => piece.list("Extent")?,
            None => grid.list("WholeExtent")?,
        };
        let mut nodes = [1_u64; 3];
        for axis in 0..3 {
            let less = extent[2 * axis + 1].checked_sub(extent[2 * axis]);
            let less = less.filter(|n| (-1..i64::MAX).contains(n));
            let less = less.ok_or_else(|| piece.malformed("extent with a negative length"))?;
            nodes[axis] = (less + 1).unsigned_abs();
        }
        // Trailing axes of one point are not dimensions; at least one axis is.
        let rank = nodes.iter().rposition(|n| *n != 1).map_or(1, |k| k + 1);
        let (mut points, mut cells) = (Dimensions::default(), Dimensions::default());
        let mut coords = match grid.name.as_str() {
            "ImageData" => self.image(grid, &extent)?,
            "RectilinearGrid" => self.coordinates(piece, nodes)?,
            _ => {
                let dims = Dimensions { lengths: nodes.to_vec(), coords: vec![Coord::None; 3] };
                if let Some(array) = piece.child("Points").and_then(|p| arrays(p).next()) {
                    self.mesh = self.array(array, "", dims.tuples(), Some((&dims, true)))?;
                    self.set_meaning(self.mesh, &Semantics::role(Role::Mesh));
                }
                vec![(Coord::None, Coord::None); 3]
            }
        };
        coords.resize(3, (Coord::None, Coord::None));
        for axis in 0..rank {
            points.lengths.push(nodes[axis]);
            points.coords.push(coords[axis].0.clone());
            // An axis of one point counts as one cell.
            let one = nodes[axis] == 1;
            cells.lengths.push(if one { 1 } else { nodes[axis] - u64::from(nodes[axis] > 0) });
            cells.coords.push(if one { coords[axis].0.clone() } else { coords[axis].1.clone() });
        }
        Ok((points, cells))
    }

    /// Uniform coordinates of points and cell centres along each axis.
    fn image(&mut self, grid: &Element, extent: &[i64; 6]) -> Result<Vec<(Coord, Coord)>> {
        let or = |name: &str, value: f64| -> Result<[f64; 3]> {
            if grid.attr(name).is_some() { grid.list(name) } else { Ok([value; 3]) }
        };
        let (origin, spacing) = (or("Origin", 0.0)?, or("Spacing", 1.0)?);
        if let Some(direction) = grid.attr("Direction") {
            let turned: [f64; 9] = grid.list("Direction")?;
            if turned != [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0] {
                // The axes are not parallel to x, y and z: no coordinates.
                let group = self.tree.group_at(&self.naming.prefix)?;
                self.tree.push_attr(group, "Direction", direction)?;
                return Ok(Vec::new());
            }
        }
        let axis_coords = |axis: usize| {
            let step = spacing[axis];
            let first = extent[2 * axis] as f64;
            let start = if first == 0.0 { origin[axis] } else { origin[axis] + first * step };
            let half = start + step / 2.0;
            (Coord::Uniform { start, step }, Coord::Uniform { start: half, step })
        };
        Ok((0..3).map(axis_coords).collect())
    }

    /// Coordinates of points and cell centres along each axis, from arrays.
    fn coordinates(&mut self, piece: &Element, nodes: [u64; 3]) -> Result<Vec<(Coord, Coord)>> {
        let mut coords = Vec::new();
        let Some(element) = piece.child("Coordinates") else { return Ok(coords) };
        for (axis, array) in arrays(element).enumerate().take(3) {
            let dims = Dimensions { lengths: vec![nodes[axis]], coords: vec![Coord::None] };
            // Axes of one point are not in the tree, unless spile wrote the file.
            let omitted = nodes[axis] == 1 && axis > 0 && self.own_attr(array, "Path").is_none();
            let id = if omitted {
                None
            } else {
                let name = format!("Coordinates/{}", AXIS_NAMES[axis]);
                self.array_at(array, &name, dims.tuples(), Some((&dims, true)))?
            };
            let Some(id) = id else {
                coords.push((Coord::None, Coord::None));
                continue;
            };
            if let Some(desc) = &mut self.tree.node_mut(id).array
                && desc.dims == ["x"]
            {
                desc.dims = vec![AXIS_NAMES[axis].into()];
            }
            self.set_meaning(Some(id), &Semantics::role(Role::Mesh));
            self.mesh = Some(self.tree.node(id).parent);
            let middle = midpoints(&mut self.tree, id)?;
            coords.push((Coord::Node(id), middle.map_or(Coord::None, Coord::Node)));
        }
        Ok(coords)
    }
}
