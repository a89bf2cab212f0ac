//! Densities and wavefunctions of Quantum ESPRESSO 6.2 and later: coefficients of plane waves.
//!
//! | module | content |
//! |---|---|
//! | `records` | files of Fortran records, `.dat` |
//! | `members` | files of other formats, `.hdf5`, which the registry opens |
//! | `functions` | arrays computed from coefficients: density in real space, G vectors, the other half of them |
//! | `folder` | the files of a folder `prefix.save` |

pub(crate) mod folder;
mod functions;
mod members;
pub(crate) mod records;

use std::sync::Arc;

use spile_core::computed::{Computed, Function};
use spile_core::semantics::{Centring, Component};
use spile_core::{
    ArrayDesc, Coord, DType, Kind, Layout, NodeId, Order, Result, Role, Semantics, Shape, Tree,
};

use functions::{Elements, InverseFft, Mirror, Rows, Vectors};

/// Unit of densities.
pub(crate) const DENSITY_UNITS: &str = "e/Bohr^3";

/// Units and names of densities.
const DENSITY: (&str, &str) = (DENSITY_UNITS, "electron density");
const KINETIC: (&str, &str) = ("Ry/Bohr^3", "kinetic energy density");
const KINETIC_SPIN: (&str, &str) = ("Ry/Bohr^3", "kinetic energy density, spin up minus down");
pub(crate) const SPIN: (&str, &str) = ("mu_B/Bohr^3", "spin density, up minus down");
pub(crate) const MAGNETIZATION: (&str, &str) = ("mu_B/Bohr^3", "magnetization density");

/// The coefficients of a density or of the wavefunctions of a k-point.
pub(crate) struct PlaneWaves {
    /// The file has G = 0 and half of the other G vectors; the coefficient of -G is the complex conjugate
    /// of that of G.
    half: bool,
    /// Number of G vectors in the file.
    stored: u64,
    /// The reciprocal lattice vectors as rows, in 1/bohr.
    reciprocal: [[f64; 3]; 3],
    /// Miller indices in the file, of shape (`stored`, 3).
    miller: ArrayDesc,
    content: Content,
}

/// Complex arrays in the file.
enum Content {
    /// One array of `stored` elements per component: the total density, then the spin density or the
    /// three components of the magnetization.
    Density(Quantity, Vec<ArrayDesc>),
    Wavefunctions(Box<Wavefunctions>),
}

/// The wavefunctions of a k-point and spin.
struct Wavefunctions {
    /// The k-point in 1/bohr.
    k: [f64; 3],
    /// Components of a spinor: 1 or 2.
    components: u64,
    bands: u64,
    /// 1, except for cp.x.
    scale: f64,
    /// One row of `components` times `stored` elements per band.
    coefficients: ArrayDesc,
}

/// A double-precision complex number in the byte order of `like`.
fn complex(like: DType) -> Option<DType> {
    DType::new(Kind::Complex, 16, like.order())
}

/// The quantity of a density, which only the name of its file tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Quantity {
    Charge,
    /// Of runs with a meta-GGA functional.
    KineticEnergy,
}

/// Names of a component of a density.
struct Names {
    /// The coefficients, as in HDF5 files.
    stored: &'static str,
    /// The density in real space.
    real: &'static str,
    units: &'static str,
    title: &'static str,
}

/// The components of the magnetization in real space.
const MAGNETIZATION_VECTOR: [&str; 3] = ["magnetization_x", "magnetization_y", "magnetization_z"];

impl Quantity {
    /// The quantity of the density in the file with this name without its extension.
    pub(crate) fn of_file(stem: &str) -> Option<Self> {
        match stem {
            "charge-density" => Some(Self::Charge),
            "ekin-density" => Some(Self::KineticEnergy),
            _ => None,
        }
    }

    /// The name of the file without its extension.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Self::Charge => "charge-density",
            Self::KineticEnergy => "ekin-density",
        }
    }

    /// The names of component `number` of `all`.
    fn names(self, number: usize, all: usize) -> Names {
        let (stored, real, (units, title)) = match (self, number, all) {
            (Self::KineticEnergy, 0, _) => ("rhotot_g", "kinetic_energy_density", KINETIC),
            (Self::KineticEnergy, ..) => ("rhodiff_g", "kinetic_energy_spin_density", KINETIC_SPIN),
            (Self::Charge, 0, _) => ("rhotot_g", "density", DENSITY),
            (Self::Charge, _, 2) => ("rhodiff_g", "magnetization", SPIN),
            (Self::Charge, 1, _) => ("m_x", MAGNETIZATION_VECTOR[0], MAGNETIZATION),
            (Self::Charge, 2, _) => ("m_y", MAGNETIZATION_VECTOR[1], MAGNETIZATION),
            (Self::Charge, ..) => ("m_z", MAGNETIZATION_VECTOR[2], MAGNETIZATION),
        };
        Names { stored, real, units, title }
    }
}

