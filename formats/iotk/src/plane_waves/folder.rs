//! The densities and wavefunctions of a folder `prefix.save`.

use std::path::{Path, PathBuf};

use spile_core::format::Folder;
use spile_core::limits::Budget;
use spile_core::{
    Attrs, Error, ErrorKind, NodeId, OpenOptions, ROOT, Report, Result, Source, Tree,
};

use super::{PlaneWaves, Quantity, RealSpace, members, records};
use crate::event::Form;
use crate::read::{File, inside};

/// The letters of the spins in names of files, and the names of their groups.
const SPINS: [(&str, &str); 2] = [("up", "up"), ("dw", "down")];

/// What a file is, by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Content {
    Density(Quantity),
    /// Index in [`SPINS`] and number of the k-point, counted from 0.
    Wavefunctions(Option<usize>, u64),
}

/// A file of plane waves.
pub(crate) struct Member {
    pub(crate) path: PathBuf,
    /// Name of the file.
    name: String,
    content: Content,
    waves: PlaneWaves,
    len: u64,
}

/// Approximate memory of a description in bytes, and of a band in it.
const MEMBER_BYTES: u64 = 4_096;

/// Summary rows: the density, and the wavefunctions together.
pub(crate) fn summary(members: &[Member]) -> Attrs {
    let mut rows = Attrs::new();
    let (densities, waves): (Vec<&Member>, Vec<&Member>) =
        members.iter().partition(|member| matches!(member.content, Content::Density(_)));
    for density in densities {
        rows.push(density.name.as_str(), density.waves.summary());
    }
    match &waves[..] {
        [] => {}
        [one] => rows.push(one.name.as_str(), one.waves.summary()),
        [first, .., last] => {
            let text = format!("{} files to {}: {}", waves.len(), last.name, first.waves.summary());
            rows.push(first.name.as_str(), text);
        }
    }
    rows
}

impl Content {
    /// The content of `charge-density.dat`, `ekin-density.dat`, `wfc1.hdf5`, `wfcup1.dat` and so on.
    fn of(path: &Path) -> Option<Self> {
        let stem = path.file_stem()?.to_str()?;
        if let Some(quantity) = Quantity::of_file(stem) {
            return Some(Self::Density(quantity));
        }
        let rest = stem.strip_prefix("wfc")?;
        let spin = SPINS.iter().position(|(letters, _)| rest.starts_with(letters));
        let number = spin.map_or(rest, |spin| &rest[SPINS[spin].0.len()..]);
        let plain = number.bytes().all(|b| b.is_ascii_digit()) && !number.starts_with('0');
        let number: u64 = number.parse().ok().filter(|_| plain)?;
        Some(Self::Wavefunctions(spin, number.checked_sub(1)?))
    }

    /// Whether the file has such content.
    fn is(&self, waves: &PlaneWaves) -> bool {
        match self {
            Self::Density(quantity) => waves.quantity() == Some(*quantity),
            Self::Wavefunctions(..) => waves.quantity().is_none(),
        }
    }
}

/// Opens the files of plane waves in `folder`, whose real path is `real`. Files that cannot be read are
/// reported.
pub(crate) fn open(
    folder: &Folder,
    real: &Path,
    options: &OpenOptions,
    report: &mut Report,
) -> Result<Vec<Member>> {
    let mut budget = Budget::new(&options.limits);
    let mut found: Vec<Member> = Vec::new();
    for path in ["hdf5", "dat"].into_iter().flat_map(|extension| folder.with_extension(extension)) {
        let name = path.strip_prefix(folder.path()).unwrap_or(&path).to_string_lossy().into_owned();
        let Some(content) = Content::of(&path) else {
            let message = "not part of the dataset; the file can be opened alone";
            report.warn("iotk-047", message).in_object(name);
            continue;
        };
        if let Some(same) = found.iter().find(|member| member.content == content) {
            let message = format!("not part of the dataset: {} has the same content", same.name);
            report.warn("iotk-047", message).in_object(name);
            continue;
        }
        budget.charge(MEMBER_BYTES, "densities and wavefunctions")?;
        match open_one(&path, real, options) {
            Ok(Some((waves, len))) if content.is(&waves) => {
                found.push(Member { path, name, content, waves, len });
            }
            Ok(_) => {
                let message =
                    "expected a density or wavefunctions of Quantum ESPRESSO, as the file is named";
                report.error("iotk-050", message).in_object(name);
            }
            Err(error) if error.kind() == ErrorKind::Limit => return Err(error.with_path(&path)),
            Err(_) if !is_supported(&path, options) => {
                let message = "not part of the dataset: HDF5 files are not supported by this build";
                report.warn("iotk-047", message).in_object(name);
            }
            Err(error) => {
                let message = format!("cannot read the file: {}", error.message());
                let finding = report.error("iotk-039", message).in_object(name);
                if let Some(at) = error.offset() {
                    finding.at(at);
                }
            }
        }
    }
    found.sort_by(|a, b| a.content.cmp(&b.content));
    Ok(found)
}

