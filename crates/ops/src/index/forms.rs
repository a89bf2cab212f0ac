//! The two forms of an index: Kerchunk JSON, and Parquet tables, of which readers load only those of the
//! arrays they read.

use std::io::Write;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value as Json, json};
use spile_core::{ArrayDesc, DType, Dataset, Limits, ROOT, Result, Shape, Source, Tree};

use super::Index;
use super::chunks::Place;

/// Number of chunks per table.
const RECORDS: usize = 100_000;

/// The file with the metadata of all arrays, in the Parquet form.
pub const DOCUMENTS: &str = ".zmetadata";

/// Serialises all references without copying them.
struct Refs<'a>(&'a Index);

impl Serialize for Refs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let index = self.0;
        let mut refs = serializer.serialize_map(None)?;
        // Kerchunk keeps documents as text.
        for (key, document) in &index.documents {
            refs.serialize_entry(key, &document.to_string())?;
        }
        let all = json!({ "zarr_consolidated_format": 1, "metadata": index.documents });
        refs.serialize_entry(DOCUMENTS, &all.to_string())?;
        for (path, chunks) in &index.chunks {
            for (number, place) in chunks.places.iter().enumerate() {
                let key = format!("{path}/{}", chunks.key(number));
                match place {
                    Place::Range { file, offset, len } => {
                        refs.serialize_entry(&key, &(&index.files[*file], offset, len))?;
                    }
                    Place::Inside(bytes) => {
                        let text = base64_simd::STANDARD.encode_to_string(bytes);
                        refs.serialize_entry(&key, &format!("base64:{text}"))?;
                    }
                }
            }
        }
        refs.end()
    }
}

impl Index {
    /// Writes the JSON.
    pub fn write(&self, out: &mut impl Write) -> Result<()> {
        let mut serializer = serde_json::Serializer::new(out);
        let mut document = serializer.serialize_map(Some(2)).map_err(std::io::Error::from)?;
        document.serialize_entry("version", &1).map_err(std::io::Error::from)?;
        document.serialize_entry("refs", &Refs(self)).map_err(std::io::Error::from)?;
        Ok(document.end().map_err(std::io::Error::from)?)
    }

    /// The content of [`DOCUMENTS`].
    pub fn documents(&self) -> Json {
        json!({ "metadata": self.documents, "record_size": RECORDS })
    }

    /// The tables: their names in the folder, and their content. A row is a chunk, in the order of the
    /// chunk grid.
    pub fn tables<'a>(
        &'a self,
        limits: &'a Limits,
    ) -> impl Iterator<Item = Result<(String, Dataset)>> + 'a {
        self.chunks.iter().flat_map(move |(path, chunks)| {
            chunks.places.chunks(RECORDS).enumerate().map(move |(record, places)| {
                Ok((format!("{path}/refs.{record}.parq"), self.table(places, limits)?))
            })
        })
    }

    fn table(&self, places: &[Place], limits: &Limits) -> Result<Dataset> {
        let mut tree = Tree::new(limits);
        let mut add = |name: &str, dtype: DType, bytes: Vec<u8>| {
            let shape = Shape::new([places.len() as u64]);
            tree.add_array(ROOT, name, ArrayDesc::inline(dtype, shape, bytes)).map(drop)
        };
        if let [Place::Inside(bytes)] = places {
            let size = bytes.len() as u32;
            add("raw", DType::opaque(size), bytes.clone())?;
        } else {
            let mut columns = [Vec::new(), Vec::new(), Vec::new()];
            let width = self.files.iter().map(String::len).max().unwrap_or(0);
            for place in places {
                let Place::Range { file, offset, len } = place else { continue };
                let end = columns[0].len() + width;
                columns[0].extend(self.files[*file].bytes());
                columns[0].resize(end, 0);
                columns[1].extend(offset.to_le_bytes());
                columns[2].extend(len.to_le_bytes());
            }
            let [names, offsets, sizes] = columns;
            add("path", DType::text(width as u32), names)?;
            add("offset", DType::I64, offsets)?;
            add("size", DType::I64, sizes)?;
        }
        Ok(Dataset::new(Source::memory([]), tree))
    }
}
