//! Writing checkpoints: fields by name, values and attributes.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use spile_core::comm::Comm;
use spile_core::convert::{self, Number};
use spile_core::{Attrs, ByteOrder, DType, Error, Result, Value};
use zerocopy::IntoBytes;

use super::{Description, Field, Group};
use crate::buffers::Elements;
use crate::wire::Kind;
use crate::write::{Options, Writer};

/// Writes a checkpoint on all ranks of a job. Every method is collective. The file is created
/// atomically by [`Checkpoint::close`]; its bytes do not depend on the number of ranks.
///
/// ```
/// use spile_core::{comm::{Comm, Serial, Threads}, limits::Limits};
/// use spile_scda::{Checkpoint, Field, Options, Restart};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("state.scda");
/// let field = Field::of::<i32>("charge").version(1).attr("units", "e");
/// let saved = Threads::run(3, |comm| {
///     let mut file = Checkpoint::create(comm, &path, "example", 1, Options::default())?;
///     file.value("step", 7_u64)?;
///     file.write(&field, &[1, 1, 2], &vec![comm.rank() as i32; 1 + comm.rank() / 2])?;
///     file.close()
/// });
/// assert!(saved.iter().all(Result::is_ok));
///
/// let mut file = Restart::open(&Serial, &path, &Limits::default())?;
/// assert_eq!(file.value::<u64>("step")?, 7);
/// assert_eq!(file.read::<i32>(&field, &[4])?, [0, 1, 2, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Checkpoint<'c> {
    writer: Writer<'c>,
    names: HashSet<String>,
}

impl<'c> Checkpoint<'c> {
    /// Starts a checkpoint with the name of the program and the version of its fields.
    pub fn create(
        comm: &'c dyn Comm,
        path: &Path,
        name: &str,
        version: u64,
        options: Options,
    ) -> Result<Self> {
        let writer = Writer::create(comm, path, name.as_bytes(), options)?;
        let mut file = Self::from_writer(writer);
        file.group("", Attrs::from([("name", name.into()), ("version", version.into())]))?;
        Ok(file)
    }

    /// Writes fields with `writer`, without name and version of a program.
    pub fn from_writer(writer: Writer<'c>) -> Self {
        Self { writer, names: HashSet::new() }
    }

    /// Writes attributes of the group `path`, or of the file if the path is empty. They are the same on every rank.
    pub fn group(&mut self, path: &str, attrs: Attrs) -> Result<()> {
        let group = Group { group: path.into(), attrs };
        describe(&mut self.writer, Ok(Description::Group(group)))
    }

    /// Writes one value, which must be the same on every rank: a step, a time, a parameter. In a name
    /// with slashes the part before the last slash is the group.
    pub fn value(&mut self, name: &str, value: impl Into<Value>) -> Result<()> {
        let (group, last) = name.rsplit_once('/').unwrap_or(("", name));
        let attrs = Attrs::from([(last, value.into())]);
        let named = if last.is_empty() {
            Err(Error::argument("the name of a value is empty"))
        } else {
            Ok(Description::Group(Group { group: group.into(), attrs }))
        };
        describe(&mut self.writer, named)
    }

    /// Writes the elements of a field. `counts` is the number of elements of each rank, `mine` the
    /// values of this rank.
    pub fn write<T: Number + IntoBytes>(
        &mut self,
        field: &Field,
        counts: &[u64],
        mine: &[T],
    ) -> Result<()> {
        let mine = to_little_endian(mine);
        self.put(with_type::<T>(field), counts, Elements::Contiguous(&mine))
    }

    /// Writes the elements of a field of any type as bytes in the byte order of the field's type.
    /// `counts` is the number of elements of each rank, `mine` the elements of this rank.
    pub fn elements(&mut self, field: &Field, counts: &[u64], mine: Elements<'_>) -> Result<()> {
        self.put(Ok(field.clone()), counts, mine)
    }

    /// Writes a field; an error of `field` on one rank is returned on all.
    fn put(&mut self, field: Result<Field>, counts: &[u64], mine: Elements<'_>) -> Result<()> {
        let (field, size) = self.begin_field(field, Kind::Array, counts)?;
        let written = self.writer.array(field.user(), counts, size, mine, field.compressed);
        written.map_err(|e| e.in_object(field.title()))
    }

