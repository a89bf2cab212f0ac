//! The pictures of `docs/gallery.md`: runs its commands `spile plot` in the folder of the golden files.

use std::fs;

use crate::Result;
use crate::shell::{cargo, output, program, root, succeeds, target};

pub(crate) fn write() -> Result<bool> {
    if !succeeds(&mut cargo(&["build", "--quiet", "--package", "spile-cli"]))? {
        return Ok(false);
    }
    let spile = target().join("debug/spile");
    let page = root().join("docs/gallery.md");
    let page = fs::read_to_string(&page).map_err(|e| format!("{}: {e}", page.display()))?;
    for line in page.lines().filter_map(|line| line.strip_prefix("    spile plot ")) {
        let words = words(line);
        let [args @ .., name] = words.as_slice() else { continue };
        let picture = root().join("docs/images/gallery").join(name);
        let mut command = program(&spile);
        command.current_dir(root().join("tests/golden")).arg("plot").args(args);
        output(command.arg(picture).arg("--overwrite"))?;
        println!("{name}");
    }
    Ok(true)
}

/// The words of a command as a shell splits them.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (k, part) in line.split('\'').enumerate() {
        if k % 2 == 1 { words.push(part) } else { words.extend(part.split_whitespace()) }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_are_not_split() {
        assert_eq!(
            words("a.sdf '0, :, :' --log -o x.png"),
            ["a.sdf", "0, :, :", "--log", "-o", "x.png"]
        );
    }
}
