"""Trajectories in MDAnalysis and OVITO have the values of the file."""

import pickle
import warnings

import numpy as np
import pytest

import spile
from spile.gsd import hoomd


@pytest.fixture
def trajectory(tmp_path):
    """Frames of particles in a triclinic box, with bonds, angles and logged quantities."""
    rng, frame, count = np.random.default_rng(1), hoomd.Frame(), 30
    frame.configuration.box = [10, 11, 12, 0.1, 0.2, 0.3]
    particles = frame.particles
    particles.N, particles.types, particles.typeid = count, ["A", "B"], [0, 1] * 15
    particles.mass, particles.charge = np.arange(count) + 1, np.arange(count) / 10
    particles.diameter, particles.body = np.full(count, 2.0), [-1] * 20 + [0] * 5 + [3] * 5
    frame.bonds.N, frame.bonds.types, frame.bonds.typeid = 2, ["b", "c"], [0, 1]
    frame.bonds.group = [[0, 1], [2, 3]]
    frame.angles.N, frame.angles.types, frame.angles.group = 1, ["x"], [[0, 1, 2]]
    with hoomd.open(tmp_path / "a.gsd", "w") as file:
        for k in range(5):
            frame.configuration.step = 10 * k
            particles.position = rng.uniform(-4, 4, (count, 3))
            particles.velocity = rng.uniform(-1, 1, (count, 3))
            frame.log["energy"], frame.log["phase"] = [1.5 * k], "liquid"
            file.append(frame)
    with hoomd.open(tmp_path / "a.gsd") as file:
        yield file


def test_a_universe_has_all_frames_and_the_topology(trajectory):
    pytest.importorskip("MDAnalysis")
    warnings.simplefilter("ignore")
    universe = trajectory.to_universe()
    assert len(universe.trajectory) == 5 and len(universe.atoms) == 30
    for ts, frame in zip(universe.trajectory, trajectory):
        np.testing.assert_array_equal(ts.positions, frame.particles.position)
        np.testing.assert_array_equal(ts.velocities, frame.particles.velocity)
        assert ts.data["step"] == frame.configuration.step
        # b = (1.1, 11, 0): its length, and its angle with a.
        assert ts.dimensions[1] == pytest.approx(np.hypot(1.1, 11))
        assert ts.dimensions[5] == pytest.approx(np.degrees(np.arctan2(11, 1.1)))
    atoms = universe.atoms
    assert atoms.types[:2].tolist() == ["A", "B"] and atoms.masses[2] == 3
    assert atoms.charges[3] == pytest.approx(0.3) and (atoms.radii == 1).all()
    assert universe.bonds.indices.tolist() == [[0, 1], [2, 3]] and universe.bonds[1].type == "c"
    assert universe.angles.indices.tolist() == [[0, 1, 2]]
    assert universe.residues.resids.tolist() == [-1, 0, 3]
    again = pickle.loads(pickle.dumps(universe))
    again.trajectory[3]
    np.testing.assert_array_equal(again.atoms.positions, trajectory[3].particles.position)


def test_a_universe_needs_one_number_of_particles(tmp_path):
    pytest.importorskip("MDAnalysis")
    warnings.simplefilter("ignore")
    with hoomd.open(tmp_path / "b.gsd", "w") as file:
        for count in (2, 3):
            frame = hoomd.Frame()
            frame.particles.N = count
            file.append(frame)
    with hoomd.open(tmp_path / "b.gsd") as file:
        universe = file.to_universe()
        with pytest.raises(ValueError, match="frame 1 has 3 particles, frame 0 2"):
            universe.trajectory[1]


def test_an_ovito_pipeline_has_the_values_that_ovito_reads(trajectory):
    pytest.importorskip("ovito")
    from ovito.io import import_file

    pipeline, theirs = trajectory.to_ovito(), import_file(trajectory.file.name)
    assert pipeline.num_frames == theirs.num_frames == 5
    for k in (0, 3):
        mine, other = pipeline.compute(k), theirs.compute(k)
        np.testing.assert_allclose(mine.cell[...], other.cell[...], rtol=1e-6)
        assert tuple(mine.cell.pbc) == tuple(other.cell.pbc)
        for name in ("Position", "Particle Type", "Mass", "Charge", "Radius", "Velocity"):
            np.testing.assert_array_equal(mine.particles[name][...], other.particles[name][...])
        kinds = mine.particles.particle_types
        assert [kind.name for kind in kinds.types] == ["A", "B"]
        bonds = mine.particles.bonds
        np.testing.assert_array_equal(bonds.topology[...], other.particles.bonds.topology[...])
        assert mine.attributes["Timestep"] == 10 * k
        assert mine.attributes["log/energy"] == 1.5 * k
        assert mine.attributes["log/phase"] == "liquid"


@pytest.mark.parametrize("ending", ["xtc", "dcd"])
def test_trajectories_of_molecular_dynamics_are_read_by_mdanalysis(trajectory, tmp_path, ending):
    pytest.importorskip("MDAnalysis")
    from MDAnalysis.coordinates.DCD import DCDReader
    from MDAnalysis.coordinates.XTC import XTCReader

    path = tmp_path / f"new.{ending}"
    spile.convert(trajectory.file.name, path)
    # Lengths of HOOMD files have no unit and are written as they are.
    kind = XTCReader if ending == "xtc" else DCDReader
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = kind(str(path), convert_units=False)
        assert reader.n_frames == 5 and reader.n_atoms == 30
        for ts, frame in zip(reader, trajectory):
            error = 6e-4 if ending == "xtc" else 0
            np.testing.assert_allclose(ts.positions, frame.particles.position, rtol=0, atol=error)
            assert ts.dimensions[1] == pytest.approx(np.hypot(1.1, 11), rel=1e-6)
            assert ts.dimensions[5] == pytest.approx(np.degrees(np.arctan2(11, 1.1)), rel=1e-5)
            if ending == "xtc":
                assert ts.data["step"] == frame.configuration.step
        reader.close()
