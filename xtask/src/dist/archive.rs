//! Compressed archives of an artefact, with the same bytes for the same content.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Missing, NATIVE, out, texts, version};
use crate::Result;
use crate::shell::{output, program, target};

/// Shells with a file of completions, and the name of the file.
pub(super) const COMPLETIONS: [(&str, &str); 4] = [
    ("bash", "spile.bash"),
    ("zsh", "_spile"),
    ("fish", "spile.fish"),
    ("powershell", "spile.ps1"),
];

/// Packs the program at `path` with licences, manual pages and completions.
pub(super) fn program_archive(triple: &str, path: &Path) -> std::result::Result<(), Missing> {
    let name = format!("spile-{}-{triple}", version());
    let folder = target().join("dist").join(&name);
    fresh(&folder)?;
    copy(path, &folder)?;
    for text in texts() {
        copy(&text, &folder)?;
    }
    let pages = pages()?;
    for part in ["man", "completions"] {
        let from = pages.join(part);
        let to = folder.join(part);
        fs::create_dir_all(&to).map_err(|e| failed(&to, &e))?;
        for entry in fs::read_dir(&from).map_err(|e| failed(&from, &e))?.flatten() {
            copy(&entry.path(), &to)?;
        }
    }
    Ok(pack(&folder, &name)?)
}

/// The folder with `man` and `completions`, which the program for this machine prints.
pub(super) fn pages() -> std::result::Result<PathBuf, Missing> {
    let folder = target().join("dist/pages");
    let spile = super::build(NATIVE)?;
    fresh(&folder)?;
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    output(program(&spile).arg("man").arg(&man))?;
    fs::create_dir_all(&completions).map_err(|e| failed(&completions, &e))?;
    for (shell, name) in COMPLETIONS {
        let script = output(program(&spile).args(["completions", shell]))?;
        let path = completions.join(name);
        fs::write(&path, script).map_err(|e| failed(&path, &e))?;
    }
    Ok(folder)
}

/// Packs a folder as `NAME.tar.gz`: sorted names, no owner, and the time of the last commit.
pub(super) fn pack(folder: &Path, name: &str) -> Result<()> {
    let time = output(program("git").args(["log", "-1", "--format=%ct"]))?;
    let (parent, last) = (folder.parent(), folder.file_name());
    let (Some(parent), Some(last)) = (parent, last) else {
        return Err(format!("{}: not a folder", folder.display()));
    };
    let mut tar = program("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX"])
        .arg(format!("--mtime=@{}", time.trim()))
        .arg(format!("--transform=s,^{},{name},", last.to_string_lossy()))
        .args(["--use-compress-program=gzip -9n", "--create", "--file"])
        .arg(out().join(format!("{name}.tar.gz")))
        .arg("--directory")
        .arg(parent)
        .arg(last);
    output(&mut tar).map(drop)
}

/// An empty folder.
fn fresh(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|e| failed(folder, &e))?;
    }
    fs::create_dir_all(folder).map_err(|e| failed(folder, &e))
}

fn copy(path: &Path, folder: &Path) -> Result<()> {
    let to = folder.join(path.file_name().unwrap_or_default());
    fs::copy(path, &to).map(drop).map_err(|e| failed(path, &e))
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
