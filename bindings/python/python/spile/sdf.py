"""Dumps of EPOCH as xarray datasets, with the functions of sdf-xarray.

>>> import spile.sdf
>>> run = spile.sdf.open_mfdataset(spile.sample("run"))
>>> run["Electric_Field_Ex"].dims
('time', 'X_Grid_mid', 'Y_Grid_mid')
"""

from __future__ import annotations

import glob
import os
import pathlib
import re
from collections.abc import Iterable
from typing import Any, TypeAlias, Union

import xarray as xr

from ._deck import Deck, DeckError, load_deck
from ._open import open, open_series, run_of
from ._schemas import TIME, point_data
from ._sdf_tree import datatree
from ._xarray import built

__all__ = [
    "Deck",
    "DeckError",
    "SDFPreprocess",
    "load_deck",
    "open_dataset",
    "open_datatree",
    "open_mfdataset",
    "open_mfdatatree",
    "resolve_paths",
    "vector",
]

_Path: TypeAlias = Union[str, "os.PathLike[str]"]


def open_dataset(path: _Path, **options: Any) -> xr.Dataset:
    """Opens one dump: ``xarray.open_dataset(path, engine="spile", **options)``."""
    return xr.open_dataset(path, engine="spile", **options)


def open_datatree(path: _Path, **options: Any) -> xr.DataTree:
    """Opens one dump as a tree: ``xarray.open_datatree(path, engine="spile", **options)``."""
    return xr.open_datatree(path, engine="spile", **options)


def open_mfdataset(
    paths: _Path | Iterable[_Path],
    *,
    separate_times: bool = False,
    keep_particles: bool = False,
    probe_names: list[str] | None = None,
    data_vars: list[str] | None = None,
    chunks: Any = "auto",
    deck_path: _Path | None = None,
    staggered: bool | str = False,
) -> xr.Dataset:
    """Opens the dumps of a run as one lazy dataset with the dimension ``time``.

    Unlike ``xarray.open_mfdataset``, it does not create a dataset per file.

    Parameters
    ----------
    paths : path or list of paths
        A glob pattern or the files, see `resolve_paths`; or a folder, of whose series
        (``normal0000.sdf``, ``r0000.sdf``) the one with the most files is opened.
    separate_times : bool
        Give variables that are in the same dumps their own dimension ``time0``, ``time1``, ...
        Otherwise all variables have the dimension ``time``, and are NaN in dumps without them.
    keep_particles : bool
        Include particle variables. Dumps with fewer particles are padded.
    probe_names : list of str
        Probes to include.
    data_vars : list of str
        Variables to include, with their coordinates.
    chunks : dict, int, "auto" or None
        Sizes of dask chunks. "auto" is one chunk per dump; `None` does not use dask.
    deck_path : path
        Input deck, relative to the folder of the dumps. The default is ``input.deck``, if it exists.
    staggered : {False, True, "centre"}
        Coordinates of fields of EPOCH at faces of cells: the cell centres, as in sdf-xarray; the true
        positions (``X_Grid_face``); or the cell centres with fields averaged to them. The first cell of
        an averaged field is NaN, because EPOCH does not store its lower face.

    Raises
    ------
    ValueError
        If the dumps are from different jobs.
    """
    if isinstance(paths, (str, os.PathLike)) and os.path.isdir(paths):
        files = resolve_paths(run_of(paths))
    else:
        files = resolve_paths(paths)
    series = open_series(files, errors="raise", derived=bool(staggered))
    _require_one_job(series, files)
    builder, run = built(
        series,
        keep_particles=keep_particles,
        probe_names=probe_names,
        deck_path=deck_path,
        staggered=staggered,
    )
    run = run.drop_vars("step", errors="ignore")
    present = _present(series, builder) if separate_times else None
    if data_vars is not None:
        run = _selected(run, data_vars)
    if present is not None:
        run = _with_separate_times(run, present)
    times = {str(dim): 1 for dim in run.dims if str(dim).startswith("time")}
    run.set_close(series.close)
    return run if chunks is None else run.chunk(times if chunks == "auto" else chunks)


def open_mfdatatree(paths: _Path | Iterable[_Path], **options: Any) -> xr.DataTree:
    """Opens the dumps of a run as one lazy tree; the options are those of `open_mfdataset`."""
    return datatree(open_mfdataset(paths, **options))


def resolve_paths(paths: _Path | Iterable[_Path]) -> list[pathlib.Path]:
    """Absolute paths of SDF files, sorted, each once.

    `paths` is a folder, whose ``*.sdf`` files are taken, a glob pattern, or a list of files. Raises
    `FileNotFoundError` if there is no file, or if one does not exist or is not called ``*.sdf``.
    """
    if isinstance(paths, (str, os.PathLike)):
        pattern = (
            os.path.join(glob.escape(os.fspath(paths)), "*.sdf") if os.path.isdir(paths) else paths
        )
        files = [pathlib.Path(name) for name in glob.glob(os.fspath(pattern))]
    else:
        files = [pathlib.Path(path) for path in paths]
    found = sorted({path.resolve() for path in files})
    if not found:
        raise FileNotFoundError(f"no SDF file matches {paths!r}")
    for path in found:
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file")
        if path.suffix.lower() != ".sdf":
            raise FileNotFoundError(f"{path}: expected a file called *.sdf")
    return found


