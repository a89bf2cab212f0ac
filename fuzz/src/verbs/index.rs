//! Indexes of a file for other programs: Kerchunk JSON and tables, HDF5 with external storage.

use spile::sink::Sink;

use super::inputs;
use crate::drive::show;

pub fn run(data: &[u8]) {
    let (file, control) = inputs::split(data);
    let Ok(content) = inputs::open(file) else { return };
    if control[0] & 1 == 1 {
        let Ok(mut sink) = Sink::in_memory() else { return };
        if let Err(error) = spile::index::write_h5(&content, &mut sink) {
            show(&error);
        }
        return;
    }
    match spile_ops::index::index(&content) {
        Ok(index) => {
            let mut out = Vec::new();
            let _ = index.write(&mut out);
            for table in index.tables(content.limits()) {
                if let Err(error) = table {
                    show(&error);
                }
            }
        }
        Err(error) => show(&error),
    }
}
