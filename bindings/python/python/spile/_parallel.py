"""Conversion to a Zarr store by the workers of dask.distributed or by MPI ranks.

One process writes the metadata, then all processes write chunk files, each a complete chunk, and one
process publishes the store. Until then the files are in a folder ``.NAME.incomplete`` next to the
output. Chunk files are written atomically, so a conversion that was killed continues with the missing
ones.
"""

from __future__ import annotations

import functools
import json
import os
import uuid
from collections.abc import Callable
from typing import Any, TypeVar, cast

from . import _spile
from .errors import ArgumentError

__all__ = ["convert"]

Result = TypeVar("Result")

#: A task writes chunks of about this size in bytes, at least one.
TASK_BYTES = 128 << 20

#: Attempts of a task that raises an exception; a lost worker does not count.
RETRIES = 2


class Job:
    """A conversion, as it is sent to other processes: the file is opened again there."""

    def __init__(self, file: Any, output: str, options: dict[str, Any]) -> None:
        self.file = file
        self.output = os.path.abspath(output)
        self.options = options
        #: Identifies this call, so that a worker opens the source once per conversion.
        self.token = uuid.uuid4().hex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self.token == other.token

    def __hash__(self) -> int:
        return hash(self.token)

    @property
    def request(self) -> str:
        """Describes the result, to recognise an earlier run of the same conversion."""
        return json.dumps(self.options, sort_keys=True)

    def open(self) -> _spile.Parallel:
        """The conversion in this process."""
        return _opened(self)


@functools.lru_cache(maxsize=4)
def _opened(job: Job) -> _spile.Parallel:
    return _spile.Parallel(job.file._handle.open, job.output, **job.options)


def write(job: Job, numbers: list[int]) -> int:
    """Writes chunk files and returns their number; called in a worker process."""
    job.open().write(numbers)
    return len(numbers)


def convert(file: Any, output: str, scheduler: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Converts `file` by the workers of `scheduler`, a dask client or an MPI communicator."""
    if hasattr(scheduler, "Get_rank"):
        return by_ranks(file, output, scheduler, options)
    if hasattr(scheduler, "map") and hasattr(scheduler, "gather"):
        return by_dask(file, output, scheduler, options)
    found = type(scheduler).__name__
    message = f"scheduler must be a dask.distributed.Client or an MPI communicator, found {found}"
    raise ArgumentError(message)


def by_dask(file: Any, output: str, client: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Converts by the workers of a `dask.distributed.Client`."""
    job = Job(file, output, options)
    here = job.open()
    tasks = batches(here.prepare(job.request))
    # The outcome is a file, so a task is never taken from the cache of an earlier one.
    futures = [client.submit(write, job, task, pure=False, retries=RETRIES) for task in tasks]
    try:
        client.gather(futures)
    finally:
        client.cancel(futures)
        _opened.cache_clear()
    here.finish()
    return json.loads(here.document)


def by_ranks(file: Any, output: str, comm: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Converts by all ranks of an mpi4py communicator; collective. An error of one rank is raised on all
    ranks."""
    rank, size = comm.Get_rank(), comm.Get_size()
    job = Job(file, output, options)
    here = _collective(comm, job.open)
    tasks = _collective(
        comm, lambda: batches(here.prepare(job.request), parts=size) if rank == 0 else []
    )
    tasks = comm.bcast(tasks, root=0)
    _collective(comm, lambda: [write(job, task) for task in tasks[rank::size]])
    if rank == 0:
        _collective(comm, here.finish)
    else:
        _collective(comm, lambda: None)
    _opened.cache_clear()
    return json.loads(here.document)


def _collective(comm: Any, action: Callable[[], Result]) -> Result:
    """The result of `action` on this rank. Raises the error of this rank, or that of the first rank with
    one, after all ranks have run their action."""
    error, result = None, None
    try:
        result = action()
    except Exception as e:
        error = e
    _raise(comm, error)
    return cast(Result, result)


def _raise(comm: Any, error: Exception | None) -> None:
    """Raises the error of this rank, or that of the first rank with one."""
    errors = comm.allgather(None if error is None else f"{type(error).__name__}: {error}")
    if error is not None:
        raise error
    for rank, text in enumerate(errors):
        if text is not None:
            raise RuntimeError(f"rank {rank}: {text}")


def batches(files: list[tuple[int, int]], parts: int = 1) -> list[list[int]]:
    """Groups files, given as number and size, to tasks of about `TASK_BYTES`, and at least 4 tasks per
    part if there are enough files."""
    total = sum(size for _, size in files)
    limit = min(TASK_BYTES, total // (4 * parts))
    tasks: list[list[int]] = []
    room = -1
    for number, size in files:
        if room < 0 or not tasks:
            tasks.append([])
            room = limit
        tasks[-1].append(number)
        room -= max(size, 1)
    return tasks


def ranks() -> int:
    """Number of processes that ``mpirun`` started, 1 without it."""
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
        if os.environ.get(name, "").isdecimal():
            return int(os.environ[name])
    return 1


def main(arguments: list[str]) -> int:
    """``mpirun -n N python -m spile convert INPUT OUTPUT.zarr``; returns the exit status."""
    import argparse
    import sys

    parser = argparse.ArgumentParser("spile convert", description="Convert by several MPI ranks.")
    parser.add_argument("input", help="file, or folder with the files of a run")
    parser.add_argument("output", help="Zarr store")
    parser.add_argument("-t", "--to", metavar="FORMAT")
    for flag in ("--strict", "--overwrite", "--stored", "--derived", "--json"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("-q", "--quiet", action="store_true")
    parser.add_argument("--select", action="append", default=[], metavar="GLOB")
    parser.add_argument("--frames", metavar="A:B:C")
    parser.add_argument("--slice", action="append", default=[], metavar="DIM=A:B:C")
    parser.add_argument("--compress", metavar="METHOD[:LEVEL]")
    for name in ("--chunks", "--shards"):
        parser.add_argument(name, type=_lengths, metavar="DIM=N")
    parser.add_argument("--max-memory", type=int, metavar="BYTES")
    found = vars(parser.parse_args(arguments))
    try:
        from mpi4py import MPI
    except ImportError:
        print("error: several MPI ranks need mpi4py: pip install mpi4py", file=sys.stderr)
        return 2
    from ._verbs import convert as verb

    quiet, as_json = found.pop("quiet"), found.pop("json")
    first = MPI.COMM_WORLD.Get_rank() == 0
    try:
        done = verb(found.pop("input"), found.pop("output"), scheduler=MPI.COMM_WORLD, **found)
    except Exception as error:
        if first:
            print(f"error: {error}", file=sys.stderr)
        return 2
    if first and as_json:
        print(json.dumps(done))
    elif first and not quiet:
        lost = f", {len(done['lost'])} losses" if done["lost"] else ""
        print(f"{done['output']}: {done['format']}, {done['arrays']} arrays{lost}")
    return 0


def _lengths(text: str) -> dict[str, int]:
    """Parses ``x=64,y=64``."""
    pairs = (part.partition("=") for part in text.split(","))
    return {name: int(length) for name, _, length in pairs}
