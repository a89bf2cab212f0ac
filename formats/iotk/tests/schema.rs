//! `data-file-schema.xml` of Quantum ESPRESSO 6.2 and later.

use std::path::{Path, PathBuf};

use spile_core::format::{Folder, FormatWriter, WriteOptions};
use spile_core::{Axes, Dataset, Limits, Overwrite, Role, Selection, Sink, Source};
use spile_iotk::Iotk;

/// A calculation with two spins: two k-points, two bands each.
const LSDA: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<qes:espresso xmlns:qes=\"http://x\"><input><title>\
    12</title></input><output><atomic_structure nat=\"2\" alat=\"5.0\"><atomic_positions><atom name=\"Ni\" index=\"1\">\
    0.0 0.0 0.0</atom><atom name=\"O\" index=\"2\"> 2.5e0 2.5e0 2.5e0</atom></atomic_positions><cell><a1>5.0 0.0 0.0</a1>\
    <a2>0.0 5.0 0.0</a2><a3>1.0 0.0 5.0</a3></cell></atomic_structure><band_structure><lsda>true</lsda><nbnd_up>2</nbnd_up>\
    <nbnd_dw>2</nbnd_dw><fermi_energy>5.000000000000000E-001</fermi_energy><ks_energies><k_point weight=\"0.25\">\
    0.0 0.0 0.0</k_point><npw>100</npw><eigenvalues size=\"4\">\n 1.0 2.0\n 3.0 4.0\n</eigenvalues><occupations size=\"4\">\
    1.0 1.0 1.0 0.0</occupations></ks_energies><ks_energies><k_point weight=\"1.75\">0.5 0.5 0.5</k_point><npw>101</npw>\
    <eigenvalues size=\"4\">5.0 6.0 7.0 8.0</eigenvalues><occupations size=\"4\">1.0 0.5 0.0 0.0</occupations></ks_energies>\
    </band_structure></output></qes:espresso>\n";

const HARTREE_EV: f64 = 27.211_386_245_988;

fn open(text: &str) -> Dataset {
    Dataset::open(&Iotk, Source::memory(text), &(&Limits::default()).into()).unwrap()
}

fn expect_view(run: &Dataset) {
    let numbers = |name: &str| run.array(name).unwrap().read::<Vec<f64>>("...").unwrap();
    let bands = run.array("bands").unwrap();
    assert_eq!((bands.shape().lengths(), bands.units()), (&[2, 2, 2][..], Some("eV")));
    assert_eq!(bands.dims(), ["spin", "k", "band"]);
    let hartree = [1.0, 2.0, 5.0, 6.0, 3.0, 4.0, 7.0, 8.0];
    assert_eq!(numbers("bands"), hartree.map(|e| e * HARTREE_EV));
    let stored = bands.read_bytes(&Selection::all(), Axes::Stored).unwrap();
    assert_eq!(stored, hartree.iter().flat_map(|e: &f64| e.to_le_bytes()).collect::<Vec<u8>>());
    assert_eq!(numbers("occupations"), [1.0, 1.0, 1.0, 0.5, 1.0, 0.0, 0.0, 0.0]);
    assert_eq!(numbers("fermi_energy"), [0.5 * HARTREE_EV]);
    assert_eq!(numbers("weights"), [0.25, 1.75]);
    assert_eq!(numbers("k-points"), [0.0, 0.0, 0.0, 0.5, 0.5, 0.5]);
    let cell = run.cell(0).unwrap().unwrap();
    assert_eq!(cell.vectors, [[5.0, 0.0, 0.0], [0.0, 5.0, 0.0], [1.0, 0.0, 5.0]]);
    assert_eq!(cell.units.as_deref(), Some("bohr"));
    assert_eq!(numbers("positions"), [0.0, 0.0, 0.0, 2.5, 2.5, 2.5]);
    let species = run.array("species").unwrap();
    assert_eq!(species.read_bytes(&Selection::all(), Axes::Stored).unwrap(), b"NiO ");
    assert_eq!(species.semantics().role, Role::Points);
}

#[test]
fn both_spins_of_an_lsda_run_are_in_bands_and_occupations() {
    let run = open(LSDA);
    expect_view(&run);
    let type_of = |path: &str| run.array(path).unwrap().dtype().to_string();
    assert_eq!(type_of("qes:espresso/output/band_structure/ks_energies/npw"), "int32");
    assert!(type_of("qes:espresso/input/title").starts_with("text"));
    assert!(run.warnings().is_empty());
}

#[test]
fn a_description_that_is_written_again_has_the_same_bands() {
    let temp = tempfile::tempdir().unwrap();
    for name in ["a.xml", "a.dat"] {
        let path = temp.path().join(name);
        let mut sink = Sink::create(&path, Overwrite::Never).unwrap();
        Iotk.write(&open(LSDA), &mut sink, &WriteOptions::default()).unwrap();
        sink.commit().unwrap();
        let again = Dataset::open_path(&Iotk, &path, &(&Limits::default()).into()).unwrap();
        expect_view(&again);
    }
}

