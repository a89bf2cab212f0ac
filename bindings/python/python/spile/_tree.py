"""Files and groups."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _spile
from ._array import Array
from ._node import Handle, Node, ReadOnlyDict
from .errors import ArgumentError

if TYPE_CHECKING:
    import ase
    import pandas
    import pyarrow
    import xarray

    from .gsd.hoomd import HOOMDTrajectory

__all__ = ["File", "Group"]


def node(handle: Handle, number: int) -> Group | Array:
    """The group or array with that number."""
    return Array(handle, number) if handle.tree[1][number] else Group(handle, number)


def restored(how: Any, number: int) -> Group | Array:
    """Restores a pickled group."""
    function, arguments = how
    return node(function(*arguments)._handle, number)


class Group(Node, Mapping[str, "Group | Array"]):
    """A group: a mapping from names to groups and arrays. Keys can be paths such as ``"a/b"`` and, in
    the root group, native identifiers."""

    __slots__ = ()

    def __getitem__(self, path: str) -> Group | Array:
        if not isinstance(path, str):
            raise KeyError(path)
        whole = f"{self.path}/{path}" if self._number else path
        try:
            return node(self._handle, self._handle.open.find(whole))
        except ArgumentError as error:
            raise KeyError(str(error)) from None

    def array(self, path: str) -> Array:
        """The array at `path`. Raises `KeyError` if there is none.

        >>> spile.open(spile.sample("sdf")).array("Electric Field/Ex").units
        'V/m'
        """
        found = self[path]
        if not isinstance(found, Array):
            raise KeyError(f"{path} is a group, not an array")
        return found

    def group(self, path: str) -> Group:
        """The group at `path`. Raises `KeyError` if there is none."""
        found = self[path]
        if not isinstance(found, Group):
            raise KeyError(f"{path} is an array, not a group")
        return found

    def __iter__(self) -> Iterator[str]:
        paths, _, children = self._handle.tree
        return (paths[k].rpartition("/")[2] for k in children.get(self._number, ()))

    def __len__(self) -> int:
        return len(self._handle.tree[2].get(self._number, ()))

    def __contains__(self, path: object) -> bool:
        try:
            self[path]  # type: ignore[index]
        except KeyError:
            return False
        return True

    def arrays(self) -> dict[str, Array]:
        """All arrays of the group and its subgroups, by path relative to the group.

        >>> file = spile.open(spile.sample("sdf"))
        >>> [path for path in file.arrays() if path.startswith("Electric")][:2]
        ['Electric Field/Ex', 'Electric Field/Ey_averaged']
        """
        paths, arrays, children = self._handle.tree
        found, todo = {}, list(reversed(children.get(self._number, ())))
        skip = len(self.path) + 1 if self._number else 0
        while todo:
            number = todo.pop()
            if arrays[number]:
                found[paths[number][skip:]] = Array(self._handle, number)
            todo.extend(reversed(children.get(number, ())))
        return found

    def to_xarray(self, **options: Any) -> xarray.Dataset:
        """The group as a lazy `xarray.Dataset`. Options: ``drop_variables``, ``keep_particles``,
        ``probe_names`` as in ``xarray.open_dataset(..., engine="spile")``, and ``chunks``."""
        from ._xarray import dataset

        return dataset(self, **options)

    def to_pandas(self) -> pandas.DataFrame:
        """The one-dimensional arrays of the most frequent length, as columns of a data frame."""
        from ._tables import frame

        return frame(self)

    def to_arrow(self) -> pyarrow.Table:
        """The one-dimensional arrays of the most frequent length, as columns of an Arrow table."""
        from ._tables import arrow, columns

        return arrow(columns(self))

    def __repr__(self) -> str:
        from ._show import tree

        return tree(self)

    def _repr_html_(self) -> str:
        from ._show import html

        return html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (self._handle.how, self._number)


class File(Group):
    """An open file: its root group, with properties of the whole file. A context manager."""

    __slots__ = ()

    def __init__(self, file: _spile.File, name: str, how: tuple[Any, Any]) -> None:
        super().__init__(Handle(file, name, how), 0)

    @property
    def filename(self) -> str:
        """Path or URL of the file; ``bytes`` for a file opened from memory."""
        return self._handle.name

    @property
    def format(self) -> str:
        """Short name of the format."""
        return self._handle.open.format

    @property
    def title(self) -> str:
        """Full name of the format."""
        return self._handle.open.title

    @property
    def nbytes(self) -> int:
        """Size of the file in bytes."""
        return self._handle.open.nbytes

    @property
    def summary(self) -> dict[str, Any]:
        """Key facts about the file; the keys depend on the format."""
        return ReadOnlyDict(self._handle.open.summary())

    @property
    def findings(self) -> list[str]:
        """Warnings collected while opening the file."""
        rows = self._handle.open.findings()
        return [f"{where}: {what}" if where else what for _, _, where, what in rows]

    @property
    def frames(self) -> int | None:
        """Number of frames; `None` for files without frames."""
        return self._handle.open.frames

    @property
    def steps(self) -> np.ndarray:
        """Step of each frame; -1 where unknown."""
        return self._handle.steps_and_times()[0]

    @property
    def times(self) -> np.ndarray:
        """Time of each frame; NaN where unknown."""
        return self._handle.steps_and_times()[1]

    @property
    def hoomd(self) -> HOOMDTrajectory:
        """The trajectory of a GSD file in the HOOMD schema, with the names of ``gsd.hoomd``.

        >>> frame = spile.open(spile.sample("gsd")).hoomd[0]
        >>> frame.particles.position.shape, frame.bonds.N
        ((20, 3), np.uint32(3))
        """
        from .gsd import fl, hoomd

        return hoomd.HOOMDTrajectory(fl.GSDFile._of(self._handle.open.gsd(), self._handle.name))

    @property
    def species(self) -> dict[str, list[str]]:
        """The species of particles and their variables, as for `track` and `histogram`."""
        return dict(_spile.species(self._handle.open))

    def track(
        self,
        species: str,
        ids: Iterable[int] | None = None,
        *,
        fastest: int | None = None,
        top: int | None = None,
        by: str | None = None,
        frame: int = -1,
        variables: Sequence[str] = (),
        index: bool | str | os.PathLike[str] = False,
    ) -> xarray.Dataset:
        """Particles of a species over all frames, with the dimensions ``time`` and ``id``.
        Frames without a particle have NaN.

        Parameters
        ----------
        species : str
            Species or subset, one of `species`.
        ids : iterable of int
            Identifiers of the particles.
        fastest : int
            Number of particles with the largest momentum in `frame`, instead of `ids`.
        top, by : int, str
            Number of particles with the largest value of the expression `by` in `frame`, instead of
            `ids`.
        frame : int
            The frame in which particles are selected.
        variables : sequence of str
            Variables or expressions; the default is all variables. Expressions have the variables of the
            species, ``+ - * / ^``, comparisons, functions (``sqrt``, ``abs``, ``exp``, ``log``,
            ``log10``,
            ``sin``, ``cos``, ``tan``, ``atan``, ``atan2``, ``hypot``, ``min``, ``max``, ``floor``) and
            constants in SI units (``pi``, ``c``, ``q_e``, ``m_e``, ``m_p``, ``epsilon_0``, ``mu_0``).
        index : bool or path
            Keep an index of the identifiers of all frames in the folder of the run
            (``SPECIES.spileids``), or at this path. If it is there and the run has not changed, particles
            are found without reading the identifiers of all frames.
        """
        from ._particles import track

        chosen = {"fastest": fastest, "top": top, "by": by, "frame": frame, "index": index}
        return track(self, species, ids, variables=variables, **chosen)  # type: ignore[arg-type]

    def histogram(
        self,
        species: str,
        axes: str | Sequence[str],
        *,
        bins: int | Sequence[int] = 100,
        ranges: Any = None,
        weight: str | None = None,
        where: str | None = None,
        frame: int | None = None,
    ) -> xarray.DataArray:
        """Sums of the weights of particles in bins of expressions, over all frames or in one: a
        spectrum or a phase space. Particles are read in blocks, so memory does not depend on their
        number.

        Parameters
        ----------
        species : str
            Species or subset, one of `species`.
        axes : str or sequence of str
            Expressions along the axes; see `track`.
        bins : int or sequence of int
            Number of bins along each axis.
        ranges : sequence of (float, float) or None
            Limits of each axis. The default is those of the values in all frames.
        weight : str
            Weight of a particle; the default is its variable ``weight``, or 1.
        where : str
            Count only particles for which this expression is not 0.
        frame : int
            A single frame; the result has no dimension ``time`` then.
        """
        from ._particles import histogram

        options = {"bins": bins, "ranges": ranges, "weight": weight, "where": where}
        return histogram(self, species, axes, frame=frame, **options)

    def energies(self, masses: Mapping[str, float] | None = None) -> xarray.Dataset:
        """Energies over time: those that the dumps contain, that of each component of the electric and
        magnetic field, and the kinetic energy of each species, from its particle energies or from its
        momenta and `masses` in electron masses."""
        from ._particles import energies

        return energies(self, masses)

    def to_ase(self, frame: int = -1) -> ase.Atoms:
        """The atoms and the cell as ``ase.Atoms``, in ångström. `frame` counts from 0; negative
        numbers count
        from the end. Labels of species that are no chemical symbols are in the array ``labels``."""
        import ase

        frames = self.frames or 1
        number = frame + frames if frame < 0 else frame
        if not 0 <= number < frames:
            raise IndexError(f"no frame {frame}: the file has {frames} frames")
        found = self._handle.open.atoms(number)
        if found is None:
            raise ArgumentError("the file has no atoms: no array of positions with three columns")
        numbers, labels, positions, cell = found
        vectors = None if cell is None else np.reshape(cell, (3, 3))
        atoms = ase.Atoms(
            numbers=numbers,
            positions=np.reshape(positions, (-1, 3)),
            cell=vectors,
            pbc=False if vectors is None else np.any(vectors != 0, axis=1),
        )
        if labels != atoms.get_chemical_symbols():
            atoms.new_array("labels", np.array(labels))
        return atoms

    def close(self) -> None:
        """Closes the file. Values that were read and views remain valid."""
        self._handle.file = None

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._handle.file is None

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        function, arguments = self._handle.how
        return function, arguments
