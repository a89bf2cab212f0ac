//! `cargo xtask book`: the documentation as a site in `target/book`.
//!
//! Its pages are those of the repository, at the places of [`CHAPTERS`], with a reference of the commands from their help
//! texts and one of the Python package from its docstrings. Links between pages are adapted and checked. The site is
//! made by mdBook.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::shell::{files, output, program, root, succeeds, target};
use crate::{Result, python, test, tools};

/// Title and pages of each part.
const CHAPTERS: [(&str, &[(&str, &str)]); 5] = [
    (
        "Quick start",
        &[
            ("EPOCH and Lare", "docs/quick-start/epoch.md"),
            ("HOOMD-blue", "docs/quick-start/hoomd.md"),
            ("Quantum ESPRESSO", "docs/quick-start/quantum-espresso.md"),
            ("Laboratory", "docs/quick-start/laboratory.md"),
            ("Checkpoints of parallel programs", "docs/quick-start/checkpoints.md"),
        ],
    ),
    (
        "Guides",
        &[
            ("Sample files", "docs/samples.md"),
            ("Gallery of plots", "docs/gallery.md"),
            ("Tables", "docs/tables.md"),
            ("Metadata", "docs/metadata.md"),
            ("SDF in Python", "docs/python/sdf.md"),
            ("xarray", "docs/python/xarray.md"),
            ("GSD in Python", "docs/python/gsd.md"),
            ("IOTK in Python", "docs/python/iotk.md"),
            ("TAF in Python", "docs/python/taf.md"),
            ("scda in Python", "docs/python/scda.md"),
        ],
    ),
    (
        "Reference",
        &[
            ("Python package", "bindings/python/README.md"),
            ("C and Fortran", "bindings/c/README.md"),
            ("JSON", "docs/json.md"),
            ("Communication of parallel files", "docs/scaling.md"),
        ],
    ),
    ("Formats", &[]),
    (
        "Project",
        &[
            ("Performance", "docs/performance.md"),
            ("Correctness", "docs/correctness.md"),
            ("Failures, kills and signals", "docs/faults.md"),
            ("Security", "SECURITY.md"),
            ("Architecture", "docs/ARCHITECTURE.md"),
            ("Working on spile", "CONTRIBUTING.md"),
            ("Releases", "docs/releases.md"),
            ("Changelog", "CHANGELOG.md"),
        ],
    ),
];

/// Page with the help texts of all commands, and page with the docstrings.
const COMMANDS: &str = "reference/commands.md";
const PACKAGE: &str = "reference/python.md";

/// Builds the site; returns whether mdBook succeeded.
pub(crate) fn run() -> Result<bool> {
    let pages = pages()?;
    let broken = broken_links(&pages);
    for link in &broken {
        println!("{link}");
    }
    if !broken.is_empty() {
        return Ok(false);
    }
    let source = target().join("book/src");
    if source.exists() {
        fs::remove_dir_all(&source).map_err(|e| failed(&source, &e))?;
    }
    for (from, to) in &pages {
        let text = read(from)?;
        write(&source.join(to), &adapted(&text, from, to, &pages))?;
    }
    for image in images() {
        let to = source.join(image.strip_prefix("docs").unwrap_or(&image));
        let folder = to.parent().unwrap_or(&source);
        fs::create_dir_all(folder).map_err(|e| failed(folder, &e))?;
        fs::copy(root().join(&image), &to).map_err(|e| failed(&to, &e))?;
    }
    write(&source.join(COMMANDS), &commands()?)?;
    write(&source.join(PACKAGE), &package()?)?;
    write(&source.join("SUMMARY.md"), &summary(&pages)?)?;
    let settings = "[book]\ntitle = \"spile\"\nlanguage = \"en\"\n\n[output.html]\n\
                    default-theme = \"light\"\npreferred-dark-theme = \"navy\"\n";
    write(&target().join("book/book.toml"), settings)?;
    let mdbook = tools::cargo_program("mdbook")?;
    let built = succeeds(program(mdbook).arg("build").arg(target().join("book")))?;
    println!("{}", target().join("book/book/index.html").display());
    Ok(built)
}

/// The step of `cargo xtask test`: all links between pages lead to something.
pub(crate) fn check() -> Result<bool> {
    let broken = broken_links(&pages()?);
    for link in &broken {
        println!("{link}");
    }
    Ok(broken.is_empty())
}

