"""EPOCH runs with a moving window and reduced grids: coordinates in xarray, NetCDF, Zarr and ParaView files are those of
sdfr; expressions of particles are those of NumPy."""

import json
import pathlib
import shutil
import tempfile

import numpy as np
import pyvista
import sdfr
import xarray as xr
from support import spile

REAL = pathlib.Path(__file__).resolve().parents[3] / "shared" / "real" / "sdf"


def blocks(path):
    return sdfr.read(str(path), derived=False).name_dict


def moving_window(folder):
    """Every frame has its own cell centres, on the dimension of the fields."""
    files = sorted((REAL / "s3d").glob("*.sdf"))
    dumps = [blocks(path) for path in files]
    nodes = [[np.asarray(axis) for axis in dump["Grid/Grid"].data] for dump in dumps]
    centres = np.array([0.5 * (x[0][1:] + x[0][:-1]) for x in nodes])
    assert centres[0, 0] != centres[-1, 0]
    field = np.array([dump["Electric Field/Ey"].data for dump in dumps])
    spile("-q", "convert", REAL / "s3d", folder / "run.nc")
    spile("-q", "convert", REAL / "s3d", folder / "run.zarr")
    for path, options in ((folder / "run.nc", {}), (folder / "run.zarr", {"engine": "zarr", "consolidated": False})):
        with xr.open_dataset(path, **options) as ds:
            ey = ds["Electric_Field_Ey"]
            assert ey.dims[1:] == ("X_Grid_mid", "Y_Grid_mid", "Z_Grid_mid"), ey.dims
            np.testing.assert_array_equal(ey, field)
            x = ey.coords["X_Grid_mid_moving"]
            assert x.dims == (ey.dims[0], "X_Grid_mid") and x.attrs["units"] == "m"
            np.testing.assert_allclose(x, centres, rtol=1e-14)
            reduced = ds["Derived_Number_Density_Subset_sk_Reduced"]
            assert reduced.dims[1] == "X_Reduced_sk_mid", reduced.dims
            wrong = [dim for dim in ds.dims if dim.rpartition("_")[2].isdigit()]
            assert not [dim for dim in wrong if dim[0] in "XYZ"], wrong
    spile("-q", "convert", REAL / "s3d", folder / "run.pvd")
    collection = pyvista.PVDReader(folder / "run.pvd")
    assert len(collection.time_values) == len(files)
    for k, time in enumerate(collection.time_values):
        collection.set_active_time_value(time)
        (multi,) = collection.read()
        grids = {name: multi[name] for name in multi.keys()}
        grid = next(g for g in grids.values() if g is not None and "Derived/Number_Density" in g.cell_data)
        for own, theirs in zip(nodes[k], (grid.x, grid.y, grid.z)):
            np.testing.assert_allclose(theirs, own, rtol=1e-12, atol=1e-20)
        density = np.ravel(dumps[k]["Derived/Number_Density"].data, "F")
        np.testing.assert_array_equal(grid.cell_data["Derived/Number_Density"], density)
        for species in ("elec", "prot"):
            points = next(g for name, g in grids.items() if g is not None and name.endswith(species) and "box" not in name)
            own = np.stack(dumps[k][f"Grid/Particles/{species}"].data, -1)
            np.testing.assert_array_equal(points.points, own.astype(points.points.dtype))
            weight = next(name for name in points.point_data.keys() if "Weight" in name)
            np.testing.assert_array_equal(points.point_data[weight], dumps[k][f"Particles/Weight/{species}"].data)
    return 3


def reduced_grids(_):
    """Values of reduced grids are at the positions of the cells, and of the faces, of the full grid."""
    full, reduced = (blocks(REAL / "red3d" / name) for name in ("f0002.sdf", "o0002.sdf"))
    found = {}
    for name in ("mid", "face"):
        text = spile("cat", "--derived", "--json", REAL / "red3d" / "o0002.sdf", f"Grid/Reduced_sk/X_{name}")
        found[name] = np.array(json.loads(text)["values"])
    nodes = np.asarray(full["Grid/Grid"].data[0])
    ex, own = full["Electric Field/Ex"].data, reduced["Electric Field/Ex/Reduced_sk"].data
    for k, (centre, face) in enumerate(zip(found["mid"], found["face"])):
        cell = np.searchsorted(nodes, centre) - 1
        np.testing.assert_allclose([centre, face], [nodes[cell : cell + 2].mean(), nodes[cell + 1]], rtol=1e-12)
        np.testing.assert_allclose(own[k], ex[cell, ::3, ::3], rtol=1e-6)
    return 1


def prefixes(folder):
    """Files with two prefixes are two series."""
    run = folder / "both"
    run.mkdir()
    for path in (REAL / "red3d").glob("*.sdf"):
        shutil.copy(path, run)
    shutil.copy(REAL / "s3d" / "0000.sdf", run / "f0009.sdf")
    lines = spile("info", run).decode()
    assert lines.count("frames") == 2 and "f*.sdf" in lines and "o*.sdf" in lines, lines
    one = json.loads(spile("info", "--json", run / "o*.sdf"))
    assert one["frames"]["count"] == 2, one
    return 2


def particles(folder):
    """Histograms and tracks have the values of NumPy."""
    files = sorted((REAL / "k2d").glob("n*.sdf"))
    dumps = [blocks(path) for path in files]
    names = ("Px", "Py", "Weight")
    data = [{v: np.asarray(d[f"Particles/{v}/Electron"].data, "f8") for v in names} for d in dumps]
    for own, dump in zip(data, dumps):
        own["ID"] = np.asarray(dump["Particles/ID/Electron"].data)
    gamma = "sqrt(1 + (px^2 + py^2) / (m_e * c)^2)"
    spile("-q", "sdf", "histogram", REAL / "k2d", "electron", gamma, "--bins", "50", "--range", "1:1.5",
          "--where", "px > 0", "-o", folder / "gamma.nc")
    spile("-q", "sdf", "track", REAL / "k2d", "Electron", "--fastest", "20", "--variables", "px,x,px/py",
          "-o", folder / "track.nc")
    mc = 9.1093837015e-31 * 299792458.0
    with xr.open_dataset(folder / "gamma.nc") as ds:
        (count,) = [v for v in ds.data_vars.values() if v.ndim == 2]
        for k, own in enumerate(data):
            values = np.sqrt(1 + (own["Px"] ** 2 + own["Py"] ** 2) / mc**2)
            some = own["Px"] > 0
            expected, _ = np.histogram(values[some], 50, (1, 1.5), weights=own["Weight"][some])
            np.testing.assert_allclose(count[k], expected, rtol=1e-12)
    momentum = np.hypot(data[-1]["Px"], data[-1]["Py"])
    ids = data[-1]["ID"][np.argsort(momentum)[::-1][:20]]
    with xr.open_dataset(folder / "track.nc") as ds:
        assert set(ds["id"].values) == set(ids)
        for k, own in enumerate(data):
            where = {number: row for row, number in enumerate(own["ID"])}
            for number in ds["id"].values:
                px = float(ds["px"].sel(id=number)[k])
                row = where.get(number)
                assert np.isnan(px) if row is None else px == own["Px"][row]
    return 2


def main():
    if not REAL.is_dir():
        print(f"skipped: no {REAL}")
        return
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        counts = [test(folder) for test in (moving_window, reduced_grids, prefixes, particles)]
    print(f"{sum(counts)} comparisons of runs")


if __name__ == "__main__":
    main()
