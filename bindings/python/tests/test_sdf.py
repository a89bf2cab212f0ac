"""Datasets of EPOCH runs: names, options and results of sdf-xarray."""

import os
import pathlib
import pickle
import shutil
import time
import warnings

import numpy as np
import pytest

import spile
from spile import _open, _schemas
from spile.errors import MissingError
from support import GOLDEN, golden

xr = pytest.importorskip("xarray")
pytest.importorskip("dask")

DUMPS = sorted((GOLDEN / "sdf").glob("epoch1d_normal_*.sdf"))
TWO_DIMENSIONS = golden("sdf/epoch2d_4ranks_id4_0001.sdf")

DECK = """
begin:constant
  lambda = 1.06 * micron  # a comment
  n = 10
end:constant
begin:constant
  big = 1.5e3
  n0 = critical(omega) / 2 \\
       * 3
end:constant
begin:species
  name = electron
  charge = -1
  dump = T
end:species
begin:species
  name = proton
  mass = 1836.2
end:species
begin:species
  name = electron
  range1 = (-1.5e3, 2)
  point = (x_min, 0)
end:species
begin:laser
  boundary = x_min
end:laser
begin:laser
  boundary = x_max
end:laser
begin:output
  include_species:electron
  include_species:proton
end:output
"""


@pytest.fixture
def run(tmp_path):
    """A folder with the dumps of a run."""
    for path in DUMPS:
        shutil.copy(path, tmp_path)
    return tmp_path


def single(path, **options):
    return xr.open_dataset(path, engine="spile", **options)


def test_a_run_has_the_values_of_its_dumps_at_their_times(run):
    ds = spile.open_mfdataset(run)
    dumps = [single(path) for path in sorted(run.glob("*.sdf"))]
    np.testing.assert_array_equal(ds["time"], [dump.attrs["time"] for dump in dumps])
    assert "step" not in ds.coords and ds["time"].attrs["units"] == "s"
    for k, dump in enumerate(dumps):
        for name in ds.data_vars:
            if name in dump:
                np.testing.assert_array_equal(ds[name][k], dump[name], str(name))
                assert ds[name].attrs.get("units") == dump[name].attrs.get("units")
            elif ds[name].dtype.kind == "U":
                assert (ds[name][k] == "").all(), name
            else:
                assert np.isnan(ds[name][k]).all(), name
    assert ds["Electric_Field_Ex"].chunks[0] == (1,) * len(dumps)
    assert spile.open_mfdataset(run, chunks=None)["Electric_Field_Ex"].chunks is None


def test_preprocessed_dumps_are_the_run(run):
    ours = spile.open_mfdataset(run)
    ds = xr.open_mfdataset(
        sorted(run.glob("*.sdf")),
        engine="spile",
        preprocess=spile.SDFPreprocess(),
        data_vars="all",
        coords="different",
        compat="no_conflicts",
        join="outer",
    )
    assert set(ds.data_vars) == set(ours.data_vars)
    for name in ds.data_vars:
        if ours[name].dtype.kind != "U":  # missing texts are empty, or NaN
            np.testing.assert_array_equal(ds[name], ours[name], str(name))
        assert ds[name].dims == ours[name].dims


def test_variables_that_are_in_the_same_dumps_share_a_time(run):
    ds = spile.open_mfdataset(run, separate_times=True, keep_particles=True)
    dumps = [single(path, keep_particles=True) for path in sorted(run.glob("*.sdf"))]
    assert "time" not in ds.dims and ds["Electric_Field_Ex"].dims[0] == "time0"
    for name, variable in ds.data_vars.items():
        dims = [dim for dim in variable.dims if str(dim).startswith("time")]
        have = [dump for dump in dumps if name in dump]
        if dims:
            np.testing.assert_array_equal(ds[dims[0]], [dump.attrs["time"] for dump in have])
        for dump, values in zip(have, variable if dims else ()):
            own = dump[name]
            padding = [slice(0, n) for n in own.shape]
            np.testing.assert_array_equal(values[tuple(padding)], own, str(name))