    /// Writes a field whose elements have different numbers of items. `counts` is the number of elements
    /// of each rank, `lengths` the number of items of each element of this rank, `mine` their values.
    pub fn write_ragged<T: Number + IntoBytes>(
        &mut self,
        field: &Field,
        counts: &[u64],
        lengths: &[u64],
        mine: &[T],
    ) -> Result<()> {
        let mine = to_little_endian(mine);
        let mine = Elements::Contiguous(&mine);
        self.put_ragged(with_type::<T>(field), counts, lengths, mine)
    }

    /// Writes a ragged field of any type as bytes in the byte order of the field's type. Arguments as for
    /// [`Checkpoint::write_ragged`].
    pub fn ragged_elements(
        &mut self,
        field: &Field,
        counts: &[u64],
        lengths: &[u64],
        mine: Elements<'_>,
    ) -> Result<()> {
        self.put_ragged(Ok(field.clone()), counts, lengths, mine)
    }

    /// Writes a ragged field; an error of `field` on one rank is returned on all.
    fn put_ragged(
        &mut self,
        field: Result<Field>,
        counts: &[u64],
        lengths: &[u64],
        mine: Elements<'_>,
    ) -> Result<()> {
        let (field, item) = self.begin_field(field, Kind::Varray, counts)?;
        // The writer fails if a saturated size does not match the data.
        let sizes: Vec<u64> = lengths.iter().map(|length| length.saturating_mul(item)).collect();
        let written = self.writer.varray(field.user(), counts, &sizes, mine, field.compressed);
        written.map_err(|e| e.in_object(field.title()))
    }

    /// Writes the description of a field; returns the field and the bytes of an element.
    fn begin_field(
        &mut self,
        field: Result<Field>,
        kind: Kind,
        counts: &[u64],
    ) -> Result<(Field, u64)> {
        let total = counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
        let checked = |field: &Field| {
            let size = field.bytes()?;
            field.array_shape(kind, total, size).map_err(|e| Error::argument(e.message()))?;
            if self.names.contains(&field.name) {
                return Err(Error::argument("a field of this name already exists"));
            }
            Ok(size)
        };
        let checked = field.and_then(|field| {
            let size = checked(&field).map_err(|e| e.in_object(field.title()))?;
            Ok((field, size))
        });
        let (described, begun) = match checked {
            Ok((field, size)) => {
                (Ok(Description::Field(Box::new(field.clone()))), Some((field, size)))
            }
            Err(error) => (Err(error), None),
        };
        describe(&mut self.writer, described)?;
        let (field, size) = begun.ok_or_else(|| Error::argument("the field is not described"))?;
        self.names.insert(field.name.clone());
        Ok((field, size))
    }

    /// The native writer, for additional sections between the fields.
    pub fn writer(&mut self) -> &mut Writer<'c> {
        &mut self.writer
    }

    /// Completes the file.
    pub fn close(self) -> Result<()> {
        self.writer.close()
    }
}

/// Writes a description, which must be the same on every rank; an error of one rank is returned on all.
pub(crate) fn describe(writer: &mut Writer<'_>, description: Result<Description>) -> Result<()> {
    let text = description.and_then(|description| description.text());
    let (checked, user, text) = match text {
        Ok((user, text)) => (Ok(()), user, text),
        Err(error) => (Err(error), &[][..], String::new()),
    };
    writer.prepare_more(&text, checked);
    writer.block(user, 0, text.len() as u64, Some(text.as_bytes()), false)
}

/// The field with little-endian values of type `T`.
fn with_type<T: Number>(field: &Field) -> Result<Field> {
    check_type::<T>(field.dtype).map_err(|e| e.in_object(field.title()))?;
    Ok(Field { dtype: T::DTYPE, ..field.clone() })
}

pub(super) fn check_type<T: Number>(dtype: DType) -> Result<()> {
    if (dtype.kind(), dtype.size()) == (T::DTYPE.kind(), T::DTYPE.size()) {
        return Ok(());
    }
    Err(Error::argument(format!("expected values of type {dtype}, found {}", T::DTYPE)))
}

/// The values as little-endian bytes.
fn to_little_endian<T: Number + IntoBytes>(values: &[T]) -> Cow<'_, [u8]> {
    let bytes = values.as_bytes();
    if ByteOrder::NATIVE == ByteOrder::Little {
        return Cow::Borrowed(bytes);
    }
    let mut bytes = bytes.to_vec();
    convert::swap(&mut bytes, T::SIZE);
    Cow::Owned(bytes)
}
