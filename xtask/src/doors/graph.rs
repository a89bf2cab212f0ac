//! Dependencies between crates of the workspace. Dev-dependencies are not restricted.

use std::path::Path;

use serde_json::Value;

use crate::Result;

const CORE: &str = "crates/core";
const CODECS: &str = "crates/codecs";
const INTERCHANGE: &str = "crates/interchange";
const FACADE: &str = "crates/spile";

/// The dependency rules: crates, and the crates that these may depend on. `formats/*` stands for every
/// crate in that folder. Each crate matches exactly one row.
const RULES: &[(&[&str], &[&str])] = &[
    (&[CORE], &[]),
    (&[CODECS, INTERCHANGE], &[CORE]),
    (&["formats/*"], &[CORE, INTERCHANGE]),
    (&["bridges/*"], &[CORE, CODECS, INTERCHANGE]),
    (&["crates/ops"], &[CORE, INTERCHANGE]),
    (&["crates/plot", "crates/mpi", "crates/remote"], &[CORE]),
    (
        &[FACADE],
        &[
            CORE,
            INTERCHANGE,
            "formats/*",
            "bridges/*",
            "crates/ops",
            "crates/plot",
            "crates/mpi",
            "crates/remote",
        ],
    ),
    (&["crates/cli", "bindings/python"], &[FACADE, "crates/ops", "crates/plot"]),
    // The functions of two specifications: it builds without the other formats.
    (&["bindings/c"], &[CORE, "formats/scda", "formats/gsd"]),
    // Its build needs no crate of the workspace and takes seconds.
    (&["xtask"], &[]),
];

/// Exceptions: front ends that use the native API of a format.
const NATIVE: &[(&str, &str)] = &[
    ("crates/cli", "formats/taf"),
    ("crates/cli", "formats/scda"),
    ("crates/cli", "formats/sdf"),
    ("crates/cli", "formats/gsd"),
    ("crates/cli", "formats/iotk"),
    // `spile taf convert` has options for the sample type, which DIG files do not store.
    ("crates/cli", "formats/dig"),
    // The user describes raw samples with options.
    ("crates/cli", "formats/raw"),
    ("bindings/python", "formats/gsd"),
    // `spile.fortran` opens any Fortran unformatted file.
    ("bindings/python", "formats/iotk"),
    ("bindings/python", "formats/scda"),
    ("bindings/python", "formats/taf"),
    // The wheel contains the command line.
    ("bindings/python", "crates/cli"),
];

/// A crate of the workspace. Paths are relative to the workspace.
#[derive(Debug)]
pub(super) struct Crate {
    pub(super) folder: String,
    /// Root files of the library and the programs.
    pub(super) roots: Vec<String>,
    /// Folders of the workspace crates that it depends on, without dev-dependencies.
    pub(super) dependencies: Vec<String>,
}

impl Crate {
    /// Parses the output of `cargo metadata --no-deps`.
    pub(super) fn from_metadata(json: &str, root: &Path) -> Result<Vec<Self>> {
        let all: Value = serde_json::from_str(json).map_err(|e| format!("cargo metadata: {e}"))?;
        let inside = |path: &Value| {
            let path = Path::new(path.as_str()?).strip_prefix(root).ok()?;
            Some(path.to_string_lossy().replace('\\', "/"))
        };
        let one = |package: &Value| {
            let folder =
                inside(&package["manifest_path"])?.strip_suffix("/Cargo.toml")?.to_string();
            let roots = list(&package["targets"]).filter(|target| {
                list(&target["kind"]).any(|kind| {
                    kind != "test" && kind != "example" && kind != "bench" && kind != "custom-build"
                })
            });
            let dependencies = list(&package["dependencies"]).filter(|d| d["kind"] != "dev");
            Some(Self {
                roots: roots.filter_map(|target| inside(&target["src_path"])).collect(),
                dependencies: dependencies.filter_map(|d| inside(&d["path"])).collect(),
                folder,
            })
        };
        Ok(list(&all["packages"]).filter_map(one).collect())
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Whether one of `patterns` is `folder` or, with `*` at its end, a folder that `folder` is in.
fn matches(patterns: &[&str], folder: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(parent) => folder.starts_with(parent),
        None => *pattern == folder,
    })
}

/// Every dependency that the rules do not allow, and every format that the facade does not register.
pub(super) fn check(crates: &[Crate]) -> Vec<String> {
    let mut violations: Vec<String> = crates.iter().flat_map(check_crate).collect();
    let Some(facade) = crates.iter().find(|c| c.folder == FACADE) else {
        violations.push(format!("{FACADE}: missing; it contains the registry of formats"));
        return violations;
    };
    let formats = crates.iter().filter(|c| matches(&["formats/*", "bridges/*"], &c.folder));
    for format in formats.filter(|c| !facade.dependencies.contains(&c.folder)) {
        violations.push(format!(
            "{FACADE}/Cargo.toml: does not depend on {}; add it there and to formats.rs",
            format.folder
        ));
    }
    violations
}

