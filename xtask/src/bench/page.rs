//! `docs/performance.md`. Each benchmark has one section, which starts with a level-1 heading.

use std::fs;

use crate::Result;
use crate::shell::root;

/// Replaces the section with the same heading, or appends the section.
pub(super) fn save(section: &str) -> Result<()> {
    let path = root().join("docs/performance.md");
    let old = fs::read_to_string(&path).unwrap_or_default();
    fs::write(&path, replaced(&old, section)).map_err(|e| format!("{}: {e}", path.display()))?;
    println!("docs/performance.md is updated");
    Ok(())
}

fn replaced(page: &str, section: &str) -> String {
    let heading = |section: &str| section.lines().next().unwrap_or_default().to_string();
    let mut sections: Vec<String> = Vec::new();
    for line in page.lines() {
        match sections.last_mut() {
            Some(last) if !line.starts_with("# ") => last.extend(["\n", line]),
            _ => sections.push(line.into()),
        }
    }
    match sections.iter_mut().find(|old| heading(old) == heading(section)) {
        Some(old) => *old = section.into(),
        None => sections.push(section.into()),
    }
    let sections: Vec<&str> = sections.iter().map(|section| section.trim_end()).collect();
    sections.join("\n\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_sections_are_kept() {
        let page = "# One\n\n## a\n1\n\n# Two\n\n## a\n2\n";
        assert_eq!(replaced(page, "# One\nnew\n"), "# One\nnew\n\n# Two\n\n## a\n2\n");
        assert_eq!(replaced(page, "# Two\nnew\n"), "# One\n\n## a\n1\n\n# Two\nnew\n");
        assert_eq!(replaced(page, "# Three\n"), format!("{page}\n# Three\n"));
        assert_eq!(replaced("", "# One\n"), "# One\n");
        assert_eq!(replaced(page, "# One\n\n## a\n1\n"), page);
    }
}
