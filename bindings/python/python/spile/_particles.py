"""Particles of a run: tracks, histograms and energies as xarray datasets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _spile

if TYPE_CHECKING:
    import xarray as xr

    from ._tree import File

#: Mass of an electron in kilograms.
ELECTRON = 9.1093837015e-31


def _times(file: File) -> np.ndarray:
    """Times of all frames; that of the dump for a single one."""
    if file.frames is not None:
        return file.times
    return np.array([file.attrs.get("time", np.nan)], "f8")


def _frame(file: File, frame: int) -> int:
    """The number of a frame; negative ones count from the end."""
    count = file.frames or 1
    if not -count <= frame < count:
        raise IndexError(f"frame {frame} does not exist; the run has {count} frames")
    return frame % count


def _time(values: np.ndarray) -> tuple[str, np.ndarray, dict[str, str]]:
    return "time", values, {"units": "s", "long_name": "Time"}


def track(
    file: File,
    species: str,
    ids: Iterable[int] | None = None,
    *,
    fastest: int | None = None,
    top: int | None = None,
    by: str | None = None,
    frame: int = -1,
    variables: Sequence[str] = (),
    index: bool | str | os.PathLike[str] = False,
) -> xr.Dataset:
    import xarray as xr

    if sum(given is not None for given in (ids, fastest, top)) != 1:
        raise ValueError("give one of ids, fastest and top")
    if (top is None) != (by is None):
        raise ValueError("top and by are given together")
    wanted = None if ids is None else [int(k) for k in ids]
    if wanted and min(wanted) < 0:
        raise ValueError(f"identifiers are not negative, found {min(wanted)}")
    count = fastest if top is None else top
    number = _frame(file, frame)
    # An empty path is the default one.
    path = "" if index is True else None if index is False else os.fspath(index)
    numbers, columns = _spile.track(
        file._handle.open,
        species,
        wanted,
        count=count,
        by=by,
        frame=number,
        variables=list(variables),
        index=path,
    )
    times = _times(file)
    shape = len(times), len(numbers)
    made = {
        name: (("time", "id"), values.reshape(shape), {"units": unit} if unit else {})
        for name, unit, values in columns
    }
    attrs = {"species": species, "filename": file.filename}
    return xr.Dataset(made, {"time": _time(times), "id": np.array(numbers, "u8")}, attrs)


def histogram(
    file: File,
    species: str,
    axes: str | Sequence[str],
    *,
    bins: int | Sequence[int] = 100,
    ranges: Sequence[tuple[float, float] | None] | tuple[float, float] | None = None,
    weight: str | None = None,
    where: str | None = None,
    frame: int | None = None,
) -> xr.DataArray:
    import xarray as xr

    names = [axes] if isinstance(axes, str) else list(axes)
    if ranges is not None and len(ranges) == 2 and np.isscalar(ranges[0]):
        ranges = [ranges]  # type: ignore[list-item]
    limits_given: Any = list(ranges or [])
    numbers = [bins] if isinstance(bins, int) else list(bins)
    frames = list(range(file.frames or 1))
    if frame is not None:
        frames = [_frame(file, frame)]
    limits, units, values = _spile.histogram(
        file._handle.open,
        species,
        names,
        numbers,
        limits_given,
        weight=weight,
        filter=where,
        frames=frames,
    )
    counts = [numbers[min(k, len(numbers) - 1)] for k in range(len(names))]
    coords: dict[str, Any] = {"time": _time(_times(file)[frames])}
    for name, count, (low, high), unit in zip(names, counts, limits, units):
        edges = np.linspace(low, high, count + 1)
        attrs: dict[str, Any] = {"units": unit} if unit else {}
        attrs["bin_width"] = (high - low) / count
        coords[name] = name, 0.5 * (edges[1:] + edges[:-1]), attrs
    made = xr.DataArray(
        values.reshape(len(frames), *counts),
        coords,
        ("time", *names),
        "count",
        {"species": species, "filename": file.filename},
    )
    return made if frame is None else made[0]


def energies(file: File, masses: Mapping[str, float] | None = None) -> xr.Dataset:
    import xarray as xr

    kilograms = [(name, mass * ELECTRON) for name, mass in (masses or {}).items()]
    found = _spile.energies(file._handle.open, kilograms)
    made = {name: ("time", values, {"units": unit} if unit else {}) for name, unit, values in found}
    return xr.Dataset(made, {"time": _time(_times(file))}, {"filename": file.filename})
