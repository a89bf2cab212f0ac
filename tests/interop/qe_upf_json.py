"""Pseudopotentials in JSON: `spile convert X.UPF x.json` gives what upf_to_json gives for UPF v2, and the same arrays for UPF v1."""

import json
import os
import pathlib
import tempfile

from support import spile
from upf_to_json import upf_to_json

FOLDERS = [pathlib.Path(__file__).resolve().parents[3] / "shared/real/upf", pathlib.Path("/usr/share/espresso/pseudo")]
NAMES = ["v2_N_ONCV.upf", "v2_Si.LDA.0.5.UPF", "v2_untyped_N.pz-vbc.UPF", "H.pz-vbc.UPF", "Li.pbesol-s-kjpaw_psl.0.2.1.UPF",
         "Li.pbesol-s-rrkjus_psl.0.2.1.UPF"]

VERSION_1 = ["v1_B.pz-vbc.UPF", "v1_O_PBE_TM.UPF", "C.UPF", "Si.rel-pbe-rrkj.UPF", "Ni.rel-pbe-nd-rrkjus.UPF"]


def equal(path, ours, theirs):
    assert type(ours) is type(theirs) or isinstance(ours, (int, float)), (path, ours, theirs)
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), (path, set(ours) ^ set(theirs))
        for key, value in theirs.items():
            equal(f"{path}/{key}", ours[key], value)
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), (path, len(ours), len(theirs))
        for k, (one, two) in enumerate(zip(ours, theirs)):
            equal(f"{path}/{k}", one, two)
    elif isinstance(theirs, str):
        assert ours == theirs.strip(), (path, ours, theirs)
    else:
        assert ours == theirs, (path, ours, theirs)


def version_1(path, ours, theirs):
    """upf_to_json writes other keys for UPF v1, and no augmentation functions without a polynomial."""
    keys = {"header": ["l_max", "is_ultrasoft", "spin_orbit"], "beta_projectors": ["cutoff_radius", "ultrasoft_cutoff_radius"]}
    for one in (ours["pseudo_potential"], theirs["pseudo_potential"]):
        [one["header"].pop(key, None) for key in keys["header"]]
        for projector in one["beta_projectors"]:
            [projector.pop(key, None) for key in (*keys["beta_projectors"], "label", "total_angular_momentum")]
        for wave in one["atomic_wave_functions"]:
            wave.pop("total_angular_momentum", None)
        if not theirs["pseudo_potential"].get("augmentation"):
            one.pop("augmentation", None)
    equal(path, ours, theirs)


def main():
    found = [folder / name for name in NAMES + VERSION_1 for folder in FOLDERS if (folder / name).exists()]
    if not found:
        print("skipped: no pseudopotentials")
    os.chdir(tempfile.mkdtemp())
    for path in found:
        spile("convert", path, "x.json", "--overwrite")
        try:
            theirs = upf_to_json(path.read_text(encoding="utf-8"), str(path))
        except SystemExit as stop:
            raise AssertionError(f"upf_to_json does not read {path}") from stop
        ours = json.loads(pathlib.Path("x.json").read_text(encoding="utf-8"))
        compare = version_1 if path.name in VERSION_1 else equal
        compare(path.name, ours, theirs)


main()
