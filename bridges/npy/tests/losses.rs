//! Every loss of the writers is declared, and nothing else.

#[path = "../../../tests/support/losses.rs"]
mod losses;

#[test]
fn losses_of_npy_are_declared() {
    losses::suite(&spile_npy::Npy, &["x.npy"], Vec::new());
}

#[test]
fn losses_of_npz_are_declared() {
    losses::suite(&spile_npy::Npz, &["x.npz"], Vec::new());
}
