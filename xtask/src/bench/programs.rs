//! Builds the programs of a benchmark.
//!
//! | kind | arguments | program |
//! |---|---|---|
//! | `example` | package, name | an example of a crate of the workspace |
//! | `spile` | | the command line |
//! | `cargo` | manifest, name | a program of another workspace |
//! | `cc` | sources and libraries | a C program |
//! | `h5pcc` | sources | a C program with parallel HDF5 |
//! | `library` | package, name | a static library of the workspace |
//! | `gfortran` | source | a Fortran program |
//! | `mpi` | package, name | an example that needs MPI |
//! | `python` | | Python with the packages of the benchmark |
//! | `wheel` | | the same, with the Python package of spile |
//! | `output` | command | the output of a command |

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Options;
use super::table::{Table, Values, fill_in};
use crate::python::install_release;
use crate::shell::{cargo, output, program, root, succeeds, target as target_dir};
use crate::{Result, tools};

/// Adds the paths of all programs to `values`, and returns the versions of their compilers and packages. Programs of
/// others may be unavailable.
pub(super) fn build_all(table: &Table, options: &Options, values: &mut Values) -> Result<String> {
    let mut versions = Vec::new();
    for one in &table.programs {
        let [name, kind, args @ ..] = one.as_slice() else {
            return Err(format!("programs: {one:?}: expected a name and a kind"));
        };
        let path = Path::new(&values["dir"]).join(name);
        let built = args.iter().map(|arg| fill_in(arg, values)).collect::<Result<Vec<String>>>();
        let built = built.and_then(|args| build(kind, &args, &path, &table.packages, options));
        match built {
            Ok(path) => {
                match kind.as_str() {
                    "gfortran" => versions.push(first_line(program("gfortran").arg("--version"))),
                    "python" | "wheel" => versions.push(package_versions(&path, &table.packages)),
                    _ => {}
                }
                values.insert(name.clone(), path.to_string_lossy().into_owned());
            }
            Err(why) if ["example", "library", "spile", "wheel"].contains(&kind.as_str()) => {
                return Err(why);
            }
            Err(why) => println!("{name}: not available: {why}"),
        }
    }
    Ok(versions.join("; "))
}

/// Builds a program in `path`, or where cargo builds it, and returns its path.
fn build(
    kind: &str,
    args: &[String],
    path: &Path,
    packages: &[String],
    options: &Options,
) -> Result<PathBuf> {
    let release = |args: &[&str], path: PathBuf| {
        let success = succeeds(cargo(&["build", "--release", "--quiet"]).args(args))?;
        if success { Ok(path) } else { Err(format!("{} does not build", path.display())) }
    };
    let compile = |compiler: &str, args: &[String]| {
        let mut command = program(compiler);
        command.args(["-O3", "-march=native", "-o"]).arg(path).args(args);
        output(&mut command).map(|_| path.to_path_buf())
    };
    let target = target_dir();
    match (kind, args) {
        ("example", [package, name]) => release(
            &["--package", package, "--example", name],
            target.join("release/examples").join(name),
        ),
        ("mpi", [package, name]) => {
            tools::mpi()?;
            release(
                &["--package", package, "--features", "mpi", "--example", name],
                target.join("release/examples").join(name),
            )
        }
        ("library", [package, name]) => {
            release(&["--package", package], target.join("release").join(name))
        }
        ("spile", []) => match &options.spile {
            Some(path) => Ok(path.clone()),
            None => release(&["--package", "spile-cli"], target.join("release/spile")),
        },
        ("cargo", [manifest, name]) => {
            let manifest = root().join(manifest).to_string_lossy().into_owned();
            let home = target.join(name);
            let args = ["--locked", "--manifest-path", &manifest, "--target-dir"];
            release(
                &[&args[..], &[&home.to_string_lossy()]].concat(),
                home.join("release").join(name),
            )
        }
        ("cc", args) => {
            let compiler = tools::cc()?;
            compile(&compiler, args).or_else(|why| {
                if !args.iter().any(|arg| arg == "-lz") {
                    return Err(why);
                }
                tools::zlib()?;
                compile(&compiler, args)
            })
        }
        ("h5pcc", args) => {
            tools::parallel_hdf5()?;
            compile("h5pcc.openmpi", &[&["-shlib".into()], args].concat())
        }
        ("gfortran", args) => {
            tools::fortran()?;
            let modules = path.parent().unwrap_or(path).to_string_lossy().into_owned();
            compile("gfortran", &[&["-J".into(), modules], args].concat())
        }
        ("python", []) => tools::python(packages),
        ("wheel", []) => {
            let python = tools::python(&[packages, &["maturin".into(), "wheel".into()]].concat())?;
            install_release(&python)?;
            Ok(python)
        }
        ("output", [command, args @ ..]) => {
            output(program(command).args(args)).map(|text| text.trim().into())
        }
        _ => Err(format!("{kind} {args:?}: unknown kind of program")),
    }
}

/// Versions of Python and of packages, as text.
fn package_versions(python: &Path, packages: &[String]) -> String {
    let code = "import sys; from importlib.metadata import version as v; \
                print('Python', ', '.join([sys.version.split()[0]] + [p + ' ' + v(p) for p in sys.argv[1:]]))";
    first_line(program(python).args(["-c", code]).args(packages))
}

/// The first line that a command prints.
pub(super) fn first_line(command: &mut Command) -> String {
    let text = output(command).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").into()
}
