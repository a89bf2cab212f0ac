//! `docs/performance.md`: every bench has a part of it, which begins with a heading of one `#`.

use std::fs;

use crate::Result;
use crate::shell::root;

/// Puts a part in the place of the one with the same heading, or behind all others.
pub(super) fn save(part: &str) -> Result<()> {
    let path = root().join("docs/performance.md");
    let old = fs::read_to_string(&path).unwrap_or_default();
    fs::write(&path, replaced(&old, part)).map_err(|e| format!("{}: {e}", path.display()))?;
    println!("docs/performance.md is new");
    Ok(())
}

fn replaced(page: &str, part: &str) -> String {
    let heading = |part: &str| part.lines().next().unwrap_or_default().to_string();
    let mut parts: Vec<String> = Vec::new();
    for line in page.lines() {
        match parts.last_mut() {
            Some(last) if !line.starts_with("# ") => last.extend(["\n", line]),
            _ => parts.push(line.into()),
        }
    }
    match parts.iter_mut().find(|old| heading(old) == heading(part)) {
        Some(old) => *old = part.into(),
        None => parts.push(part.into()),
    }
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).collect();
    parts.join("\n\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_parts_stay_as_they_are() {
        let page = "# One\n\n## a\n1\n\n# Two\n\n## a\n2\n";
        assert_eq!(replaced(page, "# One\nnew\n"), "# One\nnew\n\n# Two\n\n## a\n2\n");
        assert_eq!(replaced(page, "# Two\nnew\n"), "# One\n\n## a\n1\n\n# Two\nnew\n");
        assert_eq!(replaced(page, "# Three\n"), format!("{page}\n# Three\n"));
        assert_eq!(replaced("", "# One\n"), "# One\n");
        assert_eq!(replaced(page, "# One\n\n## a\n1\n"), page);
    }
}
