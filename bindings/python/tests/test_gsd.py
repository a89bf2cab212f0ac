"""`spile.gsd.hoomd` and `spile.gsd.fl`: files of either package are read equal by the other."""

import copy
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import spile
from spile.gsd import fl, hoomd
from support import GOLDEN, golden

theirs = pytest.importorskip("gsd.hoomd")
their_fl = pytest.importorskip("gsd.fl")

PARTS = ("particles", "bonds", "angles", "dihedrals", "impropers", "pairs", "constraints")


def assert_equal(one, two):
    """Frames of the two packages are equal."""
    for name in ("step", "dimensions"):
        assert getattr(one.configuration, name) == getattr(two.configuration, name)
    np.testing.assert_array_equal(one.configuration.box, two.configuration.box)
    for part in PARTS:
        a, b = getattr(one, part), getattr(two, part)
        assert a.N == b.N
        assert getattr(a, "types", None) == getattr(b, "types", None)
        for name in getattr(hoomd.Frame(), part)._fields():
            x, y = getattr(a, name), getattr(b, name)
            np.testing.assert_array_equal(x, y, f"{part}/{name}")
            assert np.asarray(x).dtype == np.asarray(y).dtype and np.shape(x) == np.shape(y)
    assert one.particles.type_shapes == two.particles.type_shapes
    assert one.log.keys() == two.log.keys()
    for name, value in two.log.items():
        np.testing.assert_array_equal(one.log[name], value)


def full(module):
    """A frame with values in all parts."""
    frame = module.Frame()
    frame.configuration.step = 10
    frame.configuration.box = [4, 5, 0, 0.5, 0, 0]
    frame.particles.N = 3
    frame.particles.types = ["A", "B"]
    frame.particles.type_shapes = [{"type": "Sphere", "diameter": 2.0}, {}]
    frame.particles.typeid = [0, 1, 1]
    frame.particles.position = [[0.1, 0, 0], [1, -0.0, 0], [-1, 2, 0]]
    frame.particles.mass = [1, 2, 3]
    frame.particles.image = [[1, 2, 3]] * 3
    frame.bonds.N = 1
    frame.bonds.types = ["b"]
    frame.bonds.group = [[0, 2]]
    frame.angles.types = ["unused"]
    frame.constraints.N = 1
    frame.constraints.value = [1.5]
    frame.constraints.group = [[0, 1]]
    frame.log["energy"] = [1.5]
    frame.log["phase"] = "liquid"
    return frame


@pytest.mark.parametrize("precision", ["single", "double"])
def test_frames_are_written_as_gsd_writes_them(tmp_path, precision):
    for module, name in ((hoomd, "a.gsd"), (theirs, "b.gsd")):
        with module.open(tmp_path / name, "w", precision) as file:
            frame = full(module)
            file.append(frame)
            frame.configuration.step = 11
            frame.log["phase"] = "liquid"
            file.append(frame)
            frame.particles.N = 2
            frame.particles.position = [[1, 1, 0], [2, 2, 0]]
            frame.particles.typeid = frame.particles.mass = frame.particles.image = None
            file.append(frame)
            empty = module.Frame()
            empty.particles.N = None
            empty.log["phase"] = "solid"
            file.append(empty)
    for module in (hoomd, theirs):
        with module.open(tmp_path / "a.gsd") as mine, module.open(tmp_path / "b.gsd") as other:
            assert len(mine) == len(other) == 4
            for one, two in zip(mine, other):
                assert_equal(one, two)
    with hoomd.open(tmp_path / "a.gsd") as file:
        assert file[0].configuration.dimensions == 2
        assert file[2].angles.types == ["unused"] and file[2].angles.N == 0
        assert file[1].log["phase"] == "liquid"


@pytest.mark.parametrize("path", sorted((GOLDEN / "gsd").glob("py-*/hoomd_*.gsd")), ids=str)
def test_every_golden_file_is_read_as_gsd_reads_it_and_copied_without_loss(path, tmp_path):
    with theirs.open(str(path)) as other, hoomd.open(path) as mine:
        with hoomd.open(tmp_path / "copy.gsd", "w", "double") as file:
            for k in range(min(len(other), 20)):
                frame = mine[k]
                file.append(frame)
                try:
                    wanted = other[k]
                except (AttributeError, KeyError):  # logged strings, quantities without frame 0
                    continue
                assert_equal(frame, wanted)
    with hoomd.open(tmp_path / "copy.gsd") as file, hoomd.open(path) as mine:
        for k, frame in enumerate(file):
            assert frame.state.keys() == mine[k].state.keys()
            assert frame.chunks.keys() == mine[k].chunks.keys()
            np.testing.assert_array_equal(frame.particles.position, mine[k].particles.position)


