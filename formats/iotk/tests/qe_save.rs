//! `prefix.save` of Quantum ESPRESSO: linked files as one dataset.

use std::fs;
use std::path::{Path, PathBuf};

use spile_core::format::{Folder, Format as _, Reader};
use spile_core::layout::Coord;
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::tree::Value;
use spile_iotk::{File, Iotk, Save};

fn limits() -> Limits {
    Limits::default()
}

fn silicon() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/iotk/qe54_si/si.save")
}

fn numbers(reader: &dyn Reader, path: &str) -> Vec<f64> {
    let node = reader.tree().node(reader.tree().find(path).unwrap());
    let desc = node.array.as_ref().unwrap();
    let array = Array::open(reader.source(), reader.tree(), desc, &limits()).unwrap();
    array.read_f64(&Selection::all(), Axes::Stored).unwrap()
}

#[test]
fn a_calculation_is_read_through_its_links() {
    let folder = Folder::open(silicon()).unwrap();
    let save = Iotk.open_folder(&folder, &limits()).unwrap().unwrap();
    assert!(save.findings().is_empty(), "{:?}", save.findings());
    let row = |name: &str| {
        let row = save.summary().into_iter().find(|(what, _)| what == name);
        row.map(|(_, value)| value.to_string())
    };
    assert_eq!(row("program").as_deref(), Some("PWSCF 5.4.0"));
    assert_eq!((row("k-points"), row("bands")), (Some("3".into()), Some("6".into())));
    assert_eq!(row("files").as_deref(), Some("12"));
    assert_eq!(row("charge-density.dat").as_deref(), Some("charge density, 12 x 12 x 12"));
    let waves = row("evc.dat").unwrap();
    assert!(waves.starts_with("in 3 folders, K00001 to K00003: wavefunctions, 6 bands"), "{waves}");

    // The values are those of the separate files.
    let alone = File::open(silicon().join("charge-density.dat"), &limits()).unwrap();
    let density = "Root/CHARGE-DENSITY/CHARGE-DENSITY/density";
    assert_eq!(numbers(&*save, density), numbers(&alone, "Root/CHARGE-DENSITY/density"));
    let node = save.tree().node(save.tree().find(density).unwrap());
    let desc = node.array.as_ref().unwrap();
    assert_eq!(
        (desc.shape.lengths(), &desc.dims[..]),
        (&[12, 12, 12][..], &["a1", "a2", "a3"].map(String::from)[..])
    );
    assert!(desc.coords.iter().all(|c| *c == Coord::Uniform { start: 0.0, step: 1.0 / 12.0 }));
    assert!(node.attrs.contains(&("units".into(), Value::from("e/Bohr^3"))));

    // Bands of all k-points, from three text files.
    let bands = numbers(&*save, "Root/EIGENVALUES/bands");
    let mut expected = Vec::new();
    for k in 1..=3 {
        let file = File::open(silicon().join(format!("K0000{k}/eigenval.xml")), &limits()).unwrap();
        expected.extend(file.read_f64("Root/EIGENVALUES").unwrap().unwrap());
        let waves = File::open(silicon().join(format!("K0000{k}/evc.dat")), &limits()).unwrap();
        let path = format!("Root/EIGENVECTORS/K-POINT.{k}/WFC/evc.4");
        assert_eq!(numbers(&*save, &path), waves.read_f64("WFC/evc.4").unwrap().unwrap());
    }
    assert_eq!(bands, expected);
    let node = save.tree().node(save.tree().find("Root/EIGENVALUES/bands").unwrap());
    assert_eq!(node.array.as_ref().unwrap().shape.lengths(), [6, 3]);
    assert!(node.attrs.contains(&("units".into(), Value::from("Hartree"))));
    assert_eq!(numbers(&*save, "Root/EIGENVALUES/k-points")[3..6], [0.5, -0.5, 0.5]);
    let vectors = save.tree().find("Root/PLANE_WAVES/G-VECTORS/vectors").unwrap();
    assert_eq!(save.tree().node(vectors).array.as_ref().unwrap().shape.lengths(), [3, 531]);
    // A resolved link is not a link again when the tree is written.
    let link = save.tree().node(save.tree().find("Root/CHARGE-DENSITY").unwrap());
    assert_eq!(link.attrs[0], ("linked_file".into(), Value::from("./charge-density.dat")));
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
    let save = Save::open(&Folder::open(&folder).unwrap(), &limits()).unwrap().unwrap();
    let found: Vec<(&str, String)> = save
        .findings()
        .iter()
        .map(|finding| (finding.code, finding.object.clone().unwrap_or_default()))
        .collect();
    let out = found.iter().filter(|(code, _)| *code == "iotk-015").count();
    assert_eq!((out, found.len()), (3, 5), "{found:?}");
    assert!(found.iter().any(|(_, object)| object.contains("gone.dat")), "{found:?}");
    assert!(found.contains(&("iotk-039", "bad.xml".to_string())), "{found:?}");
    assert!(
        save.findings().iter().all(|finding| finding.offset.is_some() || finding.code.is_empty())
    );
    assert_eq!(numbers(&save, "Root/a/b"), [7.0]);
    assert_eq!(numbers(&save, "Root/a/up/c"), [8.0]);
    // A cyclic or second link to a file is an empty element.
    for path in ["Root/a/up/round", "Root/again", "Root/self", "Root/out"] {
        let id = save.tree().find(path).unwrap();
        assert!(save.tree().iter().all(|(_, node)| node.parent != id), "{path}");
    }
    let none = Folder::open(folder.join("K1")).unwrap();
    assert!(Save::open(&none, &limits()).unwrap().is_none());
    // Without a readable main file, opening fails.
    write("data-file.xml", "<Root>");
    let error = Save::open(&Folder::open(&folder).unwrap(), &limits()).err().unwrap();
    assert_eq!(error.code(), "iotk-009");
}
