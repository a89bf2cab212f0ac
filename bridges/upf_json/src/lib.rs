//! Pseudopotentials as JSON in the layout of `upf_to_json`, which SIRIUS reads.
//!
//! Specification: upf_to_json 1.0. The content is a pseudopotential as elements of UPF v2: the group `UPF`. Energies are
//! in Hartree (UPF: Rydberg), lengths in bohr. Writing only.
//!
//! | key | element of UPF |
//! |---|---|
//! | `header` | `PP_HEADER`; of PAW also `cutoff_radius_index`, `paw_core_energy` |
//! | `radial_grid` | `PP_MESH/PP_R` |
//! | `local_potential`, `core_charge_density`, `total_charge_density` | `PP_LOCAL`, `PP_NLCC`, `PP_RHOATOM` |
//! | `beta_projectors`, `D_ion` | `PP_BETA.i` up to their `cutoff_radius_index`, `PP_DIJ` |
//! | `augmentation` | `PP_QIJL.i.j.l`, or `PP_QIJ.i.j` with `PP_QFCOEF` and `PP_RINNER`; `i` and `j` count from 0 |
//! | `atomic_wave_functions` | `PP_CHI.i` |
//! | `paw_data` | `PP_Q`, `PP_MULTIPOLES`, `PP_AEWFC.i`, `PP_PSWFC.i`, `PP_OCCUPATIONS`, `PP_AE_NLCC`, `PP_AE_VLOC` |
#![forbid(unsafe_code)]

mod from_tree;

use spile_core::format::{Abilities, Format, FormatInfo, Grade, Head, OpenOptions, Parsed, Score};
use spile_core::{Error, Result, Source};

/// The format, for the registry.
pub struct UpfJson;

static INFO: FormatInfo = FormatInfo {
    name: "upf_json",
    title: "Pseudopotential in JSON",
    users: "SIRIUS, upf_to_json",
    specification: "upf_to_json 1.0",
    extensions: &["json"],
    read: Grade::None,
    write: Grade::Partial,
    check: Grade::None,
    salvage: Grade::None,
};

impl Format for UpfJson {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, _: Head<'_>) -> Score {
        0
    }

    fn open(&self, _: Source, _: &OpenOptions) -> Result<Parsed> {
        Err(Error::not_this_format("upf-json-001", "JSON files are written, not read"))
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self)
    }
}
