"""Extended XYZ: ASE reads the files of spile, and spile those of ASE."""

import json
import os
import tempfile

import ase.io
import ase.units
import gsd.hoomd
import numpy as np
from ase.build import bulk
from ase.calculators.singlepoint import SinglePointCalculator
from support import GOLDEN, spile


def trajectory(path):
    """A HOOMD trajectory: a skewed box, frames that use values of frame 0, a logged number."""
    random = np.random.default_rng(5)
    frames = []
    with gsd.hoomd.open(path, "w") as file:
        for k in range(3):
            frame = gsd.hoomd.Frame()
            frame.configuration.step = 100 * k
            frame.configuration.box = [10, 11 + k, 12, 0.1, -0.2, 0.3]
            frame.particles.N = 5
            frame.particles.types = ["Ar", "He"]
            frame.particles.typeid = [0, 1, 0, 1, 1]
            frame.particles.position = random.normal(size=(5, 3)).astype("f4")
            frame.particles.velocity = random.normal(size=(5, 3)).astype("f4")
            frame.particles.charge = np.float32([0.5, -0.5, 0, 0.1, 0.2])
            frame.particles.mass = np.float32([40, 4, 40, 4, 4])
            frame.log["md/temperature"] = [1.5 + k]
            frame.log["particles/md/forces"] = random.normal(size=(5, 3))
            file.append(frame)
            frames.append(frame)
    return frames


def hoomd_to_ase():
    frames = trajectory("run.gsd")
    spile("convert", "run.gsd", "run.extxyz", "--verify")
    read = ase.io.read("run.extxyz", ":")
    assert len(read) == len(frames)
    for k, (atoms, frame) in enumerate(zip(read, frames)):
        lx, ly, lz, xy, xz, yz = map(float, np.float32(frame.configuration.box))
        cell = [[lx, 0, 0], [xy * ly, ly, 0], [xz * lz, yz * lz, lz]]
        assert np.allclose(atoms.cell, cell, rtol=1e-12), (atoms.cell, cell)
        assert atoms.pbc.all()
        # Text of a float32 reads back to that float32.
        assert np.array_equal(atoms.positions.astype("f4"), frame.particles.position)
        assert atoms.get_chemical_symbols() == ["Ar", "He", "Ar", "He", "He"]
        assert np.array_equal(atoms.arrays["velo"].astype("f4"), frame.particles.velocity)
        assert np.array_equal(atoms.get_masses().astype("f4"), frame.particles.mass)
        assert np.array_equal(atoms.get_charges().astype("f4"), frame.particles.charge)
        assert np.array_equal(atoms.get_forces(), frame.log["particles/md/forces"])
        assert atoms.info["step"] == 100 * k and atoms.info["temperature"] == 1.5 + k, atoms.info


def names_that_are_not_elements():
    with gsd.hoomd.open("types.gsd", "w") as file:
        frame = gsd.hoomd.Frame()
        frame.configuration.box = [4, 4, 0, 0, 0, 0]
        frame.particles.N = 2
        frame.particles.types = ["C", "large bead"]
        frame.particles.typeid = [0, 1]
        frame.particles.position = [[0, 0, 0], [1, 1, 0]]
        file.append(frame)
    spile("convert", "types.gsd", "types.xyz")
    atoms = ase.io.read("types.xyz", format="extxyz")
    assert list(atoms.numbers) == [6, 0] and list(atoms.pbc) == [True, True, False]
    with open("types.xyz", encoding="utf-8") as file:
        assert "large_bead" in file.read()


def espresso_to_ase():
    found = 0
    for folder, _, names in os.walk(GOLDEN / "iotk"):
        if "data-file.xml" in names:
            spile("convert", folder, "qe.xyz", "--overwrite")
            atoms = ase.io.read("qe.xyz", format="extxyz")
            # Silicon with a lattice constant of 10.2 bohr: a bond has a quarter of the diagonal.
            assert atoms.get_chemical_symbols() == ["Si", "Si"] and atoms.pbc.all()
            constant = 10.2 * ase.units.Bohr
            assert np.isclose(atoms.cell.volume, constant**3 / 4, rtol=1e-6)
            bond = atoms.get_distance(0, 1, mic=True)
            assert np.isclose(bond, constant * np.sqrt(3) / 4, rtol=1e-6), bond
            found += 1
    assert found > 0


def ase_to_spile():
    atoms = bulk("NaCl", "rocksalt", a=5.64)
    frames = []
    for k in range(2):
        frame = atoms.copy() * (1, 1, k + 1)
        frame.rattle(seed=k)
        frame.calc = SinglePointCalculator(frame, energy=-3.25 - k,
                                           forces=np.ones((len(frame), 3)) * k)
        frame.info["label"] = "two words"
        frames.append(frame)
    ase.io.write("ase.extxyz", frames)
    assert json.loads(spile("check", "--json", "ase.extxyz"))["ok"]
    spile("convert", "ase.extxyz", "again.extxyz", "--strict", "--verify")
    for one, two in zip(ase.io.read("ase.extxyz", ":"), ase.io.read("again.extxyz", ":")):
        assert np.array_equal(one.positions, two.positions) and np.array_equal(one.cell, two.cell)
        assert one.get_potential_energy() == two.get_potential_energy()
        assert np.array_equal(one.get_forces(), two.get_forces())
        assert one.info == two.info and list(one.symbols) == list(two.symbols)


def main():
    os.chdir(tempfile.mkdtemp())
    hoomd_to_ase()
    names_that_are_not_elements()
    espresso_to_ase()
    ase_to_spile()


main()