fn real() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/real/qe");
    if !folder.is_dir() {
        println!("skipped: no {}", folder.display());
    }
    folder.is_dir().then_some(folder)
}

/// The numbers in all elements `name` of an XML text.
fn texts(text: &str, name: &str) -> Vec<f64> {
    let begin = format!("<{name}");
    let pieces = text.split(begin.as_str()).skip(1);
    let inside = pieces.filter_map(|piece| piece.split('>').nth(1)?.split('<').next());
    inside.flat_map(str::split_ascii_whitespace).map(|word| word.parse().unwrap()).collect()
}

#[test]
fn a_save_folder_of_version_7_has_cell_atoms_and_bands() {
    let Some(folder) = real().map(|folder| folder.join("Si.save")) else { return };
    let opened = Folder::open(&folder).unwrap();
    let run = Dataset::open_folder(&Iotk, &opened, &(&Limits::default()).into()).unwrap().unwrap();
    // Without a registry there is no HDF5; the folder has the wavefunctions of 3 of 10 k-points.
    let codes: Vec<&str> = run.warnings().iter().map(|w| w.code).collect();
    assert_eq!(codes, ["iotk-047", "iotk-047", "iotk-047", "iotk-047", "iotk-049"]);
    let text = std::fs::read_to_string(folder.join("data-file-schema.xml")).unwrap();
    let stored = run.array("bands").unwrap().read_bytes(&Selection::all(), Axes::Stored).unwrap();
    let eigenvalues = texts(&text, "eigenvalues");
    assert!(!eigenvalues.is_empty());
    assert_eq!(stored, eigenvalues.iter().flat_map(|e| e.to_le_bytes()).collect::<Vec<u8>>());
    assert_eq!(run.array("positions").unwrap().shape().lengths(), [2, 3]);
}

#[test]
fn a_real_lsda_run_has_both_spins() {
    let Some(path) = real().map(|folder| folder.join("Ni_lsda_data-file-schema.xml")) else {
        return;
    };
    let run = Dataset::open_path(&Iotk, &path, &(&Limits::default()).into()).unwrap();
    let eigenvalues = texts(&std::fs::read_to_string(&path).unwrap(), "eigenvalues");
    let bands = run.array("bands").unwrap();
    let [spins, points, count] = bands.shape().lengths() else { panic!() };
    assert_eq!((*spins, *points), (2, 6));
    let down: Vec<f64> = bands.read("1, 1, :").unwrap();
    let from = (2 * count + count) as usize;
    let expected: Vec<f64> =
        eigenvalues[from..from + *count as usize].iter().map(|e| e * HARTREE_EV).collect();
    assert_eq!(down, expected);
}

/// The newest versions write `weight="1.0000000000000000"`.
#[test]
fn weights_in_all_spellings_are_numbers() {
    let text = LSDA.replace("weight=\"0.25\"", "weight=\"0.2500000000000000\"");
    let run = open(&text);
    expect_view(&run);
    let points = run.tree().find("qes:espresso/output/band_structure/ks_energies/k_point").unwrap();
    let attrs = &run.tree().node(points).attrs;
    assert_eq!(attrs.get_f64("weight"), Some(0.25));
    assert_eq!(attrs.get_str("iotk_spelling"), Some("weight=\"0.2500000000000000\""));
}

#[test]
fn numbers_of_other_documents_are_typed() {
    let matrix = "<?xml version=\"1.0\"?><Root><GEOMETRY_INFO><NUMBER_OF_ATOMS>2</NUMBER_OF_ATOMS><AT>-5.0E-01 \
                  0.0</AT><TYPE_NAME.1>Al</TYPE_NAME.1></GEOMETRY_INFO></Root>";
    let phonons = "<qes_ph:espressoph xmlns:qes_ph=\"x\"><input><tr2_ph>1.0d-14</tr2_ph></input></qes_ph:espressoph>";
    let projections = "<PROJECTIONS><HEADER NUMBER_OF_BANDS=\"2\"/><EIGENSTATES><E>-4.1E-01 4.6E-01</E></EIGENSTATES>\
                       </PROJECTIONS>";
    let values = |text: &str, path: &str| -> Vec<f64> {
        open(text).array(path).unwrap().read::<Vec<f64>>("...").unwrap()
    };
    assert_eq!(values(matrix, "Root/GEOMETRY_INFO/AT"), [-0.5, 0.0]);
    assert_eq!(values(matrix, "Root/GEOMETRY_INFO/NUMBER_OF_ATOMS"), [2.0]);
    assert_eq!(values(phonons, "qes_ph:espressoph/input/tr2_ph"), [1e-14]);
    assert_eq!(values(projections, "PROJECTIONS/EIGENSTATES/E"), [-0.41, 0.46]);
    // Other text has no numbers.
    let free = "<Root><a>1.0 2.0</a></Root>";
    assert!(open(free).array("Root/a").unwrap().dtype().to_string().starts_with("text"));
}
