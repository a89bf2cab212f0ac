"""Trajectories as OVITO pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
from ovito.data import DataCollection, ParticleType
from ovito.pipeline import Pipeline, PipelineSourceInterface, PythonSource

from . import hoomd

__all__ = ["pipeline"]

#: Particle properties of OVITO by their names in HOOMD files. Those that OVITO lacks keep their names.
_PROPERTIES = {
    "position": "Position",
    "mass": "Mass",
    "charge": "Charge",
    "velocity": "Velocity",
    "image": "Periodic Image",
    "body": "body",
    "moment_inertia": "moment_inertia",
    "angmom": "angmom",
}

#: The order of quaternions of OVITO is x, y, z, w.
_QUATERNION = [1, 2, 3, 0]


class Source(PipelineSourceInterface):
    """Gives OVITO the frames of a trajectory."""

    def __init__(self, trajectory: hoomd.HOOMDTrajectory) -> None:
        self._trajectory = trajectory
        super().__init__()

    def compute_trajectory_length(self, **_: Any) -> int:
        """Number of frames."""
        return len(self._trajectory)

    def create(self, data: DataCollection, *, frame: int, **_: Any) -> None:
        """Replaces the collection, which may have the values of another frame."""
        data.objects.clear()
        data.attributes.clear()
        fill(data, self._trajectory[frame])


def pipeline(trajectory: hoomd.HOOMDTrajectory) -> Pipeline:
    """The pipeline of `HOOMDTrajectory.to_ovito`."""
    return Pipeline(source=PythonSource(delegate=Source(trajectory)))


def fill(data: DataCollection, frame: hoomd.Frame) -> None:
    """Adds the values of a frame to an empty collection."""
    about: Any = frame.configuration
    own: Any = frame.particles
    lx, ly, lz, xy, xz, yz = np.asarray(about.box, float)
    cell = np.array([[lx, xy * ly, xz * lz], [0, ly, yz * lz], [0, 0, lz]])
    # The box is centred at the origin.
    cell = np.column_stack([cell, -cell.sum(axis=1) / 2])
    flat = about.dimensions == 2
    data.create_cell(cell, pbc=(True, True, not flat)).is2D = flat
    particles = data.create_particles(count=int(own.N))
    for name, property_name in _PROPERTIES.items():
        particles.create_property(property_name, data=getattr(own, name))
    particles.create_property("Radius", data=np.asarray(own.diameter) / 2)
    particles.create_property("Orientation", data=np.asarray(own.orientation)[:, _QUATERNION])
    kinds = particles.create_property("Particle Type", data=own.typeid)
    _add_types(kinds, own.types)
    for name, create in (
        ("bonds", particles.create_bonds),
        ("angles", particles.create_angles),
        ("dihedrals", particles.create_dihedrals),
        ("impropers", particles.create_impropers),
    ):
        links = getattr(frame, name)
        if links.N:
            made = create(count=int(links.N))
            made.create_property("Topology", data=np.asarray(links.group, "i8"))
            kind = made.create_property(f"{name.capitalize()[:-1]} Type", data=links.typeid)
            _add_types(kind, links.types)
    data.attributes["Timestep"] = int(about.step)
    for name, value in frame.log.items():
        if isinstance(value, str):
            data.attributes[f"log/{name}"] = value
        elif np.size(value) == 1:
            data.attributes[f"log/{name}"] = np.ravel(value)[0].item()


def _add_types(kinds: Any, names: list[str]) -> None:
    for number, name in enumerate(names):
        kinds.types.append(ParticleType(id=number, name=name))
