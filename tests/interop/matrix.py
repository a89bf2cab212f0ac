"""Golden files of all structures, converted to every target and opened with the program of its users.

`TABLE` says what must be visible at least. Every array that `convert --json` does not declare as lost must be there, with the
values, unit and coordinates of the source (`support.truth`, by other readers); every array declared as lost must be
absent. `SPILE_ALL=1` tests all golden files of each structure instead of the first one.
"""

import dataclasses
import json
import pathlib
import subprocess
import tempfile

import numpy as np
from support import ALL, GOLDEN, SPILE, opened, spile, truth
from support.opened import close

# Structure: reader, golden files (the first is the default), options of convert.
SOURCES = {
    "sdf dump": (truth.sdf, ["sdf/epoch2d_4ranks_id4_0001.sdf", "sdf/epoch[123]d*.sdf"], []),
    "sdf field": (truth.sdf, ["sdf/epoch2d_4ranks_id4_0001.sdf", "sdf/epoch2d_4ranks*.sdf"], ["--select", "ex"]),
    "sdf species": (
        truth.sdf,
        ["sdf/epoch2d_4ranks_id4_0001.sdf"],
        ["--select", "Particles/*/electron", "--select", "Grid/Particles/electron"],
    ),
    "sdf blocks": (truth.sdf, ["sdf/drv_all_blocks.sdf", "sdf/drv_strlen64.sdf"], []),
    "sdf run": (truth.run, ["sdf/epoch1d_normal_000*.sdf"], []),
    "gsd types": (truth.gsd_file, ["gsd/py-5.0.1/fl_all_dtypes.gsd", "gsd/code-v*/all_types.gsd"], []),
    "gsd frames": (truth.gsd_file, ["gsd/py-5.0.1/hoomd_many_frames.gsd", "gsd/py-3*/hoomd_many_frames.gsd"], []),
    "gsd hoomd": (truth.gsd_file, ["gsd/py-5.0.1/hoomd_full.gsd", "gsd/py-3*/hoomd_full.gsd"], []),
    "gsd changing N": (truth.gsd_file, ["gsd/py-5.0.1/hoomd_varying_N.gsd", "gsd/py-3*/hoomd_varying_N.gsd"], []),
    "iotk types": (truth.iotk, ["iotk/golden/types.dat", "iotk/*/types.dat"], []),
    "iotk ranks": (truth.iotk, ["iotk/golden/ranks.dat", "iotk/golden/ranks.xml"], []),
    "iotk crystal": (truth.iotk, ["iotk/qe54_si/si.save/data-file.xml"], []),
    "taf mapped": (truth.taf, ["taf/good/type_int16_mapped.taf", "taf/good/*_mapped.taf", "taf/good/legacy_*.taf"], []),
    "taf plain": (truth.taf, ["taf/good/example_2d_101x3.taf", "taf/good/*_unmapped.taf"], []),
    "taf volume": (truth.taf, ["taf/good/example_3d_101x3x2.taf", "taf/good/dims_3d_4x3x2.taf"], []),
    "scda arrays": (truth.scda, ["scda/a_basic.scd", "scda/a_newline.scd", "scda/i_basic.scd"], []),
    "scda encoded": (truth.scda, ["scda/enc_a.scd"], []),
    "scda lengths": (truth.scda, ["scda/v_basic.scd", "scda/enc_v.scd"], []),
    "trace": (truth.scope, ["lecroy/lecroy_le_word.trc", "tektronix/*_i16.wfm", "tektronix/*_i16.isf", "dig/*.dig"], []),
    "channels": (truth.scope, ["keysight/keysight_ag10_2ch.bin", "keysight/keysight_i16_2ch.h5"], []),
    "segments": (truth.scope, ["lecroy/lecroy_le_sequence4.trc", "keysight/keysight_ag10_seg3.bin"], []),
}

# Target: extension, reader of the output.
TARGETS = {
    "npy": opened.Npy,
    "npz": opened.Npz,
    "csv": opened.Table,
    "parquet": opened.Table,
    "arrow": opened.Table,
    "h5": opened.Hdf5,
    "nc": opened.Xarray,
    "zarr": opened.Xarray,
    "mat": opened.Mat,
    "vtm": opened.Vtk,
    "vti": opened.Vtk,
    "vtr": opened.Vtk,
    "vtu": opened.Vtk,
    "vtp": opened.Vtk,
    "pvd": opened.Pvd,
    "vtkhdf": opened.VtkHdf,
    "xyz": opened.Xyz,
    "sdf": opened.Sdf,
    "gsd": opened.Gsd,
}

