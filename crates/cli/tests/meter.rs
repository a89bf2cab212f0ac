//! Memory and work of every verb for files with very many small objects: peak memory stays below twice the limit, and
//! work grows as the file does.
//!
//! The counting allocator counts for the process, so the cases run one after the other in one test.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spile::dtype::DType;
use spile::format::WriteOptions;
use spile::frames::{Cells, Moments};
use spile::layout::{ArrayDesc, Layout};
use spile::shape::{Order, Shape};
use spile::sink::Overwrite;
use spile::tree::{ROOT, Tree, Value};
use spile::{Dataset, ErrorKind, Format, Limits, REGISTRY, Result, Source};

#[path = "support/hostile.rs"]
mod hostile;
#[path = "../../core/tests/support/meter.rs"]
mod meter;
#[path = "support/verbs.rs"]
mod verbs;

/// The memory limit of the measurements of memory.
const BUDGET: u64 = 1 << 20;

/// Sizes of the files, in objects; the second is larger by `GROWTH`.
const SMALL: usize = 500;
const GROWTH: usize = 4;

/// Largest growth of the work: linear growth with room for constant parts that are smaller than they seem.
const MOST: f64 = 1.5 * GROWTH as f64;

/// Files whose work is not linear: a column of a CSV file is decoded from complete lines, of at most 16,384 columns.
const COLUMNS: [&str; 2] = ["csv-arrays", "columns.csv"];

/// Work below this number of bytes is not compared.
const NOISE: u64 = 1 << 20;

/// Arrays of one element.
fn arrays(count: usize) -> Result<Tree> {
    let mut tree = Tree::new(&Limits::default());
    for k in 0..count {
        let value = (k as f64).to_le_bytes();
        tree.add_array(
            ROOT,
            &format!("a{k}"),
            ArrayDesc::inline(DType::F64, Shape::new([1]), value),
        )?;
    }
    Ok(tree)
}

/// One array with attributes.
fn attributes(count: usize) -> Result<Tree> {
    let mut tree = arrays(1)?;
    let id = tree.at("a0").unwrap_or(ROOT);
    for k in 0..count {
        tree.push_attr(id, &format!("k{k}"), Value::Text(format!("v{k}")))?;
    }
    Ok(tree)
}

/// Arrays of one element in every frame.
fn frames(count: usize) -> Result<Tree> {
    let mut tree = Tree::new(&Limits::default());
    tree.set_frames(Arc::new(Moments((0..count).map(|k| (Some(k as u64), None)).collect())));
    for name in ["x", "y"] {
        let cell = |k: usize| spile::frames::FrameCell {
            shape: Shape::new([1]),
            layout: Layout::Inline((k as f64).to_le_bytes().into(), Order::C),
        };
        let cells = Cells((0..count).map(|k| Some(cell(k))).collect());
        let desc = ArrayDesc::new(DType::F64, Shape::new([1]), Layout::PerFrame(Arc::new(cells)));
        tree.add_array(ROOT, name, desc)?;
    }
    Ok(tree)
}

/// A dataset with this number of objects.
type Structure = (&'static str, fn(usize) -> Result<Tree>);

const STRUCTURES: [Structure; 3] =
    [("arrays", arrays), ("attributes", attributes), ("frames", frames)];

/// Files of one kind: two sizes.
struct Kind {
    name: String,
    paths: [PathBuf; 2],
}

/// Files that the writers make, and files that no writer makes.
fn kinds(folder: &Path) -> Vec<Kind> {
    let sizes = [SMALL, SMALL * GROWTH];
    let mut kinds = Vec::new();
    for format in REGISTRY.0.iter().filter(|format| format.abilities().writer.is_some()) {
        for (structure, make) in STRUCTURES {
            let name = format!("{}-{structure}", format.info().name);
            let extension = format.info().extensions.first().copied().unwrap_or("out");
            let paths = sizes.map(|n| folder.join(format!("{name}-{n}.{extension}")));
            let written: Result<Vec<()>> = (sizes.iter().zip(&paths))
                .map(|(n, path)| write(*format, &make(*n)?, path))
                .collect();
            match written {
                Ok(_) => kinds.push(Kind { name, paths }),
                // The format has no such thing.
                Err(error)
                    if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Argument) => {}
                Err(error) => panic!("{name}: {error:?}"),
            }
        }
    }
    for (name, make) in hostile::FILES {
        let stem = name.replace('.', format!("-{}.", "n").as_str());
        let paths = sizes.map(|n| folder.join(stem.replace("-n.", &format!("-{n}."))));
        for (n, path) in sizes.iter().zip(&paths) {
            make(*n, path);
        }
        kinds.push(Kind { name: name.to_string(), paths });
    }
    kinds
}

