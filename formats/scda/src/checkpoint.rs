//! Checkpoints: a program writes its fields by name on some ranks and reads them on others.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use spile_core::comm::{Comm, agree, agree_alike};
use spile_core::convert::{self, Number};
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::tree::{Attrs, Value, closest};
use spile_core::wire::ByteOrder;
use zerocopy::IntoBytes;

use crate::elements::{Elements, Slots};
use crate::partition::{Cursor, SectionHeader};
use crate::schema::{Described, Field, Group};
use crate::wire::Kind;
use crate::write::{Options, Writer};

/// A checkpoint being written by the ranks of a job. Every method is collective; the file appears
/// with [`Checkpoint::close`], whole, and its bytes do not depend on the number of ranks.
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
    comm: &'c dyn Comm,
    writer: Writer<'c>,
    names: HashSet<String>,
}

impl<'c> Checkpoint<'c> {
    /// Starts a checkpoint of the program `name`, whose fields are those of `version`.
    pub fn create(
        comm: &'c dyn Comm,
        path: &Path,
        name: &str,
        version: u64,
        options: Options,
    ) -> Result<Self> {
        let writer = Writer::create(comm, path, name.as_bytes(), options)?;
        let mut file = Self { comm, writer, names: HashSet::new() };
        let attrs = vec![("name".into(), name.into()), ("version".into(), version.into())];
        let group = Group { group: String::new(), attrs };
        describe(comm, &mut file.writer, Ok(Described::Group(group)))?;
        Ok(file)
    }

    /// Writes one value, the same on every rank: a step, a time, a parameter. A name with slashes
    /// is about a group.
    pub fn value(&mut self, name: &str, value: impl Into<Value>) -> Result<()> {
        let (group, last) = name.rsplit_once('/').unwrap_or(("", name));
        let attrs = vec![(last.into(), value.into())];
        let group = Described::Group(Group { group: group.into(), attrs });
        let checked = if last.is_empty() { Err(no_name()) } else { Ok(group) };
        describe(self.comm, &mut self.writer, checked)
    }

    /// Writes the elements of a field; `counts` are the elements of each rank, `mine` the numbers
    /// of this one.
    pub fn write<T: Number + IntoBytes>(
        &mut self,
        field: &Field,
        counts: &[u64],
        mine: &[T],
    ) -> Result<()> {
        let field = typed::<T>(field);
        let field = agree_alike(self.comm, field, ())?;
        self.elements(&field, counts, Elements::Contiguous(&little(mine)))
    }

    /// [`Checkpoint::write`] for elements of any type, as bytes in the order that the field says.
    pub fn elements(&mut self, field: &Field, counts: &[u64], mine: Elements<'_>) -> Result<()> {
        let total = counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
        let size = self.start(field, Kind::Array, total)?;
        let written = self.writer.array(field.user(), counts, size, mine, field.compressed);
        written.map_err(|e| e.in_object(field.title()))
    }

    /// Writes a field whose elements have different numbers of items: `lengths` are those of this
    /// rank's elements.
    pub fn write_ragged<T: Number + IntoBytes>(
        &mut self,
        field: &Field,
        counts: &[u64],
        lengths: &[u64],
        mine: &[T],
    ) -> Result<()> {
        let field = typed::<T>(field);
        let field = agree_alike(self.comm, field, ())?;
        self.ragged_elements(&field, counts, lengths, Elements::Contiguous(&little(mine)))
    }

    /// [`Checkpoint::write_ragged`] for items of any type, as bytes in the order that the field
    /// says.
    pub fn ragged_elements(
        &mut self,
        field: &Field,
        counts: &[u64],
        lengths: &[u64],
        mine: Elements<'_>,
    ) -> Result<()> {
        let total = counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
        let item = self.start(field, Kind::Varray, total)?;
        // A length that is too large fails in the writer, which compares with the data.
        let sizes: Vec<u64> = lengths.iter().map(|length| length.saturating_mul(item)).collect();
        let written = self.writer.varray(field.user(), counts, &sizes, mine, field.compressed);
        written.map_err(|e| e.in_object(field.title()))
    }