# What must be visible: v values of all arrays (p: of some, the others are declared lost), u units,
# c coordinates with units, t the step or time of frames; 0 other arrays only; d plain arrays described by metadata of
# spile, which `crates/cli/tests/convert.rs` restores and compares; - cannot be converted.
TABLE = """
                npy     npz     csv     parquet arrow   h5      nc      zarr    mat     vtm     vti     vtr     vtu     vtp     pvd     vtkhdf  xyz     sdf     gsd
sdf dump        -       v       puc     puc     puc     vu      vuc     vuc     vuc     vuc     puc     puc     pc      puc     vuc     vc      -       vuc     d
sdf field       v       v       vuc     vuc     vuc     vuc     vuc     vuc     vuc     vuc     vuc     vuc     -       -       vuc     vc      -       d       d
sdf species     -       v       vuc     vuc     vuc     vu      vuc     vuc     vuc     vuc     -       -       vc      vuc     vuc     v       -       vuc     d
sdf blocks      -       v       puc     puc     puc     vu      vuc     vuc     vuc     puc     puc     puc     pc      puc     puc     pc      -       vuc     d
sdf run         -       v       put     put     put     vut     vut     vut     vu      -       -       -       -       -       vut     pt      -       d       d
gsd types       -       v       p       p       p       v       v       v       v       v       p       p       -       -       vt      v       -       d       v
gsd frames      -       v       pt      pt      pt      vt      vt      vt      v       -       -       -       -       -       vt      vt      pt      d       v
gsd hoomd       -       v       pt      pt      pt      vt      vt      vt      v       -       -       -       -       -       vt      vt      pt      d       v
gsd changing N  -       v       p       p       p       vt      vt      vt      v       -       -       -       -       -       vt      vt      pt      d       v
iotk types      -       v       p       p       p       v       v       v       v       v       p       p       -       -       v       v       -       d       d
iotk ranks      -       v       p       p       p       v       v       v       v       v       p       p       -       -       v       v       -       d       d
iotk crystal    -       v       0       0       0       v       v       v       v       v       p       p       0       0       v       v       0       d       d
taf mapped      v       v       v       v       v       vc      vc      vc      vc      vc      vc      vc      -       -       vc      vc      -       d       d
taf plain       v       v       v       v       v       vc      vc      vc      vc      vc      vc      vc      -       -       vc      vc      -       d       d
taf volume      v       v       v       v       v       vc      vc      vc      vc      vc      vc      vc      -       -       vc      vc      -       d       d
scda arrays     -       v       -       p       p       v       v       v       -       -       -       -       -       -       -       -       -       d       d
scda encoded    -       v       -       p       p       p       p       p       -       -       -       -       -       -       -       -       -       d       d
scda lengths    -       v       -       -       -       v       v       v       -       -       -       -       -       -       -       -       -       d       d
trace           v       v       vuc     vuc     vuc     vuc     vuc     vuc     vuc     vuc     vuc     vuc     -       -       vuc     vc      -       d       d
channels        -       v       vuc     vuc     vuc     vuc     vuc     vuc     vuc     vuc     puc     puc     -       -       vuc     vc      -       d       d
segments        -       v       puc     puc     puc     vuc     vuc     vuc     vuc     vuc     puc     puc     -       -       vuc     vc      -       d       d
"""


def rows():
    """The table as {structure: {target: cell}}."""
    lines = [line for line in TABLE.splitlines() if line.strip()]
    targets = lines[0].split()
    assert targets == list(TARGETS), targets
    for line in lines[1:]:
        name, cells = line[:16].strip(), line[16:].split()
        assert len(cells) == len(targets), line
        yield name, dict(zip(targets, cells))


def at_least(letters, wanted):
    """Whether everything that must be visible is visible."""
    if wanted in "-d0":
        return wanted == "-" or letters != "-"
    return set(wanted) <= set(letters.replace("v", "vp"))


def same_values(expected, found):
    """Whether the values are equal, also without dimensions of length 1 and with columns for all but the first."""
    expected, found = np.asarray(expected), np.asarray(found)
    if found.dtype == object and found.size and isinstance(found.flat[0], bytes):
        found = np.frombuffer(b"".join(found.flat), "u1").reshape(*found.shape, -1)
    if found.dtype.kind in "VS":
        # Bytes without a type.
        found = np.frombuffer(found.tobytes(), "u1").reshape(*found.shape, found.dtype.itemsize)
    if expected.size != found.size:
        return False
    if np.squeeze(expected).shape != np.squeeze(found).shape:
        columns = expected.shape[:1] == found.shape[:1]
        rows = found.ndim <= 2 and found.shape[-1:] in ((1,), expected.shape[-1:])
        if not (columns or rows):
            return False
    return close(expected.ravel(), found.ravel())


def coordinates_shown(quantity, seen):
    """Whether points and units of all coordinates are shown, along a dimension or for each element. VTK has the points
    of a mesh and no units of axes."""
    for points, full, units in quantity.coordinates():
        def is_shown(found, unit):
            if unit is not None and unit != units:
                return False
            found = np.ravel(found)
            if found.size == points.size and close(np.ravel(points), found):
                return True
            return found.size == full.size and close(full.ravel(), found)
        if not any(is_shown(*coord) for coord in seen.coords):
            return False
    return True


