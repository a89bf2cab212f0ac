//! Densities and wavefunctions of Quantum ESPRESSO 6.2 and later in Fortran records.

use std::f64::consts::TAU;
use std::fs;
use std::path::Path;

use spile_core::format::{Checker as _, Folder};
use spile_core::report::Severity;
use spile_core::{Axes, ByteOrder, Dataset, Limits, Order, Selection, Source};
use spile_iotk::Iotk;
use spile_iotk::wire::record::{Framing, RecordWriter, SUBRECORD};

/// Miller indices of a few plane waves, G = 0 first, with -G of each.
const MILLER: [[i32; 3]; 7] =
    [[0, 0, 0], [1, 0, 0], [-1, 0, 0], [0, 1, -1], [0, -1, 1], [2, 0, 1], [-2, 0, -1]];

/// Those of them with a positive first non-zero index.
const HALF: [usize; 4] = [0, 1, 3, 5];

/// A complex number.
type C = (f64, f64);

/// Bytes of values in the byte order of a framing.
struct Bytes(ByteOrder, Vec<u8>);

impl Bytes {
    fn new(framing: Framing) -> Self {
        Self(framing.order, Vec::new())
    }

    fn ints(mut self, values: &[i32]) -> Self {
        let big = self.0 == ByteOrder::Big;
        let bytes = |v: &i32| if big { v.to_be_bytes() } else { v.to_le_bytes() };
        self.1.extend(values.iter().flat_map(bytes));
        self
    }

    fn reals(mut self, values: &[f64]) -> Self {
        let big = self.0 == ByteOrder::Big;
        let bytes = |v: &f64| if big { v.to_be_bytes() } else { v.to_le_bytes() };
        self.1.extend(values.iter().flat_map(bytes));
        self
    }

    fn complex(self, values: &[C]) -> Self {
        let flat: Vec<f64> = values.iter().flat_map(|(re, im)| [*re, *im]).collect();
        self.reals(&flat)
    }
}

fn records(framing: Framing, records: Vec<Bytes>) -> Vec<u8> {
    let mut writer = RecordWriter::new(Vec::new(), framing, SUBRECORD).unwrap();
    for Bytes(_, bytes) in records {
        writer.record(&[&bytes]).unwrap();
    }
    writer.into_inner()
}

const LATTICE: [f64; 9] = [1.0, 0.0, 0.25, 0.0, 2.0, 0.0, 0.0, 0.0, 0.5];

fn density(framing: Framing, half: bool, components: &[Vec<C>]) -> Vec<u8> {
    let own: Vec<usize> = if half { HALF.to_vec() } else { (0..MILLER.len()).collect() };
    let new = || Bytes::new(framing);
    let header = [i32::from(half), own.len() as i32, components.len() as i32];
    let miller: Vec<i32> = own.iter().flat_map(|k| MILLER[*k]).collect();
    let mut all = vec![new().ints(&header), new().reals(&LATTICE), new().ints(&miller)];
    for component in components {
        let values: Vec<C> = own.iter().map(|k| component[*k]).collect();
        all.push(new().complex(&values));
    }
    records(framing, all)
}

fn wavefunctions(framing: Framing, half: bool, spinor: i32, bands: &[Vec<C>]) -> Vec<u8> {
    let own: Vec<usize> = if half { HALF.to_vec() } else { (0..MILLER.len()).collect() };
    let new = || Bytes::new(framing);
    let count = own.len() as i32;
    let miller: Vec<i32> = own.iter().flat_map(|k| MILLER[*k]).collect();
    let first =
        new().ints(&[1]).reals(&[0.5, 0.0, -0.25]).ints(&[1, i32::from(half)]).reals(&[1.0]);
    let sizes = new().ints(&[count, count, spinor, bands.len() as i32]);
    let mut all = vec![first, sizes, new().reals(&LATTICE), new().ints(&miller)];
    for band in bands {
        let all_own =
            (0..spinor as usize).flat_map(|s| own.iter().map(move |k| s * MILLER.len() + k));
        let values: Vec<C> = all_own.map(|k| band[k]).collect();
        all.push(new().complex(&values));
    }
    records(framing, all)
}

