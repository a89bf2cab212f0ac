"""xarray writes datasets and trees of the engine as NetCDF and Zarr, and reads them back without spile.

By default some files of each format are tried; with the environment variable ``SPILE_ALL_FILES``, all
golden files.
"""

import contextlib
import functools
import os
import re
import warnings

import numpy as np
import pytest

import spile
from support import GOLDEN, ROOT

xr = pytest.importorskip("xarray")
pytest.importorskip("netCDF4")
pytest.importorskip("h5netcdf")
pytest.importorskip("zarr")

PAGE = ROOT / "docs/python/xarray.md"
TARGETS = ["netcdf4", "h5netcdf", "zarr v2", "zarr v3"]
OPENERS = {"dataset": xr.open_dataset, "tree": xr.open_datatree}

#: Files with all element types, kinds of attributes, names and structures.
REPRESENTATIVE = [
    "csv/instrument.csv",
    "gsd/code-v5.0.1/all_types.gsd",
    "gsd/code-v5.0.1/names.gsd",
    "gsd/py-5.0.1/fl_long_names.gsd",
    "gsd/py-5.0.1/hoomd_full.gsd",
    "gsd/py-5.0.1/hoomd_varying_N.gsd",
    "hdf5/attributes_new.h5",
    "hdf5/committed.h5",
    "hdf5/table_new.h5",
    "hdf5/text_old.h5",
    "hdf5/types_new.h5",
    "hdf5/unsupported_new.h5",
    "iotk/golden/attrs.dat",
    "iotk/golden/special.xml",
    "iotk/golden/strings.dat",
    "iotk/golden/types.dat",
    "iotk/golden/types.xml",
    "keysight/*",
    "lecroy/*",
    "netcdf/weather.nc",
    "netcdf3/cdf5_types.nc",
    "npy/c16_2x2x2.npy",
    "npy/f2_edge.npy",
    "npy/longdouble.npy",
    "npz/records.npz",
    "parquet/plain.parquet",
    "scda/user_strings.scd",
    "scda/v_basic.scd",
    "sdf/drv_all_blocks.sdf",
    "sdf/epoch1d_normal_0001.sdf",
    "taf/good/example_2d_101x3.taf",
    "vtk/mesh_zlib.vtu",
    "xyz/ase.extxyz",
    "zarr/v2.zarr",
    "zarr/v3.zarr",
]


def is_input(path):
    inside = any(parent.suffix == ".zarr" for parent in path.parents)
    return not inside and "corrupt" not in path.parts and (path.is_file() or path.suffix == ".zarr")


@functools.cache
def files():
    """Golden files that spile opens."""
    if os.environ.get("SPILE_ALL_FILES"):
        paths = [path for path in sorted(GOLDEN.rglob("*")) if is_input(path)]
    else:
        paths = [next(iter(sorted(GOLDEN.glob(pattern)))) for pattern in REPRESENTATIVE]
    found = []
    for path in paths:
        try:
            spile.open(path).close()
            found.append(path)
        except spile.SpileError:
            assert os.environ.get("SPILE_ALL_FILES"), path
    return found


def written(data, target, path):
    """`data` written as `target` and opened by xarray without spile."""
    opener = OPENERS["tree" if isinstance(data, xr.DataTree) else "dataset"]
    with warnings.catch_warnings():
        # Zarr warns of types without a specification for version 3, such as complex numbers.
        warnings.simplefilter("ignore")
        if target.startswith("zarr"):
            data.to_zarr(path, zarr_format=int(target[-1]), consolidated=False, mode="w")
            return opener(path, engine="zarr", consolidated=False)
        data.to_netcdf(path, engine=target)
        return opener(path, engine=target)


def plain(value):
    """An attribute, as it is read from any target: a single number or a list of one are the same."""
    return np.ravel(value).tolist()


def assert_same(ours, back):
    """Two datasets have the same variables, dimensions, coordinates, attributes and values."""
    assert set(ours.variables) == set(back.variables)
    assert set(ours.coords) == set(back.coords)
    for name, mine in ours.variables.items():
        other = back.variables[name]
        assert mine.dims == other.dims, name
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(other), name)
        assert {k: plain(v) for k, v in mine.attrs.items()} == {
            k: plain(v) for k, v in other.attrs.items()
        }, name
    assert {k: plain(v) for k, v in ours.attrs.items()} == {
        k: plain(v) for k, v in back.attrs.items()
    }


