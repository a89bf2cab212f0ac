//! `cargo xtask release`: writes a new version into the project, and checks that it can be published.

use std::fs;

use crate::shell::{captured, cargo, output, program, root};
use crate::step::{Outcome, Steps};
use crate::{Result, tools};

/// Files with the version, and what is before and after it.
const PLACES: [(&str, &str, &str); 6] = [
    ("Cargo.toml", "\nversion = \"", "\""),
    ("packaging/homebrew/spile.rb", "/spile-", ".tar.gz"),
    ("packaging/conda/recipe.yaml", "\n  version: ", "\n"),
    ("packaging/spack/package.py", "/spile-", ".tar.gz"),
    ("packaging/spack/package.py", "version(\"", "\""),
    ("packaging/easybuild/spile.eb", "\nversion = '", "'"),
];

/// `cargo xtask release [VERSION | --check]`.
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    match args {
        [] | ["--check"] => {}
        [version] => {
            parse(version).ok_or_else(|| format!("`{version}` is not a version X.Y.Z"))?;
            write(version)?;
        }
        _ => return Err("expected a version X.Y.Z or --check".into()),
    }
    let mut steps = Steps::default();
    steps.run("version", || Outcome::from_check(versions()));
    steps.run("changelog", || Outcome::from_check(changelog()));
    steps.run("licences", licences);
    steps.run("crates", || Outcome::from_check(crates()));
    println!("\n{}", steps.summary());
    Ok(!steps.failed())
}

fn parse(version: &str) -> Option<[u64; 3]> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    let parsed = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(parsed)
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).map_err(|e| format!("{path}: {e}"))
}

/// The version at a place of [`PLACES`], and the text around it.
fn split<'a>(text: &'a str, before: &str, after: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let start = text.find(before)? + before.len();
    let end = start + text[start..].find(after)?;
    Some((&text[..start], &text[start..end], &text[end..]))
}

/// Writes the version into all files, and dates the changelog.
fn write(version: &str) -> Result<()> {
    let own = current()?;
    for (path, before, after) in PLACES {
        let text = read(path)?;
        let (head, _, tail) = split(&text, before, after).ok_or(format!("{path}: no version"))?;
        let mut text = format!("{head}{version}{tail}");
        if path == "Cargo.toml" {
            // The dependencies of the workspace on its own crates.
            text = text.replace(
                &format!(", version = \"{own}\" }}"),
                &format!(", version = \"{version}\" }}"),
            );
        }
        put(path, &text)?;
    }
    let log = read("CHANGELOG.md")?;
    let date = output(program("date").args(["--utc", "+%Y-%m-%d"]))?;
    let title = format!("## Unreleased\n\n## {version} ({})\n", date.trim());
    put("CHANGELOG.md", &log.replacen("## Unreleased\n", &title, 1))?;
    // The lock file has the versions, too.
    output(&mut cargo(&["update", "--workspace", "--quiet"]))?;
    output(&mut cargo(&["update", "--workspace", "--quiet", "--manifest-path", "fuzz/Cargo.toml"]))
        .map(drop)
}

fn put(path: &str, text: &str) -> Result<()> {
    fs::write(root().join(path), text).map_err(|e| format!("{path}: {e}"))
}

/// The version of the workspace as it is written now.
fn current() -> Result<String> {
    let (path, before, after) = PLACES[0];
    let text = read(path)?;
    let (_, version, _) = split(&text, before, after).ok_or("Cargo.toml: no version")?;
    Ok(version.into())
}

/// Whether all files have the same version, which is later than that of the last tag.
fn versions() -> Result<bool> {
    let version = current()?;
    let mut good = true;
    for (path, before, after) in PLACES {
        let text = read(path)?;
        let found = split(&text, before, after).map(|(_, found, _)| found);
        if found != Some(&version) {
            println!("{path}: expected version {version}, found {}", found.unwrap_or("none"));
            good = false;
        }
    }
    let tags = output(program("git").args(["tag", "--list", "v*"]))?;
    let last = tags.lines().filter_map(|tag| parse(tag.strip_prefix('v')?)).max();
    if parse(&version).is_none_or(|own| last.is_some_and(|last| own < last)) {
        println!("version {version} is not later than the last tag");
        good = false;
    }
    Ok(good)
}

/// Whether the changelog has a section for the version, or one of changes that are not released.
fn changelog() -> Result<bool> {
    let (log, version) = (read("CHANGELOG.md")?, current()?);
    let mut titles = log.lines().filter_map(|line| line.strip_prefix("## "));
    let found = titles.any(|title| title == "Unreleased" || title.starts_with(&version));
    if !found {
        println!("CHANGELOG.md: no section \"{version}\" or \"Unreleased\"");
    }
    Ok(found)
}

/// Licences and sources of all dependencies.
fn licences() -> Outcome {
    let deny = match tools::cargo_program("cargo-deny") {
        Ok(path) => path,
        Err(why) => return Outcome::Skipped(why),
    };
    let mut command = program(deny);
    command.args(["--all-features", "check", "licenses", "bans", "sources"]);
    Outcome::from_check(crate::shell::succeeds(&mut command))
}

/// Whether every crate can be packed: metadata, licence, and versions of all dependencies.
fn crates() -> Result<bool> {
    let mut command =
        cargo(&["publish", "--workspace", "--dry-run", "--no-verify", "--allow-dirty"]);
    let (success, text) = captured(&mut command)?;
    let warnings = text.lines().filter(|line| line.starts_with("warning: manifest has no"));
    let bad: Vec<&str> = warnings.collect();
    let packed = text.lines().filter(|line| line.trim_start().starts_with("Packaged ")).count();
    println!("{packed} crates packed");
    if !success || !bad.is_empty() {
        println!("{text}");
    }
    Ok(success && bad.is_empty() && packed > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_have_the_same_version() {
        assert!(versions().unwrap());
        assert!(changelog().unwrap());
        for (path, ..) in PLACES {
            assert!(root().join(path).is_file(), "{path}");
        }
    }

    #[test]
    fn versions_have_three_numbers() {
        assert_eq!(parse("1.20.3"), Some([1, 20, 3]));
        for wrong in ["1.2", "1.2.3.4", "v1.2.3", "1.2.x"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
