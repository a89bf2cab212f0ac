"""Examples in docstrings and pages are run: they know `spile`, `np`, `golden` and `here`."""

import doctest
import importlib
import pathlib
import pkgutil

import numpy as np
import pytest

import spile
from support import ROOT, golden

MODULES = sorted(m.name for m in pkgutil.iter_modules(spile.__path__) if m.name != "__main__")
PAGES = [ROOT / "bindings/python/README.md", *sorted((ROOT / "docs/python").glob("*.md"))]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def names(here):
    return {"spile": spile, "np": np, "golden": golden, "here": here}


@pytest.mark.parametrize("name", ["", *MODULES])
def test_docstrings(name, tmp_path):
    needs = {"_xarray": "xarray", "_schemas": "xarray", "_dask": "dask", "_tables": "pandas"}
    if name in needs:
        pytest.importorskip(needs[name])
    module = importlib.import_module(f"spile.{name}" if name else "spile")
    failed, _ = doctest.testmod(module, extraglobs=names(tmp_path), optionflags=FLAGS)
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages(page, tmp_path, monkeypatch):
    for needed in ("xarray", "dask", "pandas"):
        pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    tried = doctest.testfile(
        str(page), module_relative=False, globs=names(pathlib.Path(tmp_path)), optionflags=FLAGS
    )
    assert tried.failed == 0
