"""Names, attributes and variables that NetCDF and Zarr can store.

Datasets of the xarray engine consist of these, so that ``to_netcdf`` and ``to_zarr`` keep everything.
"""

import json
import re
import unicodedata
import warnings

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

#: Maximum length of names in bytes. NetCDF and file systems allow 255; suffixes are added to names.
LONGEST = 200

#: Control characters, and spaces at the end.
_ILLEGAL = re.compile(r"[\x00-\x1f\x7f/]| (?= *$)")

#: Attributes with a meaning for xarray, netCDF or HDF5, which another attribute must not change.
RESERVED = {
    "_FillValue",
    "missing_value",
    "scale_factor",
    "add_offset",
    "_Unsigned",
    "_Encoding",
    "coordinates",
    "dtype",
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_NCProperties",
    "_nc3_strict",
    "_ARRAY_DIMENSIONS",
}

#: Maximum length in bytes of texts with a type of fixed length.
LONGEST_FIXED = 1024

#: Type of strings, as in variables that xarray reads from NetCDF files.
STRING = np.dtype("O", metadata={"element_type": str})


def storable_name(name):
    """`name` with the characters and the length that names of NetCDF and Zarr may have."""
    name = _ILLEGAL.sub("_", unicodedata.normalize("NFC", name))
    if not re.match(r"[\w\x80-\U0010ffff]", name):
        name = f"_{name}"
    return name.encode()[:LONGEST].decode(errors="ignore")


def unique(name, *used):
    """`name`, or `name_2`, `name_3`, ... if it is in one of the collections `used`."""
    free, count = name, 1
    while any(free in names for names in used):
        count += 1
        free = f"{name}_{count}"
    return free


def storable_attrs(attrs):
    """Attributes with storable names and values. A reserved name gets an underscore at the end."""
    kept = {}
    for name, value in attrs.items():
        name = storable_name(name) + ("_" if name in RESERVED else "")
        kept[unique(name, kept)] = _storable_value(value)
    return kept


def _storable_value(value):
    """Booleans as int8, complex numbers as real and imaginary part, bytes as uint8; other values than
    numbers, texts and lists of either are JSON text."""
    if isinstance(value, bool):
        return np.int8(value)
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, bytes) and value:
        return np.frombuffer(value, "u1")
    if isinstance(value, list):
        kinds = {type(item) for item in value}
        array = np.array(value) if len(kinds) == 1 and kinds <= {bool, int, float} else None
        if array is not None and array.dtype != object:
            return array.astype("i1") if kinds == {bool} else value
        simple = kinds == {str} and not any("\0" in item for item in value)
    else:
        simple = not isinstance(value, (str, bytes)) or (value and "\0" not in value)
    return value if simple else _json(value)


def _json(value):
    def other(item):
        return list(item) if isinstance(item, bytes) else [item.real, item.imag]

    return value if value == "" else json.dumps(value, default=other, ensure_ascii=False)


def storable_variables(name, variable, portable, fixed_texts=False):
    """The variables to show for `variable`, by suffix of the name: texts are strings, opaque elements
    are bytes along another dimension. With `portable`, complex numbers are two variables of real and
    imaginary parts, and extended precision is converted to float64. With `fixed_texts`, strings have a
    type of fixed length, of which dask knows the size (``chunks="auto"``)."""
    dtype = variable.dtype
    if dtype.kind == "S":
        if fixed_texts and 0 < dtype.itemsize <= LONGEST_FIXED:
            fixed = np.dtype(f"U{dtype.itemsize}")
            return {"": _converted(variable, fixed, _FixedStrings(fixed))}
        return {"": _converted(variable, STRING, _strings)}
    if dtype.kind == "V":
        return {"": _bytes(name, variable)}
    if dtype == np.float16:
        # NetCDF has no half precision.
        variable.encoding["dtype"] = np.dtype("f4")
    if portable and dtype.kind in "fc" and dtype.itemsize > (8 if dtype.kind == "f" else 16):
        warnings.warn(f"{name}: {dtype} is rounded to double precision", stacklevel=2)
        dtype = np.dtype("c16" if dtype.kind == "c" else "f8")
        variable = _converted(variable, dtype, _Rounded(dtype))
    if portable and dtype.kind == "c":
        real = np.empty(0, dtype).real.dtype
        return {
            "_real": _converted(variable, real, np.real),
            "_imag": _converted(variable, real, np.imag),
        }
    return {"": variable}


class Converted(BackendArray):
    """A lazy variable whose values are converted by a function when they are read."""

    def __init__(self, variable, dtype, convert):
        self.variable = variable
        self.shape = variable.shape
        self.dtype = np.dtype(dtype)
        self.convert = convert

    def __getitem__(self, key):
        basic = indexing.IndexingSupport.BASIC
        return indexing.explicit_indexing_adapter(key, self.shape, basic, self._read)

    def _read(self, key):
        return self.convert(np.asarray(self.variable[key].values))


def _converted(variable, dtype, convert):
    data = indexing.LazilyIndexedArray(Converted(variable, dtype, convert))
    return xr.Variable(variable.dims, data, variable.attrs, variable.encoding, fastpath=True)


def _strings(array):
    """Texts as strings. Texts that are not UTF-8 are Latin-1; NUL, which ends strings of NetCDF, is the
    symbol U+2400."""
    out = np.empty(array.shape, object)
    for index, text in np.ndenumerate(array):
        try:
            string = text.decode()
        except UnicodeDecodeError:
            string = text.decode("latin-1")
        out[index] = string.replace("\0", "\u2400")
    return out


class _FixedStrings:
    """Strings of a type of fixed length."""

    def __init__(self, dtype):
        self.dtype = dtype

    def __call__(self, array):
        return _strings(array).astype(self.dtype)


class _Rounded:
    """Rounds to a type; numbers beyond its range are infinite."""

    def __init__(self, dtype):
        self.dtype = dtype

    def __call__(self, array):
        with np.errstate(over="ignore"):
            return array.astype(self.dtype)


class Bytes(Converted):
    """Opaque elements as bytes along the last dimension."""

    def __init__(self, variable):
        super().__init__(variable, "u1", None)
        self.shape = (*variable.shape, variable.dtype.itemsize)

    def _read(self, key):
        elements = np.ascontiguousarray(self.variable[key[:-1]].values)
        return elements.view("u1").reshape(*elements.shape, self.shape[-1])[..., key[-1]]


def _bytes(name, variable):
    data = indexing.LazilyIndexedArray(Bytes(variable))
    return xr.Variable((*variable.dims, f"{name}_byte"), data, variable.attrs, fastpath=True)