def assert_same_data(ours, back):
    if isinstance(ours, xr.Dataset):
        assert_same(ours, back)
        return
    mine, other = ({node.path: node for node in tree.subtree} for tree in (ours, back))
    assert set(mine) == set(other)
    for path, node in mine.items():
        assert_same(node.to_dataset(), other[path].to_dataset())


def types(data):
    """Element types of the variables of a dataset or tree."""
    nodes = [data] if isinstance(data, xr.Dataset) else [node.dataset for node in data.subtree]
    return {v.dtype for node in nodes for v in node.variables.values()}


def reason(data):
    """The row of the table of exceptions that applies to the data."""
    found = types(data)
    if found & {np.dtype("longdouble"), np.dtype("clongdouble")}:
        return "extended precision"
    return "complex numbers" if any(dtype.kind == "c" for dtype in found) else None


def exceptions():
    """The table of exceptions in the documentation: reason, and the targets that refuse it."""
    _, _, table = PAGE.read_text().partition("| refused by |")
    rows = re.findall(r"^\| ([a-z ]+) \| ((?:`[^`]+`(?:, )?)+) \|", table, re.M)
    return {why: set(re.findall("`([^`]+)`", targets)) for why, targets in rows}


@pytest.mark.parametrize("kind", OPENERS)
def test_every_file_is_written_and_read_back_except_what_the_documentation_lists(kind, tmp_path):
    refused = {}
    for path in files():
        options = {"keep_particles": True} if kind == "dataset" else {}
        data = OPENERS[kind](path, engine="spile", **options)
        with contextlib.suppress(spile.SpileError):
            data.load()
        for target in TARGETS:
            place = tmp_path / f"out.{'zarr' if target.startswith('zarr') else 'nc'}"
            try:
                back = written(data, target, place)
            except spile.SpileError:
                # Values that do not conform to the format, such as a Fortran overflow `***`.
                assert path.suffix in (".xml", ".taf"), path
                refused.setdefault("unreadable values", set()).add(target)
                continue
            except (TypeError, ValueError) as error:
                why = reason(data)
                assert why is not None, (path, target, error)
                refused.setdefault(why, set()).add(target)
                continue
            with back:
                try:
                    assert_same_data(data, back)
                except AssertionError as error:
                    raise AssertionError(f"{path}, {target}: {error}") from error
    assert refused == exceptions()


@pytest.mark.parametrize("kind", OPENERS)
def test_portable_datasets_are_written_without_exception(kind, tmp_path):
    count = 0
    for path in files():
        try:
            data = OPENERS[kind](path, engine="spile").load()
        except spile.SpileError:
            continue
        why = reason(data)
        if why is None:
            continue
        count += 1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            portable = OPENERS[kind](path, engine="spile", portable=True).load()
        assert why != "extended precision" or any("rounded" in str(w.message) for w in caught)
        for target in TARGETS:
            place = tmp_path / f"out.{'zarr' if target.startswith('zarr') else 'nc'}"
            with written(portable, target, place) as back:
                assert_same_data(portable, back)
    assert count >= 4


def test_rounding_of_quadruple_precision_is_reported(tmp_path):
    path = GOLDEN / "iotk/golden/types.dat"
    wide = [a for a in spile.open(path).arrays().values() if a.type.startswith("float128")]
    assert wide
    for opener in OPENERS.values():
        with pytest.warns(UserWarning, match="float128 values are rounded to float64"):
            opener(path, engine="spile")


def test_portable_complex_numbers_are_real_and_imaginary_parts():
    path = GOLDEN / "npy/c16_2x2x2.npy"
    values = np.load(path)
    ds = xr.open_dataset(path, engine="spile", portable=True)
    np.testing.assert_array_equal(ds["data_real"], values.real)
    np.testing.assert_array_equal(ds["data_imag"][:, 1], values.imag[:, 1])
    tree = xr.open_datatree(path, engine="spile", portable=True)
    assert set(tree.data_vars) == {"data_real", "data_imag"}


