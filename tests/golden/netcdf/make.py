"""Small NetCDF-4 files by the netCDF library: python make.py FOLDER. Needs netCDF4 and numpy."""

import hashlib
import json
import pathlib
import sys

import netCDF4
import numpy as np

folder = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(7)
sums = {}


def sum_of(values):
    values = np.ascontiguousarray(values)
    return hashlib.sha256(values.astype(values.dtype.newbyteorder("<")).tobytes()).hexdigest()


with netCDF4.Dataset(folder / "weather.nc", "w") as file:
    file.set_auto_maskandscale(False)
    file.title = "a small forecast"
    file.createDimension("time", None)
    file.createDimension("lat", 3)
    file.createDimension("lon", 4)
    file.createDimension("name_len", 6)
    time = file.createVariable("time", "f8", ("time",))
    time.units = "hours since 2020-01-01"
    time[:] = np.arange(5.0)
    lat = file.createVariable("lat", "f4", ("lat",))
    lat.units = "degrees_north"
    lat[:] = [10, 20, 30]
    t = file.createVariable("t2m", "i2", ("time", "lat", "lon"), zlib=True, shuffle=True)
    t.setncatts({"units": "K", "scale_factor": 0.25, "add_offset": 270.0, "long_name": "temperature"})
    t.set_auto_maskandscale(False)
    packed = rng.integers(-99, 99, (5, 3, 4)).astype("i2")
    t[:] = packed
    names = file.createVariable("station", "S1", ("lat", "name_len"))
    texts = np.array([b"north", b"middle", b"south"], "S6")
    names[:] = netCDF4.stringtochar(texts)
    group = file.createGroup("model")
    group.levels = np.arange(3, dtype="i4")
    wind = group.createVariable("wind", "f4", ("lat", "lon"), contiguous=True)
    speed = rng.normal(size=(3, 4)).astype("f4")
    wind[:] = speed
    label = group.createVariable("label", str, ("lat",))
    label[:] = np.array(["a", "bb", "ccc"], object)
    sums["weather.nc"] = sorted(map(sum_of, [
        np.arange(5.0), np.array([10, 20, 30], "f4"), packed, texts, speed,
        np.array([b"a", b"bb", b"ccc"]),
    ]))

with netCDF4.Dataset(folder / "classic_model.nc", "w", format="NETCDF4_CLASSIC") as file:
    file.createDimension("x", 6)
    x = file.createVariable("x", "f8", ("x",))
    x[:] = np.linspace(0, 1, 6)
    v = file.createVariable("v", "i4", ("x",))
    v[:] = np.arange(6)
    sums["classic_model.nc"] = sorted(map(sum_of, [np.linspace(0, 1, 6), np.arange(6, dtype="i4")]))

(folder / "manifest.json").write_text(json.dumps(sums, indent=1, sort_keys=True) + "\n")
