"""The xarray engine, and its compatibility with sdf-xarray."""

import functools
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import spile
from support import GOLDEN, arrays_of, golden

xr = pytest.importorskip("xarray")
from spile._storable import storable_name  # noqa: E402
from spile._xarray import plain_name  # noqa: E402

EPOCH = sorted(path.name for path in (GOLDEN / "sdf").glob("epoch*.sdf"))


@functools.cache
def peer(path):
    """Variables read by sdf-xarray, without and with particles. It runs in a separate process, because
    some files crash it."""
    code = (
        "import sys, pickle, xarray as xr, sdf_xarray\n"
        "def read(particles):\n"
        "    options = {'engine': 'sdf_engine', 'keep_particles': particles}\n"
        "    ds = xr.open_dataset(sys.argv[1], **options).load()\n"
        "    return {n: (v.dims, v.values, v.attrs.get('units', ''), n in ds.coords)"
        " for n, v in ds.variables.items()}\n"
        "sys.stdout.buffer.write(pickle.dumps([read(False), read(True)]))"
    )
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True)
    return pickle.loads(run.stdout) if run.returncode == 0 else None


@pytest.mark.parametrize("name", EPOCH)
def test_dumps_equal_what_sdf_xarray_reads(name):
    pytest.importorskip("sdf_xarray")
    path = golden(f"sdf/{name}")
    both = [xr.open_dataset(path, engine="spile", keep_particles=k) for k in (False, True)]
    if peer(path) is None:
        assert "subsets" in name, "the only EPOCH dumps that it cannot open"
        assert all(len(ours.load().variables) > 10 for ours in both)
        return
    for ours, theirs in zip(both, peer(path)):
        for variable, (dims, values, units, coord) in theirs.items():
            mine = ours[variable]
            np.testing.assert_array_equal(mine.values, values, variable)
            assert mine.attrs.get("units", "") == units and (variable in ours.coords) == coord
            # sdf-xarray names the dimension of probes after the quantity, and truncates long names.
            if not mine.attrs.get("point_data") and values.ndim and mine.dims != dims:
                assert all(dim.startswith("dim_") for dim in dims), (variable, mine.dims, dims)


def test_files_that_sdf_xarray_cannot_open_are_opened():
    for name in ("drv_all_blocks", "drv_station", "hand_bigendian_all", "sdfr_written"):
        assert len(xr.open_dataset(golden(f"sdf/{name}.sdf"), engine="spile").load().variables) > 3


def test_the_engine_is_found_by_the_bytes_of_a_file():
    from xarray.backends.plugins import list_engines

    engine = list_engines()["spile"]
    for name in ("sdf/epoch3d_0001.sdf", "taf/good/scalar_1x1.taf", "scda/a_basic.scd"):
        assert engine.guess_can_open(golden(name))
    for name in ("netcdf/manifest.json", "npy/manifest.json"):
        if (GOLDEN / name).exists():
            assert not engine.guess_can_open(golden(name))
    assert not engine.guess_can_open("nowhere.sdf")
    assert xr.open_dataset(golden("gsd/py-5.0.1/hoomd_2d.gsd")).sizes["frame"] > 0


def test_only_what_is_used_is_read():
    ds = xr.open_dataset(golden("sdf/epoch3d_0001.sdf"), engine="spile")
    file = spile.open(golden("sdf/epoch3d_0001.sdf"))
    lazy = file.to_xarray(keep_particles=True)
    before = file._handle.open.bytes_read
    part = lazy["Electric_Field_Ex"].isel(X_Grid_mid=3, Y_Grid_mid=slice(0, 4)).values
    assert 0 < file._handle.open.bytes_read - before < 20_000
    np.testing.assert_array_equal(part, ds["Electric_Field_Ex"].values[3, :4])
    fancy = lazy["Electric_Field_Ex"].isel(X_Grid_mid=[5, 1, 1])
    np.testing.assert_array_equal(fancy, ds["Electric_Field_Ex"].values[[5, 1, 1]])


def test_options_leave_out_and_keep():
    path = golden("sdf/epoch2d_4ranks_id4_0001.sdf")
    plain = xr.open_dataset(path, engine="spile")
    assert "Particles_Px_electron" not in plain and "p1_Px" not in plain
    probe = xr.open_dataset(path, engine="spile", probe_names=["p1"])
    assert "p1_Px" in probe and "Particles_Px_electron" not in probe
    dropped = xr.open_dataset(path, engine="spile", drop_variables=["Electric_Field_Ex"])
    assert "Electric_Field_Ex" not in dropped and "Current_Jx" in dropped
    assert plain.attrs["step"] == 18 and "time" not in plain.coords
    group = xr.open_dataset(path, engine="spile", group="Electric Field")
    assert "Electric_Field_Ex" in group and "Current_Jx" not in group


