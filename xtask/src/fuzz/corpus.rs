//! The inputs of a target: seeds, test files of its format, the committed corpus, and what earlier runs found.

use std::fs;
use std::path::{Path, PathBuf};

use super::{LIMITS, create};
use crate::Result;
use crate::shell::{captured, program, root, target};

/// Longest input of the committed corpus, and its length per target, in bytes.
const LONGEST: usize = 4 << 10;
const SHARE: usize = 120 << 10;

/// Largest store, in bytes, that is an input of `zarr_nodes`.
const STORE: u64 = 12 << 10;

/// What earlier runs on this machine found.
pub(super) fn folder(name: &str) -> PathBuf {
    target().join("fuzz/corpus").join(name)
}

/// Folders with more inputs: seeds, test files, and the committed corpus, unpacked.
pub(super) fn inputs(name: &str) -> Result<Vec<PathBuf>> {
    let golden = root().join("tests/golden");
    let mut folders = vec![root().join("fuzz/seeds").join(name)];
    if let Some(format) = name.strip_suffix("_open") {
        folders.push(golden.join(format));
        folders.push(root().join("tests/bad").join(format));
    } else if name == "zarr_nodes" {
        folders.push(stores(&golden.join("zarr"))?);
    } else if matches!(name, "gsd_append" | "selections" | "writers") || name.starts_with("core_") {
        // Programs of calls.
    } else if name == "taf_ops" {
        // Two operations.
        folders.push(controlled(&golden.join("taf"), "taf", 2 * 6)?);
    } else {
        folders.push(controlled(&golden, "all", 0)?);
    }
    folders.push(unpack(name)?);
    folders.retain(|folder| folder.is_dir());
    Ok(folders)
}

/// The file of the committed corpus.
fn packed(name: &str) -> PathBuf {
    root().join("fuzz/corpus").join(name).with_extension("bin")
}

/// Writes the inputs of the committed corpus to a folder.
fn unpack(name: &str) -> Result<PathBuf> {
    let folder = target().join("fuzz/packed").join(name);
    let _ = fs::remove_dir_all(&folder);
    create(&folder)?;
    let bytes = fs::read(packed(name)).unwrap_or_default();
    for (number, input) in split(&bytes)?.iter().enumerate() {
        write(&folder.join(number.to_string()), input)?;
    }
    Ok(folder)
}

/// The inputs of a file: each is preceded by its length.
fn split(bytes: &[u8]) -> Result<Vec<&[u8]>> {
    let mut rest = bytes;
    let mut inputs = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let input = after.split_at_checked(u32::from_le_bytes(*length) as usize);
        let (input, next) = input.ok_or("a file of the corpus is too short")?;
        inputs.push(input);
        rest = next;
    }
    Ok(inputs)
}

/// Inputs in the form of [`split`], shortest first, as many as are allowed.
fn join(mut inputs: Vec<Vec<u8>>) -> Vec<u8> {
    inputs.sort_by(|a, b| a.len().cmp(&b.len()).then(a.cmp(b)));
    inputs.dedup();
    let mut bytes = Vec::new();
    for input in inputs.iter().filter(|input| input.len() <= LONGEST) {
        if bytes.len() + input.len() > SHARE {
            break;
        }
        bytes.extend((input.len() as u32).to_le_bytes());
        bytes.extend(input);
    }
    bytes
}

/// Writes the committed corpus of a target: inputs that together reach all the code that was reached.
pub(super) fn minimise(programs: &Path, name: &str) -> Result<()> {
    let small = target().join("fuzz/minimised").join(name);
    let _ = fs::remove_dir_all(&small);
    create(&small)?;
    let mut command = program(programs.join(name));
    command.args(LIMITS).arg(format!("-max_len={LONGEST}")).args(["-merge=1", "-verbosity=0"]);
    command.arg(&small).arg(folder(name)).args(inputs(name)?);
    let (success, text) = captured(&mut command)?;
    if !success {
        return Err(format!("{name}: the corpus cannot be minimised:\n{text}"));
    }
    let entries = fs::read_dir(&small).map_err(|e| format!("{}: {e}", small.display()))?;
    let inputs = entries.flatten().filter_map(|entry| fs::read(entry.path()).ok()).collect();
    let bytes = join(inputs);
    create(&root().join("fuzz/corpus"))?;
    write(&packed(name), &bytes)?;
    println!("{name}: {} inputs, {} bytes", split(&bytes)?.len(), bytes.len());
    Ok(())
}

/// Small files of a folder with bytes that control a verb after them: `extra` bytes, and four that begin with a number.
fn controlled(golden: &Path, name: &str, extra: usize) -> Result<PathBuf> {
    let folder = target().join("fuzz/controlled").join(name);
    create(&folder)?;
    let (mut below, mut number) = (vec![golden.to_path_buf()], 0_u8);
    while let Some(path) = below.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            below.extend(entries.map(|entry| entry.path()));
            continue;
        }
        let Ok(mut input) = fs::read(&path) else { continue };
        if input.len() as u64 > super::LONGEST - 64 {
            continue;
        }
        number = number.wrapping_add(1);
        input.extend((0..extra).map(|k| (k as u8).wrapping_mul(29).wrapping_add(number)));
        input.extend([if extra > 0 { 2 } else { number }, number, 1, 1]);
        write(&folder.join(path.to_string_lossy().replace('/', "_")), &input)?;
    }
    Ok(folder)
}

/// The small stores of a folder as inputs of `zarr_nodes`.
fn stores(golden: &Path) -> Result<PathBuf> {
    let folder = target().join("fuzz/stores");
    create(&folder)?;
    let mut below = vec![golden.to_path_buf()];
    while let Some(path) = below.pop() {
        let is_store =
            ["zarr.json", ".zgroup", ".zarray"].iter().any(|name| path.join(name).exists());
        if !is_store {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            below.extend(entries.map(|entry| entry.path()).filter(|path| path.is_dir()));
            continue;
        }
        let mut input = Vec::new();
        append(&path, "", &mut input);
        if (input.len() as u64) < STORE {
            let name = path.to_string_lossy().replace('/', "_");
            write(&folder.join(name), &input)?;
        }
    }
    Ok(folder)
}

/// Appends the files of a store, each after `\n@`, its key and the end of the line.
fn append(folder: &Path, prefix: &str, out: &mut Vec<u8>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let key = format!("{prefix}{name}");
        if out.len() as u64 > STORE {
            return;
        }
        if path.is_dir() {
            append(&path, &format!("{key}/"), out);
        } else {
            out.extend(format!("\n@{key}\n").bytes());
            out.extend(fs::read(&path).unwrap_or_default());
        }
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_packed_shortest_first_and_unpacked() {
        let inputs = vec![b"long".to_vec(), Vec::new(), b"x".to_vec(), b"x".to_vec()];
        let bytes = join(inputs);
        assert_eq!(split(&bytes).unwrap(), [&b""[..], b"x", b"long"]);
        assert!(split(&bytes[..bytes.len() - 1]).is_err());
        assert!(join(vec![vec![0; LONGEST + 1]]).is_empty());
    }
}
