//! Values of elements as a program wants them, whatever their kind: the library's `iotk_scan_dat`.
//! Nothing is given back for what is not there, so a default is `unwrap_or`.

use spile_core::convert::{Number, swap, text_of};
use spile_core::dtype::Kind;
use spile_core::error::{Error, Result};
use spile_core::format::Reader as _;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::wire::ByteOrder;
use zerocopy::IntoBytes;

use crate::cast::{Cast, components};
use crate::event::Form;
use crate::read::File;
use crate::scalar::Scalar;
use crate::text_codec::stream_numbers;

impl File {
    /// The numbers of the element at `path`, into memory of the caller; false if it is not there or
    /// has no data. Kinds are converted, and a number that does not fit is an error; complex
    /// numbers are two neighbours. Nothing is copied on the way where the kind is the same.
    pub fn read_into<T: Number + IntoBytes>(&self, path: &str, out: &mut [T]) -> Result<bool> {
        let Some(element) = self.index().find(path) else { return Ok(false) };
        let place = |e: Error| e.in_object(format!("element {path}"));
        let Some(known) = self.data(element)? else { return Ok(false) };
        let known = known.checked().map_err(place)?;
        let (part, parts) = components(known.array.dtype);
        let found = known.array.shape.count().unwrap_or(0).saturating_mul(parts);
        if found != out.len() as u64 {
            let message = format!("there are {found} numbers, not {}", out.len());
            return Err(place(Error::argument(message)));
        }
        let same = part.kind() == T::DTYPE.kind() && part.size() == T::SIZE;
        let tag = &self.index().elements()[element].tag;
        let data = self.index().elements()[element].data.first();
        if same
            && self.form() == Form::Text
            && tag.get_raw("fmt").is_none()
            && let (Some((scalar, _)), Some(data)) = (Scalar::of(part), data)
        {
            let mut filler = Filler { out: out.as_mut_bytes(), filled: 0 };
            let total = filler.out.len() as u64;
            let (source, limits) = (self.source(), self.limits());
            let mut each = |bytes: &[u8]| filler.take(bytes);
            stream_numbers(source, data, scalar, total, limits, &mut each).map_err(place)?;
            native(out);
            return Ok(true);
        }
        let array = Array::open(self.source(), self.tree(), &known.array, self.limits());
        let array = array.map_err(place)?;
        if same {
            array.read_into(out.as_mut_bytes()).map_err(place)?;
        } else {
            let mut filler = Filler { out: out.as_mut_bytes(), filled: 0 };
            let mut change = Cast::new(part, None, T::DTYPE);
            let all = array.all().map_err(place)?;
            all.stream(|_, bytes| filler.take(change.apply(bytes)?)).map_err(place)?;
        }
        native(out);
        Ok(true)
    }

    /// The numbers of the element at `path`; nothing if it is not there. See [`File::read_into`].
    pub fn read<T: Number + IntoBytes + Default>(&self, path: &str) -> Result<Option<Vec<T>>> {
        let Some(element) = self.index().find(path) else { return Ok(None) };
        let Some(known) = self.data(element)? else { return Ok(None) };
        let (_, parts) = components(known.array.dtype);
        let count = known.array.shape.count().unwrap_or(0).saturating_mul(parts);
        let bytes = count.saturating_mul(T::SIZE as u64);
        let bytes = self.limits().allow(bytes, "the numbers of an element");
        let place = |e: Error| e.in_object(format!("element {path}"));
        let mut out = vec![T::default(); bytes.map_err(place)? / T::SIZE];
        Ok(self.read_into(path, &mut out)?.then_some(out))
    }

    /// The numbers of an element as `f64`, whatever their type; nothing if it is not there.
    pub fn read_f64(&self, path: &str) -> Result<Option<Vec<f64>>> {
        let Some(element) = self.index().find(path) else { return Ok(None) };
        let array = self.array(element)?;
        array.map(|a| a.read_f64(&Selection::all(), Axes::Stored)).transpose()
    }

    /// The logicals of an element, of any kind; nothing if it is not there.
    pub fn read_logicals(&self, path: &str) -> Result<Option<Vec<bool>>> {
        let Some(element) = self.index().find(path) else { return Ok(None) };
        let Some(array) = self.array(element)? else { return Ok(None) };
        let dtype = array.dtype();
        if dtype.kind() != Kind::Bool {
            let message = format!("{dtype} elements are no logicals");
            return Err(Error::argument(message).in_object(format!("element {path}")));
        }
        let bytes = array.read(&Selection::all(), Axes::Stored)?;
        let is_true = |element: &[u8]| element.iter().any(|byte| *byte != 0);
        Ok(Some(bytes.chunks(dtype.size()).map(is_true).collect()))
    }

    /// The strings of an element without the blanks behind them; nothing if it is not there.
    pub fn read_strings(&self, path: &str) -> Result<Option<Vec<String>>> {
        let Some(element) = self.index().find(path) else { return Ok(None) };
        let Some(array) = self.array(element)? else { return Ok(None) };
        let bytes = array.read(&Selection::all(), Axes::Stored)?;
        Ok(Some(bytes.chunks(array.dtype().size().max(1)).map(text_of).collect()))
    }
}

/// Numbers are little-endian on their way here.
fn native<T: Number + IntoBytes>(numbers: &mut [T]) {
    if ByteOrder::NATIVE == ByteOrder::Big {
        swap(numbers.as_mut_bytes(), T::SIZE);
    }
}

/// Fills memory from its beginning to its end.
struct Filler<'a> {
    out: &'a mut [u8],
    filled: usize,
}

impl Filler<'_> {
    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        let miscounted = || Error::malformed("iotk-013", "more numbers than were promised");
        let slot = self.out.get_mut(self.filled..self.filled + bytes.len());
        slot.ok_or_else(miscounted)?.copy_from_slice(bytes);
        self.filled += bytes.len();
        Ok(())
    }
}
