//! Checks that the code compiles for other operating systems and processors.
//!
//! Crates that contain C are compiled with zig, which PyPI's `ziglang` installs. Targets whose standard library is not
//! installed and cannot be added by rustup are skipped.

use std::path::Path;

use crate::shell::{cargo, output, program, succeeds, target};
use crate::step::{Counts, Outcome, Steps};
use crate::{Result, tools};

/// A target and the packages that compile for it.
struct Target {
    triple: &'static str,
    packages: &'static [&'static str],
}

/// Formats without C libraries. SDF and scda contain libdeflate.
const WITHOUT_C: &[&str] = &["spile-core", "spile-interchange", "spile-gsd", "spile-taf"];

const TARGETS: [Target; 6] = [
    Target { triple: "x86_64-unknown-linux-musl", packages: &["spile-cli"] },
    Target { triple: "aarch64-unknown-linux-musl", packages: &["spile-cli"] },
    Target { triple: "x86_64-pc-windows-gnu", packages: &["spile-cli"] },
    Target { triple: "x86_64-apple-darwin", packages: &["spile-cli"] },
    Target { triple: "aarch64-apple-darwin", packages: &["spile-cli"] },
    Target { triple: "wasm32-unknown-unknown", packages: WITHOUT_C },
];

/// `cargo xtask targets`.
pub(crate) fn run() -> bool {
    let mut steps = Steps::default();
    let zig = zig();
    for Target { triple, packages } in TARGETS {
        steps.run(triple, || match (&zig, packages == WITHOUT_C) {
            (_, true) => check(triple, packages, None),
            (Ok(zig), false) => check(triple, packages, Some(zig)),
            (Err(why), false) => Outcome::Skipped(why.clone()),
        });
    }
    println!("\n{}", steps.summary());
    !steps.failed()
}

/// The step of `cargo xtask test`: core on systems that differ.
pub(crate) fn core() -> Outcome {
    let mut counts = Counts::default();
    for triple in ["x86_64-pc-windows-gnu", "aarch64-apple-darwin", "wasm32-unknown-unknown"] {
        match check(triple, &["spile-core"], None) {
            Outcome::Passed => counts.passed += 1,
            Outcome::Skipped(why) => {
                println!("skipped: {triple}: {why}");
                counts.skipped += 1;
            }
            Outcome::Failed(_) | Outcome::Tests(..) => counts.failed += 1,
        }
    }
    Outcome::Tests(counts, true)
}

/// Checks packages for a target; C is compiled by `zig`.
fn check(triple: &str, packages: &[&str], zig: Option<&Path>) -> Outcome {
    if let Err(why) = add(triple) {
        return Outcome::Skipped(why);
    }
    let mut command = zig.map_or_else(|| cargo(&[]), program);
    command.args(["check", "--target", triple]).env("CARGO_TARGET_DIR", target().join("targets"));
    for package in packages {
        command.args(["--package", package]);
    }
    Outcome::from_check(succeeds(&mut command))
}

/// Adds the standard library of a target.
pub(crate) fn add(triple: &str) -> Result<()> {
    let installed = output(program("rustup").args(["target", "list", "--installed"]))
        .map_err(|why| format!("rustup: {why}"))?;
    if installed.lines().any(|line| line == triple) {
        return Ok(());
    }
    output(program("rustup").args(["target", "add", triple]))
        .map(drop)
        .map_err(|_| format!("rustup cannot add the standard library of {triple}"))
}

/// cargo-zigbuild, which sets zig as C compiler and linker.
pub(crate) fn zig() -> Result<std::path::PathBuf> {
    let python = tools::python(&["ziglang".into(), "cargo-zigbuild".into()])?;
    Ok(python.with_file_name("cargo-zigbuild"))
}