def test_trees_have_every_group():
    path = golden("sdf/epoch2d_4ranks_id4_0001.sdf")
    tree = xr.open_datatree(path, engine="spile")
    field = tree["Electric_Field"]["Ex"]
    assert field.dims == ("X_Grid_mid", "Y_Grid_mid") and set(field.dims) <= set(field.coords)
    assert field.attrs["flat_structure_name"] == "Electric_Field_Ex"
    assert "Particles" not in tree.children
    tree = xr.open_datatree(path, engine="spile", keep_particles=True)
    assert tree["Particles/Px/electron"].dims == ("ID_electron",)


def test_many_dumps_by_mfdataset_by_series_and_by_folder(tmp_path):
    pytest.importorskip("dask")
    files = sorted((GOLDEN / "sdf").glob("epoch1d_normal_000[0-2].sdf"))
    many = xr.open_mfdataset(
        files,
        engine="spile",
        combine="nested",
        concat_dim="time",
        data_vars="all",
        coords="minimal",
        compat="override",
        join="override",
        preprocess=spile.SDFPreprocess(),
    )
    for path in files:
        (tmp_path / path.name).symlink_to(path)
    folder = xr.open_dataset(tmp_path, engine="spile", chunks={"time": 1})
    series = spile.open_series(files).to_xarray()
    dumps = [xr.open_dataset(path, engine="spile") for path in files]
    singles = [dump["Electric_Field_Ex"] for dump in dumps]
    times = [dump.attrs["time"] for dump in dumps]
    for ds in (many, folder, series):
        field = ds["Electric_Field_Ex"]
        assert field.dims == ("time", "X_Grid_mid")
        np.testing.assert_array_equal(ds["time"], times)
        np.testing.assert_array_equal(field, np.stack([one.values for one in singles]))
    for ds in (many, folder):
        assert ds["Electric_Field_Ex"].chunks[0] == (1, 1, 1)
        mean = ds["Electric_Field_Ex"].mean("time").compute()
        np.testing.assert_allclose(mean, series["Electric_Field_Ex"].mean("time"))


def test_particles_that_change_in_number_are_filled_up():
    series = spile.open_series(golden("sdf/epoch1d_normal_*.sdf"))
    ds = series.to_xarray(keep_particles=True)
    padded = ds["Particles_Px_electron"]
    raw = series["Particles/Px/electron"]
    for k in range(series.frames):
        part = raw[k]
        count = 0 if part is None else len(part)
        row = padded.isel(time=k).values
        assert np.isnan(row[count:]).all()
        if count:
            np.testing.assert_array_equal(row[:count], part)


def test_trajectories_have_frames_particles_and_logs():
    gsd = pytest.importorskip("gsd.hoomd")
    for name in ("hoomd_full", "hoomd_varying_N", "hoomd_frame0_fallback", "hoomd_many_frames"):
        path = golden(f"gsd/py-5.0.1/{name}.gsd")
        ds = xr.open_dataset(path, engine="spile")
        with gsd.open(path) as trajectory:
            assert ds.sizes["frame"] == len(trajectory)
            for k, frame in list(enumerate(trajectory))[:20]:
                count = frame.particles.N
                mine = ds["position"].isel(frame=k).values
                np.testing.assert_array_equal(mine[:count], frame.particles.position)
                assert mine.dtype == frame.particles.position.dtype
                assert int(ds["step"][k]) == frame.configuration.step


def test_rows_that_a_frame_lacks_are_nan_in_all_particle_arrays():
    gsd = pytest.importorskip("gsd.hoomd")
    path = golden("gsd/py-5.0.1/hoomd_varying_N.gsd")
    ds = xr.open_dataset(path, engine="spile")
    with gsd.open(path) as trajectory:
        counts = [int(frame.particles.N) for frame in trajectory]
        assert len(set(counts)) > 1 and ds["n_particles"].values.tolist() == counts
        for k, frame in enumerate(trajectory):
            for name in ("position", "typeid", "body", "image", "mass"):
                values = ds[name].isel(frame=k).values
                np.testing.assert_array_equal(values[: counts[k]], getattr(frame.particles, name))
                assert np.isnan(values[counts[k] :]).all(), name
    same = xr.open_dataset(golden("gsd/py-5.0.1/hoomd_many_frames.gsd"), engine="spile")
    assert same["typeid"].dtype == np.uint32
    assert (same["n_particles"] == same.sizes["particle"]).all()


