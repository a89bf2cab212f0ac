//! Reading checkpoints on any number of ranks.

use std::path::{Path, PathBuf};

use spile_core::comm::Comm;
use spile_core::convert::{self, Number};
use spile_core::limits::Budget;
use spile_core::tree::closest;
use spile_core::{Attrs, ByteOrder, DType, Error, Hint, Limits, Result, Shape, Value};
use zerocopy::IntoBytes;

use super::checkpoint::check_type;
use super::{Description, Field, Group, Visitor, shorten, visit};
use crate::buffers::Slots;
use crate::read_parallel::Cursor;
use crate::section::SectionHeader;
use crate::wire::Kind;

/// A field of a checkpoint.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Description.
    pub field: Field,
    /// Number of elements.
    pub count: u64,
    /// Type of the data section: A, V if elements have different numbers of items, or B for an array
    /// that is not split into elements.
    pub kind: Kind,
    position: u64,
}

/// Reads a checkpoint on the ranks of a job; their number may differ from that of the writing job.
/// Methods that take `&mut self` are collective.
pub struct Restart<'c> {
    comm: &'c dyn Comm,
    cursor: Cursor<'c>,
    path: PathBuf,
    limits: Limits,
    groups: Vec<Group>,
    fields: Vec<Stored>,
    /// Error of the first description that cannot be used.
    rejected: Option<String>,
    budget: Budget,
    scanned: bool,
}

impl<'c> Restart<'c> {
    /// Opens a checkpoint and reads the descriptions in it. `limits` apply to each rank: its elements of
    /// one field must fit. A description that cannot be used is skipped. If the file has checksums, each field is
    /// verified when it is read.
    pub fn open(comm: &'c dyn Comm, path: &Path, limits: &Limits) -> Result<Self> {
        let mut file = Self::from_cursor(comm, Cursor::open(comm, path, limits)?, limits);
        file.scan()?;
        Ok(file)
    }

    /// A checkpoint whose descriptions are read by [`Restart::scan`]. `cursor` is a cursor of `comm`; `limits` apply to
    /// the descriptions.
    pub fn from_cursor(comm: &'c dyn Comm, cursor: Cursor<'c>, limits: &Limits) -> Self {
        Self {
            comm,
            path: cursor.path().to_path_buf(),
            cursor,
            limits: *limits,
            groups: Vec::new(),
            fields: Vec::new(),
            rejected: None,
            budget: Budget::new(limits),
            scanned: false,
        }
    }

    /// Reads the descriptions of all fields, unless that has been done. The cursor does not move.
    pub fn scan(&mut self) -> Result<()> {
        if self.scanned {
            return Ok(());
        }
        self.scanned = true;
        let place = self.cursor.rewind();
        let visited = visit(self);
        self.cursor.restore(place);
        visited
    }

