//! Which crate of the workspace may depend on which. Dependencies of tests are free.

use std::path::Path;

use serde_json::Value;

use crate::Result;

/// Formats whose own words are the point of a front end. Everything else goes through `spile`.
const NATIVE: &[(&str, &str)] = &[
    ("crates/cli", "formats/taf"),
    ("crates/cli", "formats/scda"),
    ("crates/cli", "formats/sdf"),
    ("crates/cli", "formats/gsd"),
    ("crates/cli", "formats/iotk"),
    // `spile taf convert`: how samples are stored that the file itself does not tell.
    ("crates/cli", "formats/dig"),
    ("bindings/c", "formats/scda"),
    ("bindings/c", "formats/gsd"),
    ("bindings/python", "formats/gsd"),
    ("bindings/python", "formats/scda"),
    ("bindings/python", "formats/taf"),
    // The wheel carries the program.
    ("bindings/python", "crates/cli"),
];

/// A crate of the workspace: its folder, the roots of its library and programs, and the folders
/// of the crates of the workspace it depends on.
#[derive(Debug)]
pub(super) struct Crate {
    pub(super) folder: String,
    pub(super) roots: Vec<String>,
    pub(super) sees: Vec<String>,
}

type Rule = fn(&[Crate]) -> Vec<String>;

/// Every rule about dependencies.
pub(super) const RULES: [Rule; 6] = [
    core_sees_nothing,
    formats_see_core,
    workers_see_core,
    facade_knows_every_format,
    front_ends_see_the_facade,
    xtask_sees_nothing,
];