/// Coefficients of a real function: conjugates for -G.
fn symmetric(scale: f64) -> Vec<C> {
    let c = [(0.5, 0.0), (0.1, -0.2), (0.03, 0.04), (-0.25, 0.125)]
        .map(|(a, b)| (scale * a, scale * b));
    let conj = |(re, im): C| (re, -im);
    vec![c[0], c[1], conj(c[1]), c[2], conj(c[2]), c[3], conj(c[3])]
}

/// The sum over plane waves at a grid point.
fn sum(coefficients: &[C], at: [usize; 3], grid: [usize; 3]) -> f64 {
    let mut total = 0.0;
    for (m, (re, im)) in MILLER.iter().zip(coefficients) {
        let turn: f64 = (0..3).map(|k| f64::from(m[k]) * at[k] as f64 / grid[k] as f64).sum();
        total += re * (TAU * turn).cos() - im * (TAU * turn).sin();
    }
    total
}

/// `data-file-schema.xml` with one k-point and a 4 x 3 x 5 grid.
fn schema(spins: &str, eigenvalues: &str) -> String {
    let count = eigenvalues.split_whitespace().count();
    format!(
        "<qes:espresso><input><control_variables><disk_io>low</disk_io></control_variables></input><output>\
         <convergence_info><wf_collected>true</wf_collected></convergence_info><basis_set>\
         <fft_grid nr1=\"4\" nr2=\"3\" nr3=\"5\"></fft_grid></basis_set><atomic_structure><cell><a1>5.0 0.0 0.0</a1>\
         <a2>0.0 3.0 0.0</a2><a3>0.0 0.0 12.0</a3></cell></atomic_structure><band_structure>{spins}<ks_energies>\
         <k_point weight=\"2.0\">0.0 0.0 0.0</k_point><eigenvalues size=\"{count}\">{eigenvalues}</eigenvalues>\
         </ks_energies></band_structure></output></qes:espresso>"
    )
}

fn open(folder: &Path) -> Dataset {
    let opened = Folder::open(folder).unwrap();
    Dataset::open_folder(&Iotk, &opened, &(&Limits::default()).into()).unwrap().unwrap()
}

fn numbers(run: &Dataset, name: &str) -> Vec<f64> {
    run.array(name).unwrap().read("...").unwrap()
}

fn complex(run: &Dataset, name: &str) -> Vec<C> {
    let array = run.array(name).unwrap();
    let bytes = array.read_bytes(&Selection::all(), Axes::Order(Order::C)).unwrap();
    let values: Vec<f64> =
        bytes.as_chunks::<8>().0.iter().map(|raw| f64::from_le_bytes(*raw)).collect();
    values.as_chunks::<2>().0.iter().map(|[re, im]| (*re, *im)).collect()
}

const FRAMINGS: [Framing; 3] = [
    Framing { marker: 4, order: ByteOrder::Little },
    Framing { marker: 4, order: ByteOrder::Big },
    Framing { marker: 8, order: ByteOrder::Little },
];

