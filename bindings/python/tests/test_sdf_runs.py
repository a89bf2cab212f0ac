"""Runs of EPOCH: series, positions of staggered fields, particles and energies."""

import shutil

import numpy as np
import pytest

import spile
from spile import _open
from support import golden

xr = pytest.importorskip("xarray")

DUMPS = [golden(f"sdf/epoch2d_4ranks_id4_000{k}.sdf") for k in range(3)]


@pytest.fixture
def run(tmp_path):
    """A folder with three dumps, and two of another prefix."""
    for k, path in enumerate(DUMPS):
        shutil.copy(path, tmp_path / f"n{k}.sdf")
    for k, path in enumerate(DUMPS[:2]):
        shutil.copy(path, tmp_path / f"r{k}.sdf")
    return tmp_path


def test_files_with_different_prefixes_are_different_series(run):
    with pytest.warns(UserWarning, match=r"opened n\*.sdf, ignored r\*.sdf \(2 files\)"):
        assert spile.open_series(run).frames == 3
    with pytest.warns(UserWarning, match="several series"):
        assert spile.open_mfdataset(run).sizes["time"] == 3
    assert spile.open_series(run / "r*.sdf").frames == 2
    assert spile.open_mfdataset(run / "r*.sdf").sizes["time"] == 2
    assert [name for name, _ in _open._File.runs(run)] == ["n*.sdf", "r*.sdf"]


def test_staggered_fields_have_their_true_positions_on_request(run):
    plain = xr.open_dataset(DUMPS[2], engine="spile")
    true = xr.open_dataset(DUMPS[2], engine="spile", staggered=True)
    ex, nodes = true["Electric_Field_Ex"], plain["X_Grid"].values
    assert plain["Electric_Field_Ex"].dims == ("X_Grid_mid", "Y_Grid_mid")
    assert ex.dims == ("X_Grid_face", "Y_Grid_mid")
    np.testing.assert_array_equal(ex["X_Grid_face"], nodes[1:])
    assert ex["X_Grid_face"].attrs["units"] == "m" and ex.attrs["cell_position"] == [1.0, 0.5]
    assert true["Derived_Number_Density_electron"].attrs["cell_position"] == [0.5, 0.5]
    np.testing.assert_array_equal(ex, plain["Electric_Field_Ex"])
    series = spile.open_mfdataset(run / "n*.sdf", staggered=True)
    assert series["Electric_Field_Ex"].dims == ("time", "X_Grid_face", "Y_Grid_mid")
    with pytest.raises(ValueError, match="staggered must be"):
        xr.open_dataset(DUMPS[2], engine="spile", staggered="middle")


def test_staggered_fields_are_averaged_to_cell_centres_on_request(run):
    plain = xr.open_dataset(DUMPS[2], engine="spile")
    centred = xr.open_dataset(DUMPS[2], engine="spile", staggered="centre")
    ex, stored = centred["Electric_Field_Ex"], plain["Electric_Field_Ex"].values
    assert ex.dims == ("X_Grid_mid", "Y_Grid_mid") and ex.attrs["stagger"] == 0
    assert np.isnan(ex[0]).all() and ex.attrs["cell_position"] == [0.5, 0.5]
    np.testing.assert_array_equal(ex[1:], 0.5 * (stored[1:] + stored[:-1]))
    series = spile.open_mfdataset(run / "n*.sdf", staggered="centre")
    np.testing.assert_array_equal(series["Electric_Field_Ex"][2], ex)
    vector = spile.sdf.vector(centred, "Electric_Field")
    assert vector.dims == ("component", *ex.dims) and vector.attrs["units"] == "V/m"
    np.testing.assert_array_equal(vector.sel(component="x"), ex)
    with pytest.raises(KeyError):
        spile.sdf.vector(centred, "Nothing")