def test_selected_variables_keep_only_their_coordinates(run):
    ds = spile.open_mfdataset(run, data_vars=["Electric_Field_Ex", "Nothing"])
    assert set(ds.data_vars) == {"Electric_Field_Ex"}
    assert set(ds.coords) == {"time", "X_Grid_mid"}
    separate = spile.open_mfdataset(run, data_vars=["Electric_Field_Ex"], separate_times=True)
    assert set(separate.coords) == {"time0", "X_Grid_mid"}
    chosen = spile.SDFPreprocess(data_vars=["Electric_Field_Ex"])(single(DUMPS[0]))
    assert set(chosen.data_vars) == {"Electric_Field_Ex"} and chosen.sizes["time"] == 1


def test_dumps_of_other_jobs_are_refused(run):
    shutil.copy(TWO_DIMENSIONS, run / "epoch1d_normal_0099.sdf")
    with pytest.raises(ValueError, match=r"expected a dump of job \d+, found job \d+"):
        spile.open_mfdataset(run)
    preprocess = spile.SDFPreprocess()
    preprocess(single(DUMPS[0]))
    with pytest.raises(ValueError, match="expected a dump of job"):
        preprocess(single(TWO_DIMENSIONS))


def test_paths_are_resolved_as_folder_pattern_or_list(run):
    (run / "notes.txt").write_text("no dump")
    files = sorted(path.resolve() for path in run.glob("*.sdf"))
    resolve = spile.sdf.resolve_paths
    assert resolve(run) == resolve(str(run / "*_000*.sdf")) == resolve(iter(files * 2)) == files
    for wrong in (run / "*.none", [], [run / "missing.sdf"], [run / "notes.txt"]):
        with pytest.raises(FileNotFoundError):
            resolve(wrong)


def test_variables_have_the_attributes_of_sdf_xarray():
    ds = single(TWO_DIMENSIONS)
    field = ds["Electric_Field_Ex"]
    assert field.attrs["full_name"] == "Electric Field/Ex"
    assert field.attrs["long_name"] == "Electric Field $E_x$" and field.attrs["units"] == "V/m"
    assert field.encoding["preferred_chunks"] == dict(field.sizes)
    assert ds["X_Grid_mid"].attrs["long_name"] == "X"
    assert ds["X_Grid_mid"].attrs["full_name"] == "Grid/Grid_mid"


def test_dimensions_have_the_names_of_sdf_xarray():
    restart = single(golden("sdf/epoch1d_normal_0003.sdf"))
    assert restart["laser_x_min_phase"].dims == ("dim_laser_x_min_phase_0",)
    assert restart["CPUs_Original_rank"].dims == ("dim_CPUs_Original rank_0",)
    mesh = _schemas._Mesh("Grid/xyE/electron-hot", "plain_mesh")
    assert mesh.dim("gamma-1") == "gamma-1_xyE_electron_hot"
    # NetCDF has no names that begin with a bar.
    assert mesh.dim("|P|") == "_|P|_xyE_electron_hot"


def test_files_have_the_attributes_of_sdf_xarray():
    ds = single(TWO_DIMENSIONS)
    about = spile.open(TWO_DIMENSIONS).summary
    assert (ds.attrs["file_version"], ds.attrs["file_revision"]) == (1, 4)
    parts = (about[name] for name in ("code_version", "code_revision", "minor_rev"))
    assert ds.attrs["version"] == ".".join(map(str, parts))
    assert ds.attrs["run_date"] == time.ctime(about["run_date"])
    assert ds.attrs["defines"] == str(about["defines"]) and ds.attrs["other_domains"] == 0
    full = single(TWO_DIMENSIONS, keep_particles=True)
    assert full["Particles_Weight_electron"].attrs["units"] == ""


def test_datasets_with_texts_have_automatic_chunks(tmp_path):
    texts = (("n",), np.array([b"normal", b"restart"]))
    spile.create(tmp_path / "a.sdf", {"Output": {"Names": texts}})
    ds = single(tmp_path / "a.sdf", chunks="auto")
    assert ds["Output_Names"].dtype.kind == "U"
    assert [name.strip() for name in ds["Output_Names"].values] == ["normal", "restart"]


