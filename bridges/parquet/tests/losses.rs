//! Every loss of the writers is declared, and nothing else.

#[path = "../../../tests/support/losses.rs"]
mod losses;

#[test]
fn losses_of_parquet_are_declared() {
    losses::suite(&spile_parquet::Parquet, &["x.parquet"], Vec::new());
}
