"""Changes of values that would be lost, and misspelt arguments, raise exceptions."""

import inspect

import numpy as np
import pytest

import spile
from spile import taf
from spile.gsd import fl, hoomd
from support import golden

HOOMD = golden("gsd/py-5.0.1/hoomd_full.gsd")


def test_properties_of_files_are_read_only():
    file = spile.open(golden("sdf/epoch1d_normal_0001.sdf"))
    field = file["Electric Field/Ex"]
    for mapping in (file.attrs, file.summary, field.attrs, field.coords, field.grid):
        for change in (
            lambda m: m.__setitem__("new", 1),
            lambda m: m.update(new=1),
            lambda m: m.setdefault("new", 1),
            lambda m: m.clear(),
        ):
            with pytest.raises(TypeError, match="read-only"):
                change(mapping)
        assert dict(mapping, new=1)["new"] == 1
    series = spile.open_series(golden("sdf/epoch1d_normal_*.sdf"))
    for array in (field.values, series.steps, series.times):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    ragged = spile.open(golden("scda/v_basic.scd"))
    ragged = next(a for a in ragged.arrays().values() if a.ragged)
    for array in (ragged.offsets, ragged.values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(TypeError):
        field[0] = 1


def test_indexing_gives_copies_that_can_be_changed():
    field = spile.open(golden("sdf/epoch1d_normal_0001.sdf"))["Electric Field/Ex"]
    before = field[...]
    copy = field[...]
    copy += 1
    np.testing.assert_array_equal(field[...], before)


def test_changed_frames_are_written(tmp_path):
    frame = spile.open(HOOMD).hoomd[1]
    frame.particles.position[:, 2] = 0
    frame.particles.types.append("new")
    frame.particles.mass = np.full(frame.particles.N, 3.0)
    frame.configuration.step = 77
    frame.log["extra"] = [1.5]
    # Arrays of frame 0 are read-only, as in gsd.
    with pytest.raises(ValueError, match="read-only"):
        frame.bonds.group[0] = [4, 5]
    frame.bonds.group = frame.bonds.group.copy()
    frame.bonds.group[0] = [4, 5]
    with spile.create(tmp_path / "a.gsd") as file:
        file.append(frame)
    gsd = pytest.importorskip("gsd.hoomd")
    with gsd.open(tmp_path / "a.gsd") as trajectory:
        (theirs,) = trajectory
        assert (theirs.particles.position[:, 2] == 0).all() and theirs.configuration.step == 77
        np.testing.assert_array_equal(theirs.particles.position, frame.particles.position)
        assert theirs.particles.types[-1] == "new" and (theirs.particles.mass == 3).all()
        assert theirs.log["extra"] == [1.5] and theirs.bonds.group[0].tolist() == [4, 5]


def test_the_state_of_integrators_is_written(tmp_path):
    frame = spile.open(golden("gsd/py-3.4.1/hoomd_state.gsd")).hoomd[0]
    with spile.create(tmp_path / "a.gsd") as file:
        file.append(frame)
    again = spile.open(tmp_path / "a.gsd").hoomd[0]
    assert frame.state and set(again.state) == set(frame.state)
    for name, values in frame.state.items():
        np.testing.assert_array_equal(again.state[name], values)


def test_names_outside_the_schema_raise(tmp_path):
    frame = spile.open(HOOMD).hoomd[0]
    for part, name in ((frame, "bx"), (frame.particles, "postion"), (frame.bonds, "groups")):
        with pytest.raises(AttributeError, match=name):
            setattr(part, name, 1)
        with pytest.raises(AttributeError):
            getattr(part, name)
    with spile.create(tmp_path / "a.gsd") as file:
        for wrong in ({"particle": {}}, {"particles": {"postion": [[0, 0, 0]]}}):
            with pytest.raises(spile.errors.ArgumentError, match="HOOMD schema"):
                file.append(wrong)
        frame.particles.position = frame.particles.position[:5]
        with pytest.raises(spile.errors.ArgumentError, match="particles/position"):
            file.append(frame)


def test_attributes_that_cannot_be_written_are_reported(tmp_path):
    attrs = {"nested": {"a": 1}, "none": None}
    with pytest.warns(UserWarning, match="'none' is None"):
        spile.create(tmp_path / "a.h5", {"x": (("n",), np.arange(3), attrs)})
    assert dict(spile.open(tmp_path / "a.h5")["x"].attrs) == {"nested": '{"a": 1}'}


#: Names of `spile.__all__` that are neither functions nor classes.
MODULES = ("errors", "fortran", "gsd", "scda", "sdf", "taf", "__version__")


def public():
    """Public functions and methods, which must not take arbitrary arguments."""
    names = [name for name in spile.__all__ if name not in MODULES]
    modules = [(module, name) for module in (taf, fl, hoomd) for name in module.__all__]
    for owner, name in [(spile, n) for n in names] + modules:
        thing = getattr(owner, name)
        if inspect.isfunction(thing):
            yield name, thing
        elif not issubclass(thing, Exception):
            yield from inspect.getmembers(thing, inspect.isfunction)


def test_misspelt_arguments_raise(tmp_path):
    taking_any = {name for name, f in public() if "**" in str(inspect.signature(f))}
    assert taking_any <= {"create", "open_mfdatatree", "plot", "to_xarray", "__dlpack__"}, (
        "tested below"
    )
    file = spile.open(HOOMD)
    for path, content in (("a.sdf", {"x": np.arange(3)}), ("a.gsd", None), ("a.scda", None)):
        with pytest.raises(TypeError, match="misspelt"):
            spile.create(tmp_path / path, content, misspelt=1)
    taf.create(tmp_path / "a.taf", np.arange(3.0))
    with pytest.raises(TypeError, match="misspelt"):
        taf.grid(tmp_path / "a.taf", 1, misspelt=1)
    with pytest.raises(spile.errors.ArgumentError, match="misspelt"):
        spile.plot(HOOMD, misspelt=1)
    with pytest.raises(spile.errors.ArgumentError, match="second needs name"):
        spile.plot(HOOMD, second="particles/position")
    xr = pytest.importorskip("xarray")
    with pytest.raises(TypeError, match="misspelt"):
        file.to_xarray(misspelt=1)
    with pytest.raises(TypeError, match="misspelt"):
        spile.open_mfdatatree(spile.sample("run", tmp_path / "run"), misspelt=1)
    for opener in (xr.open_dataset, xr.open_datatree, xr.open_groups):
        with pytest.raises(TypeError, match="misspelt"):
            opener(HOOMD, engine="spile", misspelt=1)