    /// Writes the description of a field and gives the bytes of an element.
    fn start(&mut self, field: &Field, kind: Kind, count: u64) -> Result<u64> {
        let checked = || {
            field.whole(kind, count, field.bytes()?).map_err(|e| Error::argument(e.message()))?;
            if self.names.contains(&field.name) {
                return Err(Error::argument("there is a field of that name already"));
            }
            Ok(Described::Field(Box::new(field.clone())))
        };
        let described = checked().map_err(|e| e.in_object(field.title()));
        describe(self.comm, &mut self.writer, described)?;
        self.names.insert(field.name.clone());
        field.bytes()
    }

    /// The native writer, to put sections of one's own between the fields.
    pub fn writer(&mut self) -> &mut Writer<'c> {
        &mut self.writer
    }

    /// Makes the file appear.
    pub fn close(self) -> Result<()> {
        self.writer.close()
    }
}

/// Writes a description, the same on every rank.
pub(crate) fn describe(
    comm: &dyn Comm,
    writer: &mut Writer<'_>,
    what: Result<Described>,
) -> Result<()> {
    let text = what.and_then(|described| described.text());
    let same = text.as_ref().map_or_else(|_| String::new(), |(_, text)| text.clone());
    let (user, text) = agree_alike(comm, text, same)?;
    writer.block(user, 0, text.len() as u64, Some(text.as_bytes()), false)
}

fn no_name() -> Error {
    Error::argument("a value has to have a name")
}

/// The field with numbers of type `T` as we write them.
fn typed<T: Number>(field: &Field) -> Result<Field> {
    fits::<T>(field.dtype).map_err(|e| e.in_object(field.title()))?;
    Ok(Field { dtype: T::DTYPE, ..field.clone() })
}

fn fits<T: Number>(dtype: DType) -> Result<()> {
    if (dtype.kind(), dtype.size()) == (T::DTYPE.kind(), T::DTYPE.size()) {
        return Ok(());
    }
    Err(Error::argument(format!("its numbers are {dtype}, those in memory {}", T::DTYPE)))
}

/// Numbers as little-endian bytes.
fn little<T: Number + IntoBytes>(numbers: &[T]) -> Cow<'_, [u8]> {
    let bytes = numbers.as_bytes();
    if ByteOrder::NATIVE == ByteOrder::Little {
        return Cow::Borrowed(bytes);
    }
    let mut bytes = bytes.to_vec();
    convert::swap(&mut bytes, T::SIZE);
    Cow::Owned(bytes)
}

/// A field of a checkpoint.
#[derive(Clone, Debug)]
pub struct Stored {
    /// What is said about it.
    pub field: Field,
    /// Number of elements.
    pub count: u64,
    /// The section that holds it: A, V where elements have different numbers of items, or B for
    /// an array that is not split into elements.
    pub kind: Kind,
    position: u64,
}

/// A checkpoint being read by the ranks of a job, whose number need not be that of the ranks that
/// wrote it. Every method but those that only look is collective.
pub struct Restart<'c> {
    comm: &'c dyn Comm,
    cursor: Cursor<'c>,
    path: PathBuf,
    limits: Limits,
    groups: Vec<Group>,
    fields: Vec<Stored>,
    /// Why the first description that could not be used could not.
    doubt: Option<String>,
    /// Bytes of all descriptions.
    described: u64,
}

impl<'c> Restart<'c> {
    /// Opens a checkpoint and finds what is in it. `limits` are for each rank: its elements of one
    /// field have to fit their memory.
    pub fn open(comm: &'c dyn Comm, path: &Path, limits: &Limits) -> Result<Self> {
        let mut file = Self {
            comm,
            cursor: Cursor::open(comm, path, limits)?,
            path: path.to_path_buf(),
            limits: *limits,
            groups: Vec::new(),
            fields: Vec::new(),
            doubt: None,
            described: 0,
        };
        let mut next = file.cursor.next(true)?;
        while let Some(section) = next {
            next = match file.description(&section)? {
                None => file.cursor.next(true)?,
                Some(Described::Group(group)) => {
                    file.groups.push(group);
                    file.cursor.next(true)?
                }
                Some(Described::Field(field)) => file.field(*field)?,
            };
        }
        Ok(file)
    }

