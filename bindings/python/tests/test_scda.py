"""scda files, on one process and on the ranks of MPI jobs."""

import glob
import os
import pathlib
import shutil
import subprocess
import sys
import zlib

import numpy as np
import pytest

import spile
from spile import scda

PROGRAM = str(pathlib.Path(__file__).with_name("scda_ranks.py"))


def write(comm, path, **options):
    """Writes sections of all types and fields."""
    rank = 0 if comm is None else comm.Get_rank()
    size = 1 if comm is None else comm.Get_size()
    counts = [0] * size
    counts[size - 1] = 20
    if size > 2:
        counts[1], counts[size - 1] = 3, 17
    first = sum(counts[:rank])
    mine = np.arange(first, first + counts[rank])
    with scda.Checkpoint(comm, path, "test", version=3, vendor="test", **options) as file:
        file.value("step", 7)
        file.value("run/time", 0.5)
        file.attrs("run", {"names": ["a", "b"], "count": np.int64(-2)})
        data = np.stack([mine, mine**2], axis=1).astype("<f8")
        file.write("run/pair", data, version=2, attrs={"units": "m"}, dims=["cell", "k"])
        file.write("packed", mine.astype(">i4"), compress=True, counts=counts)
        lengths = mine % 3
        items = np.repeat(mine, lengths).astype("<u2")
        file.write_ragged("items", lengths, items)
    return counts


def check(comm, path):
    rank = 0 if comm is None else comm.Get_rank()
    size = 1 if comm is None else comm.Get_size()
    with scda.Restart(comm, path, "test", 3) as file:
        assert list(file.fields) == ["run/pair", "packed", "items"]
        assert (file.value("step"), file.value("run/time")) == (7, 0.5)
        assert file.attrs("run") == {"time": 0.5, "names": ["a", "b"], "count": -2}
        field = file.fields["run/pair"]
        assert (field.dtype, field.shape, field.count) == (np.dtype("<f8"), (2,), 20)
        assert field.attrs == {"version": 2, "units": "m"} and field.dims == ("cell", "k")
        counts = scda.split(20, size)
        first = sum(counts[:rank])
        mine = np.arange(first, first + counts[rank])
        # In another order.
        lengths, items = file.read_ragged("items")
        assert lengths.tolist() == (mine % 3).tolist()
        assert items.tolist() == np.repeat(mine, mine % 3).tolist()
        pair = file.read("run/pair", version=2)
        assert pair.tolist() == np.stack([mine, mine**2], axis=1).tolist()
        packed = file.read("packed", counts=[0] * (size - 1) + [20])
        assert packed.tolist() == (list(range(20)) if rank == size - 1 else [])
        assert packed.dtype.isnative
        with pytest.raises(spile.errors.ArgumentError, match="version"):
            file.read("run/pair", version=1)
        with pytest.raises(spile.errors.ArgumentError, match="no field"):
            file.read("pair")


def sections(comm, path, **options):
    rank = 0 if comm is None else comm.Get_rank()
    size = 1 if comm is None else comm.Get_size()
    with scda.open(comm, path, "w", "user", vendor="test", **options) as file:
        file.write_inline(b"." * 31 + b"\n" if rank == size - 1 else None, "mark", root=size - 1)
        file.write_block(b"text" if rank == 0 else None, "block")
        counts = scda.split(10, size)
        first = sum(counts[:rank])
        mine = np.arange(first, first + counts[rank], dtype="<i8")
        file.write_array(mine, "array", encode=True)
        file.write_varray(mine % 4, np.repeat(mine, mine % 4).astype(np.uint8), "varray")
    with scda.open(comm, path) as file:
        assert file.user == b"user" and file.vendor == b"test"
        for section in file:
            if section.type == "I":
                found = file.read_inline(root=0)
                assert found == (b"." * 31 + b"\n" if rank == 0 else None)
            elif section.type == "B":
                found = file.read_block(root=size - 1)
                assert found == (b"text" if rank == size - 1 else None)
            elif section.type == "A":
                assert section.decoded and (section.N, section.E) == (10, 8)
                assert file.read_array("<i8").tolist() == mine.tolist()
            else:
                sizes, data = file.read_varray()
                assert sizes.tolist() == (mine % 4).tolist()
                assert data.tolist() == np.repeat(mine, mine % 4).tolist()
    # An error of one rank is raised on all, and the file is discarded.
    with pytest.raises(spile.errors.ArgumentError, match="expected 32 bytes|expected data"):
        with scda.open(comm, f"{path}-never", "w") as file:
            file.write_inline(b"short")
    assert not os.path.exists(f"{path}-never")
    with pytest.raises(spile.errors.ExistsError):
        scda.open(comm, path, "x")
    with pytest.raises(FileNotFoundError):
        scda.open(comm, f"{path}-never")


