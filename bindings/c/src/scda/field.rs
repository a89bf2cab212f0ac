//! Named fields.

use std::ffi::{c_char, c_int, c_void};

use spile_core::comm::{Comm, agree_alike};
use spile_core::error::{Error, Result};
use spile_core::tree::Value;
use spile_core::{Attrs, DType};
use spile_scda::wire::Kind;
use spile_scda::{Elements, Field, Slots, attrs_from_json, attrs_to_json};

use super::{Handle, ScdaFile, with};
use crate::memory::{bytes, bytes_mut, c_string, indirect, indirect_mut, integers, put};

/// `scda_field_t`.
#[repr(C)]
pub struct CallerField {
    name: *const c_char,
    kind: *const c_char,
    rank: c_int,
    shape: *const u64,
    version: u64,
    attrs: *const c_char,
    encode: c_int,
}

/// Dimensions of [`FieldInfo::shape`].
const RANK: usize = 8;

/// `scda_field_info_t`.
#[repr(C)]
pub struct FieldInfo {
    section: c_char,
    encoded: c_int,
    count: u64,
    size: u64,
    kind: [c_char; 16],
    rank: c_int,
    shape: [u64; RANK],
    version: u64,
}

/// The text of a C string.
///
/// # Safety
/// `text` is null or ends with a NUL.
unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str> {
    // SAFETY: condition of this function.
    let text = unsafe { c_string(text) };
    std::str::from_utf8(text).map_err(|_| Error::argument(format!("{what} is not UTF-8")))
}

/// The field of a description.
///
/// # Safety
/// `field` is null or valid.
unsafe fn field(field: *const CallerField) -> Result<Field> {
    // SAFETY: condition of this function.
    unsafe {
        let field = field.as_ref().ok_or_else(|| Error::argument("the field is NULL"))?;
        let (name, kind) = (text(field.name, "a name")?, text(field.kind, "a type")?);
        let dtype = DType::from_numpy(kind).ok_or_else(|| {
            let message =
                format!("expected a type in NumPy notation such as <f8, found \"{kind}\"");
            Error::argument(message)
        })?;
        let rank = u64::try_from(field.rank)
            .map_err(|_| Error::argument("the number of dimensions is negative"))?;
        let shape = integers(field.shape, rank);
        if shape.len() as u64 != rank {
            return Err(Error::argument(format!("expected a shape of {rank} dimensions")));
        }
        let mut own = Field::new(name, dtype).shaped(shape);
        if field.version > 0 {
            own = own.version(field.version);
        }
        if !field.attrs.is_null() {
            own.attrs.extend(attrs_from_json(text(field.attrs, "attributes")?)?);
        }
        own.compressed = field.encode != 0;
        Ok(own)
    }
}

impl ScdaFile {
    /// Elements of this rank, if `counts` is a partition of `total` elements; otherwise 0, and the library rejects
    /// `counts`.
    fn part_of(&self, counts: &[u64], total: Option<u64>) -> u64 {
        let sum = counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        let mine = counts.get(self.rank()).copied();
        mine.filter(|_| sum.is_some() && (total.is_none() || sum == total)).unwrap_or(0)
    }
}

/// The field of a description, the bytes of an element, and whether it is valid. The next call fails on all ranks if it
/// is not on one.
///
/// # Safety
/// `description` is null or valid.
unsafe fn checked_field(description: *const CallerField) -> (Field, u64, Result<()>) {
    // SAFETY: condition of this function.
    let field = unsafe { field(description) };
    let sized = field.and_then(|field| {
        let size = field.bytes()?;
        Ok((field, size))
    });
    match sized {
        Ok((field, size)) => (field, size, Ok(())),
        Err(error) => (Field::new("", DType::U8), 0, Err(error)),
    }
}