def test_edits_states_and_other_chunks_are_written(tmp_path):
    with hoomd.open(golden("gsd/py-3.4.1/hoomd_state.gsd")) as file:
        frame = file[0]
    assert frame.state
    frame.particles.position = frame.particles.position.copy()
    frame.particles.position[:, 2] = 0.25
    frame.chunks["extra/data"] = np.arange(3)
    with hoomd.open(tmp_path / "a.gsd", "w") as file:
        file.append(frame)
        frame.particles.position[:, 2] = 0.5
        file.append(frame)
    with hoomd.open(tmp_path / "a.gsd") as file:
        assert (file[0].particles.position[:, 2] == 0.25).all()
        assert (file[1].particles.position[:, 2] == 0.5).all()
        assert file[1].chunks["extra/data"].tolist() == [0, 1, 2]
        assert file[1].state.keys() == frame.state.keys()


def test_frames_are_copied_and_pickled():
    frame = full(hoomd)
    frame.validate(inplace=True)
    for again in (copy.deepcopy(frame), pickle.loads(pickle.dumps(frame))):
        assert_equal(again, frame)
        again.particles.position[0] = 9
        assert frame.particles.position[0, 0] == np.float64(0.1)
    assert frame.bonds.M == 2 and frame.impropers.M == 4


def test_wrong_frames_are_refused_and_nothing_is_written(tmp_path):
    with hoomd.open(tmp_path / "a.gsd", "w") as file:
        for change in (
            lambda frame: setattr(frame.particles, "types", ["A", "A"]),
            lambda frame: setattr(frame.bonds, "types", ["A", "A"]),
            lambda frame: setattr(frame.particles, "position", [[0, 0, 0]]),
            lambda frame: frame.log.update(cube=np.zeros((2, 2, 2))),
            lambda frame: frame.log.update(truth=np.zeros(2, bool)),
        ):
            frame = full(hoomd)
            change(frame)
            with pytest.raises(ValueError):
                file.append(frame)
        file.append(full(hoomd))
    with theirs.open(tmp_path / "a.gsd") as file:
        assert len(file) == 1 and file[0].particles.N == 3
    for part, name in ((hoomd.Frame(), "bx"), (hoomd.Frame().particles, "postion")):
        with pytest.raises(AttributeError, match=name):
            setattr(part, name, 1)


def test_logs_of_varying_shape_do_not_hide_others(tmp_path):
    with hoomd.open(tmp_path / "a.gsd", "w") as file:
        for k in range(3):
            frame = hoomd.Frame()
            frame.configuration.step = k
            frame.log["varying"] = np.zeros(k + 1)
            frame.log["energy"] = [0.5 * k]
            frame.log["phase"] = "x" * (k + 1)
            if k:
                frame.log["late"] = [1.0]
            file.append(frame)
    with pytest.warns(RuntimeWarning, match="log/varying"):
        log = hoomd.read_log(tmp_path / "a.gsd")
    assert log["log/energy"].tolist() == [0, 0.5, 1] and "log/varying" not in log
    assert log["log/phase"].tolist() == ["x", "xx", "xxx"]
    np.testing.assert_array_equal(log["log/late"], [np.nan, 1, 1])
    assert list(hoomd.read_log(tmp_path / "a.gsd", glob_pattern="log/e*")) == [
        "configuration/step",
        "log/energy",
    ]


def test_frames_are_committed_automatically_and_seen_after_a_refresh(tmp_path):
    path = tmp_path / "a.gsd"
    with hoomd.open(path, "w", commit_frames=2) as file:
        file.append(hoomd.Frame())
        with hoomd.open(path) as reader:
            assert len(reader) == 1
            for step in range(1, 5):
                frame = hoomd.Frame()
                frame.configuration.step = step
                file.append(frame)
            reader.refresh()
            assert [int(f.configuration.step) for f in reader] == [0, 1, 2, 3, 4][: len(reader)]
            assert len(reader) >= 3
    with fl.open(path, "r+", commit_seconds=0) as file:
        file.write_chunk("a", [1])
        file.end_frame()
        assert file.nframes == 6
    with pytest.raises(RuntimeError):
        fl.open(path, "r+", commit_frames=1, commit_seconds=1)


