"""The files of this folder, as ASE writes them: python3 make.py. `columns.xyz` was written by hand after the
specification: columns in another order, arrays, escapes, frames with different columns and without atoms."""

import numpy as np
from ase import Atoms
from ase.calculators.singlepoint import SinglePointCalculator
from ase.io import write

random = np.random.default_rng(4)
frames = []
for k in range(3):
    atoms = Atoms("SiO2H", positions=random.normal(size=(4, 3)), pbc=[True, True, k > 0],
                  cell=[[5.1, 0, 0], [1.2, 4.8, 0], [-0.3, 0.7 + k, 6.2]])
    atoms.set_velocities(random.normal(size=(4, 3)))
    atoms.set_initial_charges(random.normal(size=4))
    atoms.new_array("tag", np.arange(4) + k)
    atoms.new_array("fixed", np.array([True, False, k > 1, False]))
    atoms.info = {"step": 10 * k, "time": 0.5 * k, "label": "run one", "ok": k > 0,
                  "dipole_guess": np.array([0.1, 0.2, k])}
    atoms.calc = SinglePointCalculator(atoms, energy=-1.5 - k, forces=random.normal(size=(4, 3)),
                                       stress=random.normal(size=6))
    frames.append(atoms)
write("ase.extxyz", frames)
molecules = [Atoms("CO", positions=[[0, 0, 0], [0, 0, 1.13 + k]]) for k in range(2)]
molecules.append(Atoms("OH2", positions=random.normal(size=(3, 3))))
write("plain.xyz", molecules, format="xyz", comment="relaxed, PBE")
