"""Trajectories as MDAnalysis universes."""

from __future__ import annotations

from typing import Any

import MDAnalysis
import numpy as np
from MDAnalysis.coordinates.base import ReaderBase
from MDAnalysis.lib.mdamath import triclinic_box

from ..errors import ArgumentError
from . import hoomd

__all__ = ["universe"]

#: Links of MDAnalysis that HOOMD files have.
_LINKS = ("bonds", "angles", "dihedrals", "impropers")


class Reader(ReaderBase):
    """Reads the frames of a file in the HOOMD schema."""

    format = "SPILE_GSD"
    units = {"time": None, "length": None}  # noqa: RUF012

    def __init__(self, filename: str, **options: Any) -> None:
        super().__init__(filename, **options)
        self._open()
        self.n_atoms = int(self._file[0].particles.N)
        self.ts = self._Timestep(self.n_atoms, **self._ts_kwargs)
        self._read_frame(0)

    def _open(self) -> None:
        self._file = hoomd.open(self.filename)
        self._last = -1

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return len(self._file)

    def _read_frame(self, number: int) -> Any:
        frame = self._file[number]
        particles, ts = frame.particles, self.ts
        if self.n_atoms != particles.N:
            message = f"frame {number} has {particles.N} particles, frame 0 {self.n_atoms}"
            raise ArgumentError(f"{message}; MDAnalysis needs the same number in all frames")
        ts.frame = self._last = number
        ts.data["step"] = int(frame.configuration.step)
        ts.positions, ts.velocities = particles.position, particles.velocity
        lx, ly, lz, xy, xz, yz = np.asarray(frame.configuration.box, float)
        ts.dimensions = triclinic_box((lx, 0, 0), (xy * ly, ly, 0), (xz * lz, yz * lz, lz))
        return ts

    def _read_next_timestep(self, ts: Any = None) -> Any:
        if self._last + 1 >= self.n_frames:
            raise OSError("end of the trajectory")
        return self._read_frame(self._last + 1)

    def _reopen(self) -> None:
        self._last = -1

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def universe(trajectory: hoomd.HOOMDTrajectory) -> MDAnalysis.Universe:
    """The universe of `HOOMDTrajectory.to_universe`."""
    if len(trajectory) == 0:
        raise ArgumentError(f"{trajectory.file.name}: the file has no frames")
    first = trajectory[0]
    particles = first.particles
    bodies, residue = np.unique(particles.body, return_inverse=True)
    made = MDAnalysis.Universe.empty(
        int(particles.N),
        n_residues=len(bodies),
        atom_resindex=residue,
        residue_segindex=np.zeros(len(bodies), int),
        trajectory=False,
    )
    types = np.array(particles.types, object)[np.asarray(particles.typeid)]
    for name, values in (
        ("names", types),
        ("types", types),
        ("masses", particles.mass),
        ("charges", particles.charge),
        ("radii", np.asarray(particles.diameter) / 2),
        ("resids", bodies),
        (
            "resnames",
            np.array([f"body {body}" if body >= 0 else "free" for body in bodies], object),
        ),
        ("segids", np.array(["SYSTEM"], object)),
    ):
        made.add_TopologyAttr(name, values)
    for name in _LINKS:
        links = getattr(first, name)
        if links.N:
            groups = [tuple(map(int, group)) for group in links.group]
            kinds = [links.types[k] for k in links.typeid]
            getattr(made, f"add_{name}")(groups, types=kinds)
    made.load_new(trajectory.file.name, format=Reader)
    return made
