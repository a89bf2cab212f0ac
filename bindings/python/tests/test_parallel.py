"""Conversion of many files, and of one store by several processes."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

import spile
from spile import _parallel
from support import golden

SOURCES = [
    "sdf/epoch3d_0001.sdf",
    "gsd/py-5.0.1/hoomd_full.gsd",
    "taf/good/example_2d_101x3.taf",
]


def content(folder):
    """All files of a folder, by relative path."""
    files = (path for path in pathlib.Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(processes=True, **options) as cluster:
        with distributed.Client(cluster) as client:
            yield client


@pytest.mark.parametrize("name", SOURCES)
def test_dask_workers_write_the_store_of_one_process(client, tmp_path, name):
    spile.convert(golden(name), tmp_path / "one.zarr")
    done = spile.convert(golden(name), tmp_path / "two.zarr", scheduler=client)
    assert done["written"] and done["format"] == "zarr"
    assert content(tmp_path / "one.zarr") == content(tmp_path / "two.zarr")
    assert sorted(os.listdir(tmp_path)) == ["one.zarr", "two.zarr"]


def die_once(job, numbers, flag):
    """Writes chunks; the first call kills its worker."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return _parallel.write(job, numbers)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_costs_a_retry(client, tmp_path):
    run = spile.sample("run", tmp_path / "run")
    spile.convert(run, tmp_path / "one.zarr")
    job = _parallel.Job(spile.open(run), str(tmp_path / "two.zarr"), options())
    here = job.open()
    tasks = _parallel.batches(here.prepare(job.request))
    flag = str(tmp_path / "flag")
    client.gather([client.submit(die_once, job, task, flag, pure=False) for task in tasks])
    here.finish()
    assert os.path.exists(flag)
    assert content(tmp_path / "one.zarr") == content(tmp_path / "two.zarr")


def options():
    """The default options of a conversion."""
    return {
        "to": None,
        "strict": False,
        "overwrite_output": False,
        "select": [],
        "frames": None,
        "slice": [],
        "stored": False,
        "compress": None,
        "chunks": [],
        "shards": [],
    }


def mpirun(*words):
    """Runs the command line with two ranks."""
    pytest.importorskip("mpi4py")
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed")
    start = ["mpirun", "-n", "2", "--oversubscribe", sys.executable, "-m", "spile", *words]
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment = {**os.environ, **allowed}
    return subprocess.run(start, capture_output=True, text=True, env=environment, timeout=120)


def test_mpi_ranks_write_the_store_of_one_process(tmp_path):
    run = spile.sample("run", tmp_path / "run")
    done = mpirun("convert", run, str(tmp_path / "two.zarr"))
    assert done.returncode == 0, done.stderr
    spile.convert(run, tmp_path / "one.zarr")
    assert content(tmp_path / "one.zarr") == content(tmp_path / "two.zarr")
    again = mpirun("convert", run, str(tmp_path / "two.zarr"))
    assert again.returncode == 2 and "already exists" in again.stderr


def test_a_killed_conversion_continues(tmp_path):
    run = spile.sample("run", tmp_path / "run")
    target = tmp_path / "two.zarr"
    first = _parallel.Job(spile.open(run), str(target), options())
    missing = first.open().prepare(first.request)
    half = [number for number, _ in missing[: len(missing) // 2]]
    first.open().write(half)
    second = _parallel.Job(spile.open(run), str(target), options())
    rest = second.open().prepare(second.request)
    assert [number for number, _ in rest] == [n for n, _ in missing if n not in half]
    second.open().write([number for number, _ in rest])
    second.open().finish()
    spile.convert(run, tmp_path / "one.zarr")
    assert content(tmp_path / "one.zarr") == content(target)


def test_formats_of_one_file_are_refused(client, tmp_path):
    with pytest.raises(spile.errors.ArgumentError, match="several processes"):
        spile.convert(golden(SOURCES[0]), tmp_path / "x.nc", scheduler=client)
    with pytest.raises(spile.errors.ArgumentError, match="scheduler"):
        spile.convert(golden(SOURCES[0]), tmp_path / "x.zarr", scheduler="threads")


def test_many_files_are_converted_into_a_folder(tmp_path):
    files = [golden("sdf/epoch1d_normal_0000.sdf"), golden("sdf/epoch1d_normal_0001.sdf")]
    done = spile.convert(files, into=tmp_path / "out", to="netcdf")
    assert (done["written"], done["skipped"], done["failed"]) == (2, 0, 0)
    header = tmp_path / "header.sdf"
    header.write_bytes(pathlib.Path(golden("sdf/hand_truncated.sdf")).read_bytes()[:60])
    files.append(header)
    done = spile.convert(files, into=tmp_path / "out", to="netcdf")
    assert (done["written"], done["skipped"], done["failed"]) == (0, 2, 1)
    assert isinstance(done["files"][2]["error"], spile.SpileError)
    names = ["epoch1d_normal_0000.nc", "epoch1d_normal_0001.nc"]
    assert sorted(os.listdir(tmp_path / "out")) == names
    with pytest.raises(spile.errors.ArgumentError, match="same output"):
        spile.convert([files[0], files[0]], into=tmp_path / "out", to="netcdf")
    with pytest.raises(spile.errors.ArgumentError):
        spile.convert(files, tmp_path / "x.nc", into=tmp_path / "out", to="netcdf")
