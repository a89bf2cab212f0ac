"""Formats of ASE: HOOMD trajectories and Quantum ESPRESSO data folders, for ``ase.io.read``.

>>> import ase.io
>>> atoms = ase.io.read(spile.sample("gsd"), format="spile-gsd")
>>> len(atoms), bool(atoms.get_volume() > 0)
(20, True)
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ase.utils.plugins import ExternalIOFormat

from ._open import open

if TYPE_CHECKING:
    import ase

#: Named by the entry points ``ase.ioformats`` of the package.
gsd = ExternalIOFormat(
    desc="HOOMD-blue trajectory", code="+S", module="spile._ase", glob="*.gsd", ext="gsd"
)
save = ExternalIOFormat(
    desc="Quantum ESPRESSO data folder", code="1S", module="spile._ase", glob="*.save"
)


def read_spile_gsd(filename: Any, index: Any = -1) -> Iterator[ase.Atoms]:
    """The atoms of the frames that `index` selects."""
    with open(os.fspath(filename)) as file:
        count = file.frames or 1
        frames = range(count)[
            index if isinstance(index, slice) else slice(index, index + 1 or None)
        ]
        for frame in frames:
            yield file.to_ase(frame)


def read_spile_save(filename: Any) -> ase.Atoms:
    """The atoms and the cell of a calculation."""
    with open(os.fspath(filename)) as file:
        return file.to_ase()
