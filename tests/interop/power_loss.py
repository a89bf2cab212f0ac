"""A power failure at any moment: the files are the old or the new ones, and the new ones once success was reported.

The system calls of a command are recorded (strace) with all bytes that it writes. A model of the disk then applies them up to a
point: what was flushed before is there; of the rest any sectors of 512 bytes, any changes of lengths, and a beginning of the
changes of names (file systems with a journal keep their order). The state is written to a folder and examined. By default a sample of the
points is tested; `SPILE_ALL=1` tests all of them, several times each.
"""

import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import faults
from support import ALL, SPILE

CALLS = (
    "openat close write pwrite64 lseek ftruncate fallocate copy_file_range sendfile ioctl fsync fdatasync syncfs "
    "rename renameat2 linkat mkdir mkdirat unlink unlinkat rmdir dup fcntl"
).split()
SECTOR = 512
BLOCK = 1 << 16
ZEROS = bytes(BLOCK)
# States of each command by default, and per point with SPILE_ALL.
SAMPLE = 60
TRIALS = 6

VERBS = [
    "taf append",
    "taf add-comment",
    "taf append large",
    "taf set-comment large",
    "taf crop",
    "convert zarr",
    "convert zarr again",
    "convert hdf5 again",
    "salvage again",
]


class File:
    def __init__(self, base=b""):
        self.base = base


class Folder:
    def __init__(self):
        self.names = {}


class Recorder:
    """Turns the calls of strace to events: (kind, object, ...)."""

    def __init__(self, root):
        self.root = root
        self.events = []
        self.fds = {}
        self.tree = self.load(root)

    def load(self, path):
        folder = Folder()
        for entry in path.iterdir():
            folder.names[entry.name] = self.load(entry) if entry.is_dir() else File(entry.read_bytes())
        return folder

    def locate(self, text, fd="AT_FDCWD"):
        """The folder and the name of a path; None outside of the root."""
        path = pathlib.Path(text)
        if fd != "AT_FDCWD" and not path.is_absolute():
            folder = self.fds.get(int(fd))
            folder = folder and folder[0]
            parts = path.parts
        else:
            path = pathlib.Path(os.path.normpath(self.root / path))
            if path != self.root and self.root not in path.parents:
                return None
            folder, parts = self.tree, path.relative_to(self.root).parts
        for part in parts[:-1]:
            if not isinstance(folder, Folder):
                return None
            folder = folder.names.get(part)
        return (folder, parts[-1] if parts else "") if isinstance(folder, Folder) else None

    def find(self, text, fd="AT_FDCWD"):
        place = self.locate(text, fd)
        if place is None:
            return None
        return place[0] if place[1] == "" else place[0].names.get(place[1])

    def name(self, folder, name, new):
        """A name is set, or removed (None)."""
        self.events.append(("name", [(folder, name, new)]))
        self.put(folder, name, new)

    @staticmethod
    def put(folder, name, new):
        if new is None:
            folder.names.pop(name, None)
        else:
            folder.names[name] = new

    def write(self, file, at, data):
        self.events.append(("write", file, at, data))
        content = self.content(file)
        if len(content) < at:
            content.extend(bytes(at - len(content)))
        content[at : at + len(data)] = data

    def content(self, file):
        if not hasattr(file, "now"):
            file.now = bytearray(file.base)
        return file.now

    def call(self, name, args, result):
        if result < 0:
            return
        fd = lambda k: self.fds.get(int(args[k]))
        if name == "openat":
            self.open(args, result)
        elif name == "close":
            self.fds.pop(int(args[0]), None)
        elif name == "lseek" and fd(0):
            fd(0)[1] = result
        elif name in ("write", "pwrite64") and fd(0):
            data = text(args[1])[:result]
            at = int(args[3]) if name == "pwrite64" else fd(0)[1]
            if name == "write":
                fd(0)[1] += result
            self.write(fd(0)[0], at, data)
        elif name in ("copy_file_range", "sendfile"):
            into, source = (2, 0) if name == "copy_file_range" else (0, 1)
            if fd(into):
                start, at = fd(source)[1], fd(into)[1]
                self.write(fd(into)[0], at, bytes(self.content(fd(source)[0])[start : start + result]))
                fd(source)[1] += result
                fd(into)[1] += result
        elif name == "ftruncate" and fd(0):
            self.size(fd(0)[0], int(args[1]))
        elif name == "fallocate" and fd(0) and args[1] == "0":
            end = int(args[2]) + int(args[3])
            if end > len(self.content(fd(0)[0])):
                self.size(fd(0)[0], end)
        elif name == "ioctl":
            assert "FICLONE" not in args[1], "shared blocks are not modelled"
        elif name in ("fsync", "fdatasync") and fd(0):
            self.events.append(("sync", fd(0)[0]))
        elif name == "syncfs":
            self.events.append(("sync", None))
        elif name in ("rename", "renameat2"):
            old, new = (args[0], args[1]) if name == "rename" else (args[1], args[3])
            self.rename(self.locate(path(old)), self.locate(path(new)), "EXCHANGE" in " ".join(args[4:]))
        elif name == "linkat":
            number = re.match(r"/proc/self/fd/(\d+)", path(args[1]))
            place = self.locate(path(args[3]))
            if place:
                self.name(*place, self.fds[int(number[1])][0] if number else self.find(path(args[1])))
        elif name in ("mkdir", "mkdirat"):
            place = self.locate(path(args[0])) if name == "mkdir" else self.locate(path(args[1]), args[0])
            if place:
                self.name(*place, Folder())
        elif name in ("unlink", "rmdir", "unlinkat"):
            place = self.locate(path(args[0])) if name != "unlinkat" else self.locate(path(args[1]), args[0])
            if place:
                self.name(*place, None)

    def open(self, args, result):
        name, flags = path(args[1]), args[2]
        if "O_TMPFILE" in flags:
            self.fds[result] = [File(), 0]
            return
        number = re.match(r"/proc/self/fd/(\d+)$", name)
        found = self.fds[int(number[1])][0] if number and int(number[1]) in self.fds else self.find(name, args[0])
        if found is None and "O_CREAT" in flags:
            place = self.locate(name, args[0])
            if place:
                found = File()
                self.name(*place, found)
        elif isinstance(found, File) and "O_TRUNC" in flags:
            self.size(found, 0)
        if found is None:
            self.fds.pop(result, None)
        else:
            self.fds[result] = [found, 0]

    def size(self, file, length):
        self.events.append(("size", file, length))
        resize(self.content(file), length)

    def rename(self, old, new, exchange):
        if not old or not new:
            return
        first, second = old[0].names.get(old[1]), new[0].names.get(new[1])
        changes = [(*old, second if exchange else None), (*new, first)]
        self.events.append(("name", changes))
        for change in changes:
            self.put(*change)


