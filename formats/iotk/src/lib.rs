//! IOTK: the input/output tool kit of Quantum ESPRESSO up to 6.x, Yambo and WanT.
//!
//! Specification: G. Bussi, *IOTK binary files* (2016), and the library, version 1.2; `FORMAT.md`
//! has the decisions on unclear points. A file is a tree of tags with attributes and data, either in
//! Fortran records or as XML text. UPF pseudopotentials are such texts.
//!
//! | file | content |
//! |---|---|
//! | `wire/record` | Fortran records, for any unformatted file |
//! | `wire/tag` | tags, attributes, types |
//! | `scalar` `tokens` | numbers as text |
//! | `event` | tags and data as events, identical for both forms |
//! | `index` | [`Index`] of all elements; [`Cursor`], search by the rule of the library |
//! | `element_data` `text_codec` | type, shape and decoding of the data of an element |
//! | `read` | [`File`] and its values |
//! | `to_tree` `from_tree` | file to tree; any dataset to an IOTK file |
//! | `write` `cast` | [`Writer`] for both forms; conversion to types that Fortran has |
//! | `semantics` | meaning of the files and folders of Quantum ESPRESSO |
//! | `convert_form` | conversion between the two forms |
//! | `check` `regions` | rules; the byte ranges of a file |
//! | `plane_waves` | densities and wavefunctions of Quantum ESPRESSO 6.2 and later |
//! | `records` | any Fortran unformatted file with given types of its records |
//! | `save` | types and meaning of `data-file-schema.xml` |
//! | `upf` | UPF pseudopotentials of all kinds as the elements of UPF v2 |
//! | `salvage` | recovery of damaged files |
//!
//! ```
//! use spile_core::{limits::Limits, source::Source};
//! use spile_iotk::{File, Style, Target, convert};
//!
//! let text = "<Root><a.1 units='Bohr'><b type='real' size='3'>1.0 2.5D0 3</b></a.1></Root>";
//! let limits = Limits::default();
//! let mut binary = Vec::new();
//! convert(&Source::memory(text), Target::default(), Style::Exact, &mut binary, &limits)?;
//!
//! let file = File::from_source(Source::memory(binary), &limits)?;
//! assert_eq!(file.read_f64("Root/a.1/b")?, Some(vec![1.0, 2.5, 3.0]));
//! let mut cursor = file.cursor();
//! assert!(cursor.begin("Root").is_some() && cursor.begin("a.1").is_some());
//! assert!(cursor.scan("b").is_some() && cursor.scan("missing").is_none());
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod cast;
mod check;
mod convert_form;
mod element_data;
mod event;
mod from_tree;
mod index;
mod plane_waves;
mod read;
pub mod records;
mod regions;
mod salvage;
mod save;
mod scalar;
mod semantics;
mod text_codec;
mod to_tree;
mod tokens;
mod upf;
pub mod wire;
mod write;

pub use convert_form::{Converted, Heads, convert, convert_with};
pub use element_data::ElementData;
pub use event::{Data, Event, Events, Form, Item};
pub use from_tree::is_text_name;
pub use index::{Cursor, Element, Index, Markup};
pub use read::File;
pub use scalar::Style;
pub use write::{Target, Writer};

use spile_core::format::{Abilities, FormatInfo, Grade, Head, Score};
use spile_core::{Format, OpenOptions, Parsed, Result, Source};

/// The IOTK format.
pub struct Iotk;

static INFO: FormatInfo = FormatInfo {
    name: "iotk",
    title: "Input/output tool kit",
    users: "Quantum ESPRESSO up to 6.x, Yambo, WanT; UPF pseudopotentials",
    specification: "IOTK binary files (2016), iotk 1.2",
    extensions: &["dat", "xml", "upf", "iotk"],
    read: Grade::Complete,
    write: Grade::Complete,
    check: Grade::Complete,
    salvage: Grade::Complete,
};

impl Format for Iotk {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        let contains = |text: &[u8]| head.bytes.windows(text.len()).any(|w| w == text);
        if event::looks_like_text(head.bytes) {
            let certain = contains(b"<?iotk ")
                || [&b"<UPF "[..], b"<PP_HEADER", b"<PP_INFO>", b"<qe_pp:pseudo "]
                    .into_iter()
                    .any(contains);
            // IOTK files without a head are plain XML.
            return if certain { 95 } else { 30 };
        }
        match wire::record::Framing::detect_head(head.bytes) {
            Some(_) if contains(b"<?iotk ") => 100,
            Some(framing) if plane_waves::records::has_lengths(head.bytes, framing) => 80,
            Some(_) if contains(b"<") && contains(b">") => 60,
            Some(_) => 10,
            None => 0,
        }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self).salvager(self).folder(self)
    }
}