def foreign(path):
    """A NetCDF file with packed values, missing values, dates, auxiliary coordinates and texts."""
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(path, "w") as file:
        for name, length in {"y": 2, "x": 3, "time": 4, "n": 2}.items():
            file.createDimension(name, length)

        def add(name, kind, dims, values, fill_value=None, **attrs):
            dims = (dims,) if isinstance(dims, str) else dims
            made = file.createVariable(name, kind, dims, fill_value=fill_value)
            made.setncatts(attrs)
            made.set_auto_maskandscale(False)
            made[...] = values

        since = {"units": "days since 2000-01-01", "calendar": "noleap", "bounds": "time_bnds"}
        add("time", "i4", "time", [0, 59, 60, 61], **since)
        add("time_bnds", "i4", ("time", "n"), np.arange(8).reshape(4, 2))
        add("lat", "f4", ("y", "x"), np.arange(6).reshape(2, 3), units="degrees_north")
        packed = {"scale_factor": 0.01, "add_offset": 273.15, "units": "K", "coordinates": "lat"}
        stored = np.arange(24).reshape(4, 2, 3)
        add("packed", "i2", ("time", "y", "x"), stored, fill_value=7, **packed)
        add("unsigned", "i1", "x", [-1, 2, 3], _Unsigned="true")
        add("single", "f4", "x", [1, 1e20, 3], fill_value=1e20, missing_value=np.float32(1e20))
        add("text", str, "x", np.array(["a", "", "ü"], object))
        add("date", "f8", "x", [0.5, 1e5, 3], units="hours since 1990-01-01")
        add("flag", "i1", "x", [0, 1, 1], dtype="bool")


@pytest.mark.parametrize("kind", OPENERS)
def test_foreign_files_have_the_variables_that_xarray_reads_itself(kind, tmp_path):
    foreign(tmp_path / "foreign.nc")
    theirs, ours = (OPENERS[kind](tmp_path / "foreign.nc", engine=e) for e in ("netcdf4", "spile"))
    assert set(ours.data_vars) == set(theirs.data_vars)
    for name, other in theirs.variables.items():
        mine = ours.variables[name]
        assert mine.dims == other.dims and mine.attrs.get("units") == other.attrs.get("units"), name
        assert set(ours[name].coords) == set(theirs[name].coords), name
        exact = np.testing.assert_array_equal
        (np.testing.assert_allclose if mine.dtype.kind == "f" else exact)(mine.values, other.values)
    for target in TARGETS:
        with written(ours, target, tmp_path / f"{target}.out") as back:
            assert_same_data(ours, back)


def test_dates_are_decoded_on_request_only(tmp_path):
    foreign(tmp_path / "foreign.nc")
    ds = xr.open_dataset(tmp_path / "foreign.nc", engine="spile", decode_times=False)
    assert ds["time"].values.tolist() == [0, 59, 60, 61]
    assert ds["time"].attrs["units"] == "days since 2000-01-01"


def test_attributes_and_names_of_all_kinds_are_stored(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "in.h5", "w") as file:
        data = file.create_group("(a").create_dataset(" b " + "x" * 300, data=np.arange(3))
        data.attrs["with/slash"] = 1
        data.attrs["flag"] = True
        data.attrs["matrix"] = np.eye(2)
        data.attrs["opaque"] = np.void(b"\x00\xff")
        data.attrs["complex"] = 1 + 2j
        data.attrs["_FillValue"] = "none"
        data.attrs["texts"] = ["a", "b"]
        data.attrs["empty"] = h5py.Empty("f")
        file.attrs["long"] = "x" * 60_000
    ds = xr.open_dataset(tmp_path / "in.h5", engine="spile")
    (name,) = ds.data_vars
    assert name.startswith("_(a__b_xxx") and len(name) == 200
    attrs = ds[name].attrs
    assert plain(attrs["with_slash"]) == [1] and attrs["flag"] == 1
    assert attrs["matrix"] == "[[1.0, 0.0], [0.0, 1.0]]"
    assert plain(attrs["opaque"]) == [0, 255] and plain(attrs["complex"]) == [1, 2]
    assert attrs["_FillValue_"] == "none" and attrs["texts"] == ["a", "b"]
    for data in (ds, xr.open_datatree(tmp_path / "in.h5", engine="spile")):
        for target in TARGETS:
            with written(data, target, tmp_path / f"{target}.out") as back:
                assert_same_data(data, back)