def resize(content, length):
    if length <= len(content):
        del content[length:]
    else:
        content.extend(bytes(length - len(content)))


def text(argument):
    """The bytes of a string that strace wrote in hexadecimal."""
    return bytes.fromhex(argument.strip('"').replace("\\x", ""))


def path(argument):
    return os.fsdecode(text(argument))


def record(folder, words):
    """Runs a command in a folder; returns the root, the names of all folders before, and the events."""
    recorder = Recorder(folder)
    log = folder.parent / "calls"
    command = ["strace", "-f", "-qq", "-xx", "-s", str(1 << 24), "-o", str(log), "-e", "trace=" + ",".join(CALLS)]
    before = snapshot(recorder.tree)
    done = subprocess.run([*command, SPILE, "-j1", *words.split()], cwd=folder, capture_output=True, timeout=300)
    assert done.returncode in (0, 3), (words, done.stderr)
    unfinished = {}
    with open(log) as lines:
        for line in lines:
            pid, _, call = line.rstrip("\n").partition(" ")
            call = call.strip()
            if call.endswith("<unfinished ...>"):
                unfinished[pid] = call.removesuffix("<unfinished ...>")
                continue
            if call.startswith("<..."):
                call = unfinished.pop(pid) + call.partition("resumed>")[2]
            match = re.match(r"(\w+)\((.*)\)\s+= (-?\d+)", call)
            if match:
                recorder.call(match[1], [part.strip() for part in match[2].split(", ")], int(match[3]))
    return recorder.tree, before, recorder.events


def snapshot(folder, found=None):
    """The names of a folder and of those below it."""
    found = {} if found is None else found
    found[folder] = dict(folder.names)
    for one in folder.names.values():
        if isinstance(one, Folder):
            snapshot(one, found)
    return found


