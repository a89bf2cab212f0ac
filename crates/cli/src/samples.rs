//! Sample files, most of them written by the programs that users have: used by `spile tour`, by
//! `spile.sample` in Python and by the documentation (`docs/samples.md`).

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use spile::dtype::DType;
use spile::error::{Error, Result};
use spile::layout::{ArrayDesc, Layout};
use spile::select::Selection;
use spile::shape::{Order, Shape};
use spile::sink::Overwrite;
use spile::tree::Tree;
use spile::{Dataset, Limits, Source};
use spile_taf::ops::{self, Create};

macro_rules! golden {
    ($($path:literal = $source:literal)*) => {
        &[$(($path, include_bytes!(concat!("../../../tests/golden/", $source)))),*]
    };
}

/// Paths and content of the embedded files.
const FILES: &[(&str, &[u8])] = golden![
    "run/0000.sdf" = "sdf/epoch2d_4ranks_id4_0000.sdf"
    "run/0001.sdf" = "sdf/epoch2d_4ranks_id4_0001.sdf"
    "run/0002.sdf" = "sdf/epoch2d_4ranks_id4_0002.sdf"
    "line.sdf" = "sdf/epoch1d_normal_0001.sdf"
    "truncated.sdf" = "sdf/hand_truncated.sdf"
    "unfinished.sdf" = "sdf/drv_unfinished.sdf"
    "trajectory.gsd" = "gsd/py-5.0.1/hoomd_full.gsd"
    "long.gsd" = "gsd/py-5.0.1/hoomd_many_frames.gsd"
    "varying.gsd" = "gsd/py-5.0.1/hoomd_varying_N.gsd"
    "scaled.taf" = "taf/good/type_int16_mapped.taf"
    "checkpoint.scda" = "scda/enc_a.scd"
    "data.iotk" = "iotk/golden/types.dat"
    "prefix.save/data-file.xml" = "iotk/qe54_si/si.save/data-file.xml"
    "prefix.save/charge-density.dat" = "iotk/qe54_si/si.save/charge-density.dat"
    "prefix.save/K00001/eigenval.xml" = "iotk/qe54_si/si.save/K00001/eigenval.xml"
    "prefix.save/K00002/eigenval.xml" = "iotk/qe54_si/si.save/K00002/eigenval.xml"
    "prefix.save/K00003/eigenval.xml" = "iotk/qe54_si/si.save/K00003/eigenval.xml"
    "shot.trc" = "lecroy/lecroy_le_word.trc"
    "shot.wfm" = "tektronix/tek_wfm003_le_i8.wfm"
    "shot.bin" = "keysight/keysight_ag10_2ch.bin"
    "shot.dig" = "dig/nts_u8.dig"
    "columns.txt" = "columns/column_header.txt"
];

/// Names of samples, and the file or folder each of them is.
const NAMES: &[(&str, &str)] = &[
    ("sdf", "run/0001.sdf"),
    ("gsd", "trajectory.gsd"),
    ("taf", "scaled.taf"),
    ("scda", "checkpoint.scda"),
    ("iotk", "prefix.save/charge-density.dat"),
    ("lecroy", "shot.trc"),
    ("tektronix", "shot.wfm"),
    ("keysight", "shot.bin"),
    ("dig", "shot.dig"),
    ("columns", "columns.txt"),
    ("run", "run"),
    ("save", "prefix.save"),
    ("varying", "varying.gsd"),
    ("truncated", "truncated.sdf"),
];

/// Number of values of the example signal.
const SIGNAL_LENGTH: u64 = 1_000_000;

/// Writes a sample to a folder, which is created if necessary, and returns the path of its file or folder.
///
/// # Errors
///
/// If the name is unknown, if another file with the name of the sample exists, or if writing fails.
pub fn write(name: &str, folder: &Path) -> Result<PathBuf> {
    let Some((_, path)) = NAMES.iter().find(|(known, _)| *known == name) else {
        let names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
        let message = format!("no sample \"{name}\"; the samples are {}", names.join(", "));
        return Err(Error::argument(message));
    };
    write_files(path, folder)?;
    Ok(folder.join(path))
}

/// Writes all samples of `docs/samples.md` to a folder.
///
/// # Errors
///
/// If other files with the names of samples exist, or if writing fails.
pub fn write_all(folder: &Path) -> Result<()> {
    write_files("", folder)?;
    write_signal(&folder.join("signal.taf"))
}

/// Writes the files in `part`, a path relative to `folder`. Files that are already there are not written.
fn write_files(part: &str, folder: &Path) -> Result<()> {
    for (name, bytes) in FILES.iter().filter(|(name, _)| Path::new(name).starts_with(part)) {
        let path = folder.join(name);
        if fs::read(&path).is_ok_and(|found| found == *bytes) {
            continue;
        }
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|e| Error::io(parent, e))?;
        let written = File::create_new(&path).and_then(|mut file| file.write_all(bytes));
        written.map_err(|e| Error::io(&path, e))?;
    }
    Ok(())
}

/// Writes a noisy burst as recorded by an 8-bit digitizer.
fn write_signal(path: &Path) -> Result<()> {
    let mut noise = 1_u32;
    let values = (0..SIGNAL_LENGTH).flat_map(|k| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let t = k as f64 / SIGNAL_LENGTH as f64;
        let envelope = (-((t - 0.4) / 0.12).powi(2)).exp();
        let volts = envelope * (t * 180.0).sin() + (f64::from(noise >> 16) - 32_768.0) / 1e6;
        (volts as f32).to_le_bytes()
    });
    let layout = Layout::Inline(values.collect::<Vec<u8>>().into(), Order::F);
    let desc = ArrayDesc::new(DType::F32, Shape::new([SIGNAL_LENGTH]), layout);
    let dataset = Dataset::new(Source::memory([]), Tree::new(&Limits::default()));
    let options = Create {
        dtype: DType::U8,
        grids: vec![(-4e-4, 1e-9)],
        comments: b"a burst, one million samples of 8 bits\n".to_vec(),
        overwrite: Overwrite::Never,
    };
    ops::create(path, &dataset.open_array(&desc)?, &Selection::all(), &options).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_opens_as_the_format_it_is_named_after() {
        let folder = tempfile::tempdir().unwrap();
        for (name, _) in NAMES {
            let dataset = spile::open(write(name, folder.path()).unwrap());
            if *name == "truncated" {
                assert!(!dataset.unwrap().warnings().is_empty());
                continue;
            }
            let format = dataset.unwrap().format().unwrap().name;
            assert!(spile::REGISTRY.named(name).is_err() || format == *name, "{name}: {format}");
        }
    }

    #[test]
    fn a_changed_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = write("taf", folder.path()).unwrap();
        assert_eq!(write("taf", folder.path()).unwrap(), path);
        fs::write(&path, "changed").unwrap();
        assert!(write("taf", folder.path()).is_err());
        assert_eq!(fs::read(path).unwrap(), b"changed");
    }
}
