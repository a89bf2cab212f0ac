"""Failing system calls and kills at every call: the result is the old state with an error, or the new state with success.

For every verb the calls in `CALLS` are counted (strace). Then the verb runs once for every call and every fault in `FAULTS`:
the Nth call of a kind fails with an error (EIO, ENOSPC, EINTR), returns 0 bytes, or the process is killed with SIGKILL
there. A failed verb must leave the folder as it was; a successful one must give the same folder and output as without a
fault. After a kill the folder has the old or the new state; temporary names (`.NAME.XXXXXX.part`) are allowed, and a TAF
journal, which the next change must apply. By default a sample of the points is run; `SPILE_ALL=1` runs all of them and prints the
numbers for docs/faults.md.
"""

import collections
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from support import ALL, GOLDEN, SPILE

CALLS = (
    "openat pread64 pwrite64 ftruncate fallocate copy_file_range fsync fdatasync syncfs rename renameat2 linkat mkdir mkdirat "
    "unlink unlinkat rmdir fchmod flock"
).split()
ERRORS = ["error=EIO", "error=ENOSPC", "error=EINTR"]
# A read or write of 0 bytes: the file ends, or nothing more can be written.
SHORT = {"pread64": ["retval=0"], "pwrite64": ["retval=0"]}
# Points of each verb by default.
SAMPLE = 36

FILES = {
    "dump.sdf": "sdf/epoch1d_normal_0001.sdf",
    "a.gsd": "gsd/py-5.0.1/hoomd_varying_N.gsd",
    "b.gsd": "gsd/py-5.0.1/hoomd_varying_N.gsd",
    "old.gsd": "gsd/code-v1.0.0/all_types.gsd",
    "x.taf": "taf/good/example_2d_101x3.taf",
    "more.taf": "taf/good/example_2d_101x3.taf",
    "c.scda": "scda/enc_a.scd",
    "d.iotk": "iotk/golden/types.dat",
    "cut.sdf": "sdf/hand_truncated.sdf",
}

# Name: commands that prepare the folder, the command.
VERBS = {
    "info": ([], "info dump.sdf"),
    "cat": ([], "cat x.taf data"),
    "stat": ([], "stat dump.sdf"),
    "hash": ([], "hash a.gsd"),
    "diff": ([], "diff a.gsd b.gsd"),
    "check": ([], "check x.taf"),
    "plot": ([], "plot x.taf data -o p.svg"),
    "plot again": (["plot x.taf data -o p.svg"], "plot dump.sdf ex -o p.svg --overwrite"),
    "convert hdf5": ([], "convert a.gsd o.h5"),
    "convert hdf5 again": (["convert x.taf o.h5"], "convert a.gsd o.h5 --overwrite"),
    "convert netcdf": ([], "convert dump.sdf o.nc"),
    "convert npz again": (["convert x.taf o.npz"], "convert dump.sdf o.npz --overwrite"),
    "convert csv": ([], "convert x.taf o.csv"),
    "convert parquet again": (["convert x.taf o.parquet"], "convert x.taf o.parquet --overwrite"),
    "convert zarr": ([], "convert x.taf o.zarr"),
    "convert zarr again": (["convert dump.sdf o.zarr"], "convert x.taf o.zarr --overwrite"),
    "convert pvd": ([], "convert a.gsd o.pvd"),
    "convert pvd again": (["convert a.gsd o.pvd --frames 0:1"], "convert a.gsd o.pvd --overwrite"),
    "convert vtm again": (["convert dump.sdf o.vtm"], "convert dump.sdf o.vtm --overwrite"),
    "convert gsd": ([], "convert a.gsd o.gsd"),
    "convert sdf again": (["convert x.taf o.sdf"], "convert dump.sdf o.sdf --overwrite"),
    "convert scda": ([], "convert x.taf o.scda"),
    "convert iotk": ([], "convert x.taf o.iotk"),
    "convert xyz": ([], "convert a.gsd o.xyz"),
    "convert verify": ([], "convert x.taf o.npy --verify"),
    "merge": ([], "merge a.gsd b.gsd -o m.gsd"),
    "merge sdf": ([], "merge dump.sdf dump.sdf -o m.h5"),
    "index": ([], "index dump.sdf refs.json"),
    "salvage": ([], "salvage cut.sdf -o s.sdf"),
    "salvage again": (["salvage cut.sdf -o s.sdf"], "salvage cut.sdf -o s.sdf --overwrite"),
    "gsd append": ([], "gsd append a.gsd b.gsd"),
    "gsd upgrade": ([], "gsd upgrade old.gsd"),
    "gsd trim": ([], "gsd trim a.gsd 1: -o t.gsd"),
    "iotk convert": ([], "iotk convert d.iotk o.xml"),
    "scda unpack": ([], "scda unpack c.scda -o parts"),
    "scda recode": ([], "scda recode c.scda o.scda --decode"),
    "taf create": ([], "taf create more.taf -o n.taf"),
    "taf append": ([], "taf append x.taf more.taf"),
    "taf append large": ([], "taf append large.taf row.npy"),
    "taf add-comment": ([], "taf add-comment x.taf hello"),
    "taf add-comment large": ([], "taf add-comment large.taf hello"),
    "taf set-comment large": ([], "taf set-comment large.taf hello"),
    "taf adjust": ([], "taf adjust x.taf 1 shift 3"),
    "taf crop": ([], "taf crop x.taf 1 --index 2:50"),
    "taf transpose": ([], "taf transpose x.taf"),
    "taf replace": ([], "taf replace x.taf more.taf"),
    "taf backup": ([], "taf backup x.taf"),
    "taf export": ([], "taf export x.taf -o e.txt"),
}

