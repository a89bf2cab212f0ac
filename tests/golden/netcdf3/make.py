"""Small NetCDF classic files by the netCDF library and scipy: python make.py FOLDER. Needs netCDF4, scipy, numpy."""

import hashlib
import json
import pathlib
import sys

import netCDF4
import numpy as np
import scipy.io

folder = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(11)
sums = {}


def sum_of(values):
    values = np.ascontiguousarray(values)
    return hashlib.sha256(values.astype(values.dtype.newbyteorder("<")).tobytes()).hexdigest()


def add(file, name, code, dims, values, **attributes):
    variable = file.createVariable(name, code, dims, fill_value=attributes.pop("_FillValue", None))
    variable.set_auto_maskandscale(False)
    variable.setncatts(attributes)
    variable[:] = values
    return values


def weather(name, form):
    """Several record variables, of which some are padded; coordinates; packed values; strings."""
    with netCDF4.Dataset(folder / name, "w", format=form) as file:
        file.title, file.levels = "a small forecast", np.arange(3, dtype="i4")
        for dim, length in (("time", None), ("lat", 3), ("lon", 4), ("name_len", 6)):
            file.createDimension(dim, length)
        texts = np.array([b"north", b"middle", b"south"], "S6")
        tags = np.array([b"a", b"bc", b"def", b"ghij", b"klmnop"], "S6")
        packed = rng.integers(-99, 99, (5, 3, 4)).astype("i2")
        packed[2, 1, 0] = -999
        sums[name] = sorted(map(sum_of, [
            add(file, "time", "f8", ("time",), np.arange(5.0), units="hours since 2020-01-01"),
            add(file, "lat", "f4", ("lat",), np.array([10, 20, 30], "f4"), units="degrees_north"),
            add(file, "t2m", "i2", ("time", "lat", "lon"), packed, units="K", scale_factor=0.25, add_offset=270.0,
                long_name="temperature", coordinates="lat", _FillValue=np.int16(-999)),
            add(file, "flag", "i1", ("time", "lat"), rng.integers(-9, 9, (5, 3)).astype("i1")),
            add(file, "orography", "f4", ("lat", "lon"), rng.normal(size=(3, 4)).astype("f4"), units="m"),
            add(file, "pressure", "f8", (), np.array(1013.25), units="hPa"),
            texts, tags,
        ]))
        file.createVariable("station", "S1", ("lat", "name_len"))[:] = netCDF4.stringtochar(texts)
        file.createVariable("tag", "S1", ("time", "name_len"))[:] = netCDF4.stringtochar(tags)


weather("cdf1_weather.nc", "NETCDF3_CLASSIC")
weather("cdf2_weather.nc", "NETCDF3_64BIT_OFFSET")
weather("cdf5_weather.nc", "NETCDF3_64BIT_DATA")

# Records of a single variable are not padded.
with netCDF4.Dataset(folder / "cdf1_single.nc", "w", format="NETCDF3_CLASSIC") as file:
    file.createDimension("t", None)
    file.createDimension("x", 3)
    values = rng.integers(-999, 999, (5, 3)).astype("i2")
    sums["cdf1_single.nc"] = [sum_of(add(file, "v", "i2", ("t", "x"), values))]

# The types of CDF-5.
with netCDF4.Dataset(folder / "cdf5_types.nc", "w", format="NETCDF3_64BIT_DATA") as file:
    file.createDimension("t", None)
    file.createDimension("x", 5)
    file.big = np.uint64(2**64 - 1)
    sums["cdf5_types.nc"] = sorted(
        sum_of(add(file, f"{code}_{len(dims)}", code, dims, rng.integers(0, 100, shape).astype(code), limit=np.dtype(code).type(7)))
        for code in ("u1", "u2", "u4", "i8", "u8")
        for dims, shape in ((("x",), (5,)), (("t", "x"), (2, 5)))
    )

# No records yet, and no variables.
with netCDF4.Dataset(folder / "cdf1_no_records.nc", "w", format="NETCDF3_CLASSIC") as file:
    file.createDimension("t", None)
    file.createDimension("x", 2)
    file.createVariable("v", "f4", ("t", "x"))
    sums["cdf1_no_records.nc"] = [sum_of(np.zeros((0, 2), "f4"))]

with scipy.io.netcdf_file(folder / "scipy.nc", "w", version=2) as file:
    file.createDimension("t", None)
    file.createDimension("x", 4)
    file.history = "written by scipy"
    v = file.createVariable("v", "f4", ("t", "x"))
    w = file.createVariable("w", "i2", ("t",))
    x = file.createVariable("x", "f8", ("x",))
    field, short = rng.normal(size=(3, 4)).astype("f4"), np.array([1, -2, 3], "i2")
    v[:], w[:], x[:] = field, short, np.linspace(0, 1, 4)
    v.units = "V"
    sums["scipy.nc"] = sorted(map(sum_of, [field, short, np.linspace(0, 1, 4)]))

(folder / "manifest.json").write_text(json.dumps(sums, indent=1, sort_keys=True) + "\n")
