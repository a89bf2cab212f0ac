//! Files of instruments match the values that another reader has found in them.

#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

#[test]
fn real_files_match_the_manifest() {
    let compared =
        recordings::check_real(&spile_rohde_schwarz::RohdeSchwarz, |name| name.starts_with("rs_"));
    assert!(compared == 0 || compared == 2, "{compared}");
}
