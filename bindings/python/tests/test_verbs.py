import json
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import spile
from support import golden


def test_the_verbs_say_what_the_command_line_says():
    path = golden("sdf/epoch1d_normal_0001.sdf")
    for verb in ("info", "check", "hash"):
        words = [sys.executable, "-m", "spile", verb, "--json", path]
        told = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
        mine = getattr(spile, verb)(path)
        for key in mine:
            assert told[key] == mine[key], (verb, key)


def test_python_m_spile_has_the_exit_status_of_the_program(tmp_path):
    def run(*words):
        return subprocess.run([sys.executable, "-m", "spile", *words], capture_output=True)

    assert run("check", golden("sdf/hand_truncated.sdf")).returncode == 1
    assert run("info", str(tmp_path / "nothing")).returncode == 2
    assert run("--version").stdout.decode().split()[-1] == spile.__version__


def test_differences_are_found_and_tolerated(tmp_path):
    x = np.linspace(0, 1, 50)
    spile.create(tmp_path / "a.npz", {"x": x, "y": x})
    spile.create(tmp_path / "b.npz", {"x": x + 1e-9, "y": x})
    found = spile.diff(tmp_path / "a.npz", tmp_path / "b.npz")["differences"]
    assert [row["path"] for row in found] == ["x"]
    assert spile.diff(tmp_path / "a.npz", tmp_path / "b.npz", atol=1e-8)["differences"] == []
    assert spile.diff(tmp_path / "a.npz", tmp_path / "b.npz", ignore="x")["differences"] == []
    with pytest.raises(spile.errors.ArgumentError):
        spile.diff(tmp_path / "a.npz", tmp_path / "b.npz", atol=-1.0)


def test_conversions_lose_nothing_here_and_never_replace_unasked(tmp_path):
    path = golden("sdf/epoch2d_4ranks_id4_0001.sdf")
    target = tmp_path / "dump.h5"
    assert not spile.convert(path, target, dry_run=True)["written"] and not target.exists()
    done = spile.convert(path, target, verify=True)
    assert done["written"] and done["differences"] == []
    with pytest.raises(FileExistsError):
        spile.convert(path, target)
    spile.convert(path, target, overwrite=True, select="Electric*", slice={"X": slice(0, 10)})
    assert spile.open(target)["Electric Field/Ex"].shape[0] == 10
    h5py = pytest.importorskip("h5py")
    with h5py.File(target) as file:
        expected = spile.open(path)["Electric Field/Ex"][:10]
        np.testing.assert_array_equal(file["Electric Field/Ex"][...], expected)


def test_progress_is_told_and_its_errors_come_out(tmp_path):
    calls = []
    spile.hash(golden("gsd/py-5.0.1/hoomd_full.gsd"), progress=lambda *now: calls.append(now))
    assert calls and all(0 <= read <= size for read, size in calls)

    def stop(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        spile.hash(golden("gsd/py-5.0.1/hoomd_full.gsd"), progress=stop)


@pytest.fixture
def endless(tmp_path):
    """A sparse file of one terabyte, which no operation can process within a minute."""
    path = tmp_path / "endless.npy"
    np.lib.format.open_memmap(path, mode="w+", dtype="u1", shape=(1 << 40,))
    return path


def test_an_error_in_progress_ends_the_work(endless, tmp_path):
    def stop(*_):
        raise RuntimeError("enough")

    file = spile.open(endless)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="enough"):
        spile.hash(file, progress=stop)
    with pytest.raises(RuntimeError, match="enough"):
        spile.convert(file, tmp_path / "copy.taf", progress=stop)
    assert time.monotonic() - start < 30
    (array,) = file.arrays().values()
    assert array[:3].tolist() == [0, 0, 0], "the file goes on serving"
    assert [path.name for path in tmp_path.iterdir()] == ["endless.npy"]


def test_control_c_ends_the_work(endless):
    code = """
import signal, sys, spile
# Background processes ignore this signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
print("go", flush=True)
spile.hash(sys.argv[1])
"""
    words = [sys.executable, "-c", code, endless]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"go\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        _, words = child.communicate(timeout=30)
    finally:
        child.kill()
    assert words.rstrip().endswith(b"KeyboardInterrupt") and child.returncode != 0


def test_salvage_saves_beside_the_damaged_file(tmp_path):
    path = tmp_path / "broken.sdf"
    shutil.copy(golden("sdf/hand_truncated.sdf"), path)
    saved = spile.salvage(path)
    assert saved["output"] == str(tmp_path / "broken-salvaged.sdf") and saved["kept"]
    assert spile.check(saved["output"])["ok"]


def test_nothing_that_the_package_says_is_printed(capfd):
    spile.check(golden("sdf/hand_truncated.sdf"))
    with pytest.raises(spile.SpileError), pytest.warns(UserWarning, match="incomplete file"):
        spile.hash(golden("sdf/hand_truncated.sdf"))
    assert capfd.readouterr() == ("", "")


def test_losses_are_listed_with_reasons(tmp_path):
    path = golden("taf/good/example_2d_101x3.taf")
    done = spile.convert(path, tmp_path / "a.npy", dry_run=True)
    assert done["lost"]
    for row in done["lost"]:
        assert {"path", "what", "reason"} <= set(row) <= {"path", "what", "name", "reason"}
        assert row["reason"]


def test_hints_are_in_terms_of_python(tmp_path):
    with pytest.raises(spile.errors.TruncatedError) as caught:
        spile.hash(golden("sdf/hand_truncated.sdf"))
    assert caught.value.hint.startswith("spile.salvage(path) ")
    findings = spile.check(golden("sdf/hand_truncated.sdf"))["findings"]
    hints = [finding["hint"] for finding in findings if "hint" in finding]
    assert hints and not any("operation" in hint or "--" in hint for hint in hints)
    with pytest.raises(spile.errors.LimitError, match="max_memory="):
        spile.open(golden("sdf/epoch3d_0001.sdf"), max_memory=100)
    spile.create(tmp_path / "a.npy", {"x": np.zeros(2)})
    with pytest.raises(spile.errors.ExistsError, match="overwrite=True"):
        spile.create(tmp_path / "a.npy", {"x": np.zeros(2)})
    with pytest.raises(spile.errors.ArgumentError, match="to="):
        spile.convert(golden("sdf/epoch3d_0001.sdf"), tmp_path / "a.unknown")