TEMPORARY = re.compile(r"^\..*\.[0-9A-Za-z]{6}\.part(/|$)|^\.tmp[0-9A-Za-z]{6}(/|$)")
LARGE = 64 * 2**20


def large_taf(folder):
    """A sparse file of more than 64 MiB, and a row to append."""
    head = bytearray((folder / "x.taf").read_bytes()[:1104])
    head[1024:1032] = b"uint8\0\0\0"
    for at, length in ((1056, 1024), (1080, LARGE // 1024 + 1)):
        head[at : at + 8] = length.to_bytes(8, "little")
    with open(folder / "large.taf", "wb") as file:
        file.write(head)
        file.seek(1104 + 1024 * (LARGE // 1024 + 1))
        file.write(b"first comment\nsecond comment\n")
    import numpy as np

    np.save(folder / "row.npy", np.arange(1024 * 2, dtype="u1").reshape(1024, 2, order="F"))


def digest(path, folder):
    """Hash of a file, with the path of its folder replaced; of the ends of a large sparse one."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= LARGE:
            return hashlib.sha256(file.read().replace(bytes(folder), b"FOLDER")).hexdigest()
        head = file.read(1 << 16)
        file.seek(LARGE - (1 << 16))
        return size, hashlib.sha256(head + file.read()).hexdigest()


def state(folder):
    """Names and hashes of all files."""
    found = {}
    for base, folders, files in os.walk(folder):
        for name in folders:
            found[str((pathlib.Path(base) / name).relative_to(folder)) + "/"] = None
        for name in files:
            path = pathlib.Path(base) / name
            found[str(path.relative_to(folder))] = digest(path, folder)
    return found


def copy(source, target):
    """A copy of a folder; large files are sparse."""
    if target.exists():
        shutil.rmtree(target)
    subprocess.run(["cp", "-r", "--sparse=always", source, target], check=True)


def run(folder, words, inject=None, log=None):
    command = [SPILE, "-j1", *words.split()]
    if inject or log:
        # `--seccomp-bpf` stops only at the traced calls.
        trace = ["strace", "-f", "-qq", "--seccomp-bpf", "-o", log or "/dev/null", "-e", "trace=" + ",".join(CALLS)]
        command = trace + (["-e", "inject=" + inject] if inject else []) + command
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=120)


def counts(log):
    """Number of calls of each kind, the largest of one thread."""
    found = collections.Counter()
    for line in pathlib.Path(log).read_text().splitlines():
        match = re.match(r"(\d+) +(\w+)\(", line)
        if match:
            found[match.groups()] += 1
    most = collections.Counter()
    for (_, call), number in found.items():
        most[call] = max(most[call], number)
    return most


class Verb:
    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        before, self.words = VERBS[name]
        self.old_folder = folder / "old"
        self.old_folder.mkdir(parents=True)
        for file, golden in FILES.items():
            if file in " ".join([*before, self.words]).split():
                shutil.copy(GOLDEN / golden, self.old_folder / file)
        if "large.taf" in self.words:
            shutil.copy(GOLDEN / FILES["x.taf"], self.old_folder / "x.taf")
            large_taf(self.old_folder)
        for words in before:
            done = run(self.old_folder, words)
            assert done.returncode in (0, 3), (words, done.stderr)
        self.old = state(self.old_folder)
        work = folder / "new"
        copy(self.old_folder, work)
        log = folder / "log"
        self.done = run(work, self.words, log=str(log))
        assert self.done.returncode in (0, 1, 3), (name, self.done.stderr)
        self.new = state(work)
        self.points = []
        for call, number in sorted(counts(log).items()):
            faults = [*ERRORS, *SHORT.get(call, []), "signal=SIGKILL"]
            self.points += [(call, n, fault) for n in range(1, number + 1) for fault in faults]
        if not ALL:
            step = max(1, len(self.points) // SAMPLE)
            # A step that is prime to the number of faults visits all of them.
            while step > 1 and step % 2 == 0 or step % 5 == 0:
                step += 1
            self.points = self.points[::step]

    def restore_equal(self, work, found):
        """GSD files are changed in place, so that bytes that the index does not refer to may differ, and `trim` writes the chunks
        of a frame in any order. Gives a file with the content
        of the old or new one its hash."""
        for name in ("a.gsd", "old.gsd", "t.gsd", "m.h5"):
            if found.get(name) not in (None, self.old.get(name), self.new.get(name)):
                content = run(work, f"hash -q {name}").stdout
                for folder, known in ((self.old_folder, self.old), (self.folder / "new", self.new)):
                    if name in known and run(folder, f"hash -q {name}").stdout == content:
                        found[name] = known[name]
                        break

    def test(self, point):
        """An error message, or None."""
        call, number, fault = point
        work = self.folder / f"work-{call}-{number}-{fault}"
        copy(self.old_folder, work)
        try:
            done = run(work, self.words, inject=f"{call}:{fault}:when={number}")
            found = state(work)
            self.restore_equal(work, found)
            killed = "SIGKILL" in fault
            if killed:
                if "large.taf-journal" in found:
                    # The next change restores the old file.
                    again = run(work, "taf adjust large.taf 1 shift 0")
                    if again.returncode:
                        return f"the journal is not applied: {again.stderr}"
                    found = state(work)
                found = {name: content for name, content in found.items() if not TEMPORARY.match(name)}
                if self.name.startswith("convert pvd") or self.name.startswith("convert vtm"):
                    # A folder that no collection refers to may be left.
                    used = self.old if found.get("o.pvd", found.get("o.vtm")) == self.old.get("o.pvd", self.old.get("o.vtm")) else self.new
                    found = {name: found[name] for name in found if name in used or not name.startswith(("o/", "o-2/"))}
                return None if found in (self.old, self.new) else f"neither: {changes(self.old, found)}"
            if done.returncode < 0 or done.returncode > 120:
                return f"status {done.returncode}: {done.stderr[-300:]}" if done.returncode != 127 else None
            if b"panicked" in done.stderr:
                return f"panic: {done.stderr[-300:]}"
            if done.returncode == self.done.returncode:
                if self.name in ("convert pvd again", "convert vtm again") and call == "pread64":
                    # A replaced collection that cannot be read keeps its folder.
                    found = {name: found[name] for name in found if name in self.new or not name.startswith("o/")}
                if found != self.new:
                    return f"success, but {changes(self.new, found)}"
                # Verbs that write print their time.
                printed = self.old != self.new or done.stdout == self.done.stdout
                return None if printed else "other output"
            if "--verify" in self.words and found == self.new:
                # The output is compared after it is complete.
                return None
            return None if found == self.old else f"status {done.returncode} but {changes(self.old, found)}: {done.stderr[-200:]}"
        finally:
            shutil.rmtree(work)


def changes(expected, found):
    names = sorted(name for name in {*expected, *found} if expected.get(name, 0) != found.get(name, 0))
    return f"changed {names[:6]}"


def main():
    if not shutil.which("strace") or subprocess.run(["strace", "-qq", "-e", "trace=none", "true"]).returncode:
        print("skipped: strace cannot be used")
        return
    wanted = sys.argv[1:] or list(VERBS)
    start, total, failed = time.time(), collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in wanted:
            verb = Verb(name, pathlib.Path(folder) / name.replace(" ", "-"))
            for point, why in zip(verb.points, pool.map(verb.test, verb.points)):
                total["kills" if "SIGKILL" in point[2] else "faults"] += 1
                if why:
                    failed.append(f"{name}: {' '.join(map(str, point))}: {why}")
                    print(failed[-1], flush=True)
            print(f"{name}: {len(verb.points)} points, {len(failed)} failures", flush=True)
            shutil.rmtree(verb.folder)
    print(f"{len(wanted)} verbs, {total['faults']} faults, {total['kills']} kills, {len(failed)} failures, {time.time() - start:.0f} s")
    assert not failed, "\n".join(failed[:60])


if __name__ == "__main__":
    main()
