import numpy as np
import pytest

import spile
from support import GOLDEN, golden

gsd = pytest.importorskip("gsd.hoomd")

FILES = sorted(p.name for p in (GOLDEN / "gsd/py-5.0.1").glob("hoomd_*.gsd"))
COLUMNS = [
    "typeid",
    "mass",
    "charge",
    "diameter",
    "body",
    "moment_inertia",
    "position",
    "orientation",
    "velocity",
    "angmom",
    "image",
]


@pytest.mark.parametrize("name", FILES)
def test_frames_are_those_of_gsd_hoomd(name):
    path = golden(f"gsd/py-5.0.1/{name}")
    mine = spile.open(path).hoomd
    with gsd.open(path) as theirs:
        assert len(mine) == len(theirs)
        for one, two in list(zip(mine, theirs))[:50]:
            assert one.configuration.step == two.configuration.step
            np.testing.assert_array_equal(one.box, two.configuration.box)
            assert one.particles.N == two.particles.N
            assert one.particles.types == two.particles.types
            for column in COLUMNS:
                a, b = getattr(one.particles, column), getattr(two.particles, column)
                np.testing.assert_array_equal(a, b, column)
                assert a.dtype == b.dtype and a.shape == b.shape, column
            for links in ("bonds", "angles", "dihedrals", "impropers", "pairs"):
                a, b = getattr(one, links), getattr(two, links)
                assert a.N == b.N
                np.testing.assert_array_equal(a.group, b.group)
                np.testing.assert_array_equal(a.typeid, b.typeid)
            np.testing.assert_array_equal(one.constraints.value, two.constraints.value)
            for key, value in two.log.items():
                if not isinstance(value, str):
                    np.testing.assert_array_equal(one.log[key].ravel(), np.ravel(value), key)


def test_logs_are_those_of_read_log():
    path = golden("gsd/py-5.0.1/hoomd_many_frames.gsd")
    theirs = gsd.read_log(path)
    mine = spile.open(path).hoomd.log()
    assert set(mine) == set(theirs)
    for name, values in theirs.items():
        np.testing.assert_array_equal(mine[name], values, name)


def test_logs_become_tables():
    pytest.importorskip("pandas")
    trajectory = spile.open(golden("gsd/py-5.0.1/hoomd_many_frames.gsd")).hoomd
    table = trajectory.to_pandas()
    assert len(table) == len(trajectory) and table.index.name == "step"


def test_frames_are_counted_from_both_ends():
    trajectory = spile.open(golden("gsd/py-5.0.1/hoomd_many_frames.gsd")).hoomd
    assert trajectory[-1].step == trajectory[len(trajectory) - 1].step
    assert [f.step for f in trajectory[:3]] == [trajectory[k].step for k in range(3)]
    with pytest.raises(IndexError):
        trajectory[len(trajectory)]
    with pytest.raises(spile.errors.ArgumentError, match="hoomd"):
        spile.open(golden("gsd/v0.0.1/ce10462_steps.gsd")).hoomd
