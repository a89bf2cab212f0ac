//! Every loss of the writers is declared, and nothing else.

#[path = "../../../tests/support/losses.rs"]
mod losses;

#[test]
fn losses_of_csv_are_declared() {
    losses::suite(&spile_csv::Csv, &["x.csv"], Vec::new());
}