def wrong(comm, path):
    """An argument that is invalid on the last rank is an exception on all."""
    rank = 0 if comm is None else comm.Get_rank()
    size = 1 if comm is None else comm.Get_size()
    last = rank == size - 1

    def fails(message, mode="w", **options):
        with pytest.raises(spile.errors.ArgumentError, match=message):
            scda.open(comm, path, mode, **options)

    def writing(method, good, bad, message):
        with pytest.raises(spile.errors.ArgumentError, match=message):
            with scda.open(comm, path, "w") as file:
                getattr(file, method)(**{**good, **(bad if last else {})})
        assert not os.path.exists(path)

    array, block = {"data": np.zeros(3)}, {"data": b"abc", "size": 3}
    writing("write_array", array, {"data": np.array([object()])}, "Python objects")
    writing("write_array", array, {"data": 1.0}, "first dimension")
    writing("write_array", array, {"user": 7}, "TypeError")
    writing("write_array", array, {"user": b"x" * 59}, "at most 58 bytes")
    writing("write_array", array, {"counts": [-1] * size}, "at least 0")
    writing("write_array", array, {"counts": ["a"] * size}, "integers")
    if size > 1:
        writing("write_array", array, {"data": np.zeros((3, 2))}, "different arguments")
    writing("write_varray", {"sizes": [1], "data": b"a"}, {"sizes": [2]}, "expected 1 elements")
    writing("write_varray", {"sizes": [1], "data": b"a"}, {"sizes": [0.5]}, "integers")
    writing("write_block", block, {"root": -1}, "root")
    writing("write_block", block, {"root": size}, "out of range")
    writing("write_inline", {"data": b"." * 32, "root": size - 1}, {"data": "text"}, "TypeError")

    def field(good, bad, message):
        with pytest.raises(spile.errors.ArgumentError, match=message):
            with scda.Checkpoint(comm, path, "test") as file:
                file.write("a", **{"data": np.zeros(2), **good, **(bad if last else {})})
        assert not os.path.exists(path)

    field({}, {"attrs": {"x": object()}}, "object")
    field({}, {"attrs": 5}, "AttributeError")
    field({}, {"version": -1}, "version")
    field({}, {"data": np.zeros(2, "datetime64[s]")}, "cannot be stored")
    field({}, {"dims": 3}, "TypeError")
    fails("TypeError", level="a" if last else 9)
    fails("colour", **({"colour": 1} if last else {}))
    fails("mode", "a" if last else "w")


def test_sections_and_fields_of_one_process(tmp_path):
    wrong(None, tmp_path / "wrong")
    sections(None, tmp_path / "sections")
    write(None, tmp_path / "fields")
    check(None, tmp_path / "fields")
    file = spile.open(tmp_path / "fields")
    assert file["run/pair"].shape == (20, 2)
    with pytest.raises(spile.errors.ArgumentError, match="communicator"):
        scda.open("comm", tmp_path / "x", "w")
    with pytest.raises(spile.errors.ArgumentError, match="version 4"):
        scda.Restart(None, tmp_path / "fields", "test", 4)


def test_checksums_are_verified(tmp_path):
    path = tmp_path / "fields"
    write(None, path, checksums=True)
    check(None, path)
    data = bytearray(path.read_bytes())
    # The documented notation of the index: offset, length and CRC-32 of each part.
    trailer = data[-96:]
    assert trailer[:16] == b"I spile index 00"
    table = int(trailer[64:96].split()[1])
    number = int(data[table + 64 : table + 96].split()[1])
    entries = [data[table + 128 + 32 * k : table + 160 + 32 * k] for k in range(3 * number)]
    values = [int(entry.split()[1]) for entry in entries]
    starts = [*values[::3], table]
    for k in range(number):
        assert zlib.crc32(data[starts[k] : starts[k + 1]]) == values[3 * k + 2]
    assert spile.check(path)["findings"] == []
    at = data.index(np.array([3.0, 9.0]).tobytes())
    data[at] ^= 1
    path.write_bytes(data)
    assert spile.check(path)["findings"][0]["code"] == "scda-013"
    with scda.Restart(None, path) as file:
        file.read("packed")
        with pytest.raises(spile.errors.MalformedError, match="checksum"):
            file.read("run/pair")


@pytest.mark.parametrize("library, ranks", [("", 1), ("", 2), ("", 3), (".mpich", 2)])
def test_mpi_ranks_write_the_bytes_of_one_process(tmp_path, library, ranks):
    pytest.importorskip("mpi4py")
    mpirun = shutil.which(f"mpirun{library}")
    if mpirun is None:
        pytest.skip(f"mpirun{library} is not installed")
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout
    one, many = tmp_path / "one", tmp_path / "many"
    one.mkdir()
    many.mkdir()
    sections(None, one / "sections")
    write(None, one / "fields", index=True, checksums=True)
    start = [mpirun, "-n", str(ranks), sys.executable, PROGRAM, str(many)]
    abi = "openmpi" if "Open MPI" in version else "mpich"
    if abi == "openmpi":
        start.insert(1, "--oversubscribe")
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment = {**os.environ, **allowed, "MPI4PY_MPIABI": abi}
    # Debian's MPICH has another name than the one that mpi4py's wheels link.
    for path in glob.glob("/usr/lib/*/libmpich.so.12") if abi == "mpich" else []:
        (tmp_path / "libmpi.so.12").symlink_to(path)
        environment["LD_LIBRARY_PATH"] = str(tmp_path)
    done = subprocess.run(start, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    for name in ("sections", "fields"):
        assert (one / name).read_bytes() == (many / name).read_bytes()
    # Nothing is left over.
    assert sorted(os.listdir(many)) == ["fields", "sections"]
