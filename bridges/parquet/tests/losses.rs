//! Every loss of the writers is declared, and nothing else.

#[path = "../../../tests/support/losses.rs"]
mod losses;

use std::path::Path;

use spile_core::format::Format;

fn suite(format: &dyn Format, names: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    for (name, content) in losses::golden(format, &folder.join(format.info().name)) {
        losses::assert_losses_are_declared(format, &content, &name);
    }
    for content in losses::samples() {
        for name in names {
            losses::assert_losses_are_declared(format, &content, name);
        }
    }
}

#[test]
fn losses_of_parquet_are_declared() {
    suite(&spile_parquet::Parquet, &["x.parquet"]);
}