#[test]
fn the_density_is_the_sum_over_plane_waves() {
    for framing in FRAMINGS {
        for half in [false, true] {
            let temp = tempfile::tempdir().unwrap();
            let write =
                |name: &str, bytes: &[u8]| fs::write(temp.path().join(name), bytes).unwrap();
            write("data-file-schema.xml", schema("", "1.0").as_bytes());
            let spin = symmetric(0.25);
            let both = [symmetric(1.0), spin.clone()];
            write("charge-density.dat", &density(framing, half, &both));
            let band = vec![symmetric(1.0)];
            write("wfc1.dat", &wavefunctions(framing, half, 1, &band));
            let run = open(temp.path());
            assert_eq!(run.warnings(), []);
            let array = run.array("density").unwrap();
            assert_eq!(
                (array.shape().lengths(), array.units()),
                (&[4, 3, 5][..], Some("e/Bohr^3"))
            );
            assert_eq!(array.semantics().mesh, Some(run.tree().find("cell").unwrap()));
            for (name, coefficients) in [("density", &both[0]), ("magnetization", &spin)] {
                let values = numbers(&run, name);
                for (at, value) in values.iter().enumerate() {
                    let at = [at / 15, at / 5 % 3, at % 5];
                    let expected = sum(coefficients, at, [4, 3, 5]);
                    assert!((value - expected).abs() < 1e-14, "{name} {at:?}: {value} {expected}");
                }
            }
            // All G vectors, those without a stored coefficient completed.
            let miller: Vec<i32> =
                run.array("wavefunctions/k0/miller").unwrap().read("...").unwrap();
            let found = complex(&run, "wavefunctions/k0/coefficients");
            assert_eq!(found.len(), MILLER.len());
            let vectors = numbers(&run, "wavefunctions/k0/G");
            for ((m, c), g) in
                miller.as_chunks::<3>().0.iter().zip(found).zip(vectors.as_chunks::<3>().0)
            {
                let k = MILLER.iter().position(|own| own == m).unwrap();
                assert_eq!(c, band[0][k]);
                let m = m.map(f64::from);
                assert_eq!(*g, [m[0], 2.0 * m[1], 0.25 * m[0] + 0.5 * m[2]]);
            }
            let k = run.tree().find("wavefunctions/k0").unwrap();
            assert_eq!(run.tree().node(k).attrs.get("k").unwrap().to_string(), "[0.5, 0.0, -0.25]");
        }
    }
}

#[test]
fn noncollinear_runs_have_spinors_and_three_components_of_the_magnetization() {
    let temp = tempfile::tempdir().unwrap();
    let framing = Framing::default();
    fs::write(temp.path().join("data-file-schema.xml"), schema("", "1.0 2.0")).unwrap();
    let parts = [1.0, 0.5, 0.25, -0.125].map(symmetric);
    fs::write(temp.path().join("charge-density.dat"), density(framing, false, &parts)).unwrap();
    let band: Vec<C> = (0..14).map(|k| (f64::from(k), -0.5)).collect();
    let bytes = wavefunctions(framing, false, 2, &[band.clone(), band.clone()]);
    fs::write(temp.path().join("wfc1.dat"), bytes).unwrap();
    let run = open(temp.path());
    assert_eq!(run.warnings(), []);
    let z = run.array("magnetization_z").unwrap();
    let component = z.semantics().component.clone().unwrap();
    assert_eq!((component.vector.as_str(), component.index), ("magnetization", 2));
    let value: Vec<f64> = z.read("3, 1, 2").unwrap();
    assert!((value[0] - sum(&parts[3], [3, 1, 2], [4, 3, 5])).abs() < 1e-14);
    let waves = run.array("wavefunctions/k0/coefficients").unwrap();
    assert_eq!((waves.shape().lengths(), waves.dims()[1].as_str()), (&[2, 2, 7][..], "spinor"));
    assert_eq!(complex(&run, "wavefunctions/k0/coefficients"), [band.clone(), band].concat());
}

