//! Files of instruments match the values that another reader has found in them.

#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use spile_rigol::Rigol;

#[test]
fn real_files_match_the_manifest() {
    let rigol = |name: &str| ["DS", "DZ", "DHO", "MSO"].iter().any(|model| name.starts_with(model));
    let compared = recordings::check_real(&Rigol, rigol);
    assert!(compared == 0 || compared == 17, "{compared}");
}
