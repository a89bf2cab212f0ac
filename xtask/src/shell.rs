//! Paths of the workspace, and running programs.

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crate::Result;

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}

/// The build folder of cargo.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Files of a folder with an extension, sorted; none if the folder does not exist.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    found.sort();
    found
}

/// A program that runs in the folder of the workspace.
pub(crate) fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// Cargo, without the variables that the outer cargo has set for this program: they would make build scripts
/// run again.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|p| text.starts_with(p)) {
            command.env_remove(&name);
        }
    }
    command.args(arguments);
    command
}

/// Runs a program on the terminal; returns whether it succeeded.
pub(crate) fn succeeds(command: &mut Command) -> Result<bool> {
    let status = command.status().map_err(|e| format!("{}: {e}", name(command)))?;
    Ok(status.success())
}

/// Runs a program; returns its standard output, or an error with its standard error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = name(command);
    let done = command.stdin(Stdio::null()).output().map_err(|e| format!("{name}: {e}"))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&done.stderr);
    Err(format!("{name} failed ({}): {}", done.status, stderr.trim()))
}

/// Runs a program; returns whether it succeeded, and its entire output.
pub(crate) fn captured(command: &mut Command) -> Result<(bool, String)> {
    let done = command.stdin(Stdio::null()).output();
    let done = done.map_err(|e| format!("{}: {e}", name(command)))?;
    let all = [done.stdout, done.stderr].concat();
    Ok((done.status.success(), String::from_utf8_lossy(&all).into_owned()))
}

/// Runs a program and shows its output immediately; returns whether it succeeded, and the output without
/// colours.
pub(crate) fn watched(command: &mut Command) -> Result<(bool, String)> {
    if std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let name = name(command);
    let fail = |e: std::io::Error| format!("{name}: {e}");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(fail)?;
    let errors =
        child.stderr.take().map(|stream| thread::spawn(move || copy(stream, std::io::stderr())));
    let mut text =
        child.stdout.take().map(|stream| copy(stream, std::io::stdout())).unwrap_or_default();
    if let Some(errors) = errors {
        text += &errors.join().unwrap_or_default();
    }
    let status = child.wait().map_err(fail)?;
    Ok((status.success(), plain(&text)))
}

fn copy(stream: impl Read, mut to: impl Write) -> String {
    let mut all = String::new();
    let mut line = Vec::new();
    let mut lines = BufReader::new(stream);
    while lines.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        // A closed terminal does not stop the tests.
        let _ = to.write_all(&line);
        all += &String::from_utf8_lossy(&line);
        line.clear();
    }
    all
}

/// The text without escape sequences for colours.
fn plain(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        out += part.find(|c: char| c.is_ascii_alphabetic()).map_or("", |end| &part[end + 1..]);
    }
    out
}

fn name(command: &Command) -> String {
    Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_removed() {
        assert_eq!(plain("\x1b[1m\x1b[32m4 passed\x1b[0m, 1 failed"), "4 passed, 1 failed");
    }

    #[test]
    fn a_failure_contains_standard_error_and_status() {
        let error = output(program("sh").args(["-c", "echo no disk >&2; exit 3"])).unwrap_err();
        assert!(error.contains("no disk") && error.contains('3'), "{error}");
        let (success, text) =
            watched(program("sh").args(["-c", "echo out; echo err >&2"])).unwrap();
        assert!(success && text.contains("out") && text.contains("err"));
    }
}