/// The pages by their paths in the repository, with their paths in the book.
fn pages() -> Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::from([("README.md".to_string(), "index.md".to_string())]);
    for (_, part) in CHAPTERS {
        for (_, path) in part {
            let place = match *path {
                "bindings/python/README.md" => "python/package.md".to_string(),
                "bindings/c/README.md" => "c.md".to_string(),
                path => path.trim_start_matches("docs/").to_lowercase(),
            };
            pages.insert((*path).to_string(), place);
        }
    }
    for folder in ["formats", "bridges"] {
        let path = root().join(folder);
        let entries = fs::read_dir(&path).map_err(|e| failed(&path, &e))?;
        for name in entries.flatten().map(|entry| entry.file_name()) {
            let name = name.to_string_lossy();
            let page = format!("{folder}/{name}/FORMAT.md");
            if root().join(&page).is_file() {
                pages.insert(page, format!("formats/{name}.md"));
            }
        }
    }
    Ok(pages)
}

/// The contents of the book.
fn summary(pages: &BTreeMap<String, String>) -> Result<String> {
    let mut text = "# Summary\n\n[spile](index.md)\n".to_string();
    for (title, part) in CHAPTERS {
        let _ = writeln!(text, "\n# {title}\n");
        for (name, path) in part {
            let _ = writeln!(text, "- [{name}]({})", pages[*path]);
        }
        match title {
            "Reference" => {
                let _ =
                    writeln!(text, "- [Commands]({COMMANDS})\n- [Functions of Python]({PACKAGE})");
            }
            "Formats" => {
                for (from, to) in pages.iter().filter(|(from, _)| from.ends_with("/FORMAT.md")) {
                    let page = read(from)?;
                    let name = page.lines().find_map(|line| line.strip_prefix("# "));
                    let _ = writeln!(text, "- [{}]({to})", name.unwrap_or(from));
                }
            }
            _ => {}
        }
    }
    Ok(text)
}

/// A link in a page: its target, and the range of it in the text.
struct Link<'a> {
    target: &'a str,
    start: usize,
}

/// The links to files, outside of code.
fn links(text: &str) -> Vec<Link<'_>> {
    let mut found = Vec::new();
    let (mut at, mut in_code) = (0, false);
    for line in text.split_inclusive('\n') {
        in_code ^= line.trim_start().starts_with("```");
        let mut from = 0;
        while let Some(start) = line[from..].find("](").filter(|_| !in_code) {
            let start = from + start + 2;
            let Some(len) = line[start..].find(')') else { break };
            let target = &line[start..start + len];
            let in_quotes = line[..start].matches('`').count() % 2 == 1;
            if !in_quotes && !target.contains("://") && !target.contains(' ') {
                found.push(Link { target, start: at + start });
            }
            from = start + len;
        }
        at += line.len();
    }
    found
}

/// The path in the repository that a link of the page `from` leads to, and its anchor.
fn resolved(from: &str, link: &str) -> (String, Option<String>) {
    let (path, anchor) = match link.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_string())),
        None => (link, None),
    };
    if path.is_empty() {
        return (from.to_string(), anchor);
    }
    let mut parts: Vec<String> = Vec::new();
    let folder = Path::new(from).parent().unwrap_or(Path::new(""));
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    (parts.join("/"), anchor)
}

/// Links to files or headings that do not exist.
fn broken_links(pages: &BTreeMap<String, String>) -> Vec<String> {
    let texts: HashMap<&str, String> =
        pages.keys().filter_map(|page| Some((page.as_str(), read(page).ok()?))).collect();
    let mut broken = Vec::new();
    for page in pages.keys() {
        let Some(text) = texts.get(page.as_str()) else {
            broken.push(format!("{page}: no such page"));
            continue;
        };
        for link in links(text) {
            let (path, anchor) = resolved(page, link.target);
            let exists = root().join(&path).exists();
            let heading = |anchor: &str| {
                texts.get(path.as_str()).is_none_or(|text| headings(text).any(|h| h == anchor))
            };
            if !exists || anchor.as_deref().is_some_and(|anchor| !heading(anchor)) {
                let line = text[..link.start].matches('\n').count() + 1;
                broken.push(format!("{page}:{line}: broken link: {}", link.target));
            }
        }
    }
    broken
}

