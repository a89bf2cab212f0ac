"""Exports by meaning: xarray shows the variables of a converted file with names, units and coordinates."""

import os
import tempfile
import warnings

import numpy as np

from . import GOLDEN, spile


def converted(source, name, open_data):
    """A golden file, converted to `name` and opened without a warning."""
    spile("-q", "convert", "--overwrite", GOLDEN / source, name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with open_data(name) as data:
            return data.load()


def values(source, array):
    text = spile("cat", GOLDEN / source, array)
    return np.array([float(word) for word in text.decode().replace(",", " ").split()])


def fields(opened):
    """Fields of an EPOCH dump: flat names, cell centres as coordinates, nodes as a variable of their own."""
    source = "sdf/epoch2d_4ranks_id4_0001.sdf"
    data = opened(source)
    assert data.attrs["Conventions"] == "CF-1.11"
    ex = data["Electric_Field_Ex"]
    assert ex.dims == ("X_Grid_mid", "Y_Grid_mid")
    assert ex.attrs["units"] == "V/m" and ex.attrs["long_name"] == "Electric Field/Ex"
    x, nodes = data["X_Grid_mid"], data["X_Grid"]
    assert x.attrs["units"] == "m" and x.attrs["axis"] == "X"
    assert np.allclose(x, 0.5 * (nodes.values[1:] + nodes.values[:-1]), rtol=1e-15)
    assert np.array_equal(x, values(source, "Grid/Grid/X_mid"))
    at = ex.isel(X_Grid_mid=3, Y_Grid_mid=2)
    assert at == ex.sel(X_Grid_mid=x[3], Y_Grid_mid=data["Y_Grid_mid"][2])
    assert np.array_equal(ex.values.ravel(), values(source, "Electric Field/Ex"))


def traces(opened):
    """A trace: volts over time, with the unit of the time."""
    source = "lecroy/lecroy_le_word.trc"
    data = opened(source)
    trace = next(v for v in data.data_vars.values() if v.ndim == 1)
    assert trace.dims == ("time",) and trace.attrs["units"] == "V"
    assert data["time"].attrs["units"] == "s" and data["time"].attrs["axis"] == "T"
    assert np.allclose(trace, values(source, trace.attrs.get("long_name", trace.name)), rtol=1e-6)


def other_formats(opened):
    """One file of each other format opens without a warning."""
    for source in [
        "gsd/py-5.0.1/fl_special_floats.gsd",
        "scda/enc_v.scd",
        "taf/good/example_2d_101x3.taf",
        "keysight/keysight_ag10_seg3.bin",
        "lecroy/lecroy_le_sequence4.trc",
    ]:
        assert len(opened(source).variables) > 0, source


def check(name, open_data):
    """Checks conversions to files called `name`, which `open_data` opens as a dataset of xarray."""
    os.chdir(tempfile.mkdtemp())

    def opened(source):
        return converted(source, name, open_data)

    fields(opened)
    traces(opened)
    other_formats(opened)
