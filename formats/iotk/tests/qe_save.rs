//! `prefix.save` of Quantum ESPRESSO: linked files as one dataset.

use std::fs;
use std::path::{Path, PathBuf};

use spile_core::Dataset;
use spile_core::error::Result;
use spile_core::format::Folder;
use spile_core::layout::Coord;
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::report::Severity;
use spile_core::select::Selection;
use spile_core::semantics::{Centring, Role};
use spile_core::source::Source;
use spile_iotk::{File, Iotk, Style, Target};

fn limits() -> Limits {
    Limits::default()
}

fn silicon() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/iotk/qe54_si/si.save")
}

fn open_folder(path: &Path) -> Result<Option<Dataset>> {
    Dataset::open_folder(&Iotk, &Folder::open(path).unwrap(), &(&limits()).into())
}

fn numbers(dataset: &Dataset, path: &str) -> Vec<f64> {
    dataset.array(path).unwrap().read_f64(&Selection::all(), Axes::Stored).unwrap()
}

#[test]
fn a_calculation_is_read_through_its_links() {
    let save = open_folder(&silicon()).unwrap().unwrap();
    assert!(save.warnings().is_empty(), "{:?}", save.warnings());
    let row = |name: &str| save.summary().get(name).map(ToString::to_string);
    assert_eq!(row("program").as_deref(), Some("PWSCF 5.4.0"));
    assert_eq!((row("k-points"), row("bands")), (Some("3".into()), Some("6".into())));
    assert_eq!(row("files").as_deref(), Some("12"));
    assert_eq!(row("charge-density.dat").as_deref(), Some("charge density, 12 x 12 x 12"));
    let waves = row("evc.dat").unwrap();
    assert!(waves.starts_with("in 3 folders, K00001 to K00003: wavefunctions, 6 bands"), "{waves}");

    // The values are those of the separate files.
    let alone = silicon().join("charge-density.dat");
    let alone = Dataset::open_path(&Iotk, alone, &(&limits()).into()).unwrap();
    let density = "Root/CHARGE-DENSITY/CHARGE-DENSITY/density";
    assert_eq!(numbers(&save, density), numbers(&alone, "Root/CHARGE-DENSITY/density"));
    let node = save.tree().node(save.tree().find("density").unwrap());
    assert_eq!(numbers(&save, "density"), numbers(&save, density));
    let desc = node.array.as_ref().unwrap();
    assert_eq!(
        (desc.shape.lengths(), &desc.dims[..]),
        (&[12, 12, 12][..], &["a1", "a2", "a3"].map(String::from)[..])
    );
    assert!(desc.coords.iter().all(|c| *c == Coord::Uniform { start: 0.0, step: 1.0 / 12.0 }));
    assert_eq!(node.attrs.get_str("units"), Some("e/Bohr^3"));
    let meaning = desc.semantics();
    assert_eq!((meaning.role, meaning.centring), (Role::Field, Some(Centring::Node)));

    // Bands of all k-points, from three text files.
    let bands = numbers(&save, "Root/EIGENVALUES/bands");
    let mut expected = Vec::new();
    for k in 1..=3 {
        let file = File::open(silicon().join(format!("K0000{k}/eigenval.xml")), &limits()).unwrap();
        expected.extend(file.read_f64("Root/EIGENVALUES").unwrap().unwrap());
        let waves = File::open(silicon().join(format!("K0000{k}/evc.dat")), &limits()).unwrap();
        let path = format!("Root/EIGENVECTORS/K-POINT.{k}/WFC/evc.4");
        assert_eq!(numbers(&save, &path), waves.read_f64("WFC/evc.4").unwrap().unwrap());
    }
    assert_eq!(bands, expected);
    let bands = save.array("Root/EIGENVALUES/bands").unwrap();
    assert_eq!((bands.shape().lengths(), bands.units()), (&[1, 3, 6][..], Some("Hartree")));
    assert_eq!(bands.dims(), ["spin", "k", "band"]);
    let points = save.array("Root/EIGENVALUES/k-points").unwrap();
    assert_eq!((points.shape().lengths(), points.units()), (&[3, 3][..], Some("2 pi / a")));
    assert_eq!(points.read::<Vec<f64>>("1, :").unwrap(), [0.5, -0.5, 0.5]);
    let vectors = save.tree().find("Root/PLANE_WAVES/G-VECTORS/vectors").unwrap();
    assert_eq!(save.tree().node(vectors).array.as_ref().unwrap().shape.lengths(), [3, 531]);
    // A resolved link is not a link again when the tree is written.
    let link = save.tree().node(save.tree().find("Root/CHARGE-DENSITY").unwrap());
    assert_eq!(link.attrs.get_str("linked_file"), Some("./charge-density.dat"));
}

