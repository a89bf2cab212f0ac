"""Runs of Quantum ESPRESSO: densities, magnetizations, wavefunctions and bands of pw.x, read independently with
SciPy and NumPy; cube and XSF files read by ASE. Debian's package quantum-espresso writes the folders."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ET

import ase.io
import ase.io.cube
import ase.io.xsf
import ase.units
import h5py
import numpy as np
from scipy.io import FortranFile
from support import spile

PSEUDO = pathlib.Path("/usr/share/espresso/pseudo")

INPUT = """&control
 calculation='scf', prefix='{name}', outdir='./', pseudo_dir='{pseudo_dir}'
/
&system
 ibrav=0, nat={nat}, ntyp=1, ecutwfc={cut}, {system}
/
&electrons
 conv_thr=1e-6, mixing_beta=0.5
/
ATOMIC_SPECIES
 {element} 1.0 {pseudo}
ATOMIC_POSITIONS crystal
{atoms}
CELL_PARAMETERS bohr
{cell}
{k}
"""

FCC = "0.0 5.13 5.13\n5.13 0.0 5.13\n5.13 5.13 0.0"
SKEWED = "8.0 0.0 0.0\n0.0 8.0 0.0\n0.5 0.0 8.0"
TWO = "K_POINTS crystal\n2\n0.0 0.0 0.0 0.5\n0.5 0.0 0.0 0.5"
GAMMA = "K_POINTS gamma"
SMEARED = "starting_magnetization(1)=0.9, occupations='smearing', degauss=0.02, "
SILICON = {"element": "Si", "pseudo": "Si.pz-vbc.UPF", "cell": FCC, "cut": 6,
           "atoms": "Si 0 0 0\nSi 0.25 0.25 0.25"}
HYDROGEN = {"element": "H", "pseudo": "H.pz-vbc.UPF", "cell": SKEWED, "cut": 8, "atoms": "H 0.1 0.2 0.3"}
RUNS = {
    "si": SILICON | {"k": TWO, "system": ""},
    "gamma": SILICON | {"k": GAMMA, "system": ""},
    "lsda": HYDROGEN | {"k": TWO, "system": SMEARED + "nspin=2, nbnd=3"},
    "spinor": HYDROGEN | {"k": TWO, "system": SMEARED + "noncolin=.true., angle1(1)=60, angle2(1)=30, nbnd=4"},
    "hexagonal": HYDROGEN | {"k": "K_POINTS automatic\n2 2 1 0 0 0", "system": "occupations='smearing', degauss=0.02",
                             "cell": "5.0 0.0 0.0\n-2.5 4.330127018922193 0.0\n0.0 0.0 7.0"},
    "spinorbit": SILICON | {"k": TWO, "system": "noncolin=.true., lspinorb=.true., nbnd=10", "cut": 8,
                            "pseudo": "Si.rel-pbe-rrkj.UPF"},
    "ultrasoft": SILICON | {"k": TWO, "system": "ecutrho=60", "cut": 10, "pseudo": "Si.pbe-nl-rrkjus_psl.1.0.0.UPF"},
    "tpss": SILICON | {"k": GAMMA, "system": "input_dft='tpss'", "element": "C", "pseudo": "C.tpss-mt.UPF", "cut": 15,
                       "cell": "0.0 3.35 3.35\n3.35 0.0 3.35\n3.35 3.35 0.0", "atoms": "C 0 0 0\nC 0.25 0.25 0.25"},
    "paw": HYDROGEN | {"k": TWO, "system": "ecutrho=40", "pseudo": "H.pbe-kjpaw.UPF", "cut": 10,
                       "atoms": "H 0 0 0\nH 0.2 0 0"},
}


def pw(name, options, pseudo_dir):
    text = INPUT.format(name=name, pseudo_dir=pseudo_dir, nat=options["atoms"].count("\n") + 1, **options)
    settings = {"OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(["pw.x"], input=text.encode(), env=os.environ | settings, capture_output=True, check=False)
    return done.stdout.decode()


def run(name, options):
    text = pw(name, options, PSEUDO)
    assert pathlib.Path(f"{name}.save/data-file-schema.xml").exists(), text[-2000:]
    return pathlib.Path(f"{name}.save")


def converted():
    """pw.x gives the same energy with a pseudopotential that spile has written: UPF v1 and v2, PAW, ultrasoft."""
    for element, name in [("Rh", "Rh.pbe-rrkjus_lb.UPF"), ("Ti", "Ti.pz-sp-van_ak.UPF"), ("Cu", "Cu.pbe-kjpaw.UPF")]:
        if not (PSEUDO / name).exists():
            print(f"skipped: no {name}")
            continue
        pathlib.Path("pseudo").mkdir(exist_ok=True)
        spile("convert", PSEUDO / name, pathlib.Path("pseudo") / name)
        options = {"element": element, "pseudo": name, "cell": "0.0 3.6 3.6\n3.6 0.0 3.6\n3.6 3.6 0.0", "cut": 15,
                   "atoms": f"{element} 0 0 0", "k": TWO, "system": "ecutrho=90, occupations='smearing', degauss=0.05"}
        energies = []
        for folder in (PSEUDO, "pseudo"):
            text = pw("converted", options, folder)
            found = re.findall(r"^!\s+total energy\s+=\s+(\S+) Ry", text, re.MULTILINE)
            assert len(found) == 1, (name, folder, text[-2000:])
            energies.append(float(found[0]))
        # Energies are converged to 1e-6.
        assert abs(energies[0] - energies[1]) < 2e-6, (name, energies)


def density_of(folder):
    """Miller indices and coefficients of all components, for all G vectors."""
    if (folder / "charge-density.hdf5").exists():
        with h5py.File(folder / "charge-density.hdf5") as file:
            return file["MillerIndices"][()], [file["rhotot_g"][()].view("c16")]
    with FortranFile(folder / "charge-density.dat") as file:
        half, count, components = file.read_ints()
        file.read_reals()
        miller = file.read_ints().reshape(count, 3)
        values = [file.read_record("c16") for _ in range(components)]
    if half:
        miller = np.concatenate([miller, -miller[1:]])
        values = [np.concatenate([value, value[1:].conj()]) for value in values]
    return miller, values


def check_density(name, folder, file, xml):
    miller, components = density_of(folder)
    cell = file["cell"][()]
    volume = abs(np.linalg.det(cell))
    electrons = float(xml.findtext(".//band_structure/nelec"))
    density = file["density"][()]
    grid = np.array(density.shape)
    assert abs(density.mean() * volume / electrons - 1) < 1e-6, (name, density.mean() * volume)
    names = {1: [], 2: ["magnetization"], 4: [f"magnetization_{axis}" for axis in "xyz"]}[len(components)]
    random = np.random.default_rng(1)
    points = random.integers(0, grid, (100, 3))
    for array, coefficients in zip(["density", *names], components):
        values = file[array][()]
        phases = np.exp(2j * np.pi * (points / grid) @ miller.T)
        direct = (phases @ coefficients).real
        found = values[tuple(points.T)]
        assert np.abs(found - direct).max() < 1e-13, (name, array)
    if names == ["magnetization"]:
        total = float(xml.findtext(".//output/magnetization/total"))
        assert abs(file["magnetization"][()].mean() * volume - total) < 1e-5


def check_kinetic(name, folder, file, xml):
    """The integral of the kinetic energy density is the kinetic energy of the wavefunctions of a gamma-only run."""
    if name != "tpss":
        assert "kinetic_energy_density" not in file
        return
    waves = file["wavefunctions/k0"]
    occupations = file["occupations"][0, 0]
    squares = (waves["G"][()] ** 2).sum(axis=1)
    energy = 2 * (np.abs(waves["coefficients"][()]) ** 2 @ squares) @ occupations
    volume = abs(np.linalg.det(file["cell"][()]))
    integral = file["kinetic_energy_density"][()].mean() * volume
    assert abs(integral / energy - 1) < 1e-10, (integral, energy)


def check_wavefunctions(name, folder, file, xml):
    groups = []
    file["wavefunctions"].visititems(lambda path, node: groups.append(path) if path.endswith("coefficients") else None)
    points = len(xml.findall(".//ks_energies"))
    # The folder of Quantum ESPRESSO 7 has those of 3 of 10 k-points.
    assert len(groups) == (3 if name == "real" else points * (2 if name == "lsda" else 1)), groups
    for path in groups:
        group = file["wavefunctions"][path].parent
        values = group["coefficients"][()]
        norms = (np.abs(values) ** 2).reshape(len(values), -1).sum(axis=1)
        # With ultrasoft and PAW pseudopotentials the norm is with the overlap S.
        if name not in ("paw", "ultrasoft"):
            assert np.abs(norms - 1).max() < 1e-8, (name, path, norms)
        b = [np.fromstring(xml.findtext(f".//reciprocal_lattice/b{k}"), sep=" ") for k in (1, 2, 3)]
        alat = float(xml.find(".//output/atomic_structure").get("alat"))
        vectors = group["miller"][()] @ (np.array(b) * 2 * np.pi / alat)
        assert np.abs(group["G"][()] - vectors).max() < 1e-9
        cut = float(xml.findtext(".//basis_set/ecutwfc"))
        kinetic = ((vectors + group.attrs["k"]) ** 2).sum(axis=1) / 2
        # A gamma-only run has the other half, too.
        assert kinetic.max() <= cut + 1e-9, (name, kinetic.max(), cut)


def check_bands(name, folder, file, xml):
    hartree = 27.211386245988
    bands = file["bands"][()]
    for k, point in enumerate(xml.findall(".//ks_energies")):
        own = np.fromstring(point.findtext("eigenvalues"), sep=" ") * hartree
        assert np.array_equal(bands[:, k].ravel(), own), (name, k)
    assert bands.shape[0] == (2 if name == "lsda" else 1)
    fermi = xml.findtext(".//band_structure/fermi_energy")
    if fermi:
        assert file["fermi_energy"][()] == float(fermi) * hartree
    if bands.shape[1] == 1:
        return
    levels = json.loads(spile("plot", "--json", folder, "bands"))
    labels = [series["label"] for series in levels["series"]]
    assert ("Fermi energy" in labels) == bool(fermi), labels


def check_exports(name, folder, file, xml):
    electrons = float(xml.findtext(".//band_structure/nelec"))
    for ending in ("cube", "xsf", "vtm"):
        spile("convert", folder, f"{name}.{ending}", "--verify")
    with open(f"{name}.cube", encoding="utf-8") as cube:
        content = ase.io.cube.read_cube(cube)
    atoms, data = content["atoms"], content["data"]
    voxel = abs(np.linalg.det(content["spacing"])) / ase.units.Bohr**3
    assert abs(data.sum() * voxel / electrons - 1) < 1e-6, (name, data.sum() * voxel)
    assert np.array_equal(data, file["density"][()])
    with open(f"{name}.xsf", encoding="utf-8") as text:
        data, *_, xsf = ase.io.xsf.read_xsf(text, read_data=True)
    # The last point of each dimension repeats the first.
    assert np.array_equal(data[-1], data[0]) and np.array_equal(data[:, :, -1], data[:, :, 0])
    assert data.shape == tuple(n + 1 for n in file["density"].shape)
    cell = file["cell"][()] * ase.units.Bohr
    for found in (atoms, xsf):
        assert np.allclose(found.cell, cell, rtol=1e-9), (found.cell, cell)
        assert np.allclose(found.positions, file["positions"][()] * ase.units.Bohr, rtol=1e-9)
        species = [text.decode().strip() for text in file["species"][()]]
        assert found.get_chemical_symbols() == species
    with open(f"{name}.cube", encoding="utf-8") as cube:
        assert "e/Bohr^3" in cube.readline()


def check(name, folder):
    xml = ET.parse(folder / "data-file-schema.xml").getroot()
    found = json.loads(spile("check", "--json", folder, codes=(name == "real",)))
    expected = {"real": ["iotk-049"], "paw": ["iotk-054"]}.get(name, [])
    assert [row["code"] for row in found["findings"]] == expected, found
    spile("convert", folder, f"{name}.h5", "--verify")
    with h5py.File(f"{name}.h5") as file:
        check_density(name, folder, file, xml)
        check_wavefunctions(name, folder, file, xml)
        check_kinetic(name, folder, file, xml)
        check_bands(name, folder, file, xml)
        check_exports(name, folder, file, xml)


def records(folder):
    """Fortran records as SciPy reads them."""
    types = "i4=half,i4=n,i4=parts; f8*3*3=b; i4*3*n=miller; c16*n=rho"
    spile("records", folder / "charge-density.dat", "--as", types, "-o", "records.npz")
    miller, [rho, *_] = density_of(folder)
    with np.load("records.npz") as arrays:
        assert np.array_equal(arrays["rho"], rho) and np.array_equal(arrays["miller"].T, miller)
    listed = json.loads(spile("records", "--json", folder / "charge-density.dat"))["records"]
    assert [row["bytes"] for row in listed] == [12, 72, 12 * len(miller), 16 * len(miller)]


def missing(folder):
    copy = shutil.copytree(folder, "missing.save")
    os.remove(os.path.join(copy, "wfc1.dat"))
    found = json.loads(spile("check", "--json", copy, codes=(1,)))
    assert any(re.match("wfc", row.get("object", "")) for row in found["findings"]), found


def early():
    """A run of version 5.4: its own text files and planes have the values of the arrays of the root."""
    golden = pathlib.Path(__file__).resolve().parents[1] / "golden/iotk/qe54_si/si.save"
    xml = ET.parse(golden / "data-file.xml").getroot()
    numbers = lambda node, path: np.array(node.findtext(path).split(), float)
    spile("convert", golden, "early.h5", "--verify")
    spile("iotk", "convert", golden / "charge-density.dat", "early.xml")
    planes = ET.parse("early.xml").getroot()[0]
    with h5py.File("early.h5") as file:
        density, cell = file["density"][()], file["cell"][()]
        own = np.array([numbers(planes, f"z.{k + 1}") for k in range(density.shape[2])])
        assert np.array_equal(own.reshape(density.T.shape), density.T)
        electrons = numbers(xml, "BAND_STRUCTURE_INFO/NUMBER_OF_ELECTRONS")[0]
        assert abs(density.mean() * abs(np.linalg.det(cell)) / electrons - 1) < 1e-6
        hartree = 27.211386245988
        alat = numbers(xml, "CELL/LATTICE_PARAMETER")[0]
        fermi = numbers(xml, "BAND_STRUCTURE_INFO/FERMI_ENERGY") * hartree
        assert np.array_equal(file["fermi_energy"][()], fermi)
        cut = numbers(xml, "PLANE_WAVES/WFC_CUTOFF")[0]
        for k, weight in enumerate(file["weights"][()]):
            point = xml.find(f"EIGENVALUES/K-POINT.{k + 1}")
            assert np.array_equal(file["k-points"][k], numbers(point, "K-POINT_COORDS"))
            assert weight == numbers(point, "WEIGHT")[0]
            levels = ET.parse(golden / f"K{k + 1:05}/eigenval.xml").getroot()
            assert np.array_equal(file["bands"][0, k], numbers(levels, "EIGENVALUES") * hartree)
            assert np.array_equal(file["occupations"][0, k], numbers(levels, "OCCUPATIONS"))
            waves = file[f"wavefunctions/k{k}"]
            overlap = waves["coefficients"][()].conj() @ waves["coefficients"][()].T
            assert np.abs(overlap - np.eye(len(overlap))).max() < 1e-8
            assert np.allclose(waves.attrs["k"], file["k-points"][k] * 2 * np.pi / alat, rtol=1e-14)
            assert ((waves["G"][()] + waves.attrs["k"]) ** 2).sum(axis=1).max() / 2 <= cut + 1e-9
    spile("convert", golden, "early.cube")
    with open("early.cube", encoding="utf-8") as cube:
        assert np.array_equal(ase.io.cube.read_cube(cube)["data"], density)


def main():
    real = pathlib.Path(__file__).resolve().parents[3] / "shared/real/qe/Si.save"
    os.chdir(tempfile.mkdtemp())
    early()
    if real.is_dir():
        check("real", real)
    else:
        print("skipped: no Si.save of Quantum ESPRESSO 7")
    if shutil.which("pw.x") is None or not (PSEUDO / "Si.pz-vbc.UPF").exists():
        print("skipped: no pw.x with pseudopotentials (Debian: quantum-espresso quantum-espresso-data)")
        return
    converted()
    for name, options in RUNS.items():
        folder = run(name, options)
        check(name, folder)
        if name == "si":
            records(folder)
            missing(folder)


main()