fn check_crate(one: &Crate) -> Vec<String> {
    let Crate { folder, dependencies, .. } = one;
    let Some((_, allowed)) = RULES.iter().find(|(crates, _)| matches(crates, folder)) else {
        return vec![format!("{folder}: no dependency rule; add it to xtask/src/doors/graph.rs")];
    };
    let permitted = |dependency: &str| {
        matches(allowed, dependency) || NATIVE.contains(&(folder.as_str(), dependency))
    };
    let names = if allowed.is_empty() { "none".into() } else { allowed.join(", ") };
    let forbidden = dependencies.iter().filter(|dependency| !permitted(dependency));
    forbidden
        .map(|d| format!("{folder}/Cargo.toml: depends on {d}; allowed dependencies: {names}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: [(&str, &[&str]); 10] = [
        (CORE, &[]),
        (CODECS, &[CORE]),
        (INTERCHANGE, &[CORE]),
        ("formats/taf", &[CORE]),
        ("bridges/npy", &[CORE, CODECS, INTERCHANGE]),
        ("crates/ops", &[CORE, INTERCHANGE]),
        ("crates/plot", &[CORE]),
        (FACADE, &[CORE, "crates/ops", "formats/taf", "bridges/npy"]),
        ("crates/cli", &[FACADE, "crates/ops", "formats/taf"]),
        ("xtask", &[]),
    ];

    /// Violations in the valid workspace with the dependencies of one crate replaced.
    fn with(folder: &str, dependencies: &[&str]) -> Vec<String> {
        let mut all: Vec<(&str, &[&str])> = VALID.to_vec();
        all.retain(|(name, _)| *name != folder);
        all.push((folder, dependencies));
        let one = |(folder, dependencies): &(&str, &[&str])| Crate {
            folder: (*folder).into(),
            roots: Vec::new(),
            dependencies: dependencies.iter().map(ToString::to_string).collect(),
        };
        check(&all.iter().map(one).collect::<Vec<_>>())
    }

    #[test]
    fn a_valid_workspace_has_no_violations() {
        assert_eq!(with(CORE, &[]), [""; 0]);
    }

    #[test]
    fn every_forbidden_dependency_is_reported_once() {
        let facade = [CORE, "formats/taf", "bridges/npy"];
        let cases: [(&str, &[&str], &str); 15] = [
            (CORE, &["crates/ops"], "allowed dependencies: none"),
            (CODECS, &[INTERCHANGE], "allowed dependencies: crates/core"),
            ("formats/taf", &[CODECS], "depends on crates/codecs"),
            (INTERCHANGE, &["formats/taf"], "allowed dependencies: crates/core"),
            ("formats/taf", &[CORE, "bridges/npy"], "depends on bridges/npy"),
            ("bridges/npy", &["formats/taf"], "depends on formats/taf"),
            ("crates/ops", &["formats/taf"], "depends on formats/taf"),
            ("crates/plot", &["crates/ops"], "allowed dependencies: crates/core"),
            ("crates/mpi", &[INTERCHANGE], "allowed dependencies: crates/core"),
            (FACADE, &[CORE, "formats/taf"], "does not depend on bridges/npy"),
            ("crates/cli", &["bridges/npy"], "depends on bridges/npy"),
            ("bindings/c", &[CORE, "formats/scda", FACADE], "depends on crates/spile"),
            ("bindings/python", &[CORE], "depends on crates/core"),
            ("xtask", &[FACADE], "allowed dependencies: none"),
            ("crates/new", &[], "no dependency rule"),
        ];
        for (folder, dependencies, expected) in cases {
            let violations = with(folder, dependencies);
            assert_eq!(violations.len(), 1, "{folder}: {violations:?}");
            assert!(violations[0].contains(expected), "{violations:?}");
        }
        assert_eq!(with(FACADE, &[&facade[..], &["crates/cli"]].concat()).len(), 1);
    }

    #[test]
    fn metadata_gives_folders_roots_and_dependencies_without_those_of_tests() {
        let json = r#"{"packages": [{
            "manifest_path": "/r/formats/taf/Cargo.toml",
            "targets": [{"kind": ["lib"], "src_path": "/r/formats/taf/src/lib.rs"},
                        {"kind": ["test"], "src_path": "/r/formats/taf/tests/t.rs"}],
            "dependencies": [{"kind": null, "path": "/r/crates/core"},
                             {"kind": "build", "path": "/r/crates/ops"},
                             {"kind": "dev", "path": "/r/crates/plot"},
                             {"kind": null, "path": null}]}]}"#;
        let crates = Crate::from_metadata(json, Path::new("/r")).unwrap();
        assert_eq!(crates[0].folder, "formats/taf");
        assert_eq!(crates[0].roots, ["formats/taf/src/lib.rs"]);
        assert_eq!(crates[0].dependencies, ["crates/core", "crates/ops"]);
    }
}