    /// The native reader. Reading a field moves it to the section behind the field.
    pub fn cursor(&mut self) -> &mut Cursor<'c> {
        &mut self.cursor
    }

    /// Name of the program that wrote the checkpoint.
    pub fn name(&self) -> Result<String> {
        self.value("name")
    }

    /// Version of the program's fields.
    pub fn version(&self) -> Result<u64> {
        self.value("version")
    }

    /// Fails unless program name and version are as given.
    pub fn expect(&self, name: &str, version: u64) -> Result<()> {
        let found = (self.name()?, self.version()?);
        if found == (name.into(), version) {
            return Ok(());
        }
        let message = format!(
            "expected a checkpoint of \"{name}\", version {version}, found \"{}\", version {}",
            found.0, found.1
        );
        Err(Error::argument(message).with_path(&self.path))
    }

    /// The fields in file order.
    pub fn fields(&self) -> &[Stored] {
        &self.fields
    }

    /// Attributes of the group `name`, or of the file if `name` is empty.
    pub fn attrs(&self, name: &str) -> Attrs {
        let groups = self.groups.iter().filter(|group| group.group == name);
        groups.flat_map(|group| group.attrs.clone()).collect()
    }

    /// A value written by [`Checkpoint::value`](crate::Checkpoint::value). Fails if it is missing or of
    /// another type.
    pub fn value<T: for<'v> TryFrom<&'v Value, Error = Error>>(&self, name: &str) -> Result<T> {
        let full = |group: &Group, last: &str| match group.group.as_str() {
            "" => last.to_string(),
            path => format!("{path}/{last}"),
        };
        let all =
            self.groups.iter().flat_map(|g| g.attrs.iter().map(move |(n, v)| (full(g, n), v)));
        let all: Vec<(String, &Value)> = all.collect();
        let found = match all.iter().find(|(path, _)| path == name) {
            Some((_, value)) => T::try_from(value),
            None => Err(self.missing("value", name, all.iter().map(|(p, _)| p.as_str()))),
        };
        found.map_err(|e| e.in_object(format!("value \"{name}\"")).with_path(&self.path))
    }

    /// The field named `name`.
    pub fn find(&self, name: &str) -> Result<&Stored> {
        let found = self.fields.iter().find(|stored| stored.field.name == name);
        found.ok_or_else(|| {
            let names = self.fields.iter().map(|stored| stored.field.name.as_str());
            self.missing("field", name, names)
                .in_object(format!("field \"{name}\""))
                .with_path(&self.path)
        })
    }

    fn missing<'n>(&self, what: &str, name: &str, names: impl Iterator<Item = &'n str>) -> Error {
        let error = Error::argument(format!("no {what} named \"{name}\""));
        let near = closest(name, names);
        match &self.rejected {
            _ if !near.is_empty() => error.hint(Hint::DidYouMean(near)),
            Some(why) => error.hint(format!("a description cannot be used: {why}")),
            None => error.hint(Hint::ListObjects),
        }
    }

    /// Reads this rank's elements of a field in file order. `counts` is the number of elements of each
    /// rank. Fails if type, element shape or version in the file differ from `field`.
    pub fn read<T: Number + IntoBytes>(&mut self, field: &Field, counts: &[u64]) -> Result<Vec<T>> {
        let prepared = self.open_field(field, counts, Kind::Array, |file, stored| {
            check_type::<T>(field.dtype)?;
            let mine = counts.get(file.comm.rank()).copied().unwrap_or(0);
            let values = file.allocate::<T>(mine.saturating_mul(field.bytes()?))?;
            Ok((stored.field.dtype, values))
        });
        let (dtype, mut values) = prepared?;
        let into = Slots::Contiguous(values.as_mut_bytes());
        self.cursor.array_into(counts, Some(into)).map_err(|e| e.in_object(field.title()))?;
        to_native(dtype, values.as_mut_bytes());
        Ok(values)
    }

    /// Reads this rank's elements of a ragged field: the number of items of each element, and the values
    /// of all items in file order. Arguments and errors as for [`Restart::read`].
    pub fn read_ragged<T: Number + IntoBytes>(
        &mut self,
        field: &Field,
        counts: &[u64],
    ) -> Result<(Vec<u64>, Vec<T>)> {
        let prepared = self.open_field(field, counts, Kind::Varray, |_, stored| {
            check_type::<T>(field.dtype)?;
            Ok((stored.position, stored.field.dtype, field.bytes()?))
        });
        let (position, dtype, item) = prepared?;
        let title = |e: Error| e.in_object(field.title());
        let mut sizes = self.cursor.sizes(counts).map_err(title)?;
        let total = sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
        let buffer = to_lengths(&mut sizes, item)
            .map_err(|e| e.at(position).in_object(field.title()))
            .and_then(|()| self.allocate::<T>(total));
        let mut values = self.agree(field, counts, buffer)?;
        let into = Slots::Contiguous(values.as_mut_bytes());
        self.cursor.varray_into(counts, Some(into)).map_err(title)?;
        to_native(dtype, values.as_mut_bytes());
        Ok((sizes, values))
    }

    /// Reads this rank's elements of a field of any type as bytes in the byte order of the file. Arguments
    /// and errors as for [`Restart::read`].
    pub fn elements(&mut self, field: &Field, counts: &[u64]) -> Result<Vec<u8>> {
        self.open_field(field, counts, Kind::Array, |_, _| Ok(()))?;
        self.cursor.array(counts).map_err(|e| e.in_object(field.title()))
    }

    /// Reads this rank's elements of a ragged field of any type: their sizes in bytes, and their bytes in
    /// the byte order of the file.
    pub fn ragged_elements(
        &mut self,
        field: &Field,
        counts: &[u64],
    ) -> Result<(Vec<u64>, Vec<u8>)> {
        self.open_field(field, counts, Kind::Varray, |_, _| Ok(()))?;
        let sizes = self.cursor.sizes(counts).map_err(|e| e.in_object(field.title()))?;
        let bytes = self.cursor.varray(counts).map_err(|e| e.in_object(field.title()))?;
        Ok((sizes, bytes))
    }

    /// Reads this rank's elements of a field of any type into `into`, in native byte order; a rank that passes `None`
    /// reads nothing. Arguments and errors as for [`Restart::read`].
    pub fn elements_into(
        &mut self,
        field: &Field,
        counts: &[u64],
        mut into: Option<Slots<'_, '_>>,
    ) -> Result<()> {
        let dtype =
            self.open_field(field, counts, Kind::Array, |_, stored| Ok(stored.field.dtype))?;
        let slots = into.as_mut().map(Slots::by_ref);
        self.cursor.array_into(counts, slots).map_err(|e| e.in_object(field.title()))?;
        if let Some(mut into) = into {
            into.for_each(|bytes| to_native(dtype, bytes));
        }
        Ok(())
    }

    /// Reads the number of items of each of this rank's elements of a ragged field. The items are read by
    /// [`Restart::items_into`].
    pub fn lengths(&mut self, field: &Field, counts: &[u64]) -> Result<Vec<u64>> {
        let prepared = self.open_field(field, counts, Kind::Varray, |_, stored| {
            Ok((stored.position, field.bytes()?))
        });
        let (position, item) = prepared?;
        let mut sizes = self.cursor.sizes(counts).map_err(|e| e.in_object(field.title()))?;
        let checked = to_lengths(&mut sizes, item).map_err(|e| e.at(position));
        self.agree(field, counts, checked.map_err(|e| e.in_object(field.title())))?;
        Ok(sizes)
    }

    /// Reads the items of this rank's elements into `into`, in native byte order, after [`Restart::lengths`] with the
    /// same arguments. A rank that passes `None` reads nothing.
    pub fn items_into(
        &mut self,
        field: &Field,
        counts: &[u64],
        mut into: Option<Slots<'_, '_>>,
    ) -> Result<()> {
        let dtype = self.find_expected(field, Kind::Varray).map(|stored| stored.field.dtype);
        let dtype = self.agree(field, counts, dtype)?;
        let slots = into.as_mut().map(Slots::by_ref);
        self.cursor.varray_into(counts, slots).map_err(|e| e.in_object(field.title()))?;
        if let Some(mut into) = into {
            into.for_each(|bytes| to_native(dtype, bytes));
        }
        Ok(())
    }

    /// Reads the header of the data section of a field. All ranks agree on the result of `prepare`, which
    /// is called with the stored field.
    fn open_field<R>(
        &mut self,
        field: &Field,
        counts: &[u64],
        kind: Kind,
        prepare: impl FnOnce(&Self, &Stored) -> Result<R>,
    ) -> Result<R> {
        let prepared = self.find_expected(field, kind).and_then(|stored| {
            let prepared = prepare(self, stored).map_err(|e| e.in_object(field.title()))?;
            Ok((stored.position, prepared))
        });
        let (position, prepared) = self.agree(field, counts, prepared)?;
        self.cursor.verify(position).map_err(|e| e.in_object(field.title()))?;
        self.cursor.go_to(position);
        self.cursor.read_header(true)?;
        Ok(prepared)
    }

    /// The stored field. Fails if it is missing or differs from `field`, or is in another type of section.
    fn find_expected(&self, field: &Field, kind: Kind) -> Result<&Stored> {
        let stored = self.find(&field.name)?;
        stored.field.check_expected(field)?;
        if stored.kind == kind {
            return Ok(stored);
        }
        let error = |message: &str| Error::argument(message).in_object(field.title());
        Err(match stored.kind {
            Kind::Array => error("the elements are of equal size")
                .hint("read it as a field with elements of equal size"),
            Kind::Varray => {
                error("the elements are of different sizes").hint("read it as a ragged field")
            }
            _ => error("the field is not split into elements"),
        })
    }

    fn allocate<T: Number>(&self, bytes: u64) -> Result<Vec<T>> {
        let bytes = self.limits.allow(bytes, "the data of one rank")?;
        Ok(vec![T::new_zeroed(); bytes / T::SIZE])
    }

    fn agree<T>(&self, field: &Field, counts: &[u64], mine: Result<T>) -> Result<T> {
        self.cursor.agree_alike(mine, (&field.name, counts))
    }
}

