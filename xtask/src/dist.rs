//! One static binary: it runs on any Linux of the same processor, whatever is installed there.

use crate::Result;
use crate::shell::{cargo, output, program, succeeds, target};

pub(crate) fn run() -> Result<bool> {
    let about = output(program("rustc").arg("-vV"))?;
    let host = about
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .ok_or("rustc does not tell what machine this is")?;
    // Naming the target keeps the flag away from build scripts and procedural macros.
    let words = ["build", "--release", "--package", "spile-cli", "--target", host];
    let folder = target().join("dist");
    let built = succeeds(
        cargo(&words)
            .env("RUSTFLAGS", "-Ctarget-feature=+crt-static")
            .env("CARGO_TARGET_DIR", &folder),
    )?;
    let path = folder.join(host).join("release/spile");
    let length = std::fs::metadata(&path).map_err(|e| e.to_string())?.len();
    println!("{} ({:.1} MB)", path.display(), length as f64 / 1e6);
    Ok(built)
}
