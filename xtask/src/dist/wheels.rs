//! Wheels for Linux with glibc 2.17 or later (manylinux2014), for all versions of Python from 3.10 on and for the
//! free-threaded one, and the source distribution.

use std::path::PathBuf;

use super::{MOST_WHEEL, Missing, out, within};
use crate::shell::{files, output, program, root, succeeds, target};
use crate::{targets, tools};

pub(super) const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// The stable interface of all versions, and the free-threaded interpreter, which has another one.
const INTERPRETERS: [&str; 2] = ["python3.10", "python3.14t"];

/// Builds the wheels for a target.
pub(super) fn build(triple: &str) -> Result<(), Missing> {
    let maturin = maturin()?;
    targets::add(triple).map_err(Missing::Tool)?;
    for interpreter in INTERPRETERS {
        let mut command = program(&maturin);
        command
            .args(["-m", "maturin", "build", "--release", "--zig", "--target", triple])
            .args(["--compatibility", "manylinux2014", "--interpreter", interpreter, "--out"])
            .arg(out())
            .args(["--manifest-path", "bindings/python/Cargo.toml"])
            .env("CARGO_TARGET_DIR", target().join("dist"));
        if !succeeds(&mut command)? {
            return Err(Missing::Failed(format!("no wheel for {interpreter} on {triple}")));
        }
    }
    for wheel in wheels() {
        within(&wheel, MOST_WHEEL)?;
    }
    Ok(())
}

/// The source distribution.
pub(super) fn source() -> Result<(), Missing> {
    let mut command = program(maturin()?);
    command.args(["-m", "maturin", "sdist", "--out"]).arg(out());
    output(command.args(["--manifest-path", "bindings/python/Cargo.toml"]))?;
    Ok(())
}

/// Installs the wheel of this machine in a new environment with nothing but what pip brings, and runs the quick start.
pub(super) fn test() -> Result<(), Missing> {
    let own = format!("_{}.whl", std::env::consts::ARCH);
    let is_own = |wheel: &PathBuf| {
        let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.contains("-abi3-") && name.ends_with(&own)
    };
    let wheel =
        wheels().into_iter().find(is_own).ok_or_else(|| "no wheel for this machine".to_string())?;
    let python = tools::fresh_venv("venv-wheel").map_err(Missing::Tool)?;
    output(program(&python).args(tools::PIP).arg(&wheel))?;
    output(program(python.with_file_name("spile")).arg("--version"))?;
    output(program(&python).arg("-I").arg(root().join("bindings/python/tests/alone.py")))?;
    Ok(())
}

/// A Python with maturin and zig.
fn maturin() -> Result<PathBuf, Missing> {
    tools::python(&["maturin".into(), "ziglang".into()]).map_err(Missing::Tool)
}

fn wheels() -> Vec<PathBuf> {
    files(&out(), "whl")
}
