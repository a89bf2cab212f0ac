//! Every loss of the writers is declared, and nothing else.

#[path = "../../../tests/support/losses.rs"]
mod losses;

#[test]
fn losses_of_vtk_are_declared() {
    losses::suite(
        &spile_vtk::Vtk,
        &["x.vtm", "x.vti", "x.vtr", "x.vts", "x.vtu", "x.vtp", "x.pvd"],
        Vec::new(),
    );
}