    /// The description in a section, if it is one.
    fn description(&mut self, section: &SectionHeader) -> Result<Option<Described>> {
        if !Described::announced(section.kind, &section.user) {
            return Ok(None);
        }
        self.described = self.described.saturating_add(section.size);
        let kept = self.described.saturating_mul(16);
        let allowed = Described::allow(section.size, &self.limits)
            .and_then(|()| self.limits.allow(kept, "the descriptions").map(drop));
        agree(self.comm, allowed.map_err(|e| e.with_path(&self.path)))?;
        // From here on all ranks have the same bytes.
        let text = self.cursor.block(0)?.unwrap_or_default();
        let text = self.comm.broadcast(0, &text)?;
        match Described::parse(&section.user, &text) {
            Ok(described) => Ok(Some(described)),
            Err(why) => {
                self.doubt.get_or_insert_with(|| why.message().into());
                Ok(None)
            }
        }
    }

    /// Looks at the section behind a description; gives the one that is next.
    fn field(&mut self, mut field: Field) -> Result<Option<SectionHeader>> {
        let next = self.cursor.next(true)?;
        let Some(data) = &next else {
            self.doubt.get_or_insert_with(|| format!("no data follow the {}", field.title()));
            return Ok(None);
        };
        if let Err(why) = field.whole(data.kind, data.count, data.size) {
            let why = format!("{}: {}", field.title(), why.message());
            self.doubt.get_or_insert(why);
            return Ok(next);
        }
        field.compressed = data.decoded;
        let (count, kind) = (data.count, data.kind);
        self.fields.push(Stored { field, count, kind, position: self.cursor.position() });
        self.cursor.next(true)
    }

    /// The program whose checkpoint it is, as it called itself.
    pub fn name(&self) -> Result<String> {
        self.value("name")
    }

    /// The version of the program's fields.
    pub fn version(&self) -> Result<u64> {
        self.value("version")
    }

    /// Fails unless it is a checkpoint of this program in this version.
    pub fn expect(&self, name: &str, version: u64) -> Result<()> {
        let found = (self.name()?, self.version()?);
        if found == (name.into(), version) {
            return Ok(());
        }
        let (theirs, number) = found;
        let message = format!(
            "a checkpoint of \"{theirs}\", version {number}, where \"{name}\", version {version}, is expected"
        );
        Err(Error::argument(message).with_path(&self.path))
    }

    /// The fields, in the order of the file.
    pub fn fields(&self) -> &[Stored] {
        &self.fields
    }

    /// The attributes of the group `name`; of the file for "".
    pub fn attrs(&self, name: &str) -> Attrs {
        let groups = self.groups.iter().filter(|group| group.group == name);
        groups.flat_map(|group| group.attrs.clone()).collect()
    }

