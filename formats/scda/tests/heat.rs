//! The example `heat`: a checkpoint on three ranks, a restart on two.

#[allow(dead_code, unreachable_pub)]
#[path = "../examples/heat.rs"]
mod heat;

use heat::Plate;
use spile_core::Dataset;
use spile_core::comm::{Serial, Threads};
use spile_core::error::Result;
use spile_core::format::OpenOptions;
use spile_core::limits::Limits;
use spile_core::tree::Attrs;
use spile_scda::{File, Scda};

fn bits(rows: &[f64]) -> Vec<u64> {
    rows.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn a_restart_on_another_number_of_ranks_gives_the_same_result() {
    let folder = tempfile::tempdir().unwrap();
    let mut plate = Plate::new(&Serial, vec![96]);
    plate.run(&Serial, 30).unwrap();
    let half = [false, true].map(|compressed| {
        let path = folder.path().join(format!("serial {compressed}"));
        plate.save(&Serial, &path, compressed).unwrap();
        std::fs::read(&path).unwrap()
    });
    plate.run(&Serial, 60).unwrap();
    let expected = bits(&plate.into_rows());
    // The temperatures still change between the two steps.
    assert_ne!(
        expected,
        bits(&Plate::load(&Serial, &folder.path().join("serial false")).unwrap().into_rows())
    );

    for counts in [vec![50, 7, 39], vec![0, 96, 0], vec![1, 0, 95]] {
        for compressed in [false, true] {
            let path = folder.path().join(format!("{counts:?} {compressed}"));
            let saved = Threads::run(3, |comm| -> Result<()> {
                let mut plate = Plate::new(comm, counts.clone());
                plate.run(comm, 30)?;
                plate.save(comm, &path, compressed)
            });
            saved.into_iter().for_each(Result::unwrap);
            assert!(std::fs::read(&path).unwrap() == half[usize::from(compressed)], "{path:?}");
            let computed = Threads::run(2, |comm| {
                let mut plate = Plate::load(comm, &path).unwrap();
                plate.run(comm, 60).unwrap();
                plate.into_rows()
            });
            assert!(bits(&computed.concat()) == expected, "{path:?}");
        }
    }
}

#[test]
fn a_checkpoint_shows_its_fields() {
    let folder = tempfile::tempdir().unwrap();
    for compressed in [false, true] {
        let path = folder.path().join(compressed.to_string());
        Plate::new(&Serial, vec![96]).save(&Serial, &path, compressed).unwrap();
        let file = Dataset::open_path(&Scda, &path, &OpenOptions::default()).unwrap();
        let tree = file.tree();
        let attrs: Vec<String> = tree.attrs().iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(attrs, ["name=heat", "version=1", "step=0"]);
        assert_eq!(tree.len(), 1);
        let node = tree.node(tree.find("temperature").unwrap());
        let array = node.array.as_ref().unwrap();
        assert_eq!(
            (array.dtype.to_string(), array.shape.to_string()),
            ("float64".into(), "96 x 128".into())
        );
        assert_eq!(array.dims, ["y", "x"]);
        assert_eq!(node.attrs, Attrs::from([("units", "K".into())]));
        // The native view lists all sections.
        assert_eq!(File::open(&path, &Limits::default()).unwrap().sections().len(), 4);
    }
}