/// The anchors of the headings of a page.
fn headings(text: &str) -> impl Iterator<Item = String> + '_ {
    let titles = text.lines().filter(|line| line.starts_with('#'));
    titles.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// The text of a page with links to the places of the book. Links to files that are not in it are plain text.
fn adapted(text: &str, from: &str, to: &str, pages: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    let up = "../".repeat(to.matches('/').count());
    for link in links(text) {
        let (path, anchor) = resolved(from, link.target);
        let anchor = anchor.map_or(String::new(), |anchor| format!("#{anchor}"));
        let place = match pages.get(&path) {
            Some(place) => format!("{up}{place}{anchor}"),
            None if path.starts_with("docs/images/") => format!("{up}{}", &path[5..]),
            None => format!("{up}index.md"),
        };
        out += &text[done..link.start];
        out += &place;
        done = link.start + link.target.len();
    }
    out + &text[done..]
}

/// Paths of the images of the documentation in the repository.
fn images() -> Vec<PathBuf> {
    let folders = ["docs/images", "docs/images/gallery"];
    let all = folders.iter().flat_map(|folder| {
        ["png", "svg"].into_iter().flat_map(move |kind| files(&root().join(folder), kind))
    });
    all.filter_map(|path| Some(path.strip_prefix(root()).ok()?.to_path_buf())).collect()
}

/// The help texts of all commands.
fn commands() -> Result<String> {
    let spile = test::spile()?;
    let help = |words: &[&str]| output(program(&spile).env("COLUMNS", "100").args(words));
    let all = help(&["--help"])?;
    let mut text = format!("# Commands\n\n```text\n{}\n```\n", all.trim_end());
    for verb in listed(&all) {
        let own = help(&[&verb, "--help"])?;
        let _ = writeln!(text, "\n## {verb}\n\n```text\n{}\n```", own.trim_end());
        for inner in listed(&own) {
            let own = help(&[&verb, &inner, "--help"])?;
            let _ = writeln!(text, "\n### {verb} {inner}\n\n```text\n{}\n```", own.trim_end());
        }
    }
    Ok(text)
}

/// The names in the list of commands of a help text.
fn listed(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| line.starts_with("  ")).filter_map(|line| {
        let name = line.get(2..)?.split(' ').next()?;
        (!name.is_empty() && name != "help").then(|| name.to_string())
    });
    names.collect()
}

/// Signatures and docstrings of the public names of the Python package.
fn package() -> Result<String> {
    let module = test::built_python()?;
    let python = tools::python(&python::interop_packages())?;
    let folder = target().join("book/package");
    python::stage(&module, &folder)?;
    let script = root().join("bindings/python/tests/reference.py");
    output(program(&python).env("PYTHONPATH", &folder).arg(script))
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).map_err(|e| format!("{path}: {e}"))
}

fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|e| failed(folder, &e))?;
    fs::write(path, text).map_err(|e| failed(path, &e))
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code_and_resolved() {
        let text =
            "see [a](../x.md#top) and `[b](c)`\n```\n[d](e)\n```\n[web](https://x.y) [f](g.md)\n";
        let found: Vec<&str> = links(text).iter().map(|link| link.target).collect();
        assert_eq!(found, ["../x.md#top", "g.md"]);
        assert_eq!(
            resolved("docs/p/q.md", "../x.md#top"),
            ("docs/x.md".into(), Some("top".into()))
        );
        assert_eq!(resolved("README.md", "#top"), ("README.md".into(), Some("top".into())));
    }

    #[test]
    fn links_lead_to_pages_of_the_book() {
        let pages = [("docs/a.md", "a.md"), ("bindings/c/README.md", "c.md")];
        let pages = pages.map(|(from, to)| (from.to_string(), to.to_string())).into();
        let text = "[c](../bindings/c/README.md#x) ![i](images/i.png) [t](../tests/t.py)";
        let place = adapted(text, "docs/a.md", "a.md", &pages);
        assert_eq!(place, "[c](c.md#x) ![i](images/i.png) [t](index.md)");
    }

    #[test]
    fn commands_are_listed_as_help_prints_them() {
        let help = "Usage\n\nCommands:\n  info  Print\n  help  Print this\n\nOptions:\n  -v\n";
        assert_eq!(listed(help), ["info"]);
    }

    #[test]
    fn headings_have_the_anchors_of_markdown() {
        let found: Vec<String> = headings("# A b\n## `x`: C-d\n").collect();
        assert_eq!(found, ["a-b", "x-c-d"]);
    }
}