#[test]
fn an_lsda_folder_has_both_spins_also_with_different_numbers_of_bands() {
    let spins = |up: u32, down: u32| {
        format!("<lsda>true</lsda><nbnd_up>{up}</nbnd_up><nbnd_dw>{down}</nbnd_dw>")
    };
    let hartree = 27.211_386_245_988;
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("data-file-schema.xml");
    for kind in ["wfcup1.dat", "wfcdw1.dat"] {
        let bytes = wavefunctions(Framing::default(), false, 1, &[symmetric(1.0)]);
        fs::write(temp.path().join(kind), bytes).unwrap();
    }
    let parts = [symmetric(1.0), symmetric(0.5)];
    fs::write(temp.path().join("charge-density.dat"), density(Framing::default(), false, &parts))
        .unwrap();
    fs::write(&file, schema(&spins(2, 2), "1.0 2.0 3.0 4.0")).unwrap();
    let run = open(temp.path());
    assert_eq!(run.warnings(), []);
    assert_eq!(numbers(&run, "bands"), [1.0, 2.0, 3.0, 4.0].map(|e| e * hartree));
    for path in ["wavefunctions/up/k0/coefficients", "wavefunctions/down/k0/coefficients"] {
        assert_eq!(run.array(path).unwrap().shape().lengths(), [1, 7]);
    }
    // An even sum: half of the values would be the wrong ones.
    fs::write(&file, schema(&spins(3, 1), "1.0 2.0 3.0 4.0")).unwrap();
    let run = open(temp.path());
    assert_eq!(numbers(&run, "bands_up"), [1.0, 2.0, 3.0].map(|e| e * hartree));
    assert_eq!(numbers(&run, "bands_down"), [4.0 * hartree]);
    assert!(run.tree().find("bands").is_err());
    // Numbers that do not fit are reported.
    fs::write(&file, schema(&spins(3, 2), "1.0 2.0 3.0 4.0")).unwrap();
    let run = open(temp.path());
    let codes: Vec<&str> = run.warnings().iter().map(|w| w.code).collect();
    assert_eq!(codes, ["iotk-052"]);
    assert!(run.warnings()[0].message.contains("3 and 2"), "{:?}", run.warnings());
}

#[test]
fn files_that_are_missing_or_damaged_are_errors() {
    let temp = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(temp.path().join(name), bytes).unwrap();
    write("data-file-schema.xml", schema("", "1.0").as_bytes());
    let found = |run: &Dataset| -> Vec<(Severity, &'static str, String)> {
        let object = |object: &Option<String>| object.clone().unwrap_or_default();
        run.warnings().iter().map(|w| (w.severity, w.code, object(&w.object))).collect()
    };
    let missing =
        |name: &str| (Severity::Warning, "iotk-049", format!("{name}.dat or {name}.hdf5"));
    let run = open(temp.path());
    assert_eq!(found(&run), [missing("wfc1"), missing("charge-density")]);
    // A check fails.
    let report = Iotk.check(run.source(), run.limits(), false).unwrap();
    let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
    assert_eq!(errors.count(), 2);
    let good = density(Framing::default(), false, &[symmetric(1.0)]);
    write("charge-density.dat", &good[..good.len() - 20]);
    write("wfc1.dat", &good);
    write("other.dat", b"text");
    write("wfc1.hdf5", b"no format of this registry");
    let run = open(temp.path());
    let found = found(&run);
    assert!(
        found.contains(&(Severity::Error, "iotk-039", "charge-density.dat".into())),
        "{found:?}"
    );
    assert!(found.contains(&(Severity::Warning, "iotk-047", "other.dat".into())), "{found:?}");
    assert!(found.contains(&(Severity::Warning, "iotk-047", "wfc1.hdf5".into())), "{found:?}");
    assert!(run.tree().find("density").is_err());
}

#[test]
fn opening_a_folder_reads_no_coefficients() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("data-file-schema.xml"), schema("", "1.0")).unwrap();
    let density = density(Framing::default(), false, &[symmetric(1.0)]);
    fs::write(temp.path().join("charge-density.dat"), &density).unwrap();
    let bands: Vec<Vec<C>> = (0..2_000).map(|k| vec![(f64::from(k), 0.0); 7]).collect();
    let bytes = wavefunctions(Framing::default(), false, 1, &bands);
    fs::write(temp.path().join("wfc1.dat"), &bytes).unwrap();
    let run = open(temp.path());
    assert_eq!(run.warnings(), []);
    // The joined source has read nothing but the texts that decide which files are expected.
    assert!(run.source().bytes_read() < 1_000, "{}", run.source().bytes_read());
    let last: Vec<C> = complex(&run, "wavefunctions/k0/coefficients");
    assert_eq!(last[1_999 * 7], (1_999.0, 0.0));
}