/// Writes a field.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fwrite_field(
    f: Handle,
    description: *const CallerField,
    dbytes: *const c_void,
    counts: *const u64,
    is_indirect: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let (field, size, valid) = checked_field(description);
            let counts = integers(counts, file.ranks());
            let mine = file.part_of(counts, None);
            let parts;
            let data = if is_indirect != 0 {
                parts = indirect(dbytes, mine, |_| size);
                Elements::Indirect(&parts)
            } else {
                Elements::Contiguous(bytes(dbytes, mine.saturating_mul(size)))
            };
            let checkpoint = file.checkpoint()?;
            checkpoint.writer().prepare(is_indirect != 0, None::<()>, valid);
            checkpoint.elements(&field, counts, data)
        })
    }
}

/// Writes a field whose elements have different numbers of items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fwrite_ragged_field(
    f: Handle,
    description: *const CallerField,
    dbytes: *const c_void,
    counts: *const u64,
    lengths: *const u64,
    is_indirect: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let (field, size, valid) = checked_field(description);
            let counts = integers(counts, file.ranks());
            let lengths = integers(lengths, file.part_of(counts, None));
            let parts;
            let data = if is_indirect != 0 {
                parts = indirect(dbytes, lengths.len() as u64, |k| lengths[k].saturating_mul(size));
                Elements::Indirect(&parts)
            } else {
                Elements::Contiguous(bytes(dbytes, total(lengths, size)))
            };
            let checkpoint = file.checkpoint()?;
            checkpoint.writer().prepare(is_indirect != 0, None::<()>, valid);
            checkpoint.ragged_elements(&field, counts, lengths, data)
        })
    }
}

/// A text that must be valid and the same on all ranks.
fn same_text<'t>(comm: &dyn Comm, mine: Result<&'t str>) -> Result<&'t str> {
    let same = mine.as_ref().copied().unwrap_or_default().to_string();
    agree_alike(comm, mine, same)
}

/// Describes a field.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_find_field(
    f: Handle,
    name: *const c_char,
    info: *mut FieldInfo,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let comm = file.comm.get();
            let restart = file.restart()?;
            let name = same_text(comm, text(name, "a name"))?;
            restart.scan()?;
            put(info, describe(restart.find(name).ok()));
            Ok(())
        })
    }
}

fn describe(found: Option<&spile_scda::Stored>) -> FieldInfo {
    let mut info = FieldInfo {
        section: 0,
        encoded: 0,
        count: 0,
        size: 0,
        kind: [0; 16],
        rank: 0,
        shape: [0; RANK],
        version: 0,
    };
    let Some(stored) = found else { return info };
    let field = &stored.field;
    info.section = stored.kind.letter() as u8 as c_char;
    info.encoded = c_int::from(field.compressed);
    info.count = stored.count;
    info.size = field.bytes().unwrap_or(0);
    let kind = field.dtype.numpy().unwrap_or_else(|| field.dtype.to_string());
    for (to, from) in info.kind.iter_mut().zip(kind.bytes().take(15)) {
        *to = from as c_char;
    }
    info.rank = c_int::try_from(field.shape.len()).unwrap_or(c_int::MAX);
    for (to, from) in info.shape.iter_mut().zip(&field.shape) {
        *to = *from;
    }
    if let Some(Value::UInt(version)) = field.attrs.get("version") {
        info.version = *version;
    }
    info
}

/// Reads a field.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fread_field(
    f: Handle,
    description: *const CallerField,
    dbytes: *mut c_void,
    counts: *const u64,
    is_indirect: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let (field, size, valid) = checked_field(description);
            let counts = integers(counts, file.ranks());
            let stored = file.stored_count(&field, Kind::Array)?;
            let mine = file.part_of(counts, stored);
            let mut parts;
            let into = if dbytes.is_null() {
                None
            } else if is_indirect != 0 {
                parts = indirect_mut(dbytes, mine, |_| size);
                Some(Slots::Indirect(&mut parts))
            } else {
                Some(Slots::Contiguous(bytes_mut(dbytes, mine.saturating_mul(size))))
            };
            let restart = file.restart()?;
            restart.cursor().prepare(is_indirect != 0, None::<()>, valid);
            restart.elements_into(&field, counts, into)
        })
    }
}

