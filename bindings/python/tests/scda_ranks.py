"""The program of `test_scda` that runs under mpirun: `scda_ranks.py FOLDER`."""

import pathlib
import sys

from mpi4py import MPI

import test_scda


def main(folder):
    comm = MPI.COMM_WORLD
    test_scda.sections(comm, folder / "sections", hints={"striping_factor": 2})
    test_scda.write(comm, folder / "fields", index=True, checksums=True)
    test_scda.check(comm, folder / "fields")
    test_scda.wrong(comm, folder / "wrong")


try:
    main(pathlib.Path(sys.argv[1]))
except BaseException:
    # The others would wait.
    import traceback

    traceback.print_exc()
    sys.stderr.flush()
    MPI.COMM_WORLD.Abort(1)