def after_power_failure(before, events, luck):
    """The disk after a failure: names by folder, and bytes by file."""
    everything = max((k for k, event in enumerate(events) if event == ("sync", None)), default=-1)
    synced = {}
    for k, event in enumerate(events):
        if event[0] == "sync":
            synced[event[1]] = k
    durable = lambda k, one: k < max(everything, synced.get(one, -1))
    odds = luck.choice([0, 0.25, 0.5, 0.75, 1])
    names = [k for k, event in enumerate(events) if event[0] == "name"]
    certain = [k for k in names if all(durable(k, folder) for folder, *_ in events[k][1])]
    # Names change in order: everything before a durable change is durable.
    first = max(certain, default=-1) + 1
    last = luck.choice([first, len(events), luck.randint(first, len(events))])
    folders, files = {folder: dict(names) for folder, names in before.items()}, {}
    for k, event in enumerate(events):
        if event[0] == "name":
            if k < last:
                for folder, name, new in event[1]:
                    names = folders.setdefault(folder, {})
                    if new is None:
                        names.pop(name, None)
                    else:
                        names[name] = new
            continue
        if event[0] == "sync":
            continue
        file = event[1]
        content = files.setdefault(file, bytearray(file.base))
        if event[0] == "size":
            if durable(k, file) or luck.random() < odds:
                resize(content, event[2])
            continue
        at, data = event[2], event[3]
        start = at
        while start < at + len(data):
            end = min((start // SECTOR + 1) * SECTOR, at + len(data))
            if durable(k, file) or luck.random() < odds:
                if len(content) < end:
                    resize(content, end)
                content[start:end] = data[start - at : end - at]
            start = end
    return folders, files


def restore(target, folder, folders, files):
    """Writes a folder of the disk."""
    target.mkdir()
    for name, one in folders.get(folder, {}).items():
        if isinstance(one, Folder):
            restore(target / name, one, folders, files)
            continue
        content = files.get(one, one.base)
        with open(target / name, "wb") as file:
            # Zeros become holes: some files are large and sparse.
            for at in range(0, len(content), BLOCK):
                part = content[at : at + BLOCK]
                if part != ZEROS[: len(part)]:
                    file.seek(at)
                    file.write(part)
            file.truncate(len(content))


def examine(verb, work, is_complete):
    """An error message, or None."""
    found = faults.state(work)
    if "large.taf-journal" in found:
        again = faults.run(work, "taf adjust large.taf 1 shift 0")
        if again.returncode:
            return f"the journal is not applied: {again.stderr}"
        found = faults.state(work)
    found = {name: content for name, content in found.items() if not faults.TEMPORARY.match(name)}
    if found == verb.new:
        return None
    if is_complete:
        return f"success was reported, but {faults.changes(verb.new, found)}"
    return None if found == verb.old else f"neither old nor new: {faults.changes(verb.old, found)}"


def main():
    if not shutil.which("strace") or subprocess.run(["strace", "-qq", "-e", "trace=none", "true"]).returncode:
        print("skipped: strace cannot be used")
        return
    start, total, failed = time.time(), 0, []
    luck = random.Random(7)
    with tempfile.TemporaryDirectory() as place:
        for name in sys.argv[1:] or VERBS:
            verb = faults.Verb(name, pathlib.Path(place) / name.replace(" ", "-"))
            work = verb.folder / "recorded"
            faults.copy(verb.old_folder, work)
            root, before, events = record(work, verb.words)
            assert faults.state(work) == verb.new, f"{name}: another result in another run"
            cuts = range(len(events) + 1)
            points = [cut for cut in cuts for _ in range(TRIALS)] if ALL else sorted(luck.choices(cuts, k=SAMPLE))
            points += [len(events)] * 5
            for number, cut in enumerate(points):
                folders, files = after_power_failure(before, events[:cut], luck)
                target = verb.folder / f"state-{number}"
                restore(target, root, folders, files)
                why = examine(verb, target, cut == len(events))
                total += 1
                if why:
                    failed.append(f"{name}: after call {cut} of {len(events)}: {why}")
                    print(failed[-1], flush=True)
                shutil.rmtree(target)
            print(f"{name}: {len(events)} events, {len(points)} states, {len(failed)} failures", flush=True)
            shutil.rmtree(verb.folder)
    print(f"{total} states, {len(failed)} failures, {time.time() - start:.0f} s")
    assert not failed, "\n".join(failed[:40])


if __name__ == "__main__":
    main()
