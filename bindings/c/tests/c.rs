//! The installed C interface: found by pkg-config, compiled with cc, mpicc and mpifort, run with `mpirun`.

#[path = "../../../crates/core/tests/support/machine.rs"]
mod machine;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use machine::{mpi_libraries, mpirun_of, present, skipped};
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
    assert_eq!(written[0].len(), 7);

    let libraries = mpi_libraries();
    if libraries.is_empty() {
        return skipped("the C interface with MPI: no mpicc or mpirun");
    }
    let arguments = [&["-DWITH_MPI"][..], &linked[0].1].concat();
    for library in libraries {
        let (compiler, name) = (format!("mpicc{library}"), format!("parallel{library}"));
        let program = compile(&compiler, "scda.c", prefix.path(), &arguments, &name);
        // MPICH is slow with more ranks than processors.
        let all: &[u32] = if library.is_empty() { &[1, 2, 3, 4] } else { &[1, 3] };
        for ranks in all.iter().copied() {
            let folder = tempfile::tempdir().unwrap();
            assert_eq!(run(mpirun_of(library, ranks).arg(&program).arg(folder.path())), "ok\n");
            let same = contents(folder.path()) == written[0];
            assert!(same, "{ranks} ranks of mpirun{library} wrote other bytes");
        }
    }
}

#[test]
fn the_fortran_module_writes_the_bytes_of_c() {
    if !present("cc") || !present("gfortran") {
        return skipped("the Fortran module: no gfortran or C compiler");
    }
    let prefix = install();
    let (lib, share) = (prefix.path().join("lib"), prefix.path().join("share/spile"));
    let arguments =
        [format!("-L{}", lib.display()), "-lspile".into(), format!("-Wl,-rpath,{}", lib.display())];
    let borrowed: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let folder = tempfile::tempdir().unwrap();
    let program = compile("cc", "scda.c", prefix.path(), &borrowed, "c");
    run(Command::new(program).arg(folder.path()));
    let expected = fs::read(folder.path().join("fields-0")).unwrap();
    let build = |compiler: &str, name: &str, more: &[String]| {
        // Modules are written to the working folder.
        let modules = tempfile::tempdir().unwrap();
        let program = prefix.path().join(name);
        let mut command = Command::new(compiler);
        command.args(["-std=f2018", "-Wall", "-Wno-maybe-uninitialized", "-cpp", "-o"]);
        command.arg(&program).args(more.iter().filter(|arg| arg.starts_with("-D")));
        command.arg(share.join("scda.f90")).args(more.iter().filter(|arg| !arg.starts_with("-D")));
        command.arg(Path::new(HERE).join("tests/scda.F90")).args(&arguments);
        run(command.current_dir(modules.path()));
        program
    };
    let check = |command: &mut Command| {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(run(command.arg(folder.path())).trim(), "ok");
        assert!(fs::read(folder.path().join("fields")).unwrap() == expected);
    };
    check(&mut Command::new(build("gfortran", "alone", &[])));
    for library in mpi_libraries() {
        let compiler = format!("mpifort{library}");
        if !present(&compiler) {
            skipped(&format!("the Fortran module: no {compiler}"));
            continue;
        }
        let object = prefix.path().join(format!("scda_mpi{library}.o"));
        let mut command = Command::new(format!("mpicc{library}"));
        command.arg(format!("-I{}", prefix.path().join("include").display()));
        run(command.args(["-c", "-o"]).arg(&object).arg(share.join("scda_mpi.c")));
        let object = object.display().to_string();
        let handles = share.join("scda_f08.f90").display().to_string();
        for more in [
            vec!["-DWITH_MPI".into(), object.clone()],
            vec!["-DWITH_F08".into(), handles, object.clone()],
        ] {
            let program = build(&compiler, &format!("{}{library}", &more[0][2..]), &more);
            for ranks in [1, 3] {
                check(mpirun_of(library, ranks).arg(&program));
            }
        }
    }
}

