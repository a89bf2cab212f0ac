import gzip
import io
import pathlib
import pickle
import threading
import time

import numpy as np
import pytest

import spile
from support import golden

DUMP = "sdf/epoch2d_4ranks_id4_0001.sdf"


def test_a_file_opens_by_path_bytes_and_file_object_alike():
    path = golden(DUMP)
    content = pathlib.Path(path).read_bytes()
    expected = spile.open(path)["Electric Field/Ex"][...]
    for source in (pathlib.Path(path), content, bytearray(content), io.BytesIO(content)):
        with spile.open(source) as file:
            assert file.format == "sdf"
            np.testing.assert_array_equal(file["Electric Field/Ex"][...], expected)
    with open(path, "rb") as stream:
        assert spile.open(stream).nbytes == len(content)


def test_fsspec_addresses_are_read():
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://dump.sdf", "wb") as out:
        out.write(pathlib.Path(golden(DUMP)).read_bytes())
    array = spile.open("memory://dump.sdf")["Electric Field/Ex"]
    assert array.shape == (44, 36)
    assert pickle.loads(pickle.dumps(array)).shape == (44, 36)


class Counted(io.BytesIO):
    """Counts the bytes read, and asserts that only one thread reads at a time."""

    count = 0
    busy = False

    def seek(self, *where):
        assert not self.busy
        self.busy = True
        return self._end(super().seek(*where))

    def read(self, size=-1):
        assert not self.busy
        self.busy = True
        content = super().read(size)
        self.count += len(content)
        return self._end(content)

    def _end(self, result):
        time.sleep(0)  # lets other threads run
        self.busy = False
        return result


def test_of_a_file_object_only_what_is_needed_is_read():
    content = pathlib.Path(golden(DUMP)).read_bytes()
    stream = Counted(content)
    file = spile.open(stream)
    row = file["Electric Field/Ex"][3]
    assert 0 < stream.count < len(content) / 4
    np.testing.assert_array_equal(row, spile.open(content)["Electric Field/Ex"][3])
    assert spile.check(stream)["ok"] == spile.check(golden(DUMP))["ok"]
    assert spile.hash(stream) == spile.hash(golden(DUMP))


def test_a_file_object_serves_many_threads():
    content = pathlib.Path(golden(DUMP)).read_bytes()
    array = spile.open(Counted(content))["Electric Field/Ex"]
    expected = spile.open(content)["Electric Field/Ex"][...]
    wrong = []

    def work(k):
        for row in range(k, 44, 4):
            if not np.array_equal(array[row], expected[row]):
                wrong.append(row)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_file_objects_of_every_sort(tmp_path):
    path = golden(DUMP)
    content = pathlib.Path(path).read_bytes()
    with gzip.open(tmp_path / "dump.gz", "wb") as out:
        out.write(content)
    with gzip.open(tmp_path / "dump.gz") as packed:
        assert spile.open(packed).format == "sdf", "what is in it, not what its path names"
    with open(path, "rb") as stream:
        file = spile.open(stream)
    assert file["Electric Field/Ex"].shape == (44, 36), "a plain file is opened by its path"
    assert pickle.loads(pickle.dumps(file)).nbytes == len(content)
    stream = io.BytesIO(content)
    array = spile.open(stream)["Electric Field/Ex"]
    assert pickle.loads(pickle.dumps(array)).shape == (44, 36)
    stream = io.BytesIO()
    np.save(stream, np.arange(1 << 20))
    (array,) = spile.open(stream).arrays().values()
    # The first bytes are in the cache.
    stream.close()
    with pytest.raises(OSError, match="closed file"):
        array[1 << 19]
    with pytest.raises(TypeError, match="binary"), open(path, errors="replace") as text:
        spile.open(text)
    with pytest.raises(spile.errors.TruncatedError):
        spile.hash(io.BytesIO(content[:-1000]))

    class Once:
        """A stream that cannot seek."""

        def __init__(self):
            self.inner = io.BytesIO(content)

        def read(self, size=-1):
            return self.inner.read(size)

    assert spile.open(Once()).nbytes == len(content)


