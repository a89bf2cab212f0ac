"""Type checking, stubs, formatting and linting."""

import subprocess
import sys

import pytest

from support import ROOT


def test_the_package_is_typed_and_its_stub_fits_the_module(tmp_path):
    pytest.importorskip("mypy")
    words = ["--ignore-missing-imports", "--cache-dir", str(tmp_path), "-p", "spile"]
    run = subprocess.run([sys.executable, "-m", "mypy", *words], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
    words = ["-m", "mypy.stubtest", "--concise", "spile._spile", "--ignore-missing-stub"]
    run = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_code_is_formatted_and_free_of_what_linters_find():
    pytest.importorskip("ruff")
    for words in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
        command = [sys.executable, "-m", "ruff", *words, "python", "tests"]
        run = subprocess.run(command, cwd=ROOT / "bindings/python", capture_output=True, text=True)
        assert run.returncode == 0, run.stdout
