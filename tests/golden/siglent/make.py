"""Small files in the layouts of Siglent oscilloscopes, written after formats/siglent/FORMAT.md, and their manifest:
python3 make.py. They were not written by instruments."""

import hashlib
import json
import struct

import numpy as np

random = np.random.default_rng(26)
manifest = {}


def put(buffer, fmt, at, *values):
    struct.pack_into("<" + fmt, buffer, at, *values)


def record(raw, start, step, intercept, slope, origin):
    values = intercept + slope * (raw.astype("<f8") - origin)
    little = raw.astype(raw.dtype.newbyteorder("<"))
    digest = lambda array: hashlib.sha256(array.tobytes()).hexdigest()
    return {"n": len(raw), "raw_dtype": little.dtype.str, "x0": repr(float(start)), "dx": repr(float(step)),
            "sha256_raw_le": digest(little), "sha256_y_f64le": digest(values.astype("<f8"))}


def save(name, data, records):
    with open(name, "wb") as file:
        file.write(bytes(data))
    manifest[name] = {"records": records}


def fixed(name, header, on, scale, offset, time, length, rate, number=None, first=None, width=None, settings=None,
          channels=(0, 2), probe=None):
    """Two channels: 0.5 V and 20 mV per division, offsets 0.25 V and -3 mV, 1 ms per division, 100 kSa/s. With `probe`,
    the offset of the field of the attenuations, values are those of version 4, and the second channel is in amperes."""
    n = 24
    buffer = bytearray(header)
    if number is not None:
        put(buffer, "I", 0, number)
    if first is not None:
        put(buffer, "I", first, header)
    dtype, middle = np.dtype("u1"), 128.0
    if width is not None:
        buffer[width] = 1
        dtype, middle = np.dtype("<u2"), 32768.0
    divisions, delay, counts = 14, 0.0, 25
    if settings is not None:
        order, at_divisions, at_counts, at_delay = settings
        buffer[order] = 1
        dtype = np.dtype(">u2")
        divisions, counts = 10, 6400
        put(buffer, "i", at_divisions, divisions)
        put(buffer, "iiii", at_counts, *[counts] * 4)
        put(buffer, "dI", at_delay, 2.0, 7)
        delay = 2.0 * 10.0**-3
    put(buffer, "dI", time, 1.0, 7)
    put(buffer, "I", length, n)
    put(buffer, "dI", rate, 100.0, 9)
    quantities = [((0.5, 8), (250.0, 7)), ((20.0, 7), (-3.0, 7))]
    records, samples = [], b""
    si = lambda value, prefix: value * 10.0 ** (3 * (prefix - 8))
    for k, (volts, shift) in zip(channels, quantities):
        put(buffer, "I", on[k], 1)
        put(buffer, "dI", scale[k], *volts)
        put(buffer, "dI", offset[k], *shift)
        factor, sign = 1.0, 1.0
        if probe is not None:
            factor, sign = (10.0, -1.0) if k == 0 else (0.1, -1.0)
            put(buffer, "d", probe + 8 * k, factor)
            volt, ampere = (1, 0) if k == 0 else (0, 1)
            put(buffer, "iiiiiii", scale[k] + 12, 0, volt, 1, ampere, 1, 0, 1)
        raw = random.integers(0, 256 if dtype.itemsize == 1 else 65536, n).astype(dtype)
        start = -(si(1.0, 7) * divisions / 2.0) - delay
        records.append(record(raw, start, 1.0 / si(100.0, 9), factor * sign * si(*shift), factor * si(*volts) / counts,
                              middle))
        samples += raw.tobytes()
    save(name, buffer + samples, records)


def four(first, step):
    return [first + k * step for k in range(4)]


def six():
    buffer = bytearray(108)
    put(buffer, "IH", 0, 6, 108)
    buffer[8:18] = b"SDS6204A\0\0"
    buffer[40:46] = b"SN0001"
    put(buffer, "I", 0x68, 2)
    records = []
    for index, kind in [(1, "u1"), (2, "<u2")]:
        n = 20
        raw = random.integers(0, 256, n).astype(kind)
        wave = bytearray(264 + 4)
        put(wave, "IIIHH", 0, 1, 264, 0, 0, index)
        label = f"C{index}".encode()
        wave[16 : 16 + len(label)] = label
        # Scale, position, origin and interval, along time and for the values.
        put(wave, "dddd", 80, 1e-6, 0.0, 5.0, 2e-9)
        wave[144:145] = b"s"
        put(wave, "dddd", 160, 1.0, 0.0, 100.0, 0.04)
        wave[224:225] = b"V"
        put(wave, "IIQQ", 240, 4, 0, n, raw.nbytes)
        buffer += wave + raw.tobytes()
        records.append(record(raw, -5.0 * 2e-9, 2e-9, 0.0, 0.04, 100.0))
    save("v6.bin", buffer, records)


wide = dict(on=four(0x04, 4), scale=four(0x14, 40), offset=four(0xB4, 40), time=0x198, length=0x1E8, rate=0x1EC)
fixed("v1.bin", 0x800, four(0, 4), four(0x10, 16), four(0x50, 16), 0xD4, 0xF4, 0xF8)
fixed("v2.bin", 0x800, number=2, **wide)
fixed("v2_wide.bin", 0x800, number=2, width=0x260, **wide)
fixed("v3.bin", 0x800, number=3, width=0x260, settings=(0x261, 0x268, 0x26C, 0x1C0), **wide)
fixed("v4.bin", 0x1000, four(0x08, 4), four(0x18, 40), four(0xB8, 40), 0x19C, 0x1EC, 0x1F0, number=4, first=4,
      width=0x264, settings=(0x265, 0x26C, 0x270, 0x1C4), probe=0x244)
fixed("v0_1.bin", 0x8A60, four(0x44, 0x7C), four(0x90, 0x7C), four(0xA0, 0x7C), 0xA84, 0xAA4, 0xAA8)
six()
with open("manifest.json", "w") as file:
    json.dump(manifest, file, indent=1)
