//! Runs the commands in the documentation and compares the printed output.
//!
//! Commands are the lines that start with `$ ` in blocks marked `console`, all lines of blocks marked `sh`, and
//! the last cells of tables that are a command in backquotes. A line that ends with `\` is continued. The
//! commands of a page run in the printed order, in a temporary folder with the files of `docs/samples.md`
//! (README.md writes them itself); `cd` changes the folder of the following commands;
//! `cargo run --release --` runs the program that is tested. Output is compared if any is printed: `[..]`, or
//! `...` at the end of a line, stands for any text, a line `...` for any number of lines. A command without
//! printed output must succeed. Printed output that contains an error, findings, losses or differences may
//! have the exit status that belongs to it.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Programs that commands may start with.
const PROGRAMS: [&str; 8] = ["spile", "cat", "cp", "echo", "head", "ls", "mkdir", "rm"];

/// Commands that are not run: they install programs or run all tests, this one included.
const NOT_RUN: [&str; 2] = ["cargo install --path crates/cli", "cargo xtask test"];

/// How the program is run from a checkout; the rest of the command is its arguments.
const FROM_CHECKOUT: &str = "cargo run --release --";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A command and its printed output.
#[derive(Clone, Debug, PartialEq)]
struct Example {
    /// Line of the page, from 1.
    line: usize,
    command: String,
    output: Vec<String>,
}

/// The commands of a page, or the reason why a block cannot be understood.
fn examples(page: &str) -> Result<Vec<Example>, String> {
    let mut found: Vec<Example> = Vec::new();
    let mut language = None;
    let mut continued = false;
    for (line, text) in (1..).zip(page.lines()) {
        if let Some(info) = text.trim_start().strip_prefix("```") {
            language = language.is_none().then(|| info.trim());
            continued = false;
            if matches!(language, Some("bash" | "shell" | "shell-session")) {
                return Err(format!("line {line}: mark commands as `console` or `sh`"));
            }
            continue;
        }
        let command = match language {
            None => {
                found.extend(last_cell(text).map(|command| Example {
                    line,
                    command: command.into(),
                    output: Vec::new(),
                }));
                continue;
            }
            Some("console") => text.strip_prefix("$ "),
            Some("sh") => Some(text).filter(|text| !text.is_empty() && !text.starts_with('#')),
            _ => continue,
        };
        match (command, found.last_mut()) {
            (_, Some(last)) if continued => {
                last.command.extend(["\n", text.trim_start_matches("> ")]);
            }
            (Some(command), _) => {
                found.push(Example { line, command: command.into(), output: Vec::new() });
            }
            (None, Some(last)) if language == Some("console") => last.output.push(text.into()),
            _ if text.is_empty() || language == Some("sh") => {}
            _ => return Err(format!("line {line}: expected a command that starts with `$ `")),
        }
        continued = (continued || command.is_some()) && text.ends_with('\\');
    }
    for example in &mut found {
        while example.output.last().is_some_and(|line| line.trim().is_empty()) {
            example.output.pop();
        }
    }
    Ok(found)
}

/// The command in the last cell of a table row, if the cell is a command.
fn last_cell(text: &str) -> Option<&str> {
    let (_, cell) = text.strip_prefix('|')?.trim_end().strip_suffix('|')?.rsplit_once('|')?;
    let command = cell.trim().strip_prefix('`')?.strip_suffix('`')?;
    (command.starts_with("spile ") && !command.contains('`')).then_some(command)
}

/// Whether printed output, with placeholders, matches the real one.
fn matches(expected: &[&str], found: &[&str]) -> bool {
    match expected {
        [] => found.is_empty(),
        ["...", rest @ ..] => (0..=found.len()).any(|k| matches(rest, &found[k..])),
        [line, rest @ ..] => {
            found.first().is_some_and(|first| line_matches(line, first))
                && matches(rest, &found[1..])
        }
    }
}

