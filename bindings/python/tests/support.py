"""Helpers shared by all tests."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden"


def golden(name):
    """Path of a golden file, or a glob pattern."""
    path = GOLDEN / name
    assert "*" in name or path.exists(), path
    return str(path)


def arrays_of(file):
    """Arrays that are not ragged, by path."""
    return {path: array for path, array in file.arrays().items() if not array.ragged}
