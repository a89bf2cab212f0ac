"""The files of this folder and of ../xsf, as ASE writes them: python3 make.py. `orbitals.cube` was written by hand by
the rules of cubegen."""

import numpy as np
from ase import Atoms
from ase.io import write

atoms = Atoms("SiO", positions=[[0, 0, 0], [0.5, 1.0, 1.5]], cell=[[2, 0, 0], [0.5, 3, 0], [0, 0.25, 4]], pbc=True)
data = np.arange(24).reshape(2, 3, 4) / 8 - 1
write("ase.cube", atoms, data=data)
write("../xsf/ase.xsf", atoms, data=data)
