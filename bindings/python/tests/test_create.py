import numpy as np
import pytest

import spile
from spile import taf
from support import arrays_of, golden


@pytest.mark.parametrize("ending", ["sdf", "scda", "dat", "npz", "h5", "nc", "zarr", "gsd"])
def test_trees_of_arrays_come_back(tmp_path, ending):
    path = tmp_path / f"new.{ending}"
    format = {"dat": "iotk"}.get(ending)
    x, y = np.linspace(0, 1, 4), np.arange(3.0)
    tree = {
        "Fields": {
            "Ex": (("x", "y"), np.outer(x, y), {"units": "V/m"}),
            "n": (("x",), x.astype("f4")),
        },
        "count": np.int32(7),
    }
    done = spile.create(path, tree, format=format, coords={"x": x}, attrs={"title": "made"})
    assert done["written"]
    file = spile.open(path)
    np.testing.assert_array_equal(file["Fields/Ex"][...], np.outer(x, y))
    assert file["Fields/Ex"].units == "V/m" and file["Fields/n"].dtype == "f4"
    assert int(np.ravel(file["count"][...])[0]) == 7


def test_a_file_is_not_replaced_unasked_and_losses_are_told(tmp_path):
    path = tmp_path / "a.npy"
    done = spile.create(path, {"x": ("t", np.arange(3.0), {"units": "s"})})
    assert done["lost"]
    with pytest.raises(FileExistsError):
        spile.create(path, {"x": np.zeros(2)})
    with pytest.raises(spile.errors.ArgumentError, match="cannot be written to npy"):
        spile.create(
            path, {"x": ("t", np.arange(3.0), {"units": "s"})}, strict=True, overwrite=True
        )
    assert spile.open(path)["data" if "data" in spile.open(path) else "x"].shape == (3,)


def test_what_has_no_place_in_files_is_refused(tmp_path):
    with pytest.raises(spile.errors.ArgumentError):
        spile.create(tmp_path / "a.h5", {"x": np.array([object()])})
    with pytest.raises(spile.errors.ArgumentError):
        spile.create(tmp_path / "a.h5", {"x": ("t", np.zeros((2, 2)))})
    with pytest.raises(TypeError):
        spile.create(tmp_path / "a.h5", [1, 2])
    with pytest.raises(spile.errors.ArgumentError, match="content is missing"):
        spile.create(tmp_path / "a.h5")


def test_other_files_can_be_content(tmp_path):
    source = spile.open(golden("sdf/epoch2d_4ranks_id4_0001.sdf"))
    spile.create(tmp_path / "part.h5", {"copy": source["Electric Field"]})
    written = spile.open(tmp_path / "part.h5")["copy/Ex"]
    np.testing.assert_array_equal(written[...], source["Electric Field/Ex"][...])
    assert written.units == "V/m"


def test_frames_come_back(tmp_path):
    values = np.arange(24.0).reshape(4, 3, 2)
    spile.create(
        tmp_path / "run.gsd", {"v": (("frame", "row", "column"), values)}, steps=[0, 5, 10, 15]
    )
    file = spile.open(tmp_path / "run.gsd")
    assert file.frames == 4 and file.steps.tolist() == [0, 5, 10, 15]
    np.testing.assert_array_equal(file["v"][...], values)


def test_sections_of_scda_files(tmp_path):
    path = tmp_path / "a.scda"
    words = [b"a", b"", b"ccc"]
    with spile.create(path, user="test", vendor="me") as file:
        file.inline(b"x" * 32, user="i")
        file.block(b"hello\n", user="b", encode=True)
        file.array(np.arange(6, dtype="<i4").reshape(3, 2), user="a")
        file.array([b"12", b"34"], user="l")
        file.varray(words, user="v", encode=True)
        with pytest.raises(spile.errors.ArgumentError, match="32 bytes"):
            file.inline(b"short")
    file = spile.open(path)
    assert list(file) == ["i", "b", "a", "l", "v"]
    assert file["b"][...].tobytes() == b"hello\n"
    assert [part.tobytes() for part in file["v"]] == words
    assert spile.check(path)["ok"]