fn line_matches(expected: &str, found: &str) -> bool {
    let expected = expected.trim_end();
    let expected =
        expected.strip_suffix("...").map_or(expected.into(), |start| format!("{start}[..]"));
    let mut parts = expected.split("[..]");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = found.trim_end().strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// Runs a command; the problem if it does not do what the page shows.
fn problem(folder: &Path, example: &Example) -> Option<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_spile")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let command = match example.command.strip_prefix(FROM_CHECKOUT) {
        Some(arguments) => format!("spile{arguments}"),
        None => example.command.clone(),
    };
    let done = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(folder)
        .env("TMPDIR", folder)
        .env("PATH", format!("{}:{path}", program.display()))
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let found = String::from_utf8_lossy(&done.stdout);
    let status = done.status.code();
    let is_error = |line: &String| line.starts_with("error") || line.contains("\"error\":{");
    let shows_error = example.output.iter().any(is_error);
    let allowed: &[i32] = if shows_error {
        &[2, 3]
    } else if example.output.is_empty() {
        &[0]
    } else if example.output.iter().any(|line| line.trim_start().starts_with("lost ")) {
        &[3]
    } else {
        &[0, 1]
    };
    if !status.is_some_and(|status| allowed.contains(&status)) {
        return Some(format!("exit status {status:?}, expected one of {allowed:?}\n{found}"));
    }
    let expected: Vec<&str> = example.output.iter().map(String::as_str).collect();
    let differs =
        !expected.is_empty() && !matches(&expected, &found.trim_end().lines().collect::<Vec<_>>());
    differs.then(|| format!("expected:\n{}\nfound:\n{found}", expected.join("\n")))
}

/// All pages with commands, relative to the workspace.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![PathBuf::from("README.md")];
    for pattern in
        ["docs/**/*.md", "formats/*/FORMAT.md", "bridges/*/FORMAT.md", "bindings/*/README.md"]
    {
        let all = glob::glob(root().join(pattern).to_str().unwrap()).unwrap();
        pages.extend(all.map(|page| page.unwrap().strip_prefix(root()).unwrap().to_path_buf()));
    }
    pages
}

#[test]
fn every_command_in_the_documentation_does_what_is_printed() {
    let (mut problems, mut skipped, mut count) = (Vec::new(), Vec::new(), 0);
    for page in pages() {
        let name = page.display().to_string();
        let examples = match examples(&fs::read_to_string(root().join(&page)).unwrap()) {
            Ok(examples) if examples.is_empty() => continue,
            Ok(examples) => examples,
            Err(why) => {
                problems.push(format!("{name}: {why}"));
                continue;
            }
        };
        let temporary = tempfile::tempdir().unwrap();
        let mut folder = temporary.path().to_path_buf();
        if name != "README.md" {
            spile_cli::samples::write_all(&folder).unwrap();
        }
        for example in examples {
            let (line, command) = (example.line, &example.command);
            let program = command.split_whitespace().next().unwrap_or_default();
            if NOT_RUN.contains(&command.as_str()) {
                skipped.push(command.clone());
                continue;
            }
            if let Some(inner) = command.strip_prefix("cd ") {
                folder.push(inner);
                continue;
            }
            if !PROGRAMS.contains(&program) && !command.starts_with(FROM_CHECKOUT) {
                problems
                    .push(format!("{name}:{line}: `{command}`: {program} is not run by this test"));
                continue;
            }
            count += 1;
            let found = problem(&folder, &example);
            problems.extend(found.map(|why| format!("{name}:{line}: `{command}`: {why}")));
        }
    }
    println!("{count} commands run, not run: {}", skipped.join(", "));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    for command in NOT_RUN {
        assert!(skipped.iter().any(|found| found == command), "no page contains `{command}`");
    }
}

#[test]
fn the_readme_starts_with_the_tour_and_the_tests() {
    let page = fs::read_to_string(root().join("README.md")).unwrap();
    for command in ["cargo run --release -- tour", "cargo xtask test"] {
        let found = examples(&page).unwrap();
        assert!(found.iter().any(|example| example.command == command), "no `{command}`");
    }
}

