//! Every loss of the writers is declared, and nothing else.

#[path = "../../../tests/support/losses.rs"]
mod losses;

#[test]
fn losses_of_arrow_are_declared() {
    losses::suite(&spile_arrow::Arrow, &["x.arrow"], Vec::new());
}
