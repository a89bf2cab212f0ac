"""OVITO reads the HOOMD files that spile writes, with the values of gsd.hoomd."""

import os
import tempfile

import gsd.hoomd
import numpy as np
from ovito.io import import_file
from support import spile


def main():
    os.chdir(tempfile.mkdtemp())
    random = np.random.default_rng(3)
    with gsd.hoomd.open("t.gsd", "w") as file:
        for k in range(12):
            frame = gsd.hoomd.Frame()
            frame.configuration.step = 10 * k
            frame.configuration.box = [10, 11, 12, 0.1, 0, 0]
            # The number of particles changes.
            count = 30 + k % 3
            frame.particles.N = count
            frame.particles.types = ["A", "B"]
            frame.particles.typeid = random.integers(0, 2, count).astype("u4")
            frame.particles.position = random.uniform(-4, 4, (count, 3)).astype("f4")
            frame.particles.mass = random.uniform(1, 2, count).astype("f4")
            frame.bonds.N = 1
            frame.bonds.types = ["b"]
            frame.bonds.group = [[0, 1 + k]]
            file.append(frame)
    # New files, appended frames, a conversion.
    spile("gsd", "trim", "t.gsd", "3:9", "-o", "part.gsd")
    spile("gsd", "trim", "t.gsd", "9:", "-o", "rest.gsd")
    spile("gsd", "append", "part.gsd", "rest.gsd")
    spile("convert", "t.gsd", "converted.gsd", "--frames", "3:")
    with gsd.hoomd.open("t.gsd") as file:
        for name in ("part.gsd", "converted.gsd"):
            pipeline = import_file(name)
            assert pipeline.num_frames == 9, (name, pipeline.num_frames)
            for k in range(9):
                data, frame = pipeline.compute(k), file[k + 3]
                particles = data.particles
                assert np.array_equal(particles.positions[...], frame.particles.position), (name, k)
                types = particles.particle_types
                assert np.array_equal(types[...], frame.particles.typeid), (name, k)
                assert [kind.name for kind in types.types] == ["A", "B"]
                assert np.array_equal(particles["Mass"][...], frame.particles.mass), (name, k)
                assert particles.bonds.topology[...].tolist() == frame.bonds.group.tolist()
                assert data.attributes["Timestep"] == frame.configuration.step
                assert np.allclose(np.diag(data.cell[...]), [10, 11, 12])


main()