#[test]
fn the_cell_and_the_atoms_are_arrays() {
    let save = open_folder(&silicon()).unwrap().unwrap();
    let cell = save.array("cell").unwrap();
    assert_eq!((cell.semantics().role, cell.units()), (Role::Cell, Some("bohr")));
    // A vector is a row.
    assert_eq!(cell.read::<Vec<f64>>("0, :").unwrap(), [-5.1, 0.0, 5.1]);
    assert_eq!(cell.read::<Vec<f64>>("2, :").unwrap(), [-5.1, 5.1, 0.0]);
    let typed = save.cell(0).unwrap().unwrap();
    assert_eq!(typed.vectors, [[-5.1, 0.0, 5.1], [0.0, 5.1, 5.1], [-5.1, 5.1, 0.0]]);
    assert_eq!(typed.units.as_deref(), Some("bohr"));
    let positions = save.array("positions").unwrap();
    assert_eq!(
        (positions.dims(), positions.units()),
        (&["atom", "component"].map(String::from)[..], Some("bohr"))
    );
    assert_eq!(positions.read::<Vec<f64>>("1, :").unwrap(), [2.55; 3]);
    let species = save.array("species").unwrap();
    assert_eq!(species.read_bytes(&Selection::all(), Axes::Stored).unwrap(), b"SiSi");
    for array in [&positions, &species] {
        assert_eq!(array.semantics().role, Role::Points);
        assert_eq!(array.semantics().point_set.as_deref(), Some("atoms"));
    }
    assert_eq!(species.semantics().mesh, Some(save.tree().find("positions").unwrap()));
}

#[test]
fn missing_atoms_are_reported() {
    let atom = |k: u64| format!("<ATOM.{k} SPECIES='Si' tau='{k}.0 0.0 0.0'/>");
    let open = |atoms: &[u64], declared: u64| {
        let atoms: String = atoms.iter().map(|k| atom(*k)).collect();
        let number =
            format!("<NUMBER_OF_ATOMS type='integer' size='1'>{declared}</NUMBER_OF_ATOMS>");
        let text = format!("<Root><IONS>{number}{atoms}</IONS></Root>");
        Dataset::open(&Iotk, Source::memory(text), &(&limits()).into()).unwrap()
    };
    let complete = open(&[1, 2, 3], 3);
    assert!(complete.warnings().is_empty());
    assert_eq!(complete.array("Root/IONS/positions").unwrap().shape().lengths(), [3, 3]);
    for (atoms, declared, found) in [
        (&[1, 3][..], 3, "2 of 3 atoms"),
        (&[1, 2], 3, "2 of 3 atoms"),
        (&[1, 4], 2, "2 of 4 atoms"),
    ] {
        let dataset = open(atoms, declared);
        let [finding] = dataset.warnings() else { panic!("{atoms:?}") };
        assert_eq!(finding.code, "iotk-038");
        assert!(finding.message.contains(found), "{}", finding.message);
    }
    // The rows could not be told apart.
    assert!(open(&[1, 3], 3).tree().find("Root/IONS/positions").is_err());
}

#[test]
fn bands_of_both_spins_are_one_array() {
    let temp = tempfile::tempdir().unwrap();
    let mut main = "<Root><EIGENVALUES>".to_string();
    for k in 1..=2 {
        let files = [1, 2].map(|spin| format!("<DATAFILE.{spin} iotk_link='{k}{spin}.xml'/>"));
        main.extend([format!("<K-POINT.{k}>"), files.concat(), format!("</K-POINT.{k}>")]);
        for spin in 1..=2 {
            let text = format!(
                "<Root><UNITS_FOR_ENERGIES UNITS='Hartree'/><EIGENVALUES type='real' size='2'>\
                 {spin}{k}1.0 {spin}{k}2.0</EIGENVALUES></Root>"
            );
            fs::write(temp.path().join(format!("{k}{spin}.xml")), text).unwrap();
        }
    }
    fs::write(temp.path().join("data-file.xml"), main + "</EIGENVALUES></Root>").unwrap();
    let save = open_folder(temp.path()).unwrap().unwrap();
    let bands = save.array("Root/EIGENVALUES/bands").unwrap();
    assert_eq!(bands.shape().lengths(), [2, 2, 2]);
    assert_eq!(bands.read::<Vec<f64>>("1, 0, :").unwrap(), [211.0, 212.0]);
    assert_eq!(bands.read::<Vec<f64>>("0, 1, :").unwrap(), [121.0, 122.0]);
}