def test_derived_fields_are_included_on_request():
    ds = single(TWO_DIMENSIONS, derived=True)
    centred = single(TWO_DIMENSIONS, staggered="centre")["Electric_Field_Ex"]
    assert ds["Electric_Field_Ex_centred"].dims == ("X_Grid_mid", "Y_Grid_mid")
    np.testing.assert_array_equal(ds["Electric_Field_Ex_centred"], centred)
    for options in ({}, {"staggered": True}, {"staggered": "centre"}):
        assert "Electric_Field_Ex_centred" not in single(TWO_DIMENSIONS, **options)


def test_variables_are_dropped_by_either_name():
    for name in ("Electric Field/Ex", "Electric_Field_Ex"):
        ds = single(TWO_DIMENSIONS, drop_variables=[name])
        assert "Electric_Field_Ex" not in ds and "Current_Jx" in ds
    with pytest.raises(KeyError, match="Electric_Field_Exx"):
        single(TWO_DIMENSIONS, drop_variables=["Electric Field/Exx"])


def test_a_variable_above_others_is_called_all_in_trees(tmp_path):
    content = {"Derived": {"Density": (("x",), np.arange(3.0))}}
    spile.create(tmp_path / "a.sdf", content)
    tree = xr.open_datatree(tmp_path / "a.sdf", engine="spile")
    assert tree["Derived/Density"].attrs["flat_structure_name"] == "Derived_Density"
    ds = xr.Dataset(
        {
            "n": ("x", [1.0], {"full_name": "Derived/Number Density"}),
            "e": ("x", [2.0], {"full_name": "Derived/Number Density/electron"}),
        },
        {"x": [0.0]},
    )
    from spile._sdf_tree import datatree

    tree = datatree(ds)
    assert float(tree["Derived/Number_Density/All"][0]) == 1
    assert float(tree["Derived/Number_Density/electron"][0]) == 2
    assert "x" in tree["Derived/Number_Density/All"].coords


def test_a_run_as_a_tree_has_the_variables_of_the_dataset(run):
    tree = spile.open_mfdatatree(run)
    ds = spile.open_mfdataset(run)
    found = {}
    for node in tree.subtree:
        for variable in node.dataset.data_vars.values():
            found[variable.attrs["flat_structure_name"]] = variable
    assert set(found) == set(ds.data_vars)
    np.testing.assert_array_equal(found["Electric_Field_Ex"], ds["Electric_Field_Ex"])


def test_input_decks_are_mappings():
    deck = spile.sdf.Deck.parse(DECK)
    assert deck["constant"] == {
        "lambda": "1.06 * micron",
        "n": 10,
        "big": 1500.0,
        "n0": "critical(omega) / 2 * 3",
    }
    assert deck["species"]["electron"] == {
        "name": "electron",
        "charge": -1,
        "dump": True,
        "range1": (-1500.0, 2),
        "point": "(x_min, 0)",
    }
    assert deck["species"]["proton"]["mass"] == 1836.2
    assert [laser["boundary"] for laser in deck["laser"]] == ["x_min", "x_max"]
    assert deck["output"]["include_species"] == ["electron", "proton"]
    assert "window" not in deck and deck.get("window") is None and len(deck) == 4
    assert pickle.loads(pickle.dumps(deck)) == deck == deck.blocks
    for wrong in ("begin:constant\nend:s", "begin:constant", "begin:a\nno value\nend:a"):
        with pytest.raises(spile.sdf.DeckError):
            spile.sdf.Deck.parse(wrong)


def test_datasets_have_the_deck_of_the_run_and_write_it(run, tmp_path):
    path = run / DUMPS[0].name
    assert "deck" not in single(path).attrs
    (run / "input.deck").write_text(DECK)
    (run / "faulty.deck").write_text("begin:constant\nend:s")
    for ds in (single(path), spile.open_mfdataset(run), xr.open_datatree(path, engine="spile")):
        assert ds.attrs["deck"]["constant"]["n"] == 10
    with pytest.raises(FileNotFoundError):
        single(path, deck_path="missing.deck")
    with pytest.warns(UserWarning, match="line 2: expected end:constant"):
        assert "deck" not in single(path, deck_path="faulty.deck").attrs
    ds = single(path)
    pytest.importorskip("netCDF4")
    ds.to_netcdf(tmp_path / "a.nc", engine="netcdf4")
    back = xr.open_dataset(tmp_path / "a.nc", engine="netcdf4")
    assert spile.sdf.Deck(back.attrs["deck"])["species"] == ds.attrs["deck"]["species"]
    assert spile.sdf.Deck(back.attrs["deck"])["species"]["electron"]["range1"] == (-1500.0, 2)
    pytest.importorskip("zarr")
    ds.to_zarr(tmp_path / "a.zarr", consolidated=False)
    back = xr.open_dataset(tmp_path / "a.zarr", engine="zarr", consolidated=False)
    assert spile.sdf.Deck(back.attrs["deck"]) == ds.attrs["deck"]


