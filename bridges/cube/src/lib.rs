//! Volumes on the cell of a crystal as Gaussian cube and XCrySDen XSF files.
//!
//! Specification: the `cubegen` utility of Gaussian; the XSF page of XCrySDen.
//!
//! | file | content |
//! |---|---|
//! | `volume` | the fields, cell and atoms of any dataset that such files store; the tree that reading gives |
//! | `values` | numbers separated by blanks |
//! | `cube` | [`Cube`]: one field, lengths in bohr, without a repeated end point |
//! | `xsf` | [`Xsf`]: any number of fields, lengths in ångström, general grids with a repeated end point |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! let text = "rho [e/Bohr^3]\n\n1 0 0 0\n2 1 0 0\n1 0 2 0\n1 0 0 2\n1 1.0 0.5 0 0\n0.25 0.75\n";
//! let file = Dataset::open(&spile_cube::Cube, Source::memory(text), &OpenOptions::default())?;
//! let density = file.array("rho")?;
//! assert_eq!(density.read::<Vec<f64>>("...")?, [0.25, 0.75]);
//! assert_eq!(density.units(), Some("e/Bohr^3"));
//! assert_eq!(file.cell(0)?.unwrap().vectors[0], [2.0, 0.0, 0.0]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod cube;
mod values;
mod volume;
mod xsf;

use spile_core::format::{
    Abilities, Checker, Format, FormatInfo, Grade, Head, Native, Object, OpenOptions, Parsed,
    Region, RegionKind, Score,
};
use spile_core::{Dataset, Layout, Result, Source};

/// Gaussian cube files, for the registry.
pub struct Cube;

/// XCrySDen XSF files, for the registry.
pub struct Xsf;

static CUBE: FormatInfo = FormatInfo {
    name: "cube",
    title: "Gaussian cube",
    users: "quantum chemistry, VESTA, VMD, ASE",
    specification: "cubegen (Gaussian)",
    extensions: &["cube", "cub"],
    read: Grade::Partial,
    write: Grade::Partial,
    check: Grade::Partial,
    salvage: Grade::None,
};

static XSF: FormatInfo = FormatInfo {
    name: "xsf",
    title: "XCrySDen structure file",
    users: "XCrySDen, VESTA, Quantum ESPRESSO",
    specification: "XSF (XCrySDen)",
    extensions: &["xsf"],
    read: Grade::Partial,
    write: Grade::Partial,
    check: Grade::Partial,
    salvage: Grade::None,
};

impl Format for Cube {
    fn info(&self) -> &'static FormatInfo {
        &CUBE
    }

    fn probe(&self, head: Head<'_>) -> Score {
        cube::probe(head.bytes)
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        cube::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self)
    }
}

impl Format for Xsf {
    fn info(&self) -> &'static FormatInfo {
        &XSF
    }

    fn probe(&self, head: Head<'_>) -> Score {
        xsf::probe(head.bytes)
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        xsf::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self)
    }
}

/// The text of both formats: lines of description, and values of the fields.
struct Text;

impl Native for Text {
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut values: Vec<(u64, u64, &str)> = Vec::new();
        for (_, node, desc) in dataset.arrays() {
            if let Layout::EncodedWhole { extents, .. } = &desc.layout {
                let parts = extents.parts().iter();
                values.extend(parts.map(|part| (part.offset, part.len, node.path.as_str())));
            }
        }
        values.sort_unstable();
        let mut at = 0;
        for (offset, len, name) in values {
            if offset > at {
                each(Region::new(at, offset - at, RegionKind::Header, "description", ""))?;
            }
            if offset >= at && len > 0 {
                each(Region::new(offset, len, RegionKind::Data, name, ""))?;
                at = offset.saturating_add(len);
            }
        }
        match dataset.source().len().saturating_sub(at) {
            0 => Ok(()),
            rest => each(Region::new(at, rest, RegionKind::Header, "description", "")),
        }
    }

    fn objects(&self, dataset: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (_, node, array) in dataset.arrays() {
            each(Object::new(&node.path, "text", array.clone()))?;
        }
        Ok(())
    }
}

/// The findings are those of opening.
impl Checker for Cube {}

/// The findings are those of opening.
impl Checker for Xsf {}