#[test]
fn every_sample_in_samples_md_is_written() {
    let folder = tempfile::tempdir().unwrap();
    spile_cli::samples::write_all(folder.path()).unwrap();
    let page = fs::read_to_string(root().join("docs/samples.md")).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('`').collect())
        .collect();
    assert!(rows.len() > 10);
    for row in rows {
        let path = folder.path().join(row[1]);
        assert!(path.exists(), "{}", row[1]);
        if row.len() > 3 {
            assert_eq!(spile_cli::samples::write(row[3], folder.path()).unwrap(), path);
        }
    }
}

// Those of `docs/gallery.md` are run by `plot.rs`, which compares the pictures.
#[test]
fn no_command_is_outside_of_a_fenced_block() {
    let indented = |text: &str| text.starts_with("    spile ") || text.starts_with("    $ spile ");
    let mut found = Vec::new();
    for page in pages().iter().filter(|page| !page.ends_with("gallery.md")) {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let lines = (1..).zip(text.lines()).filter(|(_, text)| indented(text));
        found.extend(lines.map(|(line, text)| format!("{}:{line}:{text}", page.display())));
    }
    assert!(found.is_empty(), "put commands into a `console` block:\n{}", found.join("\n"));
}

#[test]
fn the_tests_named_in_correctness_md_exist() {
    let mut code = String::new();
    let rust = ["crates/**/*.rs", "formats/**/*.rs", "bridges/**/*.rs", "bindings/**/*.rs"];
    for pattern in rust.into_iter().chain(["tests/interop/*.py", "bindings/python/tests/*.py"]) {
        for file in glob::glob(root().join(pattern).to_str().unwrap()).unwrap() {
            code += &fs::read_to_string(file.unwrap()).unwrap();
        }
    }
    let page = fs::read_to_string(root().join("docs/correctness.md")).unwrap();
    let mut missing = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let tests = row.trim_end_matches(" |").rsplit_once(" | ").unwrap().1;
        for name in tests.split('`').skip(1).step_by(2) {
            let is_path = name.contains('/');
            let exists = if is_path {
                root().join(name).exists()
            } else {
                ["fn", "def"].iter().any(|word| code.contains(&format!("{word} {name}(")))
            };
            missing.extend((!exists).then_some(name));
        }
    }
    assert!(missing.is_empty(), "no such test or file: {}", missing.join(", "));
}

#[test]
fn blocks_are_split_into_commands_and_output() {
    let page = "```console\n$ spile a\none\n\n$ spile b \\\n> c\n```\n\n    $ no\n```rust\n$ no\n```\n```sh\n# no\nspile d\n```\n\
                | have | `spile e f` |\n| `spile no` | |\n| no | as `spile no` |\n";
    let one = |line, command: &str, output: &[&str]| Example {
        line,
        command: command.into(),
        output: output.iter().map(ToString::to_string).collect(),
    };
    let expected =
        vec![one(2, "spile a", &["one"]), one(5, "spile b \\\nc", &[]), one(15, "spile d", &[])];
    let expected = [expected, vec![one(17, "spile e f", &[])]].concat();
    assert_eq!(examples(page), Ok(expected));
    assert!(examples("```bash\nls\n```").unwrap_err().contains("line 1"));
    assert!(examples("```console\noutput\n```").unwrap_err().contains("line 2"));
}

#[test]
fn placeholders_stand_for_text_and_lines() {
    for (expected, found) in [
        ("a[..]c", "abc"),
        ("a[..]c[..]", "ac"),
        ("a...", "abc"),
        ("...\nb", "a\na\nb"),
        ("a\n...\nz", "a\nz"),
        ("a  ", "a"),
    ] {
        let lines = |text: &'static str| text.lines().collect::<Vec<_>>();
        assert!(matches(&lines(expected), &lines(found)), "{expected:?} {found:?}");
    }
    for (expected, found) in [("a", "ab"), ("[..]b", "abc"), ("a[..]b[..]c", "acb"), ("a", "a\nb")]
    {
        let lines = |text: &'static str| text.lines().collect::<Vec<_>>();
        assert!(!matches(&lines(expected), &lines(found)), "{expected:?} {found:?}");
    }
}