def test_a_writer_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError):
        with spile.create(tmp_path / "a.scda") as file:
            file.block(b"x", user="b")
            raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_frames_of_the_hoomd_schema_are_what_gsd_reads(tmp_path):
    hoomd = pytest.importorskip("gsd.hoomd")
    path = tmp_path / "t.gsd"
    source = spile.open(golden("gsd/py-5.0.1/hoomd_full.gsd")).hoomd
    with spile.create(path) as file:
        file.extend(source)
    with hoomd.open(str(path)) as written, hoomd.open(golden("gsd/py-5.0.1/hoomd_full.gsd")) as old:
        assert len(written) == len(old)
        for one, two in zip(written, old):
            assert one.configuration.step == two.configuration.step
            for name in ("position", "typeid", "mass", "orientation", "image", "velocity"):
                a, b = getattr(one.particles, name), getattr(two.particles, name)
                np.testing.assert_array_equal(a, b, name)
            np.testing.assert_array_equal(one.bonds.group, two.bonds.group)
            assert one.particles.types == two.particles.types
    with hoomd.open(golden("gsd/py-5.0.1/hoomd_full.gsd")) as old:
        frame = old[0]
    frame.configuration.step = 12345
    with spile.create(path, append=True) as file:
        file.append(frame)
    again = spile.open(path).hoomd
    assert len(again) == len(source) + 1
    np.testing.assert_array_equal(again[-1].particles.position, source[0].particles.position)


def test_taf_operations(tmp_path):
    path = tmp_path / "a.taf"
    values = np.arange(12, dtype="i2").reshape(4, 3)
    assert taf.create(path, values, grids=[(1.0, 0.5)], comment="one") == 0
    array = spile.open(path)["data"]
    np.testing.assert_array_equal(array[...], values)
    np.testing.assert_array_equal(list(array.coords.values())[0], [1.0, 1.5, 2.0, 2.5])
    taf.append(path, np.full((4, 2), 5, "i2"))
    assert taf.grid(path, 1, shift=1.0) == (2.0, 0.5)
    assert taf.crop(path, 2, index=(2, 4)) == (4, 3)
    assert taf.transpose(path, output=tmp_path / "t.taf") == (3, 4)
    taf.comment(path, "two")
    assert "two" in str(spile.info(path)["summary"]) or "two" in str(spile.open(path).attrs)
    np.testing.assert_array_equal(
        spile.open(tmp_path / "t.taf")["data"][...].T, spile.open(path)["data"][...]
    )
    with pytest.raises(TypeError):
        taf.adjust(path, 1)


def test_taf_operations_have_their_names_and_typed_results(tmp_path):
    path = tmp_path / "a.taf"
    values = np.arange(6.0).reshape(6, 1)
    taf.create(path, values, dtype="flt64", grids=[(1.0, 0.5)], comment="one")
    header = taf.probe(path)
    assert (header.dtype, header.shape, header.map) == ("flt64", (6, 1), None)
    assert header.grids == ((1.0, 0.5), (1.0, 1.0)) and "one" in header.comments
    np.testing.assert_array_equal(taf.map(path), values)
    grid, part = taf.read(path, grid=(1.5, 2.5))
    assert grid.tolist() == [1.5, 2.0, 2.5] and part[:, 0].tolist() == [1.0, 2.0, 3.0]
    assert taf.read(path, index=(2, 3)).values[:, 0].tolist() == [1.0, 2.0]
    assert taf.append(path, np.array([6.0, 7.0]), dimension=1) == (1, (8, 1), 0)
    with pytest.raises(spile.SpileError):
        taf.append(path, np.array([6.0, 7.0]))
    assert taf.append(path, np.zeros((8, 1))).dimension == 2
    everything, first, second = taf.summarize(path)
    assert (everything.column, first.column, second.column) == (None, 1, 2)
    assert (first.min, first.max, first.mean, first.count) == (0.0, 7.0, 3.5, 8)
    assert taf.replace(path, np.ones((8, 2))) == 0
    assert taf.adjust(path, 1, start=0.0) == (0.0, 0.5)
    taf.add_comment(path, "two")
    assert "two" in taf.probe(path).comments
    taf.set_comment(path, "three")
    assert taf.probe(path).comments.strip() == "three"
    copy = taf.backup(path)
    assert copy.name == "a-backup-1.taf" and copy.read_bytes() == path.read_bytes()
    assert taf.export(path).count("\n") >= 8
    assert taf.export(path, tmp_path / "a.txt") is None and (tmp_path / "a.txt").exists()
    np.savetxt(tmp_path / "c.txt", np.arange(8.0).reshape(4, 2))
    (written,) = taf.convert(tmp_path / "c.txt")
    assert written == tmp_path / "c.taf" and taf.probe(written).shape[0] == 4
    picture = taf.plot(path, tmp_path / "a.svg")
    assert picture.read_text().startswith("<svg")


def test_datasets_of_xarray_can_be_written(tmp_path):
    xr = pytest.importorskip("xarray")
    x = np.linspace(0, 2, 5)
    dataset = xr.Dataset({"v": ("x", x**2, {"units": "m"})}, {"x": x})
    spile.create(tmp_path / "a.nc", dataset)
    again = xr.open_dataset(tmp_path / "a.nc", engine="spile")
    xr.testing.assert_equal(again[["v"]], dataset)
    assert len(arrays_of(spile.open(tmp_path / "a.nc"))) == 2