    /// A value that [`Checkpoint::value`] wrote.
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
            None => Err(self.missing(
                "there is no such value",
                name,
                all.iter().map(|(p, _)| p.as_str()),
            )),
        };
        found.map_err(|e| e.in_object(format!("value \"{name}\"")).with_path(&self.path))
    }

    /// The field of that name.
    pub fn find(&self, name: &str) -> Result<&Stored> {
        let found = self.fields.iter().find(|stored| stored.field.name == name);
        found.ok_or_else(|| {
            let names = self.fields.iter().map(|stored| stored.field.name.as_str());
            self.missing("there is no such field", name, names)
                .in_object(format!("field \"{name}\""))
                .with_path(&self.path)
        })
    }

    fn missing<'n>(&self, what: &str, name: &str, names: impl Iterator<Item = &'n str>) -> Error {
        let error = Error::argument(what);
        let near = closest(name, names);
        match &self.doubt {
            _ if !near.is_empty() => error.hint(format!("did you mean {}?", near.join(" or "))),
            Some(why) => error.hint(format!("a description could not be used: {why}")),
            None => error.hint("`spile ls` lists what there is"),
        }
    }

    /// This rank's elements of a field, whose type, shape and version have to be those of `field`.
    /// `counts` are the elements of each rank.
    pub fn read<T: Number + IntoBytes>(&mut self, field: &Field, counts: &[u64]) -> Result<Vec<T>> {
        let room = self.wanted::<T>(field, Kind::Array).and_then(|stored| {
            let mine = counts.get(self.comm.rank()).copied().unwrap_or(0);
            let numbers = self.room::<T>(mine.saturating_mul(field.bytes()?))?;
            Ok((stored.position, stored.field.dtype, numbers))
        });
        let (position, dtype, mut numbers) = self.settle(field, counts, room)?;
        self.go_to(position)?;
        let into = Slots::Contiguous(numbers.as_mut_bytes());
        self.cursor.array_into(counts, Some(into)).map_err(|e| e.in_object(field.title()))?;
        to_native(dtype, numbers.as_mut_bytes());
        Ok(numbers)
    }

    /// The numbers of items of this rank's elements, and all their numbers.
    pub fn read_ragged<T: Number + IntoBytes>(
        &mut self,
        field: &Field,
        counts: &[u64],
    ) -> Result<(Vec<u64>, Vec<T>)> {
        let place = self.wanted::<T>(field, Kind::Varray);
        let place =
            place.and_then(|stored| Ok((stored.position, stored.field.dtype, field.bytes()?)));
        let (position, dtype, item) = self.settle(field, counts, place)?;
        self.go_to(position)?;
        let title = |e: Error| e.in_object(field.title());
        let sizes = self.cursor.sizes(counts).map_err(title)?;
        let room = match sizes.iter().find(|size| !size.is_multiple_of(item)) {
            Some(size) => {
                let message = format!("an element of {size} bytes is not made of items of {item}");
                Err(Error::malformed("scda-012", message).at(position).in_object(field.title()))
            }
            None => {
                self.room::<T>(sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size)))
            }
        };
        let mut numbers = self.settle(field, counts, room)?;
        let into = Slots::Contiguous(numbers.as_mut_bytes());
        self.cursor.varray_into(counts, Some(into)).map_err(title)?;
        to_native(dtype, numbers.as_mut_bytes());
        Ok((sizes.iter().map(|size| size.checked_div(item).unwrap_or(0)).collect(), numbers))
    }

    /// [`Restart::read`] for elements of any type: their bytes, in the file's own byte order.
    pub fn elements(&mut self, field: &Field, counts: &[u64]) -> Result<Vec<u8>> {
        let place = self.served(field, Kind::Array).map(|stored| stored.position);
        let position = self.settle(field, counts, place)?;
        self.go_to(position)?;
        self.cursor.array(counts).map_err(|e| e.in_object(field.title()))
    }

    /// [`Restart::read_ragged`] for items of any type: the sizes of the elements and their bytes.
    pub fn ragged_elements(
        &mut self,
        field: &Field,
        counts: &[u64],
    ) -> Result<(Vec<u64>, Vec<u8>)> {
        let place = self.served(field, Kind::Varray).map(|stored| stored.position);
        let position = self.settle(field, counts, place)?;
        self.go_to(position)?;
        let sizes = self.cursor.sizes(counts).map_err(|e| e.in_object(field.title()))?;
        let bytes = self.cursor.varray(counts).map_err(|e| e.in_object(field.title()))?;
        Ok((sizes, bytes))
    }

    fn wanted<T: Number>(&self, field: &Field, kind: Kind) -> Result<&Stored> {
        fits::<T>(field.dtype).map_err(|e| e.in_object(field.title()))?;
        self.served(field, kind)
    }

    /// The field that a program expects, if it is what the program expects.
    fn served(&self, field: &Field, kind: Kind) -> Result<&Stored> {
        let stored = self.find(&field.name)?;
        stored.field.serves(field)?;
        if stored.kind == kind {
            return Ok(stored);
        }
        let error = Error::argument(match stored.kind {
            Kind::Array => "its elements are all of one size",
            Kind::Varray => "its elements are of different sizes",
            _ => "it is not split into elements",
        });
        let error = error.in_object(field.title());
        Err(match stored.kind {
            Kind::Array => error.hint("`read` reads them"),
            Kind::Varray => error.hint("`read_ragged` reads them"),
            _ => error,
        })
    }

    fn room<T: Number>(&self, bytes: u64) -> Result<Vec<T>> {
        let bytes = self.limits.allow(bytes, "the elements of one rank")?;
        Ok(vec![T::new_zeroed(); bytes / T::SIZE])
    }

    fn settle<T>(&self, field: &Field, counts: &[u64], mine: Result<T>) -> Result<T> {
        let mine = mine.map_err(|e| e.with_path(&self.path));
        agree_alike(self.comm, mine, (&field.name, counts))
    }

    /// Goes to the data of a field.
    fn go_to(&mut self, position: u64) -> Result<()> {
        self.cursor.go_to(position);
        self.cursor.next(true).map(drop)
    }
}

fn to_native(dtype: DType, bytes: &mut [u8]) {
    if dtype.needs_swap(ByteOrder::NATIVE) {
        convert::swap(bytes, dtype.word());
    }
}
