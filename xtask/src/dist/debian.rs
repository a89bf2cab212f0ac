//! The Debian package, by cargo-deb. Its program is static, so that it runs on every release.

use super::{Missing, NATIVE, archive, out};
use crate::shell::{output, program, target};
use crate::tools;

pub(super) fn package() -> Result<(), Missing> {
    let deb = tools::cargo_program("cargo-deb").map_err(Missing::Tool)?;
    archive::pages()?;
    let mut command = program(deb);
    command
        .args([
            "--package",
            "spile-cli",
            "--target",
            NATIVE,
            "--no-build",
            "--no-strip",
            "--output",
        ])
        .arg(out())
        .env("CARGO_TARGET_DIR", target().join("dist"));
    output(&mut command)?;
    Ok(())
}
