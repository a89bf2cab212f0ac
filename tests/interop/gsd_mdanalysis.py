"""MDAnalysis reads the HOOMD files that spile writes, with their particles and positions."""

import os
import tempfile
import warnings

import gsd.hoomd
import MDAnalysis
import numpy as np
from support import spile


def main():
    warnings.simplefilter("ignore")
    os.chdir(tempfile.mkdtemp())
    random = np.random.default_rng(3)
    positions = random.uniform(-4, 4, (12, 30, 3)).astype(np.float32)
    with gsd.hoomd.open("t.gsd", "w") as file:
        for k, position in enumerate(positions):
            frame = gsd.hoomd.Frame()
            frame.configuration.step = 10 * k
            frame.configuration.box = [10, 11, 12, 0, 0, 0]
            frame.particles.N = 30
            frame.particles.types = ["A", "B"]
            frame.particles.typeid = [0, 1] * 15
            frame.particles.position = position
            frame.bonds.N = 1
            frame.bonds.types = ["b"]
            frame.bonds.group = [[0, 1]]
            file.append(frame)
    # New files, and frames appended to one of them.
    spile("gsd", "trim", "t.gsd", "3:9", "-o", "part.gsd")
    spile("gsd", "trim", "t.gsd", "9:", "-o", "rest.gsd")
    spile("gsd", "append", "part.gsd", "rest.gsd")
    universe = MDAnalysis.Universe("part.gsd")
    assert len(universe.trajectory) == 9 and len(universe.atoms) == 30
    assert list(universe.atoms.types[:4]) == ["A", "B", "A", "B"], universe.atoms.types[:4]
    for frame, position in zip(universe.trajectory, positions[3:]):
        assert np.array_equal(frame.positions, position), frame.frame
        assert np.allclose(frame.dimensions, [10, 11, 12, 90, 90, 90])


main()