/// Notes on the files of a folder besides `main`, pseudopotentials and plane waves, such as `paw.txt` and
/// `atomic_proj.xml`.
pub(crate) fn report_others(folder: &Folder, main: &Path, report: &mut Report) {
    let known = ["upf", "hdf5", "dat"];
    for path in folder.files() {
        let extension = path.extension().unwrap_or_default();
        if path == main || known.iter().any(|known| extension.eq_ignore_ascii_case(known)) {
            continue;
        }
        let name = path.strip_prefix(folder.path()).unwrap_or(path).to_string_lossy();
        let message = "the file is not read; its content is not part of the dataset";
        report.note("iotk-054", message).in_object(name);
    }
}

/// Whether there is a format for a file with this extension.
fn is_supported(path: &Path, options: &OpenOptions) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let mut formats = options.formats.0.iter();
    extension == "dat" || formats.any(|format| format.info().extensions.contains(&extension))
}

/// The plane waves of a file and its length; `None` if it has other content.
fn open_one(path: &Path, real: &Path, options: &OpenOptions) -> Result<Option<(PlaneWaves, u64)>> {
    inside(path, real)?;
    let source = Source::open(path)?;
    let len = source.len();
    let waves = if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("dat")) {
        let file = File::from_source(source, &options.limits)?;
        match file.form() {
            Form::Binary(framing) => {
                records::parse(file.source(), file.raw_records(), framing.order)?
            }
            Form::Text => None,
        }
    } else {
        let dataset = options.formats.open(source, options)?;
        // The arrays of a file that refers to others are in other bytes.
        members::parse(&dataset)?.filter(|_| dataset.source().len() == len)
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(waves.map(|waves| (waves.named(&stem), len)))
}

/// Adds densities and wavefunctions to the tree of a folder. `start` is the offset of each file in the joined
/// source, `end` that of its end, and `grid` the FFT grid of the densities.
pub(crate) fn add(
    tree: &mut Tree,
    members: Vec<Member>,
    places: &[(u64, u64)],
    grid: Option<[u64; 3]>,
) -> Result<()> {
    for (member, (start, end)) in members.into_iter().zip(places) {
        if end.checked_sub(*start) != Some(member.len) {
            let message = "the file changed while it was read";
            return Err(Error::malformed("iotk-020", message).with_path(&member.path));
        }
        let waves = member.waves.shifted(*start)?;
        let path = match member.content {
            Content::Density(quantity) => quantity.file().to_string(),
            Content::Wavefunctions(None, k) => format!("wavefunctions/k{k}"),
            Content::Wavefunctions(Some(spin), k) => {
                format!("wavefunctions/{}/k{k}", SPINS[spin].1)
            }
        };
        let group = tree.group_at(&path)?;
        tree.push_attr(group, "file", member.name.as_str())?;
        waves.add(tree, group, grid.map(|grid| RealSpace { group: ROOT, grid }))?;
    }
    Ok(())
}

/// The FFT grid in the attributes `nr1`, `nr2`, `nr3` of an element.
pub(crate) fn grid_of(tree: &Tree, id: NodeId) -> Option<[u64; 3]> {
    let attrs = &tree.node(id).attrs;
    let [Some(n1), Some(n2), Some(n3)] = ["nr1", "nr2", "nr3"].map(|name| attrs.get_u64(name))
    else {
        return None;
    };
    [n1, n2, n3].iter().all(|n| *n > 0).then_some([n1, n2, n3])
}

/// The files of wavefunctions of `points` k-points.
pub(crate) fn wavefunction_names(points: u64, spins: bool) -> impl Iterator<Item = String> {
    let kinds: &[&str] = if spins { &["wfcup", "wfcdw"] } else { &["wfc"] };
    (1..=points).flat_map(move |k| kinds.iter().map(move |kind| format!("{kind}{k}")))
}

/// Whether a folder has one of `name.dat` and `name.hdf5`.
pub(crate) fn has_file(folder: &Folder, name: &str) -> bool {
    let stem = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == name);
    let extension = |path: &PathBuf| path.extension().is_some_and(|e| e == "dat" || e == "hdf5");
    folder.files().iter().any(|path| stem(path) && extension(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_has_its_spin_and_k_point() {
        let of = |name: &str| Content::of(Path::new(name));
        assert_eq!(of("charge-density.dat"), Some(Content::Density(Quantity::Charge)));
        assert_eq!(of("ekin-density.hdf5"), Some(Content::Density(Quantity::KineticEnergy)));
        assert_eq!(of("wfc12.hdf5"), Some(Content::Wavefunctions(None, 11)));
        assert_eq!(of("wfcdw1.dat"), Some(Content::Wavefunctions(Some(1), 0)));
        for other in ["wfc.dat", "wfc0.dat", "wfcup.dat", "wfc1a.dat", "wfc01.dat", "x.dat"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