#[test]
fn the_example_of_the_readme_is_valid_c_and_cxx() {
    if !present("cc") || !present("c++") {
        return skipped("the C interface in C++: no C++ compiler");
    }
    let prefix = install();
    let readme = fs::read_to_string(Path::new(HERE).join("README.md")).unwrap();
    let example = readme.split("```c\n").nth(1).unwrap().split("```").next().unwrap();
    let (includes, body): (Vec<&str>, Vec<&str>) =
        example.lines().partition(|line| line.starts_with("#include"));
    let program = |include: &str, body: &str| {
        format!(
            "{}\n{include}\nstatic double field[1000];\nint main (void) {{\n{body}\nreturn err; }}\n",
            includes.join("\n")
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let serial = program("", &body.join("\n"));
    let parallel = format!("MPI_Init (0, 0);\n{}\nMPI_Finalize ();", body.join("\n"));
    let parallel = program("#include <scda_mpi.h>", &parallel);
    let parallel = parallel.replace("(NULL,", "(scda_comm_mpi (MPI_COMM_WORLD),");
    assert_ne!(serial.matches("scda_comm_mpi").count(), parallel.matches("scda_comm_mpi").count());
    let include = format!("-I{}", prefix.path().join("include").display());
    let lib = prefix.path().join("lib").display().to_string();
    let compile = |compiler: &str, name: &str, text: &str, flags: &[&str]| {
        let source = folder.path().join(name);
        fs::write(&source, text).unwrap();
        let mut command = Command::new(compiler);
        command.args(flags).args(["-pedantic-errors", "-Wall", "-Wextra", &include]).arg(&source);
        command.args([&format!("-L{lib}"), &format!("-Wl,-rpath,{lib}"), "-o"]);
        run(command.arg(source.with_extension("")).arg("-lspile"));
        source.with_extension("")
    };
    for (compiler, name, flags) in [
        ("cc", "c.c", &["-std=c99", "-Werror"][..]),
        ("c++", "cxx.cpp", &["-std=c++17", "-Werror"]),
    ] {
        let program = compile(compiler, name, &serial, flags);
        run(Command::new(program).current_dir(folder.path()));
        assert!(fs::remove_file(folder.path().join("state.scda")).is_ok());
    }
    for library in mpi_libraries() {
        let program = compile(&format!("mpicxx{library}"), "mpi.cpp", &parallel, &["-std=c++17"]);
        run(mpirun_of(library, 1).arg(program).current_dir(folder.path()));
        assert!(fs::remove_file(folder.path().join("state.scda")).is_ok());
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
    let make = |target: &str, library: &str| {
        let mut make = Command::new("make");
        make.env("PKG_CONFIG_PATH", prefix.path().join("lib/pkgconfig"));
        make.args([format!("MPICC=mpicc{library}"), format!("MPIFORT=mpifort{library}")]);
        let flags = "CFLAGS=-O1 -Wall -Wextra -Werror";
        run(make.args(["-s", "-B", target, flags]).current_dir(&folder))
    };
    let mut files = Vec::new();
    let mut check = |file: &str| files.push(fs::read(folder.join(file)).unwrap());
    make("trajectory", "");
    let output = run(Command::new("./trajectory").arg("run.gsd").current_dir(&folder));
    assert_eq!(output.lines().next(), Some("10 frames, the last at step 9000"));
    make("serial", "");
    run(Command::new("./serial").arg("serial.scda").current_dir(&folder));
    check("serial.scda");
    for library in mpi_libraries() {
        make("parallel", library);
        let mut programs = vec!["parallel"];
        if present("gfortran") && present(&format!("mpifort{library}")) {
            make("fortran", library);
            programs.push("fortran");
        } else {
            skipped(&format!("the Fortran module: no mpifort{library}"));
        }
        for program in programs {
            let run_on = |ranks, arguments: &[&str]| {
                let program = folder.join(program);
                run(mpirun_of(library, ranks).arg(program).args(arguments).current_dir(&folder))
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
    }
    assert!(files.iter().all(|file| *file == files[0]));
}
