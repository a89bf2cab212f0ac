//! The installed C interface: found by pkg-config, compiled with cc, mpicc and mpifort, run with `mpirun`.

#[path = "../../../crates/core/tests/support/machine.rs"]
mod machine;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use machine::{mpirun, present, skipped};
use spile_core::{Dataset, OpenOptions};
use spile_gsd::Gsd;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Runs a command and returns its standard output.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{stdout}\n{stderr}");
    stdout
}

/// Installs the library that cargo built with this test.
fn install() -> tempfile::TempDir {
    let own = std::env::current_exe().unwrap();
    let deps = own.parent().unwrap();
    let libraries = [deps, deps.parent().unwrap()]
        .into_iter()
        .find(|folder| folder.join("libspile_c.so").is_file())
        .expect("libspile_c was not built");
    let prefix = tempfile::tempdir().unwrap();
    let mut make = Command::new("make");
    make.args(["-s", "-C", HERE, "install"]);
    make.arg(format!("PREFIX={}", prefix.path().display()));
    run(make.arg(format!("LIBRARIES={}", libraries.display())));
    prefix
}

/// Compiles a C file of the tests.
fn compile(compiler: &str, file: &str, prefix: &Path, arguments: &[&str], name: &str) -> PathBuf {
    let program = prefix.join(name);
    let source = Path::new(HERE).join("tests").join(file);
    let mut command = Command::new(compiler);
    command.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(source);
    command.arg(format!("-I{}", prefix.join("include").display())).args(arguments);
    run(&mut command);
    program
}

/// Names and bytes of the files in a folder, sorted.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn all_functions_of_scda_work_as_described() {
    if !present("cc") {
        return skipped("the C interface: no C compiler");
    }
    let prefix = install();
    let lib = prefix.path().join("lib");
    let (shared, rpath) = (format!("-L{}", lib.display()), format!("-Wl,-rpath,{}", lib.display()));
    let archive = lib.join("libspile.a").display().to_string();
    let alone = ["-lpthread", "-ldl", "-lm", "-lrt", "-lutil", "-lgcc_s"];
    let mut written = Vec::new();
    let linked = [
        ("shared", vec![shared.as_str(), rpath.as_str(), "-lspile"]),
        ("static", [&[archive.as_str()][..], &alone].concat()),
    ];
    for (name, arguments) in &linked {
        let program = compile("cc", "scda.c", prefix.path(), arguments, name);
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(run(Command::new(program).arg(folder.path())), "ok\n");
        written.push(contents(folder.path()));
    }
    assert_eq!(written[0], written[1]);
    // Indirect elements give the same bytes.
    assert_eq!(written[0][0].1, written[0][2].1);
    assert_eq!(written[0].len(), 5);

    if !present("mpicc") || !present("mpirun") {
        return skipped("the C interface with MPI: no mpicc or mpirun");
    }
    let arguments = [&["-DWITH_MPI"][..], &linked[0].1].concat();
    let program = compile("mpicc", "scda.c", prefix.path(), &arguments, "parallel");
    for ranks in 1..=4 {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(run(mpirun(ranks).arg(&program).arg(folder.path())), "ok\n");
        assert!(contents(folder.path()) == written[0], "{ranks} ranks wrote other bytes");
    }
}

#[test]
fn all_functions_of_gsd_work_as_described() {
    if !present("cc") {
        return skipped("the C interface: no C compiler");
    }
    let prefix = install();
    let lib = prefix.path().join("lib").display().to_string();
    let arguments = [&format!("-L{lib}"), &format!("-Wl,-rpath,{lib}"), "-lspile"];
    let folder = tempfile::tempdir().unwrap();
    let program = compile("cc", "gsd.c", prefix.path(), &arguments, "gsd");
    assert_eq!(run(Command::new(program).arg(folder.path())), "ok\n");
    let program = compile("cc", "gsd_seed.c", prefix.path(), &arguments, "gsd_seed");
    assert_eq!(run(Command::new(program).arg(folder.path())), "ok\n");
    // The Rust library reads the file.
    let path = folder.path().join("3.gsd");
    let dataset = Dataset::open_path(&Gsd, path, &OpenOptions::default()).unwrap();
    assert!(dataset.arrays().any(|(_, node, _)| node.path == "values"));
}

#[test]
fn the_examples_are_built_by_make_and_write_the_same_bytes() {
    if !present("mpicc") || !present("mpirun") || !present("pkg-config") {
        return skipped("the C examples: no mpicc, mpirun or pkg-config");
    }
    let prefix = install();
    let folder = prefix.path().join("examples");
    fs::create_dir(&folder).unwrap();
    for name in ["Makefile", "trajectory.c", "checkpoint.c", "checkpoint.f90"] {
        fs::copy(Path::new(HERE).join("examples").join(name), folder.join(name)).unwrap();
    }
    let make = |target: &str| {
        let mut make = Command::new("make");
        make.env("PKG_CONFIG_PATH", prefix.path().join("lib/pkgconfig"));
        run(make.args(["-s", target, "CFLAGS=-O1 -Wall -Wextra -Werror"]).current_dir(&folder))
    };
    let mut files = Vec::new();
    let mut check = |file: &str| files.push(fs::read(folder.join(file)).unwrap());
    make("trajectory");
    let output = run(Command::new("./trajectory").arg("run.gsd").current_dir(&folder));
    assert_eq!(output.lines().next(), Some("10 frames, the last at step 9000"));
    make("serial");
    run(Command::new("./serial").arg("serial.scda").current_dir(&folder));
    check("serial.scda");
    make("parallel");
    let mut programs = vec!["parallel"];
    if present("gfortran") && present("mpifort") {
        make("fortran");
        programs.push("fortran");
    } else {
        skipped("the Fortran module: no mpifort");
    }
    for program in programs {
        let run_on = |ranks, arguments: &[&str]| {
            let program = folder.join(program);
            run(mpirun(ranks).arg(program).args(arguments).current_dir(&folder))
        };
        for ranks in [1, 3] {
            let file = format!("{program}-{ranks}.scda");
            assert!(run_on(ranks, &[&file]).starts_with("restarted"));
            check(&file);
        }
        // Files of other programs and other numbers of processes.
        run_on(2, &["parallel-3.scda", "restart"]);
        run_on(4, &["serial.scda", "restart"]);
    }
    assert!(files.iter().all(|file| *file == files[0]));
}
