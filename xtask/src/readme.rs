//! The table of formats in `README.md`, as printed by `spile formats --markdown`.

use std::fs;

use crate::shell::{output, program, root};
use crate::{Result, test};

const BEGIN: &str = "<!-- formats -->";
const END: &str = "<!-- /formats -->";

/// Writes the table, or with `check` only compares it; returns whether it is up to date.
pub(crate) fn run(check: bool) -> Result<bool> {
    let path = root().join("README.md");
    let fail = |e: std::io::Error| format!("README.md: {e}");
    let old = fs::read_to_string(&path).map_err(fail)?;
    let table = output(program(test::spile()?).args(["formats", "--markdown"]))?;
    let new = with_table(&old, &table)?;
    if old == new {
        return Ok(true);
    }
    if check {
        println!("README.md: the table of formats is out of date; run `cargo xtask readme`");
        return Ok(false);
    }
    fs::write(&path, new).map_err(fail)?;
    println!("README.md: the table of formats is updated");
    Ok(true)
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