def cell(quantities, reader, output, lost, contained):
    """What is visible in an output, as letters of the table, and the problems."""
    view, problems = reader(output), []
    arrays = {row["path"] for row in lost if row["what"] == "array"}
    # Some are visible in another form, such as columns of coordinates; the reason tells which.
    moved = {row["path"] for row in lost if row["what"] in ("array", "name") and row["reason"].startswith("it is ")}
    kinds = {(row["path"], row.get("name") or row["what"]) for row in lost if not row["reason"].startswith("it is ")}
    names = {row["path"]: row["reason"].split('"')[1] for row in lost if row["what"] == "name" and '"' in row["reason"]}
    shown = {"v": True, "u": False, "c": False}
    missing = {"u": False, "c": False}
    count = 0
    for quantity in quantities:
        path = quantity.path
        seen = view.find(quantity) or view.find(dataclasses.replace(quantity, path=names.get(path, path)))
        expected = getattr(view, "expected", truth.Quantity.rows)(quantity)
        if path in moved:
            continue
        if path in arrays:
            shown["v"] = False
            if seen is None or seen.by_values or not quantity.rows().size:
                continue
            # The steps of the frames are visible, the array that they come from is not.
            is_axis = quantity.times is not None and np.array_equal(np.ravel(quantity.rows()), quantity.times)
            if same_values(quantity.rows(), seen.values) and not is_axis:
                problems.append(f"{path}: declared lost, but visible")
            continue
        if seen is None and path in contained:
            continue
        if seen is None:
            problems.append(f"{path}: not visible and not declared lost")
            continue
        count += 1
        if not same_values(expected, seen.values):
            problems.append(f"{path}: values differ, {np.shape(expected)} {np.shape(seen.values)}")
            continue
        if quantity.units and not seen.by_values:
            ok = seen.units == quantity.units
            shown["u"] |= ok
            missing["u"] |= not ok
            if seen.units and not ok:
                problems.append(f"{path}: unit {seen.units!r} instead of {quantity.units!r}")
            if ok and (path, "units") in kinds:
                problems.append(f"{path}: unit declared lost, but visible")
        if quantity.coords and not quantity.frames:
            ok = coordinates_shown(quantity, seen)
            shown["c"] |= ok
            missing["c"] |= not ok
    letters = "v" if shown["v"] else "p"
    letters += "".join(k for k in "uc" if shown[k] and not missing[k])
    times = next((quantity.times for quantity in quantities if quantity.frames), None)
    if times and hasattr(view, "times"):
        letters += "t" if any(np.array_equal(points, times) for points in view.times().values()) else ""
    return letters if count else "0", problems


def files(patterns):
    found = []
    for pattern in patterns:
        found += [path for path in sorted(GOLDEN.glob(pattern)) if path not in found]
    return found


def convert(source, output, options):
    args = [SPILE, "convert", "--json", "--overwrite", *options, str(source), str(output)]
    done = subprocess.run(args, capture_output=True, check=False)
    return (done.returncode, json.loads(done.stdout) if done.returncode == 0 else json.loads(done.stderr)["error"])


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    expected, problems, count = dict(rows()), [], 0
    for name, (reader, patterns, options) in SOURCES.items():
        paths = files(patterns)
        if reader is truth.run:
            sources = [(folder / "run", reader(paths, folder / "run"))]
        else:
            sources = [(path, reader(path)) for path in (paths if ALL else paths[:1])]
        for source, quantities in sources:
            if "--select" in options:
                chosen = json.loads(spile("convert", "--json", "--overwrite", *options, source, folder / "chosen.npz"))
                with np.load(folder / "chosen.npz") as file:
                    quantities = [q for q in quantities if q.path in file.files]
                assert chosen["arrays"] >= len(quantities) > 0, name
            for target, view in TARGETS.items():
                output = folder / f"{name.replace(' ', '_')}-{target}.{target}"
                code, told = convert(source, output, options)
                if code != 0:
                    letters = "-"
                    if told["kind"] not in ("unsupported", "argument"):
                        problems.append(f"{name} as {target}: {told}")
                else:
                    # Plain arrays described by metadata.
                    described = told["described"]
                    letters, found = ("d", []) if described else cell(
                        quantities, view, output, told["lost"], told["contained"])
                    problems += [f"{name}: {source.name} as {target}: {problem}" for problem in found]
                count += 1
                wanted = expected[name][target]
                if not at_least(letters, wanted):
                    problems.append(f"{name}: {source.name} as {target}: visible: {letters}, expected {wanted}")
    assert not problems, f"{len(problems)} problems\n" + "\n".join(problems)
    print(f"{count} conversions")


if __name__ == "__main__":
    main()