#[test]
fn radial_functions_of_a_pseudopotential_have_the_radius_as_coordinate() {
    let text = "<UPF version='2.0.1'><PP_MESH><PP_R type='real' size='3'>0.1 0.2 0.4</PP_R>\
                <PP_RAB type='real' size='3'>0.1 0.1 0.2</PP_RAB></PP_MESH>\
                <PP_NONLOCAL><PP_BETA.1 type='real' size='3'>1.0 2.0 3.0</PP_BETA.1>\
                <PP_DIJ type='real' size='1'>1.0</PP_DIJ></PP_NONLOCAL></UPF>";
    let source = Source::memory(text);
    let upf = Dataset::open(&Iotk, source, &(&limits()).into()).unwrap();
    let radius = upf.tree().find("UPF/PP_MESH/PP_R").unwrap();
    let mesh = upf.array_at(radius).unwrap();
    assert_eq!((mesh.semantics().role, mesh.units()), (Role::Mesh, Some("bohr")));
    let beta = upf.array("UPF/PP_NONLOCAL/PP_BETA.1").unwrap();
    assert_eq!((beta.semantics().role, beta.semantics().mesh), (Role::Field, Some(radius)));
    assert_eq!(beta.coord("r").unwrap().read().unwrap(), [0.1, 0.2, 0.4]);
    let other = upf.array("UPF/PP_NONLOCAL/PP_DIJ").unwrap();
    assert_eq!((other.semantics().role, other.dims()), (Role::Data, &["dim1".to_string()][..]));
}

#[test]
fn data_that_do_not_match_their_tag_are_errors_on_opening() {
    let temp = tempfile::tempdir().unwrap();
    let bad = "<a type='real' size='9'>1.0</a>";
    fs::write(
        temp.path().join("data-file.xml"),
        format!("<Root><x iotk_link='x.xml'/>{bad}</Root>"),
    )
    .unwrap();
    fs::write(temp.path().join("x.xml"), format!("<Root><y>{bad}</y></Root>")).unwrap();
    let objects = |dataset: &Dataset| -> Vec<(Severity, Option<String>)> {
        dataset.warnings().iter().map(|w| (w.severity, w.object.clone())).collect()
    };
    let expected = |path: &str| (Severity::Error, Some(path.to_string()));
    let save = open_folder(temp.path()).unwrap().unwrap();
    assert_eq!(objects(&save), [expected("Root/a"), expected("Root/x/y/a")]);
    let alone = Dataset::open_path(&Iotk, temp.path().join("x.xml"), &(&limits()).into()).unwrap();
    assert_eq!(objects(&alone), [expected("Root/y/a")]);
}