def vector(ds: xr.Dataset, name: str) -> xr.DataArray:
    """The components of a vector field as one array with the first dimension ``component`` (x, y, z).

    `name` is the common part of the names: ``Electric_Field`` for ``Electric_Field_Ex``,
    ``Poynting_Flux`` for ``Derived_Poynting_Flux_x``. Raises `KeyError` if there are no such variables,
    and `ValueError` if their coordinates differ, as those of staggered fields with ``staggered=True``.
    """
    pattern = re.compile(rf"(?:.*_)?{re.escape(name)}_[A-Za-z]?([xyz])")
    found: dict[str, str] = {}
    for variable in map(str, ds.data_vars):
        if match := pattern.fullmatch(variable):
            found.setdefault(match[1], variable)
    if not found:
        raise KeyError(f"no components of {name}")
    axes = sorted(found)
    parts = [ds[found[axis]] for axis in axes]
    if any(part.dims != parts[0].dims for part in parts):
        raise ValueError(
            f'the components of {name} have different positions; use staggered="centre"'
        )
    made = xr.concat(
        parts, xr.IndexVariable("component", axes), coords="minimal", compat="override"
    )
    made.attrs = {key: value for key, value in parts[0].attrs.items() if key in ("units", "mesh")}
    return made.rename(name)


class SDFPreprocess:
    """Prepares the datasets of single dumps for ``xarray.open_mfdataset(..., preprocess=...)``.

    Adds the dimension ``time``, and raises `ValueError` for a dump of another job.

    Parameters
    ----------
    data_vars : list of str
        Variables to keep, with their coordinates. The default is all.
    """

    def __init__(self, data_vars: list[str] | None = None) -> None:
        self.data_vars = data_vars
        self.job_id: Any = None

    def __call__(self, ds: xr.Dataset) -> xr.Dataset:
        job = ds.attrs.get("jobid1")
        if self.job_id is None:
            self.job_id = job
        if job != self.job_id:
            raise ValueError(_other_job(ds.attrs.get("filename"), job, self.job_id))
        if self.data_vars:
            ds = _selected(ds, self.data_vars)
        time = [ds.attrs.get("time", float("nan"))]
        ds = ds.expand_dims(time=time).assign_coords(time=("time", time, TIME))
        moving = {
            name: coord.expand_dims(time=time)
            for name, coord in ds.coords.items()
            if point_data(coord)
        }
        return ds.assign_coords(moving)


def _require_one_job(series: Any, files: list[pathlib.Path]) -> None:
    """Raises `ValueError` if files are from different jobs. Attributes that differ between the files
    are not attributes of the series."""
    if len(files) > 1 and "jobid1" not in series.attrs:
        expected = open(files[0]).attrs.get("jobid1")
        for path in files[1:]:
            if (job := open(path).attrs.get("jobid1")) != expected:
                raise ValueError(_other_job(path, job, expected))


def _other_job(path: Any, job: Any, expected: Any) -> str:
    return f"{path}: expected a dump of job {expected}, found job {job}"


def _selected(ds: xr.Dataset, names: list[str]) -> xr.Dataset:
    """The variables `names` that exist, with their coordinates."""
    kept = [name for name in names if name in ds.data_vars]
    coords = {coord for name in kept for coord in ds[name].coords}
    coords.update(name for name in ds.coords if name == "time")
    others = [name for name in ds.variables if name not in coords and name not in kept]
    return ds.drop_vars(others)


def _present(series: Any, builder: Any) -> dict[str, tuple[int, ...]]:
    """The frames that have each variable."""
    every = tuple(range(series.frames or 0))
    found = {}
    for array in series.arrays().values():
        has = every
        if array.frames is not None:
            lengths = array._lengths()[0]
            has = tuple(k for k in every if lengths[k] >= 0)
        for name, _ in builder.names.get(array._number, ()):
            found[name] = has
    return found


def _with_separate_times(run: xr.Dataset, present: dict[str, tuple[int, ...]]) -> xr.Dataset:
    """Replaces the dimension time by one per set of frames, numbered by the first frame of the set."""
    names: dict[tuple[int, ...], str] = {}
    for frames in sorted(dict.fromkeys(present.values()), key=lambda frames: frames[:1]):
        names[frames] = f"time{len(names)}"
    sets: dict[str, tuple[int, ...]] = {}
    variables: dict[Any, Any] = {}
    coords: dict[Any, Any] = {}
    for name, variable in run.variables.items():
        if name == "time":
            continue
        if "time" in variable.dims:
            frames = present[str(name)]
            dim = names[frames]
            if name in run.coords:
                frames = _used(run, str(name), present)
            while sets.setdefault(dim, frames) != frames:
                dim = f"{dim}_{len(frames)}"
            variable = variable.isel(time=list(frames)).copy(deep=False)
            variable.dims = [dim if old == "time" else old for old in variable.dims]
            coords[dim] = (dim, run["time"].values[list(frames)], TIME)
        (coords if name in run.coords else variables)[name] = variable
    return xr.Dataset(variables, coords, run.attrs)


def _used(run: xr.Dataset, name: str, present: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The frames of a coordinate with frames of a variable that has it; all, if there is none."""
    users = {k for v in run.data_vars if name in run[v].coords for k in present.get(str(v), ())}
    return tuple(k for k in present[name] if k in users) if users else present[name]
