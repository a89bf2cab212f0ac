//! Release artefacts in `target/dist/out`: programs for several systems, a Debian package, Python wheels and their source
//! distribution, the C library, and a list of checksums.
//!
//! C code is compiled and linked by zig (PyPI's `ziglang`), which has the libraries of all systems: programs for Linux are
//! static (musl), and wheels need glibc 2.17 (manylinux2014). Artefacts that cannot be built on this machine are
//! skipped with the reason.

mod archive;
mod debian;
mod wheels;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{cargo, output, program, root, succeeds, target};
use crate::step::{Outcome, Steps};
use crate::{Result, targets, tools};

/// Systems of the command line program.
const PROGRAMS: [&str; 5] = [
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "x86_64-pc-windows-gnu",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
];

/// The program that makes manual pages and completions, and that the Debian package contains.
const NATIVE: &str = PROGRAMS[0];

/// Largest sizes in bytes.
const MOST_PROGRAM: u64 = 25_000_000;
const MOST_WHEEL: u64 = 10_000_000;

/// Groups of artefacts.
const GROUPS: [&str; 5] = ["programs", "debian", "wheels", "sdist", "library"];

/// `cargo xtask dist [GROUP | TARGET]...`.
pub(crate) fn run(only: &[&str]) -> Result<bool> {
    let known = |name: &&str| GROUPS.contains(name) || PROGRAMS.contains(name);
    if let Some(unknown) = only.iter().find(|name| !known(name)) {
        let all = [&GROUPS[..], &PROGRAMS].concat().join(", ");
        return Err(format!("unknown artefact `{unknown}`; known are {all}"));
    }
    let wanted = |name: &str| only.is_empty() || only.contains(&name);
    fs::create_dir_all(out()).map_err(|e| format!("{}: {e}", out().display()))?;
    let mut steps = Steps::default();
    for triple in PROGRAMS.into_iter().filter(|t| wanted("programs") || wanted(t)) {
        steps.run(triple, || artefact(program_for(triple)));
    }
    if wanted("debian") {
        steps.run("debian", || artefact(debian::package()));
    }
    if wanted("wheels") {
        for triple in wheels::TARGETS {
            steps.run(triple, || artefact(wheels::build(triple)));
        }
        steps.run("wheel test", || artefact(wheels::test()));
    }
    if wanted("sdist") {
        steps.run("sdist", || artefact(wheels::source()));
    }
    if wanted("library") {
        steps.run("library", || artefact(library()));
    }
    println!("\n{}\n{}", list()?, steps.summary());
    Ok(!steps.failed())
}

/// Why an artefact is missing.
enum Missing {
    /// A tool cannot be had.
    Tool(String),
    Failed(String),
}

impl From<String> for Missing {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

fn artefact(result: std::result::Result<(), Missing>) -> Outcome {
    match result {
        Ok(()) => Outcome::Passed,
        Err(Missing::Tool(why)) => Outcome::Skipped(why),
        Err(Missing::Failed(why)) => Outcome::Failed(why),
    }
}

/// Where artefacts are.
fn out() -> PathBuf {
    target().join("dist/out")
}

/// Builds the program for a target, and packs it with its pages.
fn program_for(triple: &str) -> std::result::Result<(), Missing> {
    let path = build(triple)?;
    within(&path, MOST_PROGRAM)?;
    archive::program_archive(triple, &path)
}

/// Builds the program with zig as linker; returns its path.
fn build(triple: &str) -> std::result::Result<PathBuf, Missing> {
    let zig = targets::zig().map_err(Missing::Tool)?;
    targets::add(triple).map_err(Missing::Tool)?;
    let folder = target().join("dist");
    let mut command = program(zig);
    command.args(["zigbuild", "--release", "--package", "spile-cli", "--target", triple]);
    if !succeeds(command.env("CARGO_TARGET_DIR", &folder))? {
        return Err(Missing::Failed(format!("the program does not build for {triple}")));
    }
    let name = if triple.contains("windows") { "spile.exe" } else { "spile" };
    Ok(folder.join(triple).join("release").join(name))
}

/// The C library with its headers, as `make install` copies them.
fn library() -> std::result::Result<(), Missing> {
    tools::make().map_err(Missing::Tool)?;
    let folder = target().join("dist");
    let args = ["build", "--release", "--package", "spile-c"];
    if !succeeds(cargo(&args).env("CARGO_TARGET_DIR", &folder))? {
        return Err(Missing::Failed("the C library does not build".into()));
    }
    let installed = folder.join("library");
    let mut make = program("make");
    make.args(["-s", "-C", "bindings/c", "install"])
        .arg(format!("PREFIX={}", installed.display()))
        .arg(format!("LIBRARIES={}", folder.join("release").display()));
    output(&mut make)?;
    archive::pack(&installed, &format!("libspile-{}-{}", version(), std::env::consts::ARCH))?;
    Ok(())
}

/// The version of the workspace.
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Fails if a file is larger than its users should have to download.
fn within(path: &Path, most: u64) -> Result<()> {
    let len = fs::metadata(path).map_err(|e| format!("{}: {e}", path.display()))?.len();
    if len > most {
        return Err(format!("{}: {len} bytes, at most {most} are allowed", path.display()));
    }
    Ok(())
}

/// Writes `SHA256SUMS`; returns a table of the artefacts.
fn list() -> Result<String> {
    let folder = out();
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name != "SHA256SUMS");
    names.sort();
    if names.is_empty() {
        return Ok("no artefacts\n".into());
    }
    let sums = output(program("sha256sum").current_dir(&folder).arg("--").args(&names))?;
    fs::write(folder.join("SHA256SUMS"), sums).map_err(|e| e.to_string())?;
    let mut table = format!("{}\n", folder.display());
    for name in names {
        let len = fs::metadata(folder.join(&name)).map_err(|e| e.to_string())?.len();
        let _ = writeln!(table, "{:>8.1} MB  {name}", len as f64 / 1e6);
    }
    Ok(table)
}

/// The text files that every archive contains.
fn texts() -> [PathBuf; 4] {
    ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"].map(|name| root().join(name))
}
