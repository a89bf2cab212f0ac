//! The Python package: builds a wheel from the compiled module, and runs its tests.
//!
//! maturin would build the module again with other features. Here it only writes the metadata, and `wheel` packs
//! the files. Released wheels are built by maturin (`cargo xtask dist`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::shell::{cargo, files, output, program, root, succeeds, target, watched};
use crate::step::{Counts, Outcome, Steps};
use crate::tools::{self, PIP};

/// Packages that the tests need, besides those of the interop scripts.
const PACKAGES: &[&str] =
    &["maturin", "wheel", "pytest", "mypy", "ruff", "dask[array]", "distributed", "mpi4py"];

/// `cargo xtask python`: builds only the crate of the package.
pub(crate) fn run() -> Result<bool> {
    if !succeeds(&mut cargo(&["build", "--package", "spile-python"]))? {
        return Ok(false);
    }
    let mut steps = Steps::default();
    let module = target().join("debug/libspile_python.so");
    steps.run("python", || test(&module, &interop_packages()));
    println!("{}", steps.summary());
    Ok(!steps.failed())
}

/// Installs a release build of the package.
pub(crate) fn install_release(python: &Path) -> Result<()> {
    if !succeeds(&mut cargo(&["build", "--release", "--package", "spile-python"]))? {
        return Err("the Python package does not build".into());
    }
    install(python, &pack(python, &target().join("release/libspile_python.so"))?)
}

/// The Python packages that the scripts of `tests/interop` need.
pub(crate) fn interop_packages() -> Vec<String> {
    let list = root().join("tests/interop/requirements.txt");
    let names = fs::read_to_string(list).unwrap_or_else(|_| "numpy".into());
    names.split_whitespace().map(String::from).collect()
}

/// Runs the tests of the package with all optional packages, then with NumPy only.
pub(crate) fn test(module: &Path, others: &[String]) -> Outcome {
    let packages: Vec<String> =
        PACKAGES.iter().map(ToString::to_string).chain(others.iter().cloned()).collect();
    let python = match tools::python(&packages) {
        Ok(python) => python,
        Err(why) => return Outcome::Skipped(why),
    };
    let run = || -> Result<Outcome> {
        let wheel = pack(&python, module)?;
        install(&python, &wheel)?;
        let folder = root().join("bindings/python");
        let mut pytest = program(&python);
        pytest.current_dir(&folder).args(["-m", "pytest", "-q", "-rs"]);
        let (success, text) = watched(&mut pytest)?;
        let mut counts = count(&text);
        let alone = tools::fresh_venv("venv-numpy")?;
        output(program(&alone).args(PIP).arg(&wheel))?;
        let script = folder.join("tests/alone.py");
        let (sound, _) = watched(program(&alone).arg("-W").arg("error").arg(script))?;
        *(if sound { &mut counts.passed } else { &mut counts.failed }) += 1;
        Ok(Outcome::Tests(counts, success))
    };
    run().unwrap_or_else(Outcome::Failed)
}

/// Packs a wheel with the compiled `module`.
fn pack(python: &Path, module: &Path) -> Result<PathBuf> {
    let package = root().join("bindings/python");
    let (unpacked, packed) = (target().join("wheel/unpacked"), target().join("wheel/packed"));
    let fail = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    for folder in [&unpacked, &packed] {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|e| fail(folder, e))?;
        }
        fs::create_dir_all(folder).map_err(|e| fail(folder, e))?;
    }
    let args = ["-m", "maturin", "pep517", "write-dist-info", "--metadata-directory"];
    let mut maturin = program(python);
    maturin.current_dir(&package).args(args).arg(&unpacked).arg("--interpreter").arg(python);
    output(&mut maturin)?;
    stage(module, &unpacked)?;
    let mut wheel = program(python);
    output(wheel.args(["-m", "wheel", "pack"]).arg(&unpacked).arg("--dest-dir").arg(&packed))?;
    files(&packed, "whl").pop().ok_or_else(|| "no wheel in target/wheel/packed".into())
}

/// Copies the package with the compiled `module` to a folder.
pub(crate) fn stage(module: &Path, to: &Path) -> Result<()> {
    let fail = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let sources = root().join("bindings/python/python/spile");
    let inside = to.join("spile");
    for folder in ["", "gsd"] {
        fs::create_dir_all(inside.join(folder)).map_err(|e| fail(&inside, e))?;
        for extension in ["py", "pyi", "typed"] {
            for file in files(&sources.join(folder), extension) {
                let copy = inside.join(folder).join(file.file_name().unwrap_or_default());
                fs::copy(&file, &copy).map_err(|e| fail(&file, e))?;
            }
        }
    }
    let binary = inside.join("_spile.abi3.so");
    fs::copy(module, &binary).map(drop).map_err(|e| fail(module, e))
}

fn install(python: &Path, wheel: &Path) -> Result<()> {
    output(program(python).args(PIP).args(["--force-reinstall", "--no-deps"]).arg(wheel)).map(drop)
}

/// Parses the last line of pytest: `3 failed, 120 passed, 2 skipped in 4.2s`.
fn count(text: &str) -> Counts {
    let last = text.lines().rfind(|line| line.contains(" in ")).unwrap_or_default();
    let list = last.trim_matches(['=', ' ']).split(" in ").next().unwrap_or_default();
    Counts::default().with(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_pytest_is_parsed() {
        let text =
            "..s.F\n2 in the way\n=== 1 failed, 7 passed, 2 skipped, 3 warnings in 4.20s ===\n";
        assert_eq!(count(text), Counts { passed: 7, failed: 1, skipped: 2 });
        assert_eq!(count("12 passed in 0.1s"), Counts { passed: 12, ..Counts::default() });
        assert_eq!(count("nothing at all"), Counts::default());
    }
}