def test_particles_are_followed_by_their_identifiers(run):
    series = spile.open_series(run / "n*.sdf")
    dumps = [spile.open(path) for path in DUMPS]
    momentum = np.abs(dumps[2]["Particles/Px/electron"][...])
    ids = dumps[2]["Particles/ID/electron"][...][np.argsort(momentum)[::-1][:7]]
    tracks = series.track("electron", fastest=7, variables=["px", "X", "2 * px"])
    np.testing.assert_array_equal(tracks["id"], ids)
    assert tracks["px"].dims == ("time", "id") and tracks["px"].attrs["units"] == "kg.m/s"
    np.testing.assert_array_equal(tracks["time"], series.times)
    for k, dump in enumerate(dumps):
        numbers = list(dump["Particles/ID/electron"][...])
        px, x = dump["Particles/Px/electron"][...], dump["Grid/Particles/electron/X"][...]
        rows = [numbers.index(number) if number in numbers else None for number in ids]
        for name, values in (("px", px), ("X", x), ("2 * px", 2 * px)):
            expected = [np.nan if row is None else values[row] for row in rows]
            np.testing.assert_array_equal(tracks[name][k], expected)
    again = series.track("Electron", ids)
    np.testing.assert_array_equal(again["Px"], tracks["px"])
    assert "ID" not in again
    by = series.track("electron", top=1, by="-x", frame=0, variables=["x"])
    assert float(by["x"][0, 0]) == dumps[0]["Grid/Particles/electron/X"][...].min()
    assert np.isnan(series.track("electron", [2**40], variables=["x"])["x"]).all()
    for wrong in ({}, {"fastest": 1, "ids": [1]}, {"top": 3}):
        with pytest.raises(ValueError, match="give"):
            series.track("electron", **wrong)
    with pytest.raises(spile.errors.ArgumentError, match="no species named"):
        series.track("photon", fastest=1)


def test_an_index_of_identifiers_gives_the_same_tracks(run, tmp_path):
    pattern = run / "n*.sdf"
    series = spile.open_series(pattern)
    plain = series.track("electron", fastest=5)
    ids = [int(plain["id"][3]), 2**40, int(plain["id"][1])]
    expected = series.track("electron", ids, variables=["px", "X"])
    index = run / "electron.spileids"
    for _ in range(2):
        found = series.track("electron", ids, variables=["px", "X"], index=True)
        xr.testing.assert_identical(found, expected)
        assert index.is_file()
    written = index.stat().st_mtime_ns
    xr.testing.assert_identical(series.track("electron", fastest=5, index=True), plain)
    assert index.stat().st_mtime_ns == written
    # A new dump changes the run, and an index of another species is another file.
    shutil.copy(DUMPS[2], run / "n9.sdf")
    longer = spile.open_series(pattern).track("electron", ids, variables=["px", "X"], index=True)
    assert longer.sizes["time"] == 4 and index.stat().st_mtime_ns > written
    np.testing.assert_array_equal(longer["px"][:3], expected["px"])
    series.track("electron", ids, index=run / "mine.ids")
    assert (run / "mine.ids").is_file()
    # The length of the index, and its first frame, are wrong.
    damaged = index.read_bytes()[:70]
    index.write_bytes(damaged)
    with pytest.raises(spile.SpileError, match="electron.spileids"):
        spile.open_series(pattern).track("electron", ids, index=True)
    index.write_bytes(b"no index, but a file of the user with the name of an index")
    with pytest.raises(spile.SpileError, match="core-id-index"):
        spile.open_series(pattern).track("electron", ids, index=True)


def test_impossible_tracks_are_errors(run):
    series = spile.open_series(run / "n*.sdf")
    with pytest.raises(ValueError, match="not negative, found -1"):
        series.track("electron", [-1])
    with pytest.raises(IndexError, match="frame 9 does not exist; the run has 3 frames"):
        series.track("electron", fastest=1, frame=9)
    with pytest.raises(IndexError, match="frame -4 does not exist"):
        series.histogram("electron", "px", frame=-4)
    with pytest.raises(spile.SpileError, match=r'unknown variable "q" at character 1 of "q > 1"'):
        series.histogram("electron", "px", where="q > 1")
    everything = series.track("electron", fastest=10**9)
    assert everything.sizes["id"] == len(spile.open(DUMPS[2])["Particles/ID/electron"])