/// Reads the numbers of items of this rank's elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fread_field_lengths(
    f: Handle,
    description: *const CallerField,
    lengths: *mut u64,
    counts: *const u64,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let (field, _, valid) = checked_field(description);
            let counts = integers(counts, file.ranks());
            let restart = file.restart()?;
            restart.scan()?;
            restart.cursor().prepare((), None::<()>, valid);
            let found = restart.lengths(&field, counts)?;
            if !lengths.is_null() {
                std::ptr::copy_nonoverlapping(found.as_ptr(), lengths, found.len());
            }
            Ok(())
        })
    }
}

/// Reads the items of this rank's elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fread_ragged_field(
    f: Handle,
    description: *const CallerField,
    dbytes: *mut c_void,
    counts: *const u64,
    lengths: *const u64,
    is_indirect: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let (field, size, valid) = checked_field(description);
            let counts = integers(counts, file.ranks());
            let stored = file.stored_count(&field, Kind::Varray)?;
            let mine = file.part_of(counts, stored);
            let read = !dbytes.is_null();
            let lengths = if read { integers(lengths, mine) } else { &[] };
            let mut parts;
            let into = if !read {
                None
            } else if is_indirect != 0 {
                let number = lengths.len() as u64;
                parts = indirect_mut(dbytes, number, |k| lengths[k].saturating_mul(size));
                Some(Slots::Indirect(&mut parts))
            } else {
                Some(Slots::Contiguous(bytes_mut(dbytes, total(lengths, size))))
            };
            let restart = file.restart()?;
            restart.cursor().prepare(is_indirect != 0, None::<()>, valid);
            restart.items_into(&field, counts, into)
        })
    }
}

/// Bytes of elements with these numbers of items of `size` bytes.
fn total(lengths: &[u64], size: u64) -> u64 {
    lengths.iter().fold(0_u64, |sum, length| sum.saturating_add(length.saturating_mul(size)))
}

impl ScdaFile {
    /// Number of elements of a field in the file; `None` if there is no such field.
    fn stored_count(&mut self, field: &Field, kind: Kind) -> Result<Option<u64>> {
        let restart = self.restart()?;
        restart.scan()?;
        let found = restart.find(&field.name).ok().filter(|stored| stored.kind == kind);
        Ok(found.map(|stored| stored.count))
    }
}

/// Writes attributes of a group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fwrite_attrs(
    f: Handle,
    group: *const c_char,
    attrs: *const c_char,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let parsed = || -> Result<(&str, Attrs)> {
                let attrs = attrs_from_json(text(attrs, "attributes")?)?;
                Ok((text(group, "a name")?, attrs))
            };
            let ((group, attrs), valid) = match parsed() {
                Ok(parsed) => (parsed, Ok(())),
                Err(error) => (("", Attrs::new()), Err(error)),
            };
            let checkpoint = file.checkpoint()?;
            checkpoint.writer().prepare((), None::<()>, valid);
            checkpoint.group(group, attrs)
        })
    }
}

/// Copies the attributes of a group or field as JSON.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_find_attrs(
    f: Handle,
    path: *const c_char,
    target: *mut c_char,
    length: *mut usize,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let comm = file.comm.get();
            let restart = file.restart()?;
            let path = same_text(comm, text(path, "a name"))?;
            restart.scan()?;
            let attrs = match restart.find(path) {
                Ok(stored) => stored.field.attrs.clone(),
                Err(_) => restart.attrs(path),
            };
            let json = attrs_to_json(&attrs)?;
            if length.is_null() {
                return Ok(());
            }
            let room = *length;
            *length = json.len();
            if let Some(last) = room.checked_sub(1).filter(|_| !target.is_null()) {
                let copied = json.len().min(last);
                std::ptr::copy_nonoverlapping(json.as_ptr().cast(), target, copied);
                *target.add(copied) = 0;
            }
            Ok(())
        })
    }
}