/// The node and the grid of densities in real space.
#[derive(Clone, Copy)]
pub(crate) struct RealSpace {
    pub(crate) group: NodeId,
    pub(crate) grid: [u64; 3],
}

impl PlaneWaves {
    /// The wavefunctions of the k-point `k` in 1/bohr. The coefficients have a row per band, which has the components
    /// of all G vectors. `None` if the arrays do not fit.
    pub(crate) fn wavefunctions(
        half: bool,
        reciprocal: [[f64; 3]; 3],
        miller: ArrayDesc,
        (k, scale): ([f64; 3], f64),
        coefficients: ArrayDesc,
    ) -> Option<Self> {
        let ([stored, 3], [bands, row]) = (miller.shape.lengths(), coefficients.shape.lengths())
        else {
            return None;
        };
        let (stored, bands, components) = (*stored, *bands, row.checked_div(*stored)?);
        let types = miller.dtype.with_order(DType::I32.order()) == DType::I32
            && coefficients.dtype == complex(coefficients.dtype)?;
        // Gamma-only runs have no spinors.
        let sizes = components.checked_mul(stored) == Some(*row) && components > 0;
        if !types || !sizes || components > 2 || (half && components == 2) {
            return None;
        }
        let content = Wavefunctions { k, components, bands, scale, coefficients };
        let content = Content::Wavefunctions(Box::new(content));
        Some(Self { half, stored, reciprocal, miller, content })
    }

    /// This with the byte offsets of a file that begins at `start`.
    fn shifted(mut self, start: u64) -> Result<Self> {
        let mut arrays = vec![&mut self.miller];
        match &mut self.content {
            Content::Density(_, components) => arrays.extend(components),
            Content::Wavefunctions(waves) => arrays.push(&mut waves.coefficients),
        }
        for array in arrays {
            array.layout = array.layout.shifted(start)?;
        }
        Ok(self)
    }

    /// This as the file named `stem` without its extension.
    pub(crate) fn named(mut self, stem: &str) -> Self {
        if let (Content::Density(own, _), Some(quantity)) =
            (&mut self.content, Quantity::of_file(stem))
        {
            *own = quantity;
        }
        self
    }

    /// The quantity of a density; `None` for wavefunctions.
    fn quantity(&self) -> Option<Quantity> {
        match self.content {
            Content::Density(quantity, _) => Some(quantity),
            Content::Wavefunctions(_) => None,
        }
    }

    /// What the file contains, for people.
    fn summary(&self) -> String {
        let count = self.count();
        match &self.content {
            Content::Density(Quantity::Charge, _) => {
                format!("charge density, {count} plane waves")
            }
            Content::Density(Quantity::KineticEnergy, _) => {
                format!("kinetic energy density, {count} plane waves")
            }
            Content::Wavefunctions(waves) => {
                format!("wavefunctions, {} bands of {count} plane waves", waves.bands)
            }
        }
    }

    /// Number of G vectors with the mirrored ones.
    fn count(&self) -> u64 {
        if self.half { self.stored.saturating_mul(2).saturating_sub(1) } else { self.stored }
    }

    /// An array whose rows have one item of `size` elements per stored G vector, with items for all G vectors.
    fn complete(&self, stored: &ArrayDesc, shape: Vec<u64>, mirror: Mirror) -> ArrayDesc {
        let size = if mirror == Mirror::Negate { 3 } else { 1 };
        let per_band = shape.len() > 1 && mirror == Mirror::Conjugate;
        let (mut desc, dims) = (stored.clone(), stored.dims.clone());
        if self.half {
            let elements = Elements { size, mirror: Some(mirror) };
            let piece = self.count().saturating_mul(size);
            let function = Rows { elements, per_band, stored: self.stored };
            desc = computed(stored.dtype, shape, vec![stored.clone()], function, (piece, Order::C));
            desc.dims = dims;
        }
        desc
    }

    /// Adds Miller indices and G vectors to a group and returns the description of the indices.
    fn add_vectors(&self, tree: &mut Tree, group: NodeId) -> Result<ArrayDesc> {
        let shape = vec![self.count(), 3];
        let mut miller = self.complete(&self.miller, shape.clone(), Mirror::Negate);
        miller.dims = vec!["G".into(), "component".into()];
        let id = tree.add_array(group, "miller", miller.clone())?;
        tree.push_attr(id, "long_name", "Miller indices of the G vectors")?;
        let function = Vectors { reciprocal: self.reciprocal };
        let mut vectors = computed(
            DType::F64,
            shape,
            vec![miller.clone()],
            function,
            (functions::VECTORS, Order::C),
        );
        vectors.dims.clone_from(&miller.dims);
        let id = tree.add_array(group, "G", vectors)?;
        tree.push_attr(id, "units", "bohr^-1")?;
        tree.push_attr(id, "long_name", "G vectors")?;
        Ok(miller)
    }