def test_frames_are_read_while_another_process_writes(tmp_path):
    path = tmp_path / "a.gsd"
    code = (
        "import sys; from spile.gsd import hoomd\n"
        "with hoomd.open(sys.argv[1], 'w') as file:\n"
        "    for step in range(300):\n"
        "        frame = hoomd.Frame(); frame.configuration.step = step + 1\n"
        "        frame.particles.N = 2; frame.particles.position = [[step, 0, 0]] * 2\n"
        "        file.append(frame); file.flush()\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, str(path)])
    while not path.exists():
        assert writer.poll() is None
    with hoomd.open(path) as file:
        while writer.poll() is None:
            file.refresh()
            if len(file):
                last = file[-1]
                assert last.configuration.step == len(file)
                assert last.particles.position[1, 0] == len(file) - 1
        file.refresh()
        assert writer.returncode == 0 and len(file) == 300


def test_chunks_are_those_of_gsd_fl(tmp_path):
    data = {
        "i8": np.arange(6, dtype="i8").reshape(3, 2),
        "big": np.array([1, 2], ">f4"),
        "one": np.float64(2.5),
        "text": "μ",
        "empty": np.empty(0, "u2"),
        "column": np.zeros((4, 1), "f4"),
    }
    with fl.open(tmp_path / "a.gsd", "x", "test", "none", (1, 2)) as file:
        for name, value in data.items():
            file.write_chunk(name, value)
        file.end_frame()
        assert file.nframes == 0 and not file.chunk_exists(0, "i8")
        file.flush()
        assert file.nframes == 1 and file.find_matching_chunk_names("b") == ["big"]
    with their_fl.open(tmp_path / "a.gsd", "r") as other, fl.open(tmp_path / "a.gsd", "r") as mine:
        for attribute in ("application", "schema", "schema_version", "gsd_version", "nframes"):
            assert getattr(mine, attribute) == getattr(other, attribute)
        for name in data:
            a, b = mine.read_chunk(0, name), other.read_chunk(0, name)
            np.testing.assert_array_equal(a, b)
            if not isinstance(a, str):
                assert a.dtype == b.dtype and a.shape == b.shape
        for frame, name in ((0, "none"), (1, "i8"), (-1, "i8")):
            with pytest.raises(KeyError):
                mine.read_chunk(frame, name)
        with pytest.raises(RuntimeError):
            mine.end_frame()
    with pytest.raises(ValueError, match="not open"):
        mine.read_chunk(0, "i8")
    with pytest.raises(ValueError, match="mode"):
        fl.open(tmp_path / "a.gsd", "rb")
    with pytest.raises(FileExistsError):
        fl.open(tmp_path / "a.gsd", "x", "test", "none", (1, 2))
    with pytest.raises(RuntimeError, match="schema"):
        fl.open(tmp_path / "a.gsd", "r", schema="hoomd")


def test_one_writer_is_allowed_at_a_time(tmp_path):
    with hoomd.open(tmp_path / "a.gsd", "w") as file:
        file.append(hoomd.Frame())
        with pytest.raises(spile.errors.IoError, match="writing"):
            hoomd.open(tmp_path / "a.gsd", "a")


def test_quantities_without_elements_are_in_the_log(tmp_path):
    for module, name in ((hoomd, "a.gsd"), (theirs, "b.gsd")):
        with module.open(tmp_path / name, "w") as file:
            for k in range(3):
                frame = module.Frame()
                frame.configuration.step = k + 1
                frame.log["none"] = np.zeros(0)
                frame.log["energy"] = [1.5 * k]
                file.append(frame)
    log = hoomd.read_log(tmp_path / "a.gsd")
    assert log["log/none"].shape == theirs.read_log(tmp_path / "b.gsd")["log/none"].shape == (3, 0)
    assert log["log/energy"].tolist() == [0, 1.5, 3]


def test_chunks_that_are_not_flushed_survive_a_refused_upgrade(tmp_path):
    for module, name in ((fl, "a.gsd"), (their_fl, "b.gsd")):
        with module.open(tmp_path / name, "w", "test", "none", [1, 0]) as file:
            file.write_chunk("a", np.arange(3))
            with pytest.raises(RuntimeError):
                file.upgrade()
            file.end_frame()
            with pytest.raises(RuntimeError):
                file.upgrade()
            file.flush()
            file.upgrade()
            assert file.read_chunk(0, "a").tolist() == [0, 1, 2]
            # Frames without chunks count until the file is closed.
            file.end_frame()
            file.flush()
            assert file.nframes == 2
            with pytest.raises(RuntimeError):
                file.write_chunk("b", np.zeros((3, 0)))
        with module.open(tmp_path / name, "r") as file:
            assert file.nframes == 1
            assert file.maximum_write_buffer_size > 0


@pytest.mark.parametrize("seed", range(30))
def test_random_chunks_are_read_equal_by_both_packages(tmp_path, seed):
    """Each package writes the same random chunks; both read both files."""
    rng = np.random.default_rng(seed)
    names = ["x", "y/z", "\u00fc", "n" * 65, "long" * 300, " "]
    paths = [tmp_path / "a.gsd", tmp_path / "b.gsd"]
    files = [
        module.open(path, "w", "test", "none", [1, 0])
        for module, path in zip((fl, their_fl), paths)
    ]
    size = int(rng.integers(1, 3000))
    for file in files:
        file.maximum_write_buffer_size = size
    for _ in range(int(rng.integers(1, 40))):
        for name in rng.permutation(names)[: rng.integers(0, 6)]:
            kind = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8"][rng.integers(0, 10)]
            shape = [(5,), (0,), (3, 2), (4, 1), (0, 3), (700,)][rng.integers(0, 6)]
            data = rng.integers(0, 100, shape).astype(kind)
            for file in files:
                file.write_chunk(str(name), data)
        for file in files:
            file.end_frame()
        if rng.integers(0, 3) == 0:
            for file in files:
                file.flush()
        assert files[0].nframes == files[1].nframes
    for file in files:
        file.close()
    opened = [module.open(path, "r") for module in (fl, their_fl) for path in paths]
    wanted = opened[-1]
    for file in opened:
        assert file.nframes == wanted.nframes
        known = wanted.find_matching_chunk_names("")
        assert file.find_matching_chunk_names("") == known
        for frame in range(wanted.nframes):
            for name in known:
                assert file.chunk_exists(frame, name) == wanted.chunk_exists(frame, name)
                if wanted.chunk_exists(frame, name):
                    one, two = file.read_chunk(frame, name), wanted.read_chunk(frame, name)
                    assert one.dtype == two.dtype
                    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("part", "name", "value", "message"),
    [
        ("configuration", "step", 1.5, "configuration/step: expected an integer"),
        ("configuration", "box", [1, 2, 3], r"configuration/box: expected shape \(6,\)"),
        ("particles", "N", 2.5, "particles/N: expected an integer"),
        ("particles", "types", "AB", "particles/types: expected a list of strings"),
        ("particles", "types", [1, 2], "particles/types: expected a list of strings"),
        ("particles", "typeid", [0.5, 1, 1], "particles/typeid: expected integers that fit"),
        ("particles", "typeid", np.array([0, -1, 1]), "particles/typeid: expected integers"),
        ("particles", "image", np.full((3, 3), 2**40), "particles/image: expected integers"),
        ("particles", "position", np.zeros((3, 3), complex), "a complex array"),
        ("particles", "position", np.ma.masked_equal(np.eye(3), 0), "a masked array"),
        ("particles", "orientation", np.zeros((4, 3)), r"expected shape \(3, 4\), found \(4, 3\)"),
        ("particles", "position", [["x"] * 3] * 3, "particles/position: could not convert"),
        ("bonds", "group", [[0, 1, 2]], r"bonds/group: expected shape \(1, 2\)"),
    ],
)
def test_values_that_would_change_are_refused(tmp_path, part, name, value, message):
    with hoomd.open(tmp_path / "a.gsd", "w") as file:
        frame = full(hoomd)
        setattr(getattr(frame, part), name, value)
        with pytest.raises(ValueError, match=message):
            file.append(frame)
        file.append(full(hoomd))
    with theirs.open(tmp_path / "a.gsd") as file:
        assert len(file) == 1


