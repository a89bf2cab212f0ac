//! Hints of errors and findings in terms of the command line.

use std::path::Path;

use spile::Hint;

/// The text shown after `hint:`; `path` is the file of the error.
pub(crate) fn render(hint: &Hint, path: Option<&Path>) -> String {
    let command = |name: &str, effect: &str| format!("spile {name} {}    {effect}", file(path));
    match hint {
        Hint::ListObjects => command("ls", "lists the objects"),
        Hint::RaiseMemory => "raise the limit with --max-memory, or select less".into(),
        Hint::SelectArrays => "select arrays with --select".into(),
        Hint::SelectFrames => "select frames with --frames or --frame".into(),
        Hint::Overwrite => "--overwrite replaces it".into(),
        Hint::ChooseFormat(names) => {
            format!("specify the output format with -t: {}", names.join(", "))
        }
        Hint::Operation { name, effect } => command(name, effect),
        other => other.to_string(),
    }
}

/// The path as an argument of a shell command, or a placeholder.
fn file(path: Option<&Path>) -> String {
    let Some(path) = path.map(Path::to_string_lossy) else { return "FILE".into() };
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:=@%".contains(c);
    if path == "-" || path.is_empty() {
        "FILE".into()
    } else if path.chars().all(plain) {
        path.into_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_hint_can_be_copied_to_a_shell() {
        let hint = Hint::salvage("recovers 17 of 18 blocks");
        let of = |path: Option<&str>| render(&hint, path.map(Path::new));
        assert_eq!(of(Some("run/1.sdf")), "spile salvage run/1.sdf    recovers 17 of 18 blocks");
        assert_eq!(
            of(Some("my run's")),
            r"spile salvage 'my run'\''s'    recovers 17 of 18 blocks"
        );
        assert_eq!(of(None), "spile salvage FILE    recovers 17 of 18 blocks");
    }
}
