//! Recovery of files that end inside the array: all complete slabs along the slowest dimension with
//! more than one element.

use spile_core::format::{Salvage, Salvager};
use spile_core::{Dataset, Error, ErrorKind, Limits, Result, Sink, Source};

use crate::Taf;
use crate::read::File;
use crate::to_tree::array_desc;
use crate::wire::Header;
use crate::write::write_array;

impl Salvager for Taf {
    /// Copies the readable part of `source` to `target`.
    ///
    /// # Errors
    /// The header is not readable, or not a single element is complete.
    fn salvage(&self, source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
        match File::from_source(source.clone(), limits) {
            Ok(file) => {
                let array = file.array()?;
                write_array(target, file.header(), &array.all()?)?;
                file.copy_comments(target)?;
                Ok(Salvage { kept: vec!["array".into(), "comments".into()], lost: Vec::new() })
            }
            Err(error) if error.code() == "taf-007" => salvage_truncated(source, target, limits),
            Err(error) if error.kind() == ErrorKind::Truncated => {
                Err(error.hint("the header is incomplete; no data can be recovered"))
            }
            Err(error) => Err(error),
        }
    }
}

fn salvage_truncated(source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
    let mut header = Header::parse(source, limits)?;
    let expected = header.shape();
    let slowest = header.dimensions.iter().rposition(|d| d.length > 1).ok_or_else(|| {
        Error::truncated("taf-008", "the only element is incomplete").at(header.data_offset())
    })?;
    let slab: u64 = header.dimensions[..slowest].iter().map(|d| d.length).product::<u64>()
        * header.dtype.size() as u64;
    let available = source.len().saturating_sub(header.data_offset());
    header.dimensions[slowest].length = available / slab;
    let shape = header.shape();
    let dataset = Dataset::of_bytes(source.clone(), limits);
    let array = dataset.open_array(&array_desc(&header))?;
    write_array(target, &header, &array.all()?)?;
    Ok(Salvage {
        kept: vec![format!("array {shape}")],
        lost: vec![format!("rest of the {expected} array"), "comments".into()],
    })
}
