"""Checks an installation with NumPy only: import time, command line, and that no file of the corpus,
however damaged, crashes the process.

pytest runs it too, as a separate process. Exit status 0 means success.
"""

import importlib.util
import pathlib
import subprocess
import sys
import time
import warnings

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "tests" / "golden"


def import_time():
    """Time to import spile after NumPy in milliseconds; the minimum of five runs."""
    code = (
        "import time, numpy; t = time.perf_counter(); import spile;"
        "print(1e3 * (time.perf_counter() - t))"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True) for _ in range(5)]
    return min(float(run.stdout) for run in runs)


def corpus():
    """Opens and reads all files. All errors must be exceptions of spile."""
    import spile

    opened = refused = 0
    for path in sorted(p for p in GOLDEN.rglob("*") if p.is_file()):
        for data in (path, path.read_bytes()):
            try:
                spile.check(data)
            except spile.SpileError:
                pass
            try:
                # Incomplete files are opened with a warning.
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    file = spile.open(data)
                with file:
                    opened += 1
                    look(spile, file)
            except spile.SpileError as error:
                refused += 1
                assert str(error), path
    return opened, refused


def look(spile, file):
    repr(file), file._repr_html_(), file.summary, file.findings
    for array in file.arrays().values():
        try:
            repr(array), array.attrs, array.dims, array.coords
            if array.ragged:
                array.offsets, array.values
            elif array.nbytes < 1 << 24:
                array[...], array[(slice(None, None, -2),) * array.ndim]
                for part in array.stream(1 << 16):
                    part.nbytes
            array.view()
        except spile.SpileError:
            continue
    if file.format == "gsd":
        try:
            for frame in file.hoomd[:3]:
                frame.particles.position, frame.bonds.group, frame.log, frame.box
            file.hoomd.log()
        except spile.SpileError:
            pass


def main():
    for name in ("xarray", "pandas", "dask"):
        if "--with-others" not in sys.argv:
            assert importlib.util.find_spec(name) is None, (
                f"{name} is installed, expected NumPy only"
            )
    start = time.time()
    milliseconds = import_time()
    assert milliseconds < 50, f"importing takes {milliseconds:.0f} ms"
    listed = subprocess.run(
        [sys.executable, "-m", "spile", "formats"], capture_output=True, text=True
    )
    assert listed.returncode == 0 and "iotk" in listed.stdout, listed
    opened, refused = corpus()
    assert opened > 300 and refused > 100, (opened, refused)
    seconds = time.time() - start
    print(f"import {milliseconds:.0f} ms; {opened} opened, {refused} refused in {seconds:.0f} s")


if __name__ == "__main__":
    main()