def test_groups_are_mappings_and_arrays_below_arrays_are_found():
    file = spile.open(golden(DUMP))
    assert "Electric Field" in file and "Electric Field/Ex" in file and "nothing" not in file
    assert list(file["Electric Field"]) == ["Ex", "Ey_averaged"]
    assert len(file["Electric Field"]) == 2
    assert file["ex"].path == "Electric Field/Ex", "by the format's own name"
    assert {"Electric Field/Ex", "Particles/Px/electron"} <= set(file.arrays())
    with pytest.raises(KeyError, match="did you mean Electric Field/Ex"):
        file["Electric Field/Exx"]


def test_a_closed_file_says_so():
    file = spile.open(golden(DUMP))
    array = file["Electric Field/Ex"]
    with file:
        read = array[0]
    assert file.closed and read.shape == (36,)
    with pytest.raises(ValueError, match="closed"):
        array[0]
    assert "closed" in repr(file)


def test_files_groups_and_arrays_are_pickled_by_path_and_number():
    file = spile.open(golden(DUMP))
    for thing in (file["Electric Field/Ex"], file["Electric Field"], file):
        again = pickle.loads(pickle.dumps(thing))
        assert type(again) is type(thing) and again.path == thing.path
    array = file["Electric Field/Ex"]
    assert len(pickle.dumps(array)) < 1000
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(array))[3], array[3])
    in_memory = spile.open(pathlib.Path(golden(DUMP)).read_bytes())["Electric Field/Ex"]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(in_memory))[3], array[3])


def test_errors_have_a_class_a_place_and_survive_pickling(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        spile.open(tmp_path / "nothing.sdf")
    assert isinstance(caught.value, spile.errors.MissingError)
    with pytest.raises(spile.errors.NotThisFormatError):
        spile.open(b"hello, this is no file of ours")
    with pytest.raises(spile.errors.TruncatedError) as caught:
        spile.hash(golden("sdf/hand_truncated.sdf"))
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.code == caught.value.code and error.code.startswith("sdf-")
    assert error.path.endswith("hand_truncated.sdf") and error.hint and error.offset is not None
    with pytest.raises(MemoryError):
        spile.open(golden(DUMP), max_memory=100)["Electric Field/Ex"][...]
    with pytest.raises(TypeError):
        spile.open(12)


def test_many_threads_read_one_file():
    file = spile.open(golden(DUMP))
    expected = {path: a[...] for path, a in file.arrays().items()}
    failures = []

    def work():
        for path, array in file.arrays().items():
            if not np.array_equal(array[...], expected[path]):
                failures.append(path)

    threads = [threading.Thread(target=work) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures


def test_representations_tell_what_there_is():
    file = spile.open(golden(DUMP))
    text = repr(file)
    assert "Ex (X: 44, Y: 36) float64 [V/m]" in text and "more)" in text
    page = file._repr_html_()
    assert "<details>" in page and "kg.m/s" in page
    assert "<script" not in page
    assert "Ex" in file["Electric Field/Ex"]._repr_html_()


def test_a_series_is_one_dataset(tmp_path):
    series = spile.open_series(golden("sdf/epoch1d_normal_*.sdf"))
    field = series["Electric Field/Ex"]
    assert field.shape == (4, 64) and series.steps.tolist() == [0, 51, 101, 152]
    single = spile.open(golden("sdf/epoch1d_normal_0002.sdf"))["Electric Field/Ex"]
    np.testing.assert_array_equal(field[2], single[...])
    np.testing.assert_array_equal(field[-2::-1, 3:9:2].shape, (3, 3))
    particles = series["Particles/Px/electron"]
    assert particles.ragged and len(particles.offsets) == 5
    assert len(particles.values) == particles.offsets[-1]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(field))[1], field[1])


def test_files_that_cannot_be_opened_are_skipped_warned_about_or_raised():
    files = [golden("sdf/epoch1d_normal_0001.sdf"), golden("sdf/hand_truncated.sdf")]
    with pytest.warns(UserWarning, match="hand_truncated"):
        assert spile.open_series(files).frames == 1
    assert spile.open_series(files, errors="skip").frames == 1
    with pytest.raises(spile.SpileError, match="hand_truncated"):
        spile.open_series(files, errors="raise")
    with pytest.raises(spile.errors.ArgumentError):
        spile.open_series("nowhere/*.sdf")