def test_other_formats_have_dimensions_and_points():
    taf = xr.open_dataset(golden("taf/good/example_2d_101x3.taf"), engine="spile")
    (name,) = taf.data_vars
    assert taf[name].shape == (101, 3) and taf[name].dims[0] in taf.coords
    scda = xr.open_dataset(golden("scda/v_basic.scd"), engine="spile")
    assert any(variable.endswith("_offsets") for variable in scda.variables)
    density = next(pathlib.Path(golden("iotk/qe54_si")).rglob("charge-density.dat"), None)
    if density is not None:
        ds = xr.open_dataset(density, engine="spile")
        assert any(v.ndim == 3 for v in ds.variables.values())


def test_datasets_work_in_other_processes():
    pytest.importorskip("distributed")
    from distributed import Client

    path = golden("sdf/epoch3d_0001.sdf")
    expected = float(xr.open_dataset(path, engine="spile")["Electric_Field_Ex"].mean())
    with Client(n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None):
        ds = xr.open_dataset(path, engine="spile", chunks={"X_Grid_mid": 4})
        assert float(ds["Electric_Field_Ex"].mean().compute()) == pytest.approx(expected, rel=1e-12)
        lazy = spile.open(path)["Electric Field/Ex"].to_dask(chunks=(4, 5, 8))
        assert float(lazy.mean().compute()) == pytest.approx(expected, rel=1e-12)


def test_everything_that_opens_becomes_a_dataset():
    count = 0
    for path in sorted(p for p in GOLDEN.rglob("*") if p.is_file() and "corrupt" not in str(p)):
        try:
            file = spile.open(path)
        except spile.SpileError:
            continue
        try:
            file.to_xarray(keep_particles=True).load()
            count += 1
        except spile.SpileError:
            continue
    assert count > 200


def coordinates(variable):
    """Coordinate values of a variable by name, without those of frames and scalars."""
    own = variable.coords.items()
    return {n: c.values for n, c in own if c.ndim and n not in ("step", "time")}


def flat_variables(tree):
    """The variables of a tree of an SDF file by their name in the flat dataset."""
    every = [v for node in tree.subtree for v in node.dataset.data_vars.values()]
    names = [v.attrs["flat_structure_name"] for v in every]
    assert len(set(names)) == len(names)
    return dict(zip(names, every))


def tree_variable(tree, arrays, array):
    """The variable of an array; arrays below an array ``a`` are in the group ``a_``."""
    place, path = tree, ""
    *groups, own = array.path.split("/")
    for name in groups:
        path = f"{path}/{name}" if path else name
        name = storable_name(name)
        place = place.children[f"{name}_" if path in arrays else name]
    return place.dataset[storable_name(own)]


@pytest.mark.parametrize("name", [*EPOCH, "hand_littleendian_all.sdf", "drv_all_blocks.sdf"])
def test_a_variable_has_the_same_coordinates_through_every_interface(name):
    path = golden(f"sdf/{name}")
    file = spile.open(path)
    engine = xr.open_dataset(path, engine="spile", keep_particles=True)
    exported = file.to_xarray(keep_particles=True)
    tree = flat_variables(xr.open_datatree(path, engine="spile", keep_particles=True))
    fields = points = 0
    for array in arrays_of(file).values():
        if array.role not in ("field", "points"):
            continue
        if "derived" in array.attrs:  # not in datasets, as in sdf-xarray
            continue
        native = {label: np.asarray(points) for label, points in array.coords.items()}
        name = plain_name(array.attrs.get("sdf_name", array.path))
        flat = exported[name]
        others = [tree[name], engine[name], flat]
        if array.role == "field":
            fields += len(native)
            names = dict(zip(array.dims, flat.dims))
        else:
            points += len(native)
            mesh = plain_name(array.mesh.removeprefix("Grid/")) if array.mesh else ""
            names = {label: plain_name(f"{label}_{mesh}") for label in native}
        for other in others:
            found = coordinates(other)
            assert set(found) == {names[label] for label in native}, array.path
            for label, values in native.items():
                np.testing.assert_array_equal(found[names[label]], values, array.path)
                assert values.dtype == found[names[label]].dtype
    assert fields > 0 or points > 0 or not name.startswith("epoch")


def test_fields_of_a_two_dimensional_dump_have_cell_centres_and_particles_positions():
    file = spile.open(golden("sdf/epoch2d_4ranks_id4_0001.sdf"))
    nodes = file["Grid/Grid/X"][...]
    for path in ("Electric Field/Ex", "Electric Field/Ey_averaged", "Magnetic Field/Bz"):
        coords = file[path].coords
        assert list(coords) == ["X", "Y"] and coords["X"].path == "Grid/Grid/X_mid"
        np.testing.assert_array_equal(coords["X"][...], 0.5 * (nodes[1:] + nodes[:-1]))
    coords = file["Particles/Px/electron"].coords
    assert [c.path for c in coords.values()] == [f"Grid/Particles/electron/{k}" for k in "XY"]


