//! Values of elements, converted to the type that the caller requests (`iotk_scan_dat` of the
//! library). All functions return `None` or false for a missing element.

use spile_core::convert::{Number, part, swap, text_of};
use spile_core::{Array, ArrayDesc, ByteOrder, Error, Kind, Result};
use zerocopy::IntoBytes;

use crate::cast::Cast;
use crate::event::Form;
use crate::read::File;
use crate::scalar::Scalar;
use crate::text_codec::stream_numbers;

impl File {
    /// Reads the numbers of the element at `path` into `out`, first index fastest; complex numbers as
    /// real and imaginary part. Returns false if there is no such element or it has no data. Kinds are
    /// converted. Fails if a number does not fit `T` or the count differs from the length of `out`.
    pub fn read_into<T: Number + IntoBytes>(&self, path: &str, out: &mut [T]) -> Result<bool> {
        let Some(element) = self.index().find(path) else { return Ok(false) };
        let in_element = |e: Error| e.in_object(format!("element {path}"));
        let Some(known) = self.data(element)? else { return Ok(false) };
        let known = known.checked().map_err(in_element)?;
        let (part, found) = (part(known.array.dtype), count_of(&known.array));
        if found != out.len() as u64 {
            let message = format!("expected {} numbers, found {found}", out.len());
            return Err(in_element(Error::argument(message)));
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
            let mut each = |bytes: &[u8]| filler.take(bytes);
            stream_numbers(&self.bytes, data, scalar, total, &mut each).map_err(in_element)?;
            native(out);
            return Ok(true);
        }
        let array = self.bytes.open_array(&known.array).map_err(in_element)?;
        if same {
            array.read_into(out.as_mut_bytes()).map_err(in_element)?;
        } else {
            let mut filler = Filler { out: out.as_mut_bytes(), filled: 0 };
            let mut change = Cast::new(part, None, T::DTYPE);
            let all = array.all().map_err(in_element)?;
            all.stream(|_, bytes| filler.take(change.apply(bytes)?)).map_err(in_element)?;
        }
        native(out);
        Ok(true)
    }

    /// The numbers of the element at `path`, or `None` if there is no such element or it has no data.
    /// Kinds are converted as in [`File::read_into`].
    pub fn read<T: Number + IntoBytes + Default>(&self, path: &str) -> Result<Option<Vec<T>>> {
        let Some(element) = self.index().find(path) else { return Ok(None) };
        let Some(known) = self.data(element)? else { return Ok(None) };
        let bytes = count_of(&known.array).saturating_mul(T::SIZE as u64);
        let bytes = self.limits().allow(bytes, "the numbers of an element");
        let in_element = |e: Error| e.in_object(format!("element {path}"));
        let mut out = vec![T::default(); bytes.map_err(in_element)? / T::SIZE];
        Ok(self.read_into(path, &mut out)?.then_some(out))
    }

    /// The data of the element at `path`.
    fn array_at(&self, path: &str) -> Result<Option<Array>> {
        self.index().find(path).map_or(Ok(None), |element| self.array(element))
    }

    /// The numbers of the element at `path` as `f64`, from any numeric type; `None` without data.
    pub fn read_f64(&self, path: &str) -> Result<Option<Vec<f64>>> {
        self.array_at(path)?.map(|array| array.values()).transpose()
    }

    /// The logicals of the element at `path`, of any kind; `None` without data. Fails for another type.
    pub fn read_logicals(&self, path: &str) -> Result<Option<Vec<bool>>> {
        let Some(array) = self.array_at(path)? else { return Ok(None) };
        let dtype = array.dtype();
        if dtype.kind() != Kind::Bool {
            let message = format!("expected logicals, found {dtype} elements");
            return Err(Error::argument(message).in_object(format!("element {path}")));
        }
        let bytes = array.bytes()?;
        let is_true = |element: &[u8]| element.iter().any(|byte| *byte != 0);
        Ok(Some(bytes.chunks(dtype.size()).map(is_true).collect()))
    }

    /// The strings of the element at `path` without trailing blanks; `None` without data.
    pub fn read_strings(&self, path: &str) -> Result<Option<Vec<String>>> {
        let Some(array) = self.array_at(path)? else { return Ok(None) };
        let bytes = array.bytes()?;
        Ok(Some(bytes.chunks(array.dtype().size().max(1)).map(text_of).collect()))
    }
}

/// Number of reals or integers of an array; a complex number is two.
fn count_of(array: &ArrayDesc) -> u64 {
    let parts = array.dtype.size() / part(array.dtype).size().max(1);
    array.shape.count().unwrap_or(0).saturating_mul(parts as u64)
}

/// Converts little-endian numbers to native byte order.
fn native<T: Number + IntoBytes>(numbers: &mut [T]) {
    if ByteOrder::NATIVE == ByteOrder::Big {
        swap(numbers.as_mut_bytes(), T::SIZE);
    }
}

/// Fills a buffer from its beginning.
struct Filler<'a> {
    out: &'a mut [u8],
    filled: usize,
}

impl Filler<'_> {
    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        let miscounted = || Error::malformed("iotk-013", "found more numbers than declared");
        let slot = self.out.get_mut(self.filled..self.filled + bytes.len());
        slot.ok_or_else(miscounted)?.copy_from_slice(bytes);
        self.filled += bytes.len();
        Ok(())
    }
}
