"""Shared by the interop tests. The environment variable SPILE is the path of the program; SPILE_ALL is set if all
cases are to be tested, not only a selection."""

import os
import pathlib
import subprocess

SPILE = os.environ["SPILE"]
ALL = bool(os.environ.get("SPILE_ALL"))
GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"


def spile(*args, codes=(0,), **options):
    """Runs spile; returns its standard output. The exit status must be one of `codes`."""
    done = subprocess.run([SPILE, *map(str, args)], capture_output=True, check=False, **options)
    assert done.returncode in codes, (args, done.returncode, done.stderr.decode())
    return done.stdout
