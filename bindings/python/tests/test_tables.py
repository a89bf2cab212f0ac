import numpy as np
import pytest

import spile
from support import golden


def test_columns_become_series_and_frames(tmp_path):
    pandas = pytest.importorskip("pandas")
    t = np.linspace(0, 1, 6)
    spile.create(tmp_path / "t.csv", {"t": ("t", t), "v": ("t", t**2)})
    table = spile.open(tmp_path / "t.csv").to_pandas()
    assert isinstance(table, pandas.DataFrame) and list(table.columns) == ["t", "v"]
    np.testing.assert_array_equal(table["v"], t**2)
    field = spile.open(golden("sdf/epoch1d_normal_0001.sdf"))["Electric Field/Ex"]
    series = field.to_pandas()
    assert series.index.name == "X" and len(series) == 64
    with pytest.raises(spile.errors.ArgumentError):
        spile.open(golden("sdf/epoch3d_0001.sdf"))["Electric Field/Ex"].to_pandas()


def test_tables_of_arrow(tmp_path):
    pytest.importorskip("pyarrow")
    t = np.linspace(0, 1, 6)
    spile.create(tmp_path / "t.csv", {"t": ("t", t), "v": ("t", t**2)})
    table = spile.open(tmp_path / "t.csv").to_arrow()
    np.testing.assert_array_equal(table["v"].to_numpy(), t**2)
    log = spile.open(golden("gsd/py-5.0.1/hoomd_many_frames.gsd")).hoomd
    assert log.to_arrow().column_names == ["step", *log.to_pandas().columns]


def test_arrays_become_dask_arrays():
    dask = pytest.importorskip("dask.array")
    array = spile.open(golden("sdf/epoch3d_0001.sdf"))["Electric Field/Ex"]
    lazy = array.to_dask(chunks=(5, 4, -1))
    assert isinstance(lazy, dask.Array) and lazy.numblocks == (3, 3, 1)
    np.testing.assert_array_equal(lazy[1:7, ::2].compute(), array[1:7, ::2])
    ragged = next(a for a in spile.open(golden("scda/v_basic.scd")).arrays().values() if a.ragged)
    with pytest.raises(TypeError):
        ragged.to_dask()
