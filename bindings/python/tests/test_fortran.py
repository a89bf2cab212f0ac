"""Fortran unformatted files, and atoms for ASE."""

import pickle

import numpy as np
import pytest

import spile
from support import GOLDEN


def record(data, marker="<i4"):
    size = np.array(len(data), marker).tobytes()
    return size + data + size


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("marker", ["i4", "i8"])
def test_records_have_the_values_that_scipy_reads(tmp_path, order, marker):
    scipy = pytest.importorskip("scipy.io")
    x = np.asfortranarray(np.random.default_rng(3).normal(size=(3, 5)))
    z = np.arange(4) * (1 - 2j)
    path = tmp_path / "run.dat"
    parts = [
        np.array([3, 5], order + "i4").tobytes(),
        x.astype(order + "f8").tobytes(order="F"),
        z.astype(order + "c16").tobytes(),
    ]
    path.write_bytes(b"".join(record(part, order + marker) for part in parts))
    with scipy.FortranFile(path, header_dtype=np.dtype(order + marker.replace("i", "u"))) as file:
        shape = file.read_record(order + "i4")
        theirs = file.read_record(order + "f8").reshape(shape, order="F")
        numbers = file.read_record(order + "c16")
    with spile.fortran.open(path, "i4=n, i4=m; f8*n*m=x; c16") as file:
        assert (file["n"][...], file["m"][...]) == (3, 5)
        assert np.array_equal(file["x"][...], theirs) and np.array_equal(theirs, x)
        assert np.array_equal(file["record.3"][...], numbers)
        assert np.array_equal(pickle.loads(pickle.dumps(file))["x"][1:, ::2], x[1:, ::2])
    forced = {"endian": "big" if order == ">" else "little", "marker": int(marker[1])}
    assert np.array_equal(
        spile.fortran.open(path, "i4=n, i4=m; f8*n*m=x; c16", **forced)["x"][...], x
    )


def test_arguments_and_types_that_do_not_fit_are_errors(tmp_path):
    path = tmp_path / "a.dat"
    path.write_bytes(record(b"\0" * 12))
    assert spile.fortran.open(path)["record.1"].shape == (12,)
    with pytest.raises(spile.SpileError, match="12 bytes are not a multiple"):
        spile.fortran.open(path, "f8")
    with pytest.raises(spile.SpileError, match="unknown type"):
        spile.fortran.open(path, "real8")
    with pytest.raises(ValueError, match="endian"):
        spile.fortran.open(path, "f4", endian="middle")


def test_atoms_of_a_run_of_quantum_espresso():
    ase = pytest.importorskip("ase")
    atoms = spile.open(GOLDEN / "iotk/qe54_si/si.save").to_ase()
    constant = 10.2 * ase.units.Bohr
    assert atoms.get_chemical_symbols() == ["Si", "Si"] and atoms.pbc.all()
    assert np.isclose(atoms.cell.volume, constant**3 / 4, rtol=1e-8)
    assert np.isclose(atoms.get_distance(0, 1, mic=True), constant * np.sqrt(3) / 4, rtol=1e-8)
    with pytest.raises(IndexError):
        spile.open(GOLDEN / "iotk/qe54_si/si.save").to_ase(1)