#[test]
fn links_out_of_the_folder_and_to_unreadable_files_are_reported() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("x.save");
    fs::create_dir_all(folder.join("K1")).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    fs::write(temp.path().join("secret.xml"), "<Root><a/></Root>").unwrap();
    std::os::unix::fs::symlink("../secret.xml", folder.join("sly.xml")).unwrap();
    let secret = temp.path().join("secret.xml");
    std::os::unix::fs::symlink(&secret, folder.join("Si.UPF")).unwrap();
    write(
        "data-file.xml",
        &format!(
            "<Root><out iotk_link='../secret.xml'/><abs iotk_link='{}'/><sly iotk_link='sly.xml'/>\
             <gone iotk_link='gone.dat'/><self iotk_link='data-file.xml'/><a iotk_link='K1/a.xml'/>\
             <again iotk_link='./K1/../K1/a.xml'/><bad iotk_link='bad.xml'/>\
             <raw iotk_link='notes.txt' iotk_raw='T'/></Root>",
            secret.display()
        ),
    );
    write("notes.txt", "free text");
    write("bad.xml", "<Root><a></b></Root>");
    write("K1/a.xml", "<Root><b type='integer' size='1'>7</b><up iotk_link='../K1/b.xml'/></Root>");
    write("K1/b.xml", "<Root><c type='integer' size='1'>8</c><round iotk_link='a.xml'/></Root>");
    let save = open_folder(&folder).unwrap().unwrap();
    let found: Vec<(&str, String)> = save
        .warnings()
        .iter()
        .map(|finding| (finding.code, finding.object.clone().unwrap_or_default()))
        .collect();
    let out = found.iter().filter(|(code, _)| *code == "iotk-015").count();
    assert_eq!((out, found.len()), (4, 9), "{found:?}");
    assert!(found.contains(&("iotk-015", "Si.UPF".to_string())), "{found:?}");
    assert!(save.tree().find("Si.UPF").is_err());
    let further = found.iter().filter(|(code, _)| *code == "iotk-048");
    let further: Vec<&str> = further.map(|(_, object)| object.as_str()).collect();
    let expected = [
        "link Root/self in data-file.xml",
        "link Root/again in data-file.xml",
        "link Root/round in K1/b.xml",
    ];
    assert_eq!(further, expected);
    assert!(found.iter().any(|(_, object)| object.contains("gone.dat")), "{found:?}");
    assert!(found.contains(&("iotk-039", "bad.xml".to_string())), "{found:?}");
    assert!(
        save.warnings().iter().all(|finding| finding.offset.is_some() || finding.code.is_empty())
    );
    assert_eq!(numbers(&save, "Root/a/b"), [7.0]);
    assert_eq!(numbers(&save, "Root/a/up/c"), [8.0]);
    // A cyclic or second link to a file is an empty element.
    for path in ["Root/a/up/round", "Root/again", "Root/self", "Root/out"] {
        let id = save.tree().find(path).unwrap();
        assert!(save.tree().iter().all(|(_, node)| node.parent != id), "{path}");
    }
    assert!(open_folder(&folder.join("K1")).unwrap().is_none());
    // Without a readable main file, opening fails.
    write("data-file.xml", "<Root>");
    let error = open_folder(&folder).err().unwrap();
    assert_eq!(error.code(), "iotk-009");
}

/// The value of an element as text of the given type.
fn leaf(name: &str, kind: &str, values: &str) -> String {
    let size = values.split_whitespace().count();
    format!("<{name} type='{kind}' size='{size}'>{values}</{name}>")
}

/// A description of a run with one k-point; `spin` has the flags, `bands` and `waves` what its k-point links to.
fn description(spin: &str, fermi: &str, bands: &str, waves: &str) -> String {
    let vectors = |name: &str, units: &str, letter: &str, scale: f64| {
        let vector = |k: usize| {
            let values = (0..3).map(|j| if j == k { scale * (k + 1) as f64 } else { 0.0 });
            let values: Vec<String> = values.map(|x| format!("{x:?}")).collect();
            leaf(&format!("{letter}{}", k + 1), "real", &values.join(" "))
        };
        let all: String = (0..3).map(vector).collect();
        format!("<{name}><UNITS_FOR_{name} UNITS='{units}'/>{all}</{name}>")
    };
    let (direct, reciprocal) = ("DIRECT_LATTICE_VECTORS", "RECIPROCAL_LATTICE_VECTORS");
    let cell = [
        leaf("LATTICE_PARAMETER", "real", "4.0"),
        vectors(direct, "Bohr", "a", 4.0),
        vectors(reciprocal, "2 pi / a", "b", 0.5),
    ];
    let point = [leaf("K-POINT_COORDS", "real", "0.0 0.25 0.0"), leaf("WEIGHT", "real", "2.0")];
    format!(
        "<Root><CELL>{}</CELL><IONS><UNITS_FOR_ATOMIC_POSITIONS UNITS='Bohr'/><ATOM.1 SPECIES='H' tau='0.5 0.0 \
         0.0'/></IONS><SPIN>{spin}</SPIN><CHARGE-DENSITY iotk_link='./charge-density.dat'/><BAND_STRUCTURE_INFO>\
         <UNITS_FOR_ENERGIES UNITS='Hartree'/>{fermi}</BAND_STRUCTURE_INFO><EIGENVALUES><K-POINT.1>{}{bands}\
         </K-POINT.1></EIGENVALUES><EIGENVECTORS><K-POINT.1>{waves}</K-POINT.1></EIGENVECTORS></Root>",
        cell.concat(),
        point.concat(),
    )
}