impl Visitor for Restart<'_> {
    /// A header and the position of its section.
    type Section = (SectionHeader, u64);

    fn next(&mut self) -> Result<Option<Self::Section>> {
        let header = self.cursor.read_header(true)?;
        Ok(header.map(|header| (header, self.cursor.position())))
    }

    fn header<'s>(&'s self, section: &'s Self::Section) -> (Kind, &'s [u8], u64, u64) {
        let header = &section.0;
        (header.kind, &header.user, header.count, header.size)
    }

    fn text(&mut self, section: &Self::Section) -> Result<Vec<u8>> {
        let (header, position) = section;
        self.cursor.verify(*position)?;
        let size = header.size;
        let allowed = Description::allow(size, &self.limits)
            .and_then(|()| self.budget.charge(size.saturating_mul(16), "the list of descriptions"));
        // All ranks parse the same bytes and need not agree on the result.
        self.cursor.block_on_all(allowed)
    }

    fn plain(&mut self, _: &Self::Section) -> Result<()> {
        Ok(())
    }

    fn group(&mut self, group: Group) -> Result<()> {
        self.groups.push(group);
        Ok(())
    }

    fn field(&mut self, mut field: Field, _: Shape, data: &Self::Section) -> Result<()> {
        let (header, position) = data;
        field.compressed = header.decoded;
        let (count, kind, position) = (header.count, header.kind, *position);
        self.fields.push(Stored { field, count, kind, position });
        Ok(())
    }

    fn reject(&mut self, _: &Self::Section, why: &Error) -> Result<()> {
        self.rejected.get_or_insert_with(|| shorten(why.message()));
        Ok(())
    }
}

/// Replaces sizes in bytes by numbers of items of `item` bytes.
fn to_lengths(sizes: &mut [u64], item: u64) -> Result<()> {
    if let Some(size) = sizes.iter().find(|size| !size.is_multiple_of(item)) {
        let message = format!("expected items of {item} bytes, found an element of {size} bytes");
        return Err(Error::malformed("scda-012", message));
    }
    for size in sizes {
        *size = size.checked_div(item).unwrap_or(0);
    }
    Ok(())
}

fn to_native(dtype: DType, bytes: &mut [u8]) {
    if dtype.needs_swap(ByteOrder::NATIVE) {
        convert::swap(bytes, dtype.word());
    }
}