impl Crate {
    /// The crates in the answer of `cargo metadata --no-deps`.
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
            let sees = list(&package["dependencies"]).filter(|d| d["kind"] != "dev");
            Some(Self {
                roots: roots.filter_map(|target| inside(&target["src_path"])).collect(),
                sees: sees.filter_map(|dependency| inside(&dependency["path"])).collect(),
                folder,
            })
        };
        Ok(list(&all["packages"]).filter_map(one).collect())
    }

    /// The crate is a format or a bridge.
    fn is_format(&self) -> bool {
        is_format(&self.folder)
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn is_format(folder: &str) -> bool {
    folder.starts_with("formats/") || folder.starts_with("bridges/")
}

/// What crates that are `whose` see beyond what is `allowed`.
fn beyond(
    crates: &[Crate],
    whose: impl Fn(&Crate) -> bool,
    allowed: impl Fn(&Crate, &str) -> bool,
    way_out: &str,
) -> Vec<String> {
    let mut broken = Vec::new();
    for one in crates.iter().filter(|one| whose(one)) {
        for seen in one.sees.iter().filter(|seen| !allowed(one, seen)) {
            broken.push(format!("{}/Cargo.toml: depends on {seen}; {way_out}", one.folder));
        }
    }
    broken
}

/// Door 1.
fn core_sees_nothing(crates: &[Crate]) -> Vec<String> {
    let way_out = "core is the ground floor: move what it needs into core";
    beyond(crates, |c| c.folder == "crates/core", |_, _| false, way_out)
}

/// Door 2.
fn formats_see_core(crates: &[Crate]) -> Vec<String> {
    let way_out = "formats and bridges see only core: move what they share into core";
    beyond(crates, Crate::is_format, |_, seen| seen == "crates/core", way_out)
}

/// Door 3.
fn workers_see_core(crates: &[Crate]) -> Vec<String> {
    let workers = ["crates/ops", "crates/plot", "crates/mpi"];
    let way_out = "ops, plot and mpi see only core: take a `Tree` or a trait of core instead";
    let whose = |c: &Crate| workers.contains(&c.folder.as_str());
    beyond(crates, whose, |_, seen| seen == "crates/core", way_out)
}

/// Doors 4 and 9.
fn facade_knows_every_format(crates: &[Crate]) -> Vec<String> {
    let Some(facade) = crates.iter().find(|c| c.folder == "crates/spile") else {
        return vec!["crates/spile: the facade is missing; it is the registry of formats".into()];
    };
    let allowed =
        |_: &Crate, seen: &str| is_format(seen) || seen == "crates/core" || seen == "crates/ops";
    let way_out =
        "the facade joins core, ops and the formats: front ends see it, not the other way";
    let mut broken = beyond(std::slice::from_ref(facade), |_| true, allowed, way_out);
    for format in crates.iter().filter(|c| c.is_format() && !facade.sees.contains(&c.folder)) {
        broken.push(format!(
            "crates/spile/Cargo.toml: does not name {}; add it there and to formats.rs",
            format.folder
        ));
    }
    broken
}

/// Door 5.
fn front_ends_see_the_facade(crates: &[Crate]) -> Vec<String> {
    let whose = |c: &Crate| {
        matches!(c.folder.as_str(), "crates/cli" | "crates/serve")
            || c.folder.starts_with("bindings/")
    };
    let allowed = |c: &Crate, seen: &str| {
        matches!(seen, "crates/spile" | "crates/ops" | "crates/plot")
            || c.folder == "crates/cli" && matches!(seen, "crates/serve" | "crates/mpi")
            || NATIVE.contains(&(c.folder.as_str(), seen))
    };
    let way_out = "front ends see spile, ops and plot: use what `spile` re-exports (or, where a \
                   format's own API is the point, add the pair to NATIVE in xtask/src/doors/graph.rs)";
    beyond(crates, whose, allowed, way_out)
}

/// The chores build in seconds because they need nothing of the house.
fn xtask_sees_nothing(crates: &[Crate]) -> Vec<String> {
    let way_out = "xtask builds without the workspace: run the program `spile` instead";
    beyond(crates, |c| c.folder == "xtask", |_, _| false, way_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn house(doors: &[(&str, &[&str])]) -> Vec<Crate> {
        let one = |(folder, sees): &(&str, &[&str])| Crate {
            folder: (*folder).into(),
            roots: Vec::new(),
            sees: sees.iter().map(ToString::to_string).collect(),
        };
        doors.iter().map(one).collect()
    }

    const SOUND: [(&str, &[&str]); 7] = [
        ("crates/core", &[]),
        ("formats/taf", &["crates/core"]),
        ("bridges/npy", &["crates/core"]),
        ("crates/ops", &["crates/core"]),
        ("crates/spile", &["crates/core", "crates/ops", "formats/taf", "bridges/npy"]),
        ("crates/cli", &["crates/spile", "crates/ops", "formats/taf"]),
        ("xtask", &[]),
    ];

    /// Messages about the sound house with one crate's doors replaced.
    fn with(folder: &str, sees: &[&str]) -> Vec<String> {
        let mut doors: Vec<(&str, &[&str])> = SOUND.to_vec();
        doors.retain(|(name, _)| *name != folder);
        doors.push((folder, sees));
        RULES.iter().flat_map(|rule| rule(&house(&doors))).collect()
    }

    #[test]
    fn a_sound_house_has_nothing_to_mend() {
        assert_eq!(with("crates/core", &[]), [""; 0]);
    }

    #[test]
    fn every_wrong_door_is_found_by_its_rule_alone() {
        let facade = ["crates/core", "formats/taf", "bridges/npy"];
        let cases: [(&str, &[&str], &str); 9] = [
            ("crates/core", &["crates/ops"], "ground floor"),
            ("formats/taf", &["crates/core", "bridges/npy"], "only core"),
            ("bridges/npy", &["formats/taf"], "only core"),
            ("crates/ops", &["formats/taf"], "only core"),
            ("crates/plot", &["crates/ops"], "only core"),
            ("crates/spile", &["crates/core", "formats/taf"], "does not name bridges/npy"),
            ("crates/cli", &["bridges/npy"], "NATIVE"),
            ("bindings/c", &["crates/core"], "NATIVE"),
            ("xtask", &["crates/spile"], "without the workspace"),
        ];
        for (folder, sees, words) in cases {
            let broken = with(folder, sees);
            assert_eq!(broken.len(), 1, "{folder}: {broken:?}");
            assert!(broken[0].contains(words), "{broken:?}");
        }
        assert_eq!(with("crates/spile", &[&facade[..], &["crates/cli"]].concat()).len(), 1);
    }

    #[test]
    fn metadata_gives_folders_roots_and_what_is_not_for_tests() {
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
        assert_eq!(crates[0].sees, ["crates/core", "crates/ops"]);
    }
}