/// Writes a tree in the way `convert` does.
fn write(format: &'static dyn Format, tree: &Tree, path: &Path) -> Result<()> {
    let content = Dataset::new(Source::memory([]), tree.clone());
    let options = WriteOptions::default();
    let plan = spile_ops::convert::plan(format, &content, path, &options)?;
    let new = Overwrite::Never;
    spile_ops::convert::convert(format, &content, &plan, path, &options, new, false).map(drop)
}

/// Bytes of a file, or of all files of a folder.
fn size(path: &Path) -> u64 {
    spile_ops::convert::size(path).unwrap()
}

/// What a verb may allocate: twice the limit, and buffers of the threads.
fn allowance() -> u64 {
    2 * BUDGET + (1 << 20) + (512 << 10) * rayon::current_num_threads() as u64
}

#[test]
fn memory_stays_below_twice_the_limit_and_work_grows_as_the_file_does() {
    let temp = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let mut failed = Vec::new();
    let (mut refused, mut done) = (0, 0);
    let limited = Limits::default().with_memory(BUDGET);
    let all: Vec<Work> = verbs::ALL
        .into_iter()
        .map(|(name, run)| (name.to_string(), Box::new(run) as Run))
        .collect();
    for kind in kinds(temp.path()) {
        let start = std::time::Instant::now();
        let growth = size(&kind.paths[1]) as f64 / size(&kind.paths[0]) as f64;
        let targets = match kind.name.as_str() {
            "npz-arrays" => all_targets(),
            "gsd-frames" => {
                all_targets().into_iter().filter(|(name, _)| !name.ends_with("vtk")).collect()
            }
            "sparse.gsd" => {
                let few = ["convert to csv", "convert to hdf5"];
                all_targets().into_iter().filter(|(name, _)| few.contains(&name.as_str())).collect()
            }
            _ => Vec::new(),
        };
        for (verb, run) in all.iter().chain(&targets) {
            let what = format!("{verb} of {}", kind.name);
            (meter::METER.reset)();
            let result = run(&kind.paths[1], &limited);
            let peak = (meter::METER.peak)();
            match result {
                Err(error) if error.kind() == ErrorKind::Limit => refused += 1,
                Err(error) if error.kind() == ErrorKind::Io => {
                    failed.push(format!("{what}: {error}"));
                }
                _ => done += 1,
            }
            if peak > allowance() {
                let (peak, most) = (peak >> 10, allowance() >> 10);
                failed.push(format!("{what}: {peak} KiB of memory, at most {most} are allowed"));
            }
            let work = kind.paths.each_ref().map(|path| {
                let before = meter::total();
                let _ = run(path, &Limits::default());
                meter::total() - before
            });
            if COLUMNS.contains(&kind.name.as_str()) {
                continue;
            }
            let most = MOST.max(1.5 * growth) * work[0] as f64 + NOISE as f64;
            if work[1] as f64 > most {
                failed.push(format!(
                    "{what}: work {} KiB became {} KiB",
                    work[0] >> 10,
                    work[1] >> 10
                ));
            }
        }
        println!("{} {:.1?} {:?}", kind.name, start.elapsed(), failed.last());
        for path in &kind.paths {
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
        }
    }
    println!("{done} done, {refused} refused, {} failures", failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // Both outcomes occur.
    assert!(refused > 20 && done > 100, "{refused} {done}");
}

/// A verb, and its name.
type Run = Box<dyn Fn(&Path, &Limits) -> Result<()>>;
type Work = (String, Run);

/// Conversion to every format.
fn all_targets() -> Vec<Work> {
    let writable = REGISTRY.0.iter().filter(|format| format.abilities().writer.is_some());
    let names = writable.map(|format| format.info().name);
    let convert = |name: &'static str| -> Work {
        let run = move |path: &Path, limits: &Limits| verbs::convert(path, name, limits);
        (format!("convert to {name}"), Box::new(run))
    };
    names.map(convert).collect()
}
