//! Finding what the tests need, and installing it where that is possible without touching more
//! than `target/` and the system's packages.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::shell::{output, program, target};

/// A program that answers to `--version`.
pub(crate) fn present(name: &str) -> bool {
    output(program(name).arg("--version")).is_ok()
}

/// cargo-nextest is here.
pub(crate) fn nextest() -> bool {
    output(&mut crate::shell::cargo(&["nextest", "--version"])).is_ok()
}

/// A C++ compiler (libFuzzer is written in it).
pub(crate) fn cxx() -> Result<()> {
    let own = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    if present(&own) {
        return Ok(());
    }
    apt(&["g++"]).map_err(|why| format!("there is no C++ compiler (`{own}`) and {why}"))
}

/// A C compiler.
pub(crate) fn cc() -> Result<String> {
    let own = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    if !present(&own) {
        apt(&["gcc", "libc6-dev"])
            .map_err(|why| format!("there is no C compiler (`{own}`) and {why}"))?;
    }
    Ok(own)
}

/// zlib for programs in C.
pub(crate) fn zlib() -> Result<()> {
    apt(&["zlib1g-dev"]).map_err(|why| format!("it needs zlib, and {why}"))
}

/// An MPI library with its compiler and `mpirun`, and what its Rust binding is generated with.
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
        .map_err(|why| format!("there is no MPI (`mpicc`, `mpirun`, libclang) and {why}"))
}

/// What users of the C interface build with.
pub(crate) fn make() -> Result<()> {
    cc()?;
    if present("make") && present("pkg-config") {
        return Ok(());
    }
    apt(&["make", "pkg-config"]).map_err(|why| format!("there is no make or pkg-config and {why}"))
}

/// A Fortran compiler.
pub(crate) fn fortran() -> Result<()> {
    if present("gfortran") {
        return Ok(());
    }
    apt(&["gfortran"]).map_err(|why| format!("there is no Fortran compiler and {why}"))
}

/// A Python with `packages`, in `target/venv`.
pub(crate) fn python(packages: &[String]) -> Result<PathBuf> {
    let home = target().join("venv");
    let python = home.join("bin/python");
    if !present(&python.to_string_lossy()) {
        make_venv(&home)?;
    }
    // pip leaves what is there already, and says so in half a second without a network.
    let words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    output(program(&python).args(words).args(packages)).map_err(|why| {
        format!("pip cannot install {}: {}", packages.join(", "), last_line(&why))
    })?;
    Ok(python)
}

/// A new Python with nothing in it.
pub(crate) fn fresh_venv(name: &str) -> Result<PathBuf> {
    let home = target().join(name);
    make_venv(&home)?;
    Ok(home.join("bin/python"))
}

fn make_venv(home: &Path) -> Result<()> {
    let make = || output(program("python3").args(["-m", "venv", "--clear"]).arg(home)).map(drop);
    make().or_else(|_| {
        apt(&["python3", "python3-venv"])
            .map_err(|why| format!("python3 cannot make a virtual environment and {why}"))?;
        make()
    })
}

/// Installs packages of a Debian system.
fn apt(packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    if !present("apt-get") {
        return Err(format!("this system has no apt-get to install {names} with"));
    }
    if output(program("id").arg("-u"))?.trim() != "0" {
        return Err(format!("only root can install it; ask for `apt-get install {names}`"));
    }
    println!("installing {names}");
    let get = |words: &[&str]| {
        output(program("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(words).arg("-qq"))
    };
    let mut install = vec!["install", "--yes", "--no-install-recommends"];
    install.extend(packages);
    if get(&install).is_ok() {
        return Ok(());
    }
    // Fresh images come without the lists of packages.
    get(&["update"])
        .and_then(|_| get(&install))
        .map(drop)
        .map_err(|why| last_line(&why).to_string())
}

fn last_line(text: &str) -> &str {
    text.trim().lines().last().unwrap_or_default()
}