def test_columns_flat_values_and_whole_floats_are_accepted(tmp_path):
    frame = full(hoomd)
    frame.configuration.step = 3.0
    frame.particles.N = np.float64(3)
    frame.particles.position = np.arange(9.0)
    frame.particles.mass = [[1], [2], [3]]
    frame.particles.typeid = [0.0, 1.0, 1.0]
    with hoomd.open(tmp_path / "a.gsd", "w") as file:
        file.append(frame)
    with theirs.open(tmp_path / "a.gsd") as file:
        assert file[0].configuration.step == 3
        assert file[0].particles.position.tolist() == np.arange(9.0).reshape(3, 3).tolist()
        assert file[0].particles.mass.tolist() == [1, 2, 3]
        assert file[0].particles.typeid.tolist() == [0, 1, 1]


def test_lists_of_types_may_become_empty(tmp_path):
    with hoomd.open(tmp_path / "a.gsd", "w") as file:
        frame = full(hoomd)
        file.append(frame)
        frame.bonds.types = frame.particles.types = []
        file.append(frame)
    for module in (hoomd, theirs):
        with module.open(tmp_path / "a.gsd") as file:
            assert [frame.bonds.types for frame in file] == [["b"], []]
            assert [frame.particles.types for frame in file] == [["A", "B"], []]


def test_a_trajectory_is_read_by_several_threads(tmp_path):
    with hoomd.open(tmp_path / "a.gsd", "w") as file:
        for step in range(50):
            frame = full(hoomd)
            frame.configuration.step = step
            frame.particles.position = np.full((3, 3), step + 1)
            file.append(frame)
    with hoomd.open(tmp_path / "a.gsd") as file, ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda k: float(file[k % 50].particles.position[0, 0]), range(2000))
        assert list(found) == [k % 50 + 1 for k in range(2000)]
