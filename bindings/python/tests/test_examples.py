"""Runs the examples in docstrings and in the documentation.

Docstrings may use `spile`, `np`, `golden` and `here`. Examples of pages are complete: they run as
pasted, in the printed order, in a folder with the files of `docs/samples.md`.
"""

import doctest
import importlib
import pkgutil
import re
import shutil

import numpy as np
import pytest

import spile
from support import GOLDEN, ROOT, golden

MODULES = sorted(m.name for m in pkgutil.iter_modules(spile.__path__) if m.name != "__main__")
READMES = [ROOT / "README.md", ROOT / "bindings/python/README.md"]
PAGES = [*READMES, *sorted((ROOT / "docs").rglob("*.md"))]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page):
    """The Python blocks of a page: their first line, from 1, and their text."""
    text = page.read_text()
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, m.start(1)) + 1, m[1]) for m in found]


def copy_samples(folder):
    rows = re.findall(
        r"^\| `([^`]+)` \| `([^`]+)` \|", (ROOT / "docs/samples.md").read_text(), re.M
    )
    assert rows
    for name, source in rows:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (GOLDEN / source).is_dir() else shutil.copy)(GOLDEN / source, target)


@pytest.mark.parametrize("name", ["", *MODULES])
def test_docstrings(name, tmp_path):
    needs = {"_xarray": "xarray", "_schemas": "xarray", "_dask": "dask", "_tables": "pandas"}
    if name in needs:
        pytest.importorskip(needs[name])
    module = importlib.import_module(f"spile.{name}" if name else "spile")
    names = {"spile": spile, "np": np, "golden": golden, "here": tmp_path}
    failed, _ = doctest.testmod(module, extraglobs=names, optionflags=FLAGS)
    assert failed == 0


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda page: page.stem)
def test_pages(page, tmp_path, monkeypatch):
    for needed in ("xarray", "dask", "pandas"):
        pytest.importorskip(needed)
    copy_samples(tmp_path)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for line, text in blocks(page):
        if ">>>" in text:
            test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), line - 1)
            test.globs = names
            runner.run(test, clear_globs=False)
        else:
            exec(compile("\n" * (line - 1) + text, str(page), "exec"), names)
    assert runner.failures == 0