    /// Adds the arrays of the file to `group`, and densities in real space where the grid is known.
    pub(crate) fn add(
        &self,
        tree: &mut Tree,
        group: NodeId,
        real: Option<RealSpace>,
    ) -> Result<()> {
        let miller = self.add_vectors(tree, group)?;
        match &self.content {
            Content::Density(quantity, components) => {
                for (k, stored) in components.iter().enumerate() {
                    let names = quantity.names(k, components.len());
                    self.add_component(tree, group, real, names, stored, &miller)?;
                }
                Ok(())
            }
            Content::Wavefunctions(waves) => self.add_wavefunctions(tree, group, waves),
        }
    }

    /// Adds a component of a density.
    fn add_component(
        &self,
        tree: &mut Tree,
        group: NodeId,
        real: Option<RealSpace>,
        Names { stored: name, real: short, units, title }: Names,
        stored: &ArrayDesc,
        miller: &ArrayDesc,
    ) -> Result<()> {
        let mut own = self.complete(stored, vec![self.count()], Mirror::Conjugate);
        own.dims = vec!["G".into()];
        let id = tree.add_array(group, name, own.clone())?;
        tree.push_attr(id, "units", units)?;
        tree.push_attr(id, "long_name", format!("Fourier coefficients of the {title}"))?;
        let Some(RealSpace { group, grid }) = real else { return Ok(()) };
        let shape = Shape::new(grid);
        // First index fastest, as the planes of versions up to 6.1.
        let Some(piece) = shape.count() else { return Ok(()) };
        let function = InverseFft { grid, waves: self.count() };
        let mut field = computed(
            DType::F64,
            grid.to_vec(),
            vec![miller.clone(), own],
            function,
            (piece, Order::F),
        );
        field.dims = ["a1", "a2", "a3"].map(String::from).to_vec();
        let step = |n: &u64| Coord::Uniform { start: 0.0, step: 1.0 / (*n).max(1) as f64 };
        field.coords = grid.iter().map(step).collect();
        let mut meaning = Semantics::role(Role::Field);
        meaning.centring = Some(Centring::Node);
        if let Some(index) = MAGNETIZATION_VECTOR.iter().position(|name| *name == short) {
            let index = u8::try_from(index).unwrap_or(0);
            meaning.component = Some(Component { vector: "magnetization".into(), index });
        }
        let id = tree.add_array(group, short, field.with_semantics(meaning))?;
        tree.push_attr(id, "units", units)?;
        tree.push_attr(id, "long_name", title)
    }

    fn add_wavefunctions(
        &self,
        tree: &mut Tree,
        group: NodeId,
        waves: &Wavefunctions,
    ) -> Result<()> {
        let k = waves.k.map(spile_core::Value::from).to_vec();
        tree.push_attr(group, "k", spile_core::Value::List(k))?;
        tree.push_attr(group, "k_units", "bohr^-1")?;
        if waves.scale != 1.0 {
            tree.push_attr(group, "scale_factor", waves.scale)?;
        }
        let shape = match waves.components {
            1 => vec![waves.bands, self.count()],
            spinor => vec![waves.bands, spinor, self.count()],
        };
        let mut own = self.complete(&waves.coefficients, shape.clone(), Mirror::Conjugate);
        own.shape = Shape::new(shape);
        own.dims = match waves.components {
            1 => vec!["band".into(), "G".into()],
            _ => vec!["band".into(), "spinor".into(), "G".into()],
        };
        own.coords = vec![Coord::None; own.dims.len()];
        let id = tree.add_array(group, "coefficients", own)?;
        tree.push_attr(id, "long_name", "coefficients of exp(i (k + G) r) / sqrt(volume)")
    }
}

/// An array computed from others in pieces of `piece` elements of that order.
fn computed(
    dtype: DType,
    shape: Vec<u64>,
    inputs: Vec<ArrayDesc>,
    function: impl Function + 'static,
    (piece, order): (u64, Order),
) -> ArrayDesc {
    let function = Arc::new(function);
    let computed = Computed { inputs, function, piece: piece.max(1), order };
    ArrayDesc::new(dtype, Shape::new(shape), Layout::Computed(Arc::new(computed)))
}