#[test]
fn a_file_alone_has_its_coefficients_and_miller_indices() {
    let framing = FRAMINGS[1];
    let file = wavefunctions(framing, true, 1, &[symmetric(1.0)]);
    let run = Dataset::open(&Iotk, Source::memory(file), &(&Limits::default()).into()).unwrap();
    let norm: f64 = complex(&run, "coefficients").iter().map(|(re, im)| re * re + im * im).sum();
    let expected: f64 = symmetric(1.0).iter().map(|(re, im)| re * re + im * im).sum();
    assert!((norm - expected).abs() < 1e-15);
    let file = density(framing, false, &[symmetric(1.0)]);
    let run = Dataset::open(&Iotk, Source::memory(file), &(&Limits::default()).into()).unwrap();
    assert_eq!(complex(&run, "rhotot_g"), symmetric(1.0));
}

#[test]
fn a_meta_gga_run_has_the_kinetic_energy_density() {
    let temp = tempfile::tempdir().unwrap();
    let framing = Framing::default();
    let put = |name: &str, bytes: &[u8]| fs::write(temp.path().join(name), bytes).unwrap();
    put("data-file-schema.xml", schema("", "0.5").as_bytes());
    put("charge-density.dat", &density(framing, false, &[symmetric(1.0)]));
    put("ekin-density.dat", &density(framing, false, &[symmetric(3.0), symmetric(0.5)]));
    put("paw.txt", b" 0.5 0.25\n");
    let run = open(temp.path());
    let array = run.array("kinetic_energy_density").unwrap();
    assert_eq!(array.units(), Some("Ry/Bohr^3"));
    assert_eq!(complex(&run, "ekin-density/rhotot_g"), symmetric(3.0));
    assert_eq!(complex(&run, "ekin-density/rhodiff_g"), symmetric(0.5));
    let (kinetic, charge) = (numbers(&run, "kinetic_energy_density"), numbers(&run, "density"));
    assert!(kinetic.iter().zip(&charge).all(|(t, n)| (t - 3.0 * n).abs() < 1e-12));
    assert_eq!(numbers(&run, "kinetic_energy_spin_density").len(), kinetic.len());
    // Files that are not read are notes.
    let notes = run.warnings().iter().filter(|finding| finding.code == "iotk-054");
    let notes: Vec<Option<&str>> = notes.map(|finding| finding.object.as_deref()).collect();
    assert_eq!(notes, [Some("paw.txt")]);
}

/// Otherwise the plane wave would be counted as another one.
#[test]
fn miller_indices_beyond_the_grid_are_an_error() {
    let temp = tempfile::tempdir().unwrap();
    let framing = Framing::default();
    let put = |name: &str, bytes: &[u8]| fs::write(temp.path().join(name), bytes).unwrap();
    let schema = schema("", "0.5").replace("nr1=\"4\"", "nr1=\"3\"");
    put("data-file-schema.xml", schema.as_bytes());
    put("charge-density.dat", &density(framing, false, &[symmetric(1.0)]));
    let folder = Folder::open(temp.path()).unwrap();
    let save = Dataset::open_folder(&Iotk, &folder, &(&Limits::default()).into()).unwrap().unwrap();
    let error = save.array("density").unwrap().read::<Vec<f64>>("...").unwrap_err();
    assert_eq!(error.code(), "iotk-050");
    assert!(
        error.message().contains("Miller index 2 is not on a grid of 3"),
        "{}",
        error.message()
    );
}