def test_histograms_are_weighted_sums_over_all_frames(run):
    series = spile.open_series(run / "n*.sdf")
    space = series.histogram("electron", ["X", "px"], bins=(6, 5), where="px > 0")
    assert space.dims == ("time", "X", "px") and space["X"].attrs["units"] == "m"
    for k, path in enumerate(DUMPS):
        dump = spile.open(path)
        x, px, weight = (
            dump[name][...].astype("f8")
            for name in (
                "Grid/Particles/electron/X",
                "Particles/Px/electron",
                "Particles/Weight/electron",
            )
        )
        edges = []
        for name in ("X", "px"):
            half = space[name].attrs["bin_width"] / 2
            edges.append(np.append(space[name] - half, space[name][-1] + half))
        some = px > 0
        expected, *_ = np.histogram2d(x[some], px[some], edges, weights=weight[some])
        np.testing.assert_allclose(space[k].sum(), weight[some].sum(), rtol=1e-12)
        assert np.abs(space[k] - expected).sum() <= 1e-3 * expected.sum()
    one = series.histogram(
        "electron", "hypot(px, 0)", bins=3, ranges=(0, 1e-21), weight="1", frame=-1
    )
    assert one.dims == ("hypot(px, 0)",) and float(one[0].item()).is_integer()


def test_grids_that_some_dumps_do_not_have_keep_their_coordinates(tmp_path):
    """EPOCH writes distribution functions and subsets with their grids less often than fields."""
    shutil.copy(DUMPS[0], tmp_path / "n0.sdf")
    spile.convert(DUMPS[1], tmp_path / "n1.sdf", select=["Electric Field", "Grid/Grid"])
    shutil.copy(DUMPS[2], tmp_path / "n2.sdf")
    run = spile.open_mfdataset(tmp_path)
    last = xr.open_dataset(DUMPS[2], engine="spile")
    field = run["dist_fn_px_py_electron"]
    assert field.dims == ("time", *last["dist_fn_px_py_electron"].dims)
    assert set(field.coords) == {"time", *last["dist_fn_px_py_electron"].coords}
    for name in last["dist_fn_px_py_electron"].coords:
        np.testing.assert_array_equal(field[name], last[name])
    assert np.isnan(field[1]).all()
    separate = spile.open_mfdataset(tmp_path, separate_times=True)["dist_fn_px_py_electron"]
    np.testing.assert_array_equal(separate[1], last["dist_fn_px_py_electron"])


def test_grids_of_different_lengths_keep_their_coordinates(tmp_path):
    shutil.copy(DUMPS[0], tmp_path / "n0.sdf")
    spile.convert(DUMPS[1], tmp_path / "n1.sdf", select=["Grid/Grid"], slice={"X": "4:24"})
    run = spile.open_mfdataset(tmp_path)
    nodes = run.coords["X_Grid_moving"]
    assert nodes.dims[0] == "time" and run["Y_Grid"].dims == ("Y_Grid",)
    for k in range(2):
        own = spile.open(tmp_path / f"n{k}.sdf")["Grid/Grid/X"][...]
        np.testing.assert_array_equal(nodes[k][: own.size], own)
        assert np.isnan(nodes[k][own.size :]).all()


def test_energies_are_time_series(run):
    series = spile.open_series(run / "n*.sdf")
    energies = series.energies({"electron": 1})
    ex = [spile.open(path)["Electric Field/Ex"][...] for path in DUMPS]
    grid = [spile.open(DUMPS[0])[f"Grid/Grid/{k}"][...] for k in "XY"]
    area = np.prod([(axis[-1] - axis[0]) / (len(axis) - 1) for axis in grid])
    expected = [8.8541878128e-12 / 2 * (field**2).sum() * area for field in ex]
    np.testing.assert_allclose(energies["Electric Field/Ex"], expected, rtol=1e-9)
    dump = spile.open(DUMPS[2])
    px, weight = (dump[f"Particles/{v}/electron"][...].astype("f8") for v in ("Px", "Weight"))
    mass, c = 9.1093837015e-31, 299792458.0
    kinetic = np.sqrt((px * c) ** 2 + (mass * c**2) ** 2) - mass * c**2
    np.testing.assert_allclose(energies["electron"][2], (weight * kinetic).sum(), rtol=1e-6)


def test_truncated_dumps_are_read_with_a_finding():
    with pytest.warns(UserWarning, match="incomplete file"):
        dump = spile.open(golden("sdf/hand_truncated.sdf"))
    assert "incomplete file" in dump.findings[0] and len(dump.arrays()) > 3
