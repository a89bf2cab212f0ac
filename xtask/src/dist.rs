//! Release artefacts: a static binary for Linux, the C library with its headers, and the Python wheel.

use crate::shell::{cargo, output, program, succeeds, target};
use crate::{Result, tools};

pub(crate) fn run() -> Result<bool> {
    let about = output(program("rustc").arg("-vV"))?;
    let host = about
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .ok_or("`rustc -vV` prints no host")?;
    // With `--target`, the flag does not apply to build scripts and procedural macros.
    let args = ["build", "--release", "--package", "spile-cli", "--target", host];
    let folder = target().join("dist");
    let built = succeeds(
        cargo(&args)
            .env("RUSTFLAGS", "-Ctarget-feature=+crt-static")
            .env("CARGO_TARGET_DIR", &folder),
    )?;
    let path = folder.join(host).join("release/spile");
    let length = std::fs::metadata(&path).map_err(|e| e.to_string())?.len();
    println!("{} ({:.1} MB)", path.display(), length as f64 / 1e6);
    let args = ["build", "--release", "--package", "spile-c"];
    let library = succeeds(cargo(&args).env("CARGO_TARGET_DIR", &folder))?;
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
    let args = ["-m", "maturin", "build", "--release", "--out"];
    let wheel = succeeds(
        program(python)
            .args(args)
            .arg(&wheels)
            .args(["--manifest-path", "bindings/python/Cargo.toml"])
            .env("CARGO_TARGET_DIR", &folder),
    )?;
    println!("{}", wheels.display());
    Ok(built && library && install && wheel)
}
