//! What is given to people: one static binary, which runs on any Linux of the same processor,
//! whatever is installed there; the C library with its headers; and the wheel for Python.

use crate::shell::{cargo, output, program, succeeds, target};
use crate::{Result, tools};

pub(crate) fn run() -> Result<bool> {
    let about = output(program("rustc").arg("-vV"))?;
    let host = about
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .ok_or("rustc does not tell what machine this is")?;
    // Naming the target keeps the flag away from build scripts and procedural macros.
    let words = ["build", "--release", "--package", "spile-cli", "--target", host];
    let folder = target().join("dist");
    let built = succeeds(
        cargo(&words)
            .env("RUSTFLAGS", "-Ctarget-feature=+crt-static")
            .env("CARGO_TARGET_DIR", &folder),
    )?;
    let path = folder.join(host).join("release/spile");
    let length = std::fs::metadata(&path).map_err(|e| e.to_string())?.len();
    println!("{} ({:.1} MB)", path.display(), length as f64 / 1e6);
    let words = ["build", "--release", "--package", "spile-c"];
    let library = succeeds(cargo(&words).env("CARGO_TARGET_DIR", &folder))?;
    let installed = folder.join("c");
    let install = succeeds(
        program("make")
            .args(["-s", "-C", "bindings/c", "install"])
            .arg(format!("PREFIX={}", installed.display()))
            .arg(format!("LIBRARIES={}", folder.join("release").display())),
    )?;
    println!("{}", installed.display());
    let wheels = folder.join("python");
    let python = tools::python(&["maturin".into()])?;
    let words = ["-m", "maturin", "build", "--release", "--out"];
    let wheel = succeeds(
        program(python)
            .args(words)
            .arg(&wheels)
            .args(["--manifest-path", "bindings/python/Cargo.toml"])
            .env("CARGO_TARGET_DIR", &folder),
    )?;
    println!("{}", wheels.display());
    Ok(built && library && install && wheel)
}
