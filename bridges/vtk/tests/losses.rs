//! Every loss of the writers is declared, and nothing else.

#[path = "../../../tests/support/losses.rs"]
mod losses;

#[test]
fn losses_of_vtk_are_declared() {
    losses::suite(&spile_vtk::Vtk, &["x.vti", "x.vtr", "x.vtu", "x.vtp", "x.pvd"], Vec::new());
}
