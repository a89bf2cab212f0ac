"""Runs the examples in docstrings and in the documentation.

Docstrings may use `spile`, `np` and `here`, an empty folder. The examples of a page run as pasted, in
the printed order, in an empty folder and an interpreter of their own.
"""

import doctest
import importlib
import pathlib
import pkgutil
import re
import subprocess
import sys

import numpy as np
import pytest

import spile
from support import ROOT

MODULES = sorted(m.name for m in pkgutil.iter_modules(spile.__path__) if m.name != "__main__")
READMES = [ROOT / "README.md", ROOT / "bindings/python/README.md"]
PAGES = [*READMES, *sorted((ROOT / "docs").rglob("*.md"))]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page):
    """The Python blocks of a page: their first line, from 1, and their text."""
    text = page.read_text()
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, m.start(1)) + 1, m[1]) for m in found]


@pytest.mark.parametrize("name", ["", *MODULES])
def test_docstrings(name, tmp_path):
    needs = {
        "_xarray": "xarray",
        "_schemas": "xarray",
        "_dask": "dask",
        "_tables": "pandas",
        "_ase": "ase",
    }
    if name in needs:
        pytest.importorskip(needs[name])
    module = importlib.import_module(f"spile.{name}" if name else "spile")
    names = {"spile": spile, "np": np, "here": tmp_path}
    failed, _ = doctest.testmod(module, extraglobs=names, optionflags=FLAGS)
    assert failed == 0


def run_page(path):
    """Runs the examples of a page; the number of those that fail."""
    names = {"__name__": "__main__"}
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for line, text in blocks(path):
        if ">>>" in text:
            test = doctest.DocTestParser().get_doctest(text, {}, path.name, str(path), line - 1)
            test.globs = names
            runner.run(test, clear_globs=False)
        else:
            exec(compile("\n" * (line - 1) + text, str(path), "exec"), names)
    return runner.failures


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda page: page.stem)
def test_pages(page, tmp_path):
    for needed in ("xarray", "dask", "pandas"):
        pytest.importorskip(needed)
    command = [sys.executable, __file__, str(page)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_python_blocks_are_marked_as_python():
    for page in PAGES:
        assert not re.search(r"^```(py|pycon|python3|Python)$", page.read_text(), re.M), page


if __name__ == "__main__":
    sys.exit(run_page(pathlib.Path(sys.argv[1])) > 0)
