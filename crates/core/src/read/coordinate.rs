//! Coordinates of an array's dimensions, and its descriptive attributes.

use super::Array;
use crate::tree::closest;
use crate::{ArrayDesc, Attrs, Coord, Dataset, Error, Hint, Node, Result, Semantics};

/// The coordinate of one dimension.
#[derive(Clone)]
pub struct Coordinate {
    /// Name of the dimension.
    pub dim: String,
    /// Number of points.
    pub len: u64,
    /// Unit of the points, where known.
    pub units: Option<String>,
    coord: Coord,
    dataset: Dataset,
}

impl Coordinate {
    /// First point and distance, if the spacing is uniform.
    pub fn uniform(&self) -> Option<(f64, f64)> {
        match self.coord {
            Coord::Uniform { start, step } => Some((start, step)),
            _ => None,
        }
    }

    /// Whether the points are known; otherwise [`Coordinate::read`] returns the indices.
    pub fn is_known(&self) -> bool {
        self.coord != Coord::None
    }

    /// All points. Fails with `Limit` if they exceed the memory limit.
    pub fn read(&self) -> Result<Vec<f64>> {
        self.dataset.points(&self.coord, self.len)
    }
}

impl Dataset {
    /// The `len` points of a coordinate of this dataset; indices where they are not known. Fails with
    /// `Limit` if they exceed the memory limit.
    pub fn points(&self, coord: &Coord, len: u64) -> Result<Vec<f64>> {
        self.limits().allow(len.saturating_mul(8), "the coordinate")?;
        match coord {
            Coord::None => Ok((0..len).map(|k| k as f64).collect()),
            Coord::Uniform { start, step } => {
                Ok((0..len).map(|k| start + k as f64 * step).collect())
            }
            Coord::Node(id) => self.array_at(*id)?.values(),
        }
    }
}

impl Array {
    /// The node of the tree; `None` for arrays that are not nodes.
    pub fn node(&self) -> Option<&Node> {
        self.node.map(|id| self.dataset.tree().node(id))
    }

    fn desc(&self) -> Option<&ArrayDesc> {
        self.node()?.array.as_ref()
    }

    /// Path in the dataset; empty for arrays that are not nodes.
    pub fn path(&self) -> &str {
        self.node().map_or("", |node| &node.path)
    }

    /// Attributes.
    pub fn attrs(&self) -> &Attrs {
        static NONE: Attrs = Attrs::new();
        self.node().map_or(&NONE, |node| &node.attrs)
    }

    /// Unit of the physical values, where known.
    pub fn units(&self) -> Option<&str> {
        self.attrs().get_str("units")
    }

    /// Descriptive name, where known.
    pub fn long_name(&self) -> Option<&str> {
        self.attrs().get_str("long_name")
    }

    /// Names of the dimensions.
    pub fn dims(&self) -> &[String] {
        self.desc().map_or(&[], |desc| &desc.dims)
    }

    /// Semantics of the array.
    pub fn semantics(&self) -> &Semantics {
        static NONE: std::sync::OnceLock<Semantics> = std::sync::OnceLock::new();
        match self.desc() {
            Some(desc) => desc.semantics(),
            None => NONE.get_or_init(Semantics::default),
        }
    }

    /// The coordinate of the dimension called `dim`.
    pub fn coord(&self, dim: &str) -> Result<Coordinate> {
        let found = self.dims().iter().position(|own| own == dim);
        let k = found.ok_or_else(|| {
            let near = closest(dim, self.dims().iter().map(String::as_str));
            let hint = if near.is_empty() { self.dims().to_vec() } else { near };
            Error::argument(format!("no dimension named \"{dim}\"")).hint(Hint::DidYouMean(hint))
        })?;
        self.coord_at(k)
    }

    /// The coordinate of dimension number `k`.
    pub fn coord_at(&self, k: usize) -> Result<Coordinate> {
        let len = self.shape.lengths().get(k).copied();
        let len = len.ok_or_else(|| Error::argument(format!("no dimension number {k}")))?;
        let dim = self.dims().get(k).cloned().unwrap_or_else(|| format!("dim{}", k + 1));
        let coord = self.desc().and_then(|desc| desc.coords.get(k)).unwrap_or(&Coord::None);
        let units = match coord {
            Coord::None => None,
            Coord::Uniform { .. } => self.attrs().get_str(&format!("{dim}_units")),
            Coord::Node(id) => self.dataset.tree().node(*id).attrs.get_str("units"),
        };
        let (units, coord) = (units.map(Into::into), coord.clone());
        Ok(Coordinate { dim, len, units, coord, dataset: self.dataset.clone() })
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::error::ErrorKind;
    use crate::layout::{ArrayDesc, Coord, Layout};
    use crate::shape::Shape;
    use crate::tree::{ROOT, Tree};
    use crate::{Dataset, Limits, Source};

    #[test]
    fn a_coordinate_with_more_points_than_the_budget_is_refused() {
        let mut tree = Tree::new(&Limits::default());
        for (name, coord) in
            [("index", Coord::None), ("t", Coord::Uniform { start: 0.0, step: 0.5 })]
        {
            let layout = Layout::Fill(vec![0].into());
            let mut array = ArrayDesc::new(DType::U8, Shape::new([1 << 40]), layout);
            (array.dims, array.coords) = (vec!["t".into()], vec![coord]);
            tree.add_array(ROOT, name, array).unwrap();
        }
        let dataset = Dataset::new(Source::memory([]), tree);
        for name in ["index", "t"] {
            let coord = dataset.array(name).unwrap().coord("t").unwrap();
            assert_eq!(coord.read().unwrap_err().kind(), ErrorKind::Limit);
        }
    }
}
