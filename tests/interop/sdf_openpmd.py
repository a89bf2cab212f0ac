"""openPMD: files made from EPOCH dumps satisfy openpmd-validator, and openpmd-api and openpmd-viewer read the values of
sdfr."""

import pathlib
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import openpmd_api
import sdfr
from openpmd_viewer import OpenPMDTimeSeries
from support import GOLDEN, spile

RUN = [GOLDEN / "sdf" / f"epoch2d_4ranks_id4_000{k}.sdf" for k in range(3)]


def blocks(path):
    return sdfr.read(str(path), derived=False).name_dict


def valid(path):
    """The validator finds no error."""
    code = "import sys; from openpmd_validator.check_h5 import main; sys.argv[0] = 'openPMD_check_h5'; main()"
    done = subprocess.run([sys.executable, "-c", code, "-i", path], capture_output=True, text=True, check=False)
    assert "Result: 0 Errors" in done.stdout, done.stdout + done.stderr


def main():
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        run = folder / "run"
        run.mkdir()
        for path in RUN:
            (run / path.name[-8:]).write_bytes(path.read_bytes())
        out = folder / "run.h5"
        spile("-q", "convert", run, out, "-t", "openpmd")
        valid(out)
        single = folder / "single.h5"
        spile("-q", "convert", GOLDEN / "sdf" / "epoch3d_0001.sdf", single, "-t", "openpmd")
        valid(single)
        dumps = [blocks(path) for path in RUN]
        series = openpmd_api.Series(str(out), openpmd_api.Access.read_only)
        assert len(series.iterations) == len(RUN)
        for (_, iteration), dump, path in zip(series.iterations.items(), dumps, RUN):
            header = sdfr.read(str(path), derived=False).Header
            assert np.isclose(iteration.time * iteration.time_unit_SI, header["time"], rtol=1e-12, atol=0)
            record = iteration.meshes["E"]
            assert record.axis_labels == ["x", "y"]
            assert record.unit_dimension == [1, 1, -3, -1, 0, 0, 0]
            ex = record["x"]
            values = ex.load_chunk()
            series.flush()
            block = dump["Electric Field/Ex"]
            np.testing.assert_array_equal(values, block.data)
            assert ex.unit_SI == 1.0
            nodes = [np.asarray(axis) for axis in dump["Grid/Grid"].data]
            np.testing.assert_allclose(record.grid_global_offset, [axis[0] for axis in nodes], rtol=1e-12)
            np.testing.assert_allclose(record.grid_spacing, [axis[1] - axis[0] for axis in nodes], rtol=1e-9)
            # EPOCH has Ex at the upper face along x.
            assert list(ex.position) == [1.0, 0.5]
            electron = iteration.particles["electron"]
            for axis, name in zip("xy", ("X", "Y")):
                values = electron["position"][axis].load_chunk()
                series.flush()
                k = "xy".index(axis)
                np.testing.assert_array_equal(values, dump["Grid/Particles/electron"].data[k])
            px = electron["momentum"]["x"].load_chunk()
            series.flush()
            np.testing.assert_array_equal(px, dump["Particles/Px/electron"].data)
            assert electron["momentum"].unit_dimension == [1, 1, -1, 0, 0, 0, 0]
            count += 5
        series.close()
        viewed = folder / "viewed"
        viewed.mkdir()
        out.rename(viewed / "run.h5")
        viewer = OpenPMDTimeSeries(str(viewed), backend="h5py")
        assert list(viewer.iterations) == [0, 18, 36] and "electron" in viewer.avail_species
        ex, info = viewer.get_field("E", "x", iteration=36)
        np.testing.assert_array_equal(ex, dumps[2]["Electric Field/Ex"].data)
        # The viewer shows the true positions of the values: the upper faces along x, cell centres along y.
        x, y = (np.asarray(axis) for axis in dumps[2]["Grid/Grid"].data)
        np.testing.assert_allclose(info.x, x[1:], rtol=1e-9)
        np.testing.assert_allclose(info.y, 0.5 * (y[1:] + y[:-1]), rtol=1e-9)
        (weights,) = viewer.get_particle(["w"], "electron", iteration=36)
        np.testing.assert_array_equal(weights, dumps[2]["Particles/Weight/electron"].data)
        out = viewed / "run.h5"
        with h5py.File(out) as file:
            assert file.attrs["openPMD"] == b"1.1.0" and file.attrs["openPMDextension"].dtype == np.uint32
    print(f"{count} records in 2 files")


if __name__ == "__main__":
    main()