/// Writes a file, as records if it is named `.dat`.
fn write_iotk(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    if path.extension().is_none_or(|extension| extension != "dat") {
        fs::write(path, text).unwrap();
        return;
    }
    let mut binary = Vec::new();
    let source = Source::memory(text.to_string());
    spile_iotk::convert(&source, Target::default(), Style::Exact, &mut binary, &limits()).unwrap();
    fs::write(path, binary).unwrap();
}

fn density_file(values: &str) -> String {
    let plane = leaf("z.1", "real", values);
    format!("<Root><CHARGE-DENSITY><INFO nr1='2' nr2='2' nr3='1'/>{plane}</CHARGE-DENSITY></Root>")
}

fn band_file(energies: &str) -> String {
    let (energies, occupied) =
        (leaf("EIGENVALUES", "real", energies), leaf("OCCUPATIONS", "real", "1.0 0.0"));
    format!("<Root><UNITS_FOR_ENERGIES UNITS='Hartree'/>{energies}{occupied}</Root>")
}

fn wave_file(bands: [&str; 2]) -> String {
    let band = |k: usize| {
        format!("<evc.{0} type='complex' size='2' kind='8'>{1}</evc.{0}>", k + 1, bands[k])
    };
    format!("<WFC><INFO igwx='2' nbnd='2'/>{}{}</WFC>", band(0), band(1))
}

const GRID: &str =
    "<GK-VECTORS><GRID type='integer' size='6' kind='4'>0 0 0 1 -1 2</GRID></GK-VECTORS>";

/// A run up to version 6.1 has the arrays of the root that later versions have, in the same units.
#[test]
fn an_early_run_with_two_spins_has_the_arrays_of_a_later_one() {
    let temp = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| write_iotk(temp.path().join(name), text);
    let spin = leaf("LSDA", "logical", "T");
    let fermi = leaf("FERMI_ENERGY_UP", "real", "0.5") + &leaf("FERMI_ENERGY_DOWN", "real", "0.25");
    let bands =
        "<DATAFILE.1 iotk_link='K1/eigenval1.xml'/><DATAFILE.2 iotk_link='K1/eigenval2.xml'/>";
    let waves = "<GK-VECTORS iotk_link='K1/gkvectors.dat'/><WFC.1 iotk_link='K1/evc1.dat'/>\
                 <WFC.2 iotk_link='K1/evc2.dat'/>";
    put("data-file.xml", &description(&spin, &fermi, bands, waves));
    put("K1/eigenval1.xml", &band_file("-0.5 0.5"));
    put("K1/eigenval2.xml", &band_file("-0.25 1.0"));
    put("K1/gkvectors.dat", GRID);
    put("K1/evc1.dat", &wave_file(["1.0,0.0 0.5,0.25", "0.0,1.0 2.0,0.0"]));
    put("K1/evc2.dat", &wave_file(["3.0,0.0 0.0,0.0", "4.0,0.0 0.0,5.0"]));
    put("charge-density.dat", &density_file("1.0 2.0 3.0 4.0"));
    let missing = open_folder(temp.path()).unwrap().unwrap();
    let found: Vec<_> = missing.warnings().iter().map(|w| (w.code, w.object.as_deref())).collect();
    assert_eq!(found, [("iotk-049", Some("spin-polarization.dat"))]);
    put("spin-polarization.dat", &density_file("0.5 0.0 -0.5 1.0"));

    let save = open_folder(temp.path()).unwrap().unwrap();
    assert!(save.warnings().is_empty(), "{:?}", save.warnings());
    let hartree = 27.211_386_245_988;
    let levels = save.array("bands").unwrap();
    assert_eq!((levels.shape().lengths(), levels.units()), (&[2, 1, 2][..], Some("eV")));
    let expected = [-0.5, 0.5, -0.25, 1.0].map(|energy| energy * hartree);
    assert_eq!(levels.read::<Vec<f64>>("...").unwrap(), expected);
    assert_eq!(levels.coord("k").unwrap().read().unwrap(), [0.0]);
    assert_eq!(numbers(&save, "occupations"), [1.0, 0.0, 1.0, 0.0]);
    assert_eq!(numbers(&save, "two_fermi_energies"), [0.5 * hartree, 0.25 * hartree]);
    assert_eq!(
        (numbers(&save, "k-points"), numbers(&save, "weights")),
        (vec![0.0, 0.25, 0.0], vec![2.0])
    );
    assert_eq!(numbers(&save, "cell"), [4.0, 0.0, 0.0, 0.0, 8.0, 0.0, 0.0, 0.0, 12.0]);
    assert_eq!(numbers(&save, "positions"), [0.5, 0.0, 0.0]);
    let (density, spins) = (save.array("density").unwrap(), save.array("magnetization").unwrap());
    assert_eq!(density.read::<Vec<f64>>("0, :, 0").unwrap(), [1.0, 3.0]);
    assert_eq!(spins.read::<Vec<f64>>("1, :, 0").unwrap(), [0.0, 1.0]);
    assert_eq!((density.units(), spins.units()), (Some("e/Bohr^3"), Some("mu_B/Bohr^3")));
    // Each field and the atoms are there once.
    let role =
        |role: Role| save.arrays().filter(|(.., desc)| desc.semantics().role == role).count();
    assert_eq!((role(Role::Field), role(Role::Cell), role(Role::Points)), (2, 1, 2));
    let up = save.array("wavefunctions/up/k0/coefficients").unwrap();
    assert_eq!(
        (up.shape().lengths(), up.dims()),
        (&[2, 2][..], &["band", "G"].map(String::from)[..])
    );
    let (up, down) = ("wavefunctions/up/k0", "wavefunctions/down/k0");
    let bytes = save.array(&format!("{down}/coefficients")).unwrap();
    let bytes = bytes.read_bytes(&Selection::all(), Axes::Stored).unwrap();
    let values: Vec<f64> =
        bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
    assert_eq!(values, [3.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 5.0]);
    assert_eq!(numbers(&save, &format!("{up}/miller")), [0.0, 0.0, 0.0, 1.0, -1.0, 2.0]);
    let step = std::f64::consts::TAU / 4.0;
    assert_eq!(numbers(&save, &format!("{up}/G"))[3..], [0.5 * step, -step, 3.0 * step]);
    let group = save.tree().node(save.tree().find(up).unwrap());
    assert_eq!(group.attrs.get_str("file"), Some("K1/evc1.dat"));
    let Some(spile_core::Value::List(k)) = group.attrs.get("k") else { panic!() };
    assert_eq!(f64::try_from(&k[1]).unwrap(), 0.25 * step);
}

