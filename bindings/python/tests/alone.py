"""Run by a Python that has nothing but NumPy and the wheel: it imports at once, the command line is
there, and no file of the corpus, however damaged, brings the process down.

The same is run by pytest as a process of its own; it ends with 0 if all went well.
"""

import importlib.util
import pathlib
import subprocess
import sys
import time

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "tests" / "golden"


def import_time():
    """Milliseconds that importing spile takes beyond NumPy; the best of a few."""
    code = (
        "import time, numpy; t = time.perf_counter(); import spile;"
        "print(1e3 * (time.perf_counter() - t))"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True) for _ in range(5)]
    return min(float(run.stdout) for run in runs)


def corpus():
    """Opens, looks at and reads everything; what spile refuses, it refuses with its own errors."""
    import spile

    opened = refused = 0
    for path in sorted(p for p in GOLDEN.rglob("*") if p.is_file()):
        for data in (path, path.read_bytes()):
            try:
                spile.check(data)
            except spile.SpileError:
                pass
            try:
                with spile.open(data) as file:
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
            assert importlib.util.find_spec(name) is None, f"{name} is here: this is not alone"
    start = time.time()
    milliseconds = import_time()
    assert milliseconds < 50, f"importing takes {milliseconds:.0f} ms"
    told = subprocess.run(
        [sys.executable, "-m", "spile", "formats"], capture_output=True, text=True
    )
    assert told.returncode == 0 and "iotk" in told.stdout, told
    opened, refused = corpus()
    assert opened > 300 and refused > 100, (opened, refused)
    seconds = time.time() - start
    print(f"import {milliseconds:.0f} ms; {opened} opened, {refused} refused in {seconds:.0f} s")


if __name__ == "__main__":
    main()
