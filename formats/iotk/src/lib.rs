//! IOTK: the input/output tool kit of Quantum ESPRESSO up to 6.x, Yambo and WanT.
//!
//! Specification: G. Bussi, *IOTK binary files* (2016), and the library itself, version 1.2; what
//! is unclear there is decided in `FORMAT.md`. A file is a tree of tags with attributes and data,
//! either in Fortran records or as XML text; UPF v2 pseudopotentials are such texts.
//!
//! | file | what is in it |
//! |---|---|
//! | `record` | Fortran records, useful for any unformatted file |
//! | `wire` `number` `float` `words` | tags, attributes, types; numbers as text |
//! | `event` `binary` `text` | the same events from both forms |
//! | `index` | [`Index`] of all elements; [`Cursor`], the library's way to search |
//! | `data` `codec` | what data are; numbers and strings taken out of text |
//! | `read` `get` | [`File`], its tree view, its values |
//! | `schema` `save` | what Quantum ESPRESSO means by its files; its folders |
//! | `write` `spell` `recast` `plant` | [`Writer`] for both forms; any tree as an IOTK file |
//! | `convert` | from one form to the other |
//! | `check` `regions` | the rules; which bytes are what |
//! | `salvage` `resync` | what can be saved of a damaged file |
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

mod binary;
mod check;
mod codec;
mod convert;
mod data;
mod event;
mod float;
mod get;
mod index;
mod number;
mod plant;
mod read;
mod recast;
pub mod record;
mod regions;
mod resync;
mod salvage;
mod save;
mod schema;
mod spell;
mod text;
pub mod wire;
mod words;
mod write;

pub use convert::{Converted, convert};
pub use data::Described;
pub use event::{Data, Event, Events, Form, Item};
pub use index::{Cursor, Element, Index, Pieces};
pub use number::Style;
pub use read::File;
pub use save::Save;
pub use write::{Target, Writer};

use spile_core::description::Holds;
use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::format::{Folder, Format, FormatInfo, Grade, Head, Reader, Salvage, Score};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::source::Source;

/// The format, for the registry.
pub struct Iotk;

static INFO: FormatInfo = FormatInfo {
    name: "iotk",
    title: "Input/output tool kit",
    users: "Quantum ESPRESSO up to 6.x, Yambo, WanT; UPF v2",
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
            let sure = contains(b"<?iotk ") || contains(b"<UPF ");
            // Any other XML may be ours: files without a head are.
            return if sure { 95 } else { 30 };
        }
        match record::Framing::detect_head(head.bytes) {
            Some(_) if contains(b"<?iotk ") => 100,
            Some(_) if contains(b"<") && contains(b">") => 60,
            Some(_) => 10,
            None => 0,
        }
    }

    fn open(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>> {
        Ok(Box::new(File::from_source(source, limits)?))
    }

    /// `prefix.save` of Quantum ESPRESSO.
    fn open_folder(&self, folder: &Folder, limits: &Limits) -> Result<Option<Box<dyn Reader>>> {
        Ok(Save::open(folder, limits)?.map(|save| Box::new(save) as Box<dyn Reader>))
    }

    fn check(&self, source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
        check::check(source, limits, strict)
    }

    fn holds(&self) -> Option<Holds> {
        Some(Holds {
            rank: write::MOST_DIMENSIONS,
            order: Order::F,
            frames: false,
            dtype: plant::is_own_type,
            byte: DType::I8,
            name: plant::is_tag_name,
            adds: &[],
        })
    }

    fn write(&self, content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
        plant::write_tree(content, sink, limits)
    }

    fn salvage(&self, source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
        salvage::salvage(source, target, limits)
    }
}
