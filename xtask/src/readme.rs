//! The table of formats in `README.md`, as printed by `spile formats --markdown`.

use std::fs;

use crate::shell::{output, program, root};
use crate::{Result, test};

const BEGIN: &str = "<!-- formats -->";
const END: &str = "<!-- /formats -->";

pub(crate) fn write() -> Result<bool> {
    let (old, new) = both()?;
    if old != new {
        let path = root().join("README.md");
        fs::write(&path, new).map_err(|e| format!("README.md: {e}"))?;
        println!("README.md: the table of formats is updated");
    }
    Ok(true)
}

pub(crate) fn check() -> Result<bool> {
    let (old, new) = both()?;
    if old != new {
        println!("README.md: the table of formats is out of date; run `cargo xtask readme`");
    }
    Ok(old == new)
}

fn both() -> Result<(String, String)> {
    let old =
        fs::read_to_string(root().join("README.md")).map_err(|e| format!("README.md: {e}"))?;
    let table = output(program(test::spile()?).args(["formats", "--markdown"]))?;
    let new = with_table(&old, &table)?;
    Ok((old, new))
}

/// The text with `table` between the markers.
fn with_table(text: &str, table: &str) -> Result<String> {
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) = parts.ok_or_else(|| {
        format!("README.md: expected the lines {BEGIN} and {END} around the table")
    })?;
    Ok(format!("{before}{BEGIN}\n{}\n{END}{after}", table.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_between_the_markers_changes() {
        let text = format!("# a\n{BEGIN}\nold\n{END}\nz\n");
        let once = with_table(&text, "|new|\n").unwrap();
        assert_eq!(once, format!("# a\n{BEGIN}\n|new|\n{END}\nz\n"));
        assert_eq!(with_table(&once, "|new|\n").unwrap(), once);
        assert!(with_table("no markers", "").unwrap_err().contains(BEGIN));
    }
}
