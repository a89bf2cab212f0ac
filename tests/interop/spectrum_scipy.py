"""Spectra and spectrograms of spile equal those of scipy.signal with the same parameters."""

import json
import os
import tempfile

import numpy as np
import xarray as xr
from scipy import signal
from support import spile

RATE = 2.5e6


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


def real(random):
    t = np.arange(20_011)
    values = np.sin(t / 9) + 0.1 * random.normal(size=t.size) + 3
    np.save("x.npy", values)
    for segment, overlap, window in [(256, 128, "hann"), (1000, 300, "flattop"), (333, 0, "hamming"), (64, 63, "boxcar"),
                                     (4096, 2048, "blackman"), (500, 250, "blackmanharris")]:
        common = dict(fs=RATE, window=window, nperseg=segment, noverlap=overlap)
        options = ["--rate", RATE, "--segment", segment, "--overlap", overlap, "--window", window, "--overwrite"]
        for extra, keywords in [([], {}), (["--power"], {"scaling": "spectrum"}), (["--keep-mean"], {"detrend": False})]:
            spile("spectrum", "x.npy", *map(str, options), *extra, "-o", "welch.nc")
            frequency, power = signal.welch(values, **common, **keywords)
            with xr.open_dataset("welch.nc") as found:
                array = next(iter(found.data_vars.values()))
                close(array.values, power)
                np.testing.assert_allclose(found[array.dims[0]].values, frequency, rtol=1e-12, atol=1e-6)
        spile("spectrogram", "x.npy", *map(str, options), "-o", "stft.nc")
        frequency, times, power = signal.spectrogram(values, **common)
        with xr.open_dataset("stft.nc") as found:
            array = next(iter(found.data_vars.values()))
            close(array.values, power.T)
            np.testing.assert_allclose(found[array.dims[0]].values, times, rtol=1e-12)


def iq(random):
    """Complex samples have a spectrum on both sides."""
    t = np.arange(5000)
    values = (np.exp(2j * np.pi * 0.2 * t) + 0.05 * random.normal(size=t.size)).astype("c16")
    np.save("iq.npy", values)
    spile("spectrum", "iq.npy", "--segment", "250", "--rate", "1000", "-o", "iq.csv")
    frequency, power = signal.welch(values, fs=1000.0, nperseg=250, return_onesided=False)
    order = np.argsort(frequency)
    found = np.genfromtxt("iq.csv", delimiter=",", skip_header=1)
    np.testing.assert_allclose(found[:, 0], frequency[order], atol=1e-9)
    close(found[:, 1], power[order])


def columns(random):
    """Columns and segments are transformed one by one; several formats hold the result."""
    values = random.normal(size=(3000, 3))
    np.save("c.npy", values)
    spile("spectrum", "c.npy", "--segment", "128", "-o", "c.npz")
    expected = signal.welch(values, nperseg=128, axis=0)[1]
    with np.load("c.npz") as found:
        arrays = [found[name] for name in found.files if not isinstance(found[name], bytes)]
        close(next(array for array in arrays if array.shape == expected.shape), expected)
    drawn = json.loads(spile("spectrum", "c.npy", "--segment", "128", "--json"))
    assert len(drawn["series"]) == 3 and drawn["y"]["label"], drawn.keys()


def main():
    random = np.random.default_rng(5)
    os.chdir(tempfile.mkdtemp())
    real(random)
    iq(random)
    columns(random)
    print("spectra equal")


main()