def test_a_process_opens_a_pickled_series_once(run, monkeypatch):
    series = spile.open_series(run)
    pickled = pickle.dumps(series["Electric Field/Ex"])
    expected = series["Electric Field/Ex"][...]
    opened = []
    real = _open._series
    monkeypatch.setattr(_open, "_series", lambda *args: opened.append(args) or real(*args))
    first = pickle.loads(pickled)
    series.close()
    np.testing.assert_array_equal(first[...], expected)
    assert not opened
    del series, first
    for _ in range(3):
        np.testing.assert_array_equal(pickle.loads(pickled)[...], expected)
    assert len(opened) == 1


def test_a_changed_series_is_opened_again(run):
    series = spile.open_series(run)
    restored = pickle.loads(pickle.dumps(series))
    os.remove(run / DUMPS[-1].name)
    again = pickle.loads(pickle.dumps(spile.open_series(run)))
    assert again.frames == restored.frames - 1 == len(DUMPS) - 1


def test_worker_processes_read_a_run(run):
    distributed = pytest.importorskip("distributed")
    ds = spile.open_mfdataset(run)
    expected = spile.open_mfdataset(run, chunks=None)["Electric_Field_Ex"].mean("time")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert len(set(client.run(os.getpid).values()) - {os.getpid()}) == 2
        mean = ds["Electric_Field_Ex"].mean("time").compute()
    np.testing.assert_allclose(mean, expected, rtol=1e-12)


def test_missing_runs_are_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        spile.open_mfdataset(tmp_path)
    with pytest.raises(MissingError):
        single(pathlib.Path(tmp_path, "0000.sdf"))


@pytest.mark.parametrize("types", ["f4 f8 f4", "f8 f4", "f4 f8 f8"])
def test_fields_of_different_precision_are_promoted(tmp_path, types):
    values = np.array([-0.0, 0.1, np.inf, 1e-30])
    for k, dtype in enumerate(types.split()):
        field = (("x",), (values * (k + 1)).astype(dtype))
        spile.create(tmp_path / f"{k:04}.sdf", {"Fields": {"n": field}})
    series = spile.open_series(tmp_path)
    array = series["Fields/n"]
    assert array.dtype == "f8" and not series.findings
    ds = spile.open_mfdataset(tmp_path)
    for k, dtype in enumerate(types.split()):
        expected = (values * (k + 1)).astype(dtype).astype("f8")
        np.testing.assert_array_equal(array.frame(k)[...], expected)
        np.testing.assert_array_equal(ds["Fields_n"][k], expected)
        assert np.signbit(array.frame(k)[0])


def test_arrays_left_out_of_a_series_are_named_in_a_warning(tmp_path):
    for k, dtype in enumerate(["f4", "i4"]):
        field = (("x",), np.arange(4, dtype=dtype))
        spile.create(tmp_path / f"{k:04}.sdf", {"Fields": {"n": field}})
    with pytest.warns(UserWarning, match="0001.sdf: expected float32, found int32"):
        spile.open_series(tmp_path)


def test_particle_variables_that_a_run_leaves_out_are_a_warning(tmp_path):
    for dump in DUMPS[:2]:
        shutil.copy(dump, tmp_path)
    with pytest.warns(
        UserWarning, match="particle variables are not included; keep_particles=True"
    ):
        assert "Particles_Px_electron" not in xr.open_dataset(tmp_path, engine="spile")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "Particles_Px_electron" in xr.open_dataset(
            tmp_path, engine="spile", keep_particles=True
        )
        # A single dump is opened as by sdf-xarray.
        xr.open_dataset(DUMPS[0], engine="spile")
