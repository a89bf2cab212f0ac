//! Content of the files of Quantum ESPRESSO in a few rows, and arrays of which parts are missing.

use std::collections::HashSet;

use spile_core::{Attrs, Tree};

use crate::index::Index;
use crate::read::File;
use crate::upf;

/// An array of which some parts are missing.
pub(crate) struct Incomplete {
    /// Name of the array.
    pub(crate) array: &'static str,
    /// `11 of 12 planes`.
    pub(crate) found: String,
    /// Offset of the element around the parts.
    pub(crate) offset: u64,
}

/// The densities and wavefunctions with missing parts.
pub(crate) fn incomplete(index: &Index) -> Vec<Incomplete> {
    let mut incomplete = Vec::new();
    for element in index.elements() {
        let inside = || element.children.iter().map(|id| &index.elements()[*id]);
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
    for part in incomplete(index) {
        add_row(&format!("{}, incomplete", part.array), part.found);
    }
    rows
}
