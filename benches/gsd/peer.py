"""The tasks of `cargo xtask bench gsd` with the Python package gsd (gsd.fl and gsd.hoomd).

Protocol: benches/common.h; tasks: formats/gsd/examples/bench_gsd.rs.
"""

import os
import sys
import time

import gsd.fl
import gsd.hoomd
import numpy as np

NAMES = ["particles/position", "particles/orientation"]


def draws(below):
    """The same random numbers for every implementation."""
    state = 1
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield (state >> 33) % below


def create(path):
    if os.path.exists(path):
        os.unlink(path)
    return gsd.fl.open(path, "w", application="bench", schema="bench", schema_version=[1, 0])


def write(path, n, frames):
    data = [np.ones((n, 3), np.float32), np.ones((n, 4), np.float32)]
    if os.path.exists(path):
        os.unlink(path)
    start = time.perf_counter()
    with create(path) as file:
        for _ in range(frames):
            for name, values in zip(NAMES, data):
                file.write_chunk(name, values)
            file.end_frame()
    return time.perf_counter() - start, frames * n * 28


def read(path, frames, cold=False):
    start = time.perf_counter()
    with gsd.fl.open(path, "r") as file:
        start = start if cold else time.perf_counter()
        size = 0
        for frame in frames:
            for name in NAMES:
                size += file.read_chunk(frame, name).nbytes
        return time.perf_counter() - start, size


def evict(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def random_frames(frames):
    numbers = draws(frames)
    return [next(numbers) for _ in range(frames)]


def open_file(path, times):
    start = time.perf_counter()
    for _ in range(times):
        with gsd.fl.open(path, "r") as file:
            frames = file.nframes
    return (time.perf_counter() - start) / times, frames


def tiny(path, frames, durable):
    start = time.perf_counter()
    with create(path) as file:
        for frame in range(frames):
            file.write_chunk("x", np.array([frame], np.uint64))
            file.end_frame()
            if durable:
                file.flush()
    return time.perf_counter() - start, frames


def frames_of(path, frames):
    with gsd.hoomd.open(path, "r") as file:
        start = time.perf_counter()
        for frame in range(frames):
            file[frame]
        return time.perf_counter() - start, frames


def log(path):
    start = time.perf_counter()
    found = gsd.hoomd.read_log(path)
    return time.perf_counter() - start, len(found["configuration/step"])


def run(task, path, numbers):
    if task == "write":
        return write(path, *numbers)
    if task == "read":
        return read(path, range(numbers[1]))
    if task == "random":
        return read(path, random_frames(numbers[1]))
    if task == "cold":
        evict(path)
        return read(path, range(numbers[1]), cold=True)
    if task == "open":
        return open_file(path, *numbers)
    if task in ("tiny", "durable"):
        return tiny(path, *numbers, task == "durable")
    if task == "frames":
        return frames_of(path, *numbers)
    if task == "log":
        return log(path)
    raise SystemExit(f"{task}: unknown task")


for line in sys.stdin:
    task, path, *numbers = line.split()
    seconds, size = run(task, path, [int(number) for number in numbers])
    print(f"{seconds:.9f} {size}", flush=True)
