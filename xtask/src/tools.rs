//! Finds the programs that tests need, and installs missing ones in `target/` or as packages of the system.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::shell::{output, program, target};

/// The arguments of Python for the installation of packages.
pub(crate) const PIP: [&str; 5] =
    ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];

/// Whether a program with an option `--version` is installed.
pub(crate) fn present(name: &str) -> bool {
    output(program(name).arg("--version")).is_ok()
}

/// Whether cargo-nextest is installed.
pub(crate) fn nextest() -> bool {
    output(&mut crate::shell::cargo(&["nextest", "--version"])).is_ok()
}

/// A C++ compiler, for libFuzzer.
pub(crate) fn cxx() -> Result<String> {
    compiler("CXX", "c++", &["g++"])
}

/// A C compiler.
pub(crate) fn cc() -> Result<String> {
    compiler("CC", "cc", &["gcc", "libc6-dev"])
}

/// The compiler of an environment variable, or `default`.
fn compiler(variable: &str, default: &str, packages: &[&str]) -> Result<String> {
    let name = std::env::var(variable).unwrap_or_else(|_| default.into());
    if !present(&name) {
        apt(packages).map_err(|why| format!("no compiler `{name}`: {why}"))?;
    }
    Ok(name)
}

/// zlib with its C headers.
pub(crate) fn zlib() -> Result<()> {
    apt(&["zlib1g-dev"]).map_err(|why| format!("no zlib: {why}"))
}

/// An MPI library with its compiler and `mpirun`, and libclang, which generates its Rust binding.
pub(crate) fn mpi() -> Result<()> {
    let clang = || {
        std::env::var_os("LIBCLANG_PATH").is_some()
            || present("clang")
            || output(program("dpkg").args(["-s", "libclang-dev"])).is_ok()
    };
    if present("mpicc") && present("mpirun") && clang() {
        return Ok(());
    }
    apt(&["libopenmpi-dev", "openmpi-bin", "libclang-dev"])
        .map_err(|why| format!("no MPI (`mpicc`, `mpirun`, libclang): {why}"))
}

/// Parallel HDF5 for Open MPI with its compiler `h5pcc.openmpi`.
pub(crate) fn parallel_hdf5() -> Result<()> {
    if output(program("h5pcc.openmpi").arg("-showconfig")).is_ok() {
        return Ok(());
    }
    apt(&["libhdf5-openmpi-dev", "openmpi-bin"]).map_err(|why| format!("no parallel HDF5: {why}"))
}

/// A second MPI library, on Debian beside the first one; tests skip it if it is missing.
fn mpich() {
    if !present("mpicc.mpich") && present("mpicc.openmpi") {
        let _ = apt(&["mpich", "libmpich-dev"]);
    }
}

/// make and pkg-config, for the C interface.
pub(crate) fn make() -> Result<()> {
    cc()?;
    mpich();
    if present("make") && present("pkg-config") {
        return Ok(());
    }
    apt(&["make", "pkg-config"]).map_err(|why| format!("no make or pkg-config: {why}"))
}

/// strace, which injects faults into system calls.
pub(crate) fn strace() -> Result<()> {
    if present("strace") {
        return Ok(());
    }
    apt(&["strace"]).map_err(|why| format!("no strace: {why}"))
}

/// A Fortran compiler.
pub(crate) fn fortran() -> Result<()> {
    if present("gfortran") {
        return Ok(());
    }
    apt(&["gfortran"]).map_err(|why| format!("no Fortran compiler: {why}"))
}

/// A program of crates.io, in `target/tools`.
pub(crate) fn cargo_program(name: &str) -> Result<PathBuf> {
    let home = target().join("tools");
    let path = home.join("bin").join(name);
    if !present(&path.to_string_lossy()) {
        println!("installing {name}");
        let args = ["install", "--locked", "--quiet", "--root"];
        output(crate::shell::cargo(&args).arg(&home).arg(name))
            .map_err(|why| format!("cargo cannot install {name}: {}", last_line(&why)))?;
    }
    Ok(path)
}

/// A Python with `packages`, in the virtual environment `target/venv`.
pub(crate) fn python(packages: &[String]) -> Result<PathBuf> {
    let home = target().join("venv");
    let python = home.join("bin/python");
    if !present(&python.to_string_lossy()) {
        make_venv(&home)?;
    }
    // For installed packages this takes half a second and needs no network.
    output(program(&python).args(PIP).args(packages)).map_err(|why| {
        format!("pip cannot install {}: {}", packages.join(", "), last_line(&why))
    })?;
    Ok(python)
}

/// A Python without packages, in a new virtual environment.
pub(crate) fn fresh_venv(name: &str) -> Result<PathBuf> {
    let home = target().join(name);
    make_venv(&home)?;
    Ok(home.join("bin/python"))
}

fn make_venv(home: &Path) -> Result<()> {
    let make = || output(program("python3").args(["-m", "venv", "--clear"]).arg(home)).map(drop);
    make().or_else(|_| {
        apt(&["python3", "python3-venv"])
            .map_err(|why| format!("python3 cannot create a virtual environment: {why}"))?;
        make()
    })
}

/// Installs Debian packages.
fn apt(packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    if !present("apt-get") {
        return Err(format!("apt-get is not available to install {names}"));
    }
    if output(program("id").arg("-u"))?.trim() != "0" {
        return Err(format!("`apt-get install {names}` needs root"));
    }
    println!("installing {names}");
    let get = |args: &[&str]| {
        output(program("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(args).arg("-qq"))
    };
    let mut install = vec!["install", "--yes", "--no-install-recommends"];
    install.extend(packages);
    if get(&install).is_ok() {
        return Ok(());
    }
    // New images have no package lists.
    get(&["update"])
        .and_then(|_| get(&install))
        .map(drop)
        .map_err(|why| last_line(&why).to_string())
}

fn last_line(text: &str) -> &str {
    text.trim().lines().last().unwrap_or_default()
}
