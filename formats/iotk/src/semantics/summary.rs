//! Content of the files of Quantum ESPRESSO in a few rows, and arrays of which parts are missing.

use std::collections::HashSet;

use spile_core::{Attrs, Report, Tree};

use super::atom_number;
use crate::index::Element;
use crate::read::File;
use crate::upf;

/// An array or list of which some parts are missing.
struct Incomplete {
    /// Name of the array.
    array: &'static str,
    /// `11 of 12 planes`.
    found: String,
    /// Offset of the element around the parts.
    offset: u64,
}

/// Reports arrays with missing parts.
pub(crate) fn report_incomplete(file: &File, report: &mut Report) {
    for part in incomplete(file) {
        let message = format!("incomplete {}: {} found", part.array, part.found);
        report.warn("iotk-038", message).at(part.offset);
    }
}

/// The densities, wavefunctions and lists of atoms with missing parts.
fn incomplete(file: &File) -> Vec<Incomplete> {
    let index = file.index();
    let mut incomplete = Vec::new();
    for element in index.elements() {
        let inside = || element.children.iter().map(|id| &index.elements()[*id]);
        if element.tag.name() == b"IONS" {
            let found: HashSet<u64> = inside().filter_map(|e| atom_number(e.tag.name())).collect();
            let largest = found.iter().max().copied().unwrap_or(0);
            let expected = declared_atoms(file, element).unwrap_or(0).max(largest);
            if (found.len() as u64) < expected {
                let found = format!("{} of {expected} atoms", found.len());
                incomplete.push(Incomplete {
                    array: "list of atoms",
                    found,
                    offset: element.offset,
                });
            }
        }
        let Some(info) = inside().find(|e| e.tag.name() == b"INFO") else { continue };
        let number = |key: &str| info.tag.get_u64(key);
        let density = element.tag.name().ends_with(b"CHARGE-DENSITY");
        let (array, part, parts, expected) = match (number("nr3"), number("igwx"), number("nbnd")) {
            (Some(planes), _, _) if density => ("charge density", "z.", "planes", planes),
            (_, Some(_), Some(bands)) => ("wavefunctions", "evc.", "bands", bands),
            _ => continue,
        };
        let number_of = |name: &[u8]| -> Option<u64> {
            let digits = name.strip_prefix(part.as_bytes())?;
            std::str::from_utf8(digits).ok()?.parse().ok().filter(|k| (1..=expected).contains(k))
        };
        let found: HashSet<u64> = inside().filter_map(|e| number_of(e.tag.name())).collect();
        // Files without wavefunctions have no part at all.
        if !found.is_empty() && (found.len() as u64) < expected {
            let found = format!("{} of {expected} {parts}", found.len());
            incomplete.push(Incomplete { array, found, offset: element.offset });
        }
    }
    incomplete
}

/// The number in the element `NUMBER_OF_ATOMS` of `ions`.
fn declared_atoms(file: &File, ions: &Element) -> Option<u64> {
    let named = |id: &&usize| file.index().elements()[**id].tag.name() == b"NUMBER_OF_ATOMS";
    let array = file.array(*ions.children.iter().find(named)?).ok()??;
    let single = array.shape().count() == Some(1);
    let values = single.then(|| array.read::<Vec<f64>>("...").ok())??;
    values.first().map(|number| *number as u64)
}

/// Summary rows of a file of Quantum ESPRESSO: content, program, counts.
pub(crate) fn summary(file: &File, tree: &Tree) -> Attrs {
    let index = file.index();
    if upf::kind(index).is_some() {
        return upf::summary(file, tree);
    }
    let Some(root) = index.roots().first() else { return Attrs::new() };
    let root = &index.elements()[*root];
    // Searches the children directly: the table of names would be built for all elements.
    let child = |path: &str| {
        path.split('/').try_fold(root, |at, name| {
            let mut inside = at.children.iter().map(|id| &index.elements()[*id]);
            inside.find(|element| element.tag.name() == name.as_bytes())
        })
    };
    let text = |path: &str, key: &str| child(path).and_then(|element| element.tag.get_text(key));
    let name = root.tag.name_lossy();
    let mut rows = Attrs::new();
    let mut add_row = |what: &str, value: String| rows.push(what, value);
    let get = |key: &str| text("INFO", key).unwrap_or_else(|| "?".into());
    if child("HEADER/CREATOR").is_some() {
        let creator = |key: &str| text("HEADER/CREATOR", key).unwrap_or_default();
        add_row("holds", "description of a calculation".into());
        add_row("program", format!("{} {}", creator("NAME"), creator("VERSION")));
        for (what, path) in [
            ("k-points", "BRILLOUIN_ZONE/NUMBER_OF_K-POINTS"),
            ("bands", "BAND_STRUCTURE_INFO/NUMBER_OF_BANDS"),
            ("atoms", "IONS/NUMBER_OF_ATOMS"),
        ] {
            if let Ok(Some(values)) = file.read_f64(&format!("{name}/{path}"))
                && let [value] = values[..]
            {
                add_row(what, value.to_string());
            }
        }
    } else if child("CHARGE-DENSITY/INFO").is_some() {
        let n = |key: &str| text("CHARGE-DENSITY/INFO", key).unwrap_or_else(|| "?".into());
        add_row("holds", format!("charge density, {} x {} x {}", n("nr1"), n("nr2"), n("nr3")));
    } else if text("INFO", "igwx").is_some() {
        let (bands, waves) = (get("nbnd"), get("igwx"));
        add_row("holds", format!("wavefunctions, {bands} bands of {waves} plane waves"));
        let (point, spin) = ((get("ik"), get("nk")), (get("ispin"), get("nspin")));
        add_row("k-point", format!("{} of {}, spin {} of {}", point.0, point.1, spin.0, spin.1));
    } else if child("EIGENVALUES").is_some() {
        add_row("holds", format!("eigenvalues, {} bands, k-point {}", get("nbnd"), get("ik")));
        if let Some(units) = text("UNITS_FOR_ENERGIES", "UNITS") {
            add_row("units", units);
        }
    } else if name == "G-VECTORS" {
        add_row("holds", format!("{} G-vectors, units {}", get("gvect_number"), get("units")));
    } else if name == "GK-VECTORS"
        && let Ok(Some(number)) = file.read::<i64>("GK-VECTORS/NUMBER_OF_GK-VECTORS")
        && let [number] = number[..]
    {
        add_row("holds", format!("{number} plane waves of a k-point"));
    }
    for part in incomplete(file) {
        add_row(&format!("{}, incomplete", part.array), part.found);
    }
    rows
}
