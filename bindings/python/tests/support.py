"""What all tests share."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden"


def golden(name):
    """A golden file, or a pattern for some."""
    path = GOLDEN / name
    assert "*" in name or path.exists(), path
    return str(path)


def arrays_of(file):
    """Arrays that can be read as they are."""
    return {path: array for path, array in file.arrays().items() if not array.ragged}