#[test]
fn spinors_and_eigenvalues_beside_the_description_of_an_early_run_are_read() {
    let temp = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| write_iotk(temp.path().join(name), text);
    let spin = leaf("NON-COLINEAR_CALCULATION", "logical", "T");
    let waves = "<GK-VECTORS iotk_link='K00001_gkvectors.dat'/><WFC.1 iotk_link='K00001_evc1.dat'/>\
                 <WFC.2 iotk_link='K00001_evc2.dat'/>";
    put("data-file.xml", &description(&spin, &leaf("FERMI_ENERGY", "real", "0.5"), "", waves));
    let bands = band_file("-0.5 0.5").replace("Root", "DATA_EIG.1");
    put("data-file.xml.eig", &format!("<Root>{bands}</Root>"));
    put("K00001_gkvectors.dat", GRID);
    put("K00001_evc1.dat", &wave_file(["1.0,0.0 0.5,0.25", "0.0,1.0 2.0,0.0"]));
    put("K00001_evc2.dat", &wave_file(["3.0,0.0 0.0,0.0", "4.0,0.0 0.0,5.0"]));
    put("charge-density.dat", &density_file("1.0 2.0 3.0 4.0"));
    for axis in ["x", "y", "z"] {
        put(&format!("magnetization.{axis}.dat"), &density_file("0.5 0.0 -0.5 1.0"));
    }
    let save = open_folder(temp.path()).unwrap().unwrap();
    assert!(save.warnings().is_empty(), "{:?}", save.warnings());
    let hartree = 27.211_386_245_988;
    assert_eq!(numbers(&save, "bands"), [-0.5 * hartree, 0.5 * hartree]);
    assert_eq!(numbers(&save, "fermi_energy"), [0.5 * hartree]);
    assert_eq!(numbers(&save, "magnetization_z"), [0.5, 0.0, -0.5, 1.0]);
    let waves = save.array("wavefunctions/k0/coefficients").unwrap();
    assert_eq!(waves.shape().lengths(), [2, 2, 2]);
    let bytes = waves.read_bytes(&Selection::all(), Axes::Stored).unwrap();
    let values: Vec<f64> =
        bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
    let (first, second) =
        ([1.0, 0.0, 0.5, 0.25, 3.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, 0.0, 4.0, 0.0, 0.0, 5.0]);
    assert_eq!(values, [first, second].concat());
}