def test_coordinates_of_a_moving_window_depend_on_the_frame(tmp_path):
    source = pathlib.Path(golden("sdf/epoch1d_normal_0001.sdf"))
    content = source.read_bytes()
    nodes = spile.open(source)["Grid/Grid/X"][...]
    assert content.count(nodes.tobytes()) == 1
    for k in range(3):
        moved = content.replace(nodes.tobytes(), (nodes + k).tobytes())
        (tmp_path / f"{k:04}.sdf").write_bytes(moved)
    series = spile.open_series(tmp_path)
    field = series.to_xarray()["Electric_Field_Ex"]
    moving = field.coords["X_Grid_mid_moving"]
    assert moving.dims == ("time", "X_Grid_mid")
    for k in range(3):
        expected = 0.5 * ((nodes + k)[1:] + (nodes + k)[:-1])
        np.testing.assert_array_equal(moving[k], expected)
        native = series["Electric Field/Ex"].frame(k).coords["X"]
        np.testing.assert_array_equal(native[...], expected)


def test_coordinates_without_a_mesh_reach_xarray(tmp_path):
    x = np.linspace(0, 1, 5) ** 2
    field = (("x", "y"), np.ones((5, 3)))
    path = tmp_path / "a.sdf"
    spile.create(path, {"Fields": {"n": field}}, coords={"x": x, "y": (2.0, 0.5)})
    tree = xr.open_datatree(path, engine="spile")
    assert list(spile.open(path)["Fields/n"].coords) == ["x", "y"]
    for found in (xr.open_dataset(path, engine="spile")["Fields_n"], tree["Fields/n"]):
        assert found.dims == ("x", "y")
        np.testing.assert_array_equal(found.coords["x"], x)
        np.testing.assert_array_equal(found.coords["y"], [2.0, 2.5, 3.0])


def test_every_file_becomes_a_tree_with_each_array_at_its_path():
    count = 0
    for path in sorted(p for p in GOLDEN.rglob("*") if p.is_file() and "corrupt" not in str(p)):
        try:
            file = spile.open(path)
            tree = xr.open_datatree(path, engine="spile")
        except spile.SpileError:
            continue
        count += 1
        if file.format == "sdf":
            assert set(flat_variables(tree)) == set(file.to_xarray().data_vars), path
            continue
        arrays = file.arrays()
        for array in arrays.values():
            assert tree_variable(tree, arrays, array).name == storable_name(array.name), path
    assert count > 200


def test_datasets_of_trajectories_have_all_chunks():
    gsd = pytest.importorskip("gsd.hoomd")
    path = golden("gsd/py-5.0.1/hoomd_full.gsd")
    ds = xr.open_dataset(path, engine="spile")
    with gsd.open(path) as trajectory:
        for k, frame in enumerate(trajectory):
            for links in ("bonds", "angles", "dihedrals", "impropers", "pairs"):
                theirs = getattr(frame, links)
                np.testing.assert_array_equal(ds[f"{links}_group"][k], theirs.group)
                np.testing.assert_array_equal(ds[f"{links}_typeid"][k], theirs.typeid)
                assert ds[f"{links}_types"].values.tolist() == theirs.types
            np.testing.assert_array_equal(ds["constraints_value"][k], frame.constraints.value)
            assert ds["particles_types"].values.tolist() == frame.particles.types
            for name, value in frame.log.items():
                mine = ds[plain_name(f"log/{name}")][k].values
                np.testing.assert_array_equal(mine.ravel(), np.ravel(value), name)
    state = xr.open_dataset(golden("gsd/py-3.4.1/hoomd_state.gsd"), engine="spile")
    file = spile.open(golden("gsd/py-3.4.1/hoomd_state.gsd"))
    for path in file["state"].arrays():
        np.testing.assert_array_equal(state[plain_name(f"state/{path}")], file[f"state/{path}"])


def test_times_have_units_only_where_the_format_defines_them(tmp_path):
    series = spile.open_series(golden("sdf/epoch1d_normal_*.sdf")).to_xarray()
    assert series["time"].attrs["units"] == "s"
    text = "1\nTime={} Properties=species:S:1:pos:R:3\nH 0 0 0\n"
    (tmp_path / "a.xyz").write_text(text.format(0.0) + text.format(0.5))
    ds = xr.open_dataset(tmp_path / "a.xyz", engine="spile")
    assert ds["time"].values.tolist() == [0.0, 0.5] and "units" not in ds["time"].attrs


def test_uniform_coordinates_have_units():
    ds = xr.open_dataset(golden("dig/nts_u8.dig"), engine="spile")
    file = spile.open(golden("dig/nts_u8.dig"))
    (array,) = file.arrays().values()
    (dim,) = array.dims
    assert ds[dim].attrs["units"] == array.attrs[f"{dim}_units"] == "s"
    np.testing.assert_array_equal(ds[dim], array.coords[dim])
