"""What the package says about its types is true."""

import subprocess
import sys

import pytest


def test_the_package_is_typed_and_its_stub_fits_the_module(tmp_path):
    pytest.importorskip("mypy")
    words = ["--ignore-missing-imports", "--cache-dir", str(tmp_path), "-p", "spile"]
    run = subprocess.run([sys.executable, "-m", "mypy", *words], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
    words = ["-m", "mypy.stubtest", "--concise", "spile._spile", "--ignore-missing-stub"]
    run = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
