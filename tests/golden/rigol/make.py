"""Small files in the layouts of Rigol oscilloscopes, written after formats/rigol/FORMAT.md, and their manifest:
python3 make.py. They were not written by instruments; formats/rigol/tests/real.rs compares files that were."""

import hashlib
import json
import struct
import zlib

import numpy as np

random = np.random.default_rng(25)
manifest = {}


def put(buffer, fmt, at, *values):
    struct.pack_into("<" + fmt, buffer, at, *values)


def record(raw, start, step, intercept=0.0, slope=1.0):
    raw = np.asarray(raw)
    values = raw.astype("<f8") if (intercept, slope) == (0.0, 1.0) else intercept + slope * raw.astype("<f8")
    digest = lambda array: hashlib.sha256(array.tobytes()).hexdigest()
    return {"n": len(raw), "raw_dtype": raw.dtype.str, "x0": repr(float(start)), "dx": repr(float(step)),
            "sha256_raw_le": digest(raw), "sha256_y_f64le": digest(values)}


def save(name, data, records):
    with open(name, "wb") as file:
        file.write(bytes(data))
    manifest[name] = {"records": records}


def counts(n):
    return random.integers(0, 256, n).astype("u1")


def f32(value):
    return float(np.float32(value))


def early(name, magic, base, flags, at_time, at_rate, at_points, data, midpoint, channels, slots=False, tail=b"", extra=()):
    """DS1000B, C, D and E: `channels` are (index, microvolts per division, probe, shift, inverted)."""
    n, rate, offset = 32, 1e6, 250_000
    buffer = bytearray(data)
    buffer[: len(magic)] = magic
    put(buffer, "I", at_points, n)
    put(buffer, "q", at_time, offset)
    put(buffer, "f", at_rate, rate)
    step = 1.0 / f32(rate)
    records, samples = [], {}
    for index, scale, probe, shift, inverted in channels:
        at = base + 24 * index
        put(buffer, "f", at + 8, probe)
        put(buffer, "BB", at + flags, 1, inverted)
        put(buffer, "ih", at + 16, scale, shift)
        volts = 1e-6 * scale * probe / 25.0
        if inverted and name != "ds1000e.wfm":
            volts = -volts
        samples[index] = counts(n)
        records.append(record(samples[index], 1e-12 * offset - n * step / 2.0, step, volts * (midpoint - shift), -volts))
    order = range(4) if slots else sorted(samples)
    for index in order:
        buffer += samples.get(index, np.zeros(n, "u1")).tobytes()
    if tail:
        lines = random.integers(0, 65536, n).astype("<u2")
        put(buffer, "B", 120, 1)
        buffer += lines.tobytes()
        records.append(record(lines, 1e-12 * offset - n * step / 2.0, step))
    save(name, buffer, records)


early("ds1000b.wfm", b"\xa5\xa5\xa4\x01DS1204B", 68, 14, 172, 180, 60, 420, 99.0,
      [(0, 1_000_000, 1.0, 10, 0), (2, 500_000, 10.0, -7, 1)], slots=True)
early("ds1000c.wfm", b"\xa1\xa5\0\0", 36, 13, 92, 100, 28, 256, 125.0, [(0, 200_000, 1.0, 3, 1), (1, 2_000_000, 1.0, 0, 0)])
early("ds1000e.wfm", b"\xa5\xa5\0\0", 36, 13, 112, 100, 28, 276, 125.0,
      [(0, 1_000_000, 1.0, -12, 0), (1, 50_000, 10.0, 4, 1)], tail=b"logic")


def z(name, mask, firmware):
    numbers = [k for k in range(1, 5) if mask >> (k - 1) & 1]
    stride = {0: 2, 3: 4}.get(len(numbers), len(numbers))
    n, rate, offset = 24, 0.25, -5_000
    buffer = bytearray(400)
    put(buffer, "I2H", 0, 0xFFFFFF01, 0xA5A5, 0x38)
    buffer[8:15] = b"DS1104Z"
    buffer[28 : 28 + len(firmware)] = firmware.encode()
    put(buffer, "Qq", 64, 1000, offset)
    put(buffer, "B", 88, mask)
    put(buffer, "If", 116, n * stride, rate)
    put(buffer, "II", 256, 136, 264)
    data = np.zeros((n, stride), "u1")
    step = 1.0 / (f32(rate) * 1e9)
    start = 1e-12 * offset - n * step / 2.0
    records = []
    for number in numbers:
        at = 124 + 28 * (number - 1)
        scale, shift, inverted = f32(0.5 * number), f32([0.0, -0.3][number % 2]), int(number == 3)
        put(buffer, "8BffBB", at, 1, 1, 0, 0, 9, 0, 0, 0, scale, shift, inverted, 2)
        signed = -scale if inverted else scale
        bias = signed
        if firmware.endswith("SP3") and len(numbers) == 2:
            bias = signed / 5.0 if shift < 0 else 0.0
        lane = {1: 0, 2: int(number == numbers[0])}.get(stride, 4 - number)
        data[:, lane] = counts(n)
        slope = signed / 20.0
        records.append(record(data[:, lane].copy(), start, step, bias - shift - 127.0 * slope, slope))
    if not numbers:
        data[:] = counts(n * 2).reshape(n, 2)
        records = [record(data[:, lane].copy(), start, step) for lane in (0, 1)]
    save(name, bytes(buffer) + data.tobytes(), records)


z("ds1000z_4.wfm", 0b1111, "00.04.04.SP4")
z("ds1000z_3.wfm", 0b1011, "00.04.04.SP4")
z("ds1000z_2.wfm", 0b1001, "00.04.04.SP3")
z("ds1000z_logic.wfm", 0, "00.04.05.SP2")


def ultravision(name, model, channels, per_division, at_channels, interwoven=False):
    """DS2000, DS4000 and DS6000: `channels` are (number, volts per division, offset, state, inverted)."""
    n, rate, offset = 30, 5e8, 2000
    buffer = bytearray(600)
    buffer[:4] = b"\xa5\xa5\x38\0"
    buffer[4 : 4 + len(model)] = model.encode()
    buffer[24:38] = b"00.02.03.00.03"
    mask = sum(1 << (channel[0] - 1) for channel in channels)
    put(buffer, "BB", 64, mask, interwoven)
    step = 1.0 / f32(rate)
    if per_division == 32.0:
        put(buffer, "f", 100, rate)
        put(buffer, "I", 268, n)
        put(buffer, "q", 568, offset)
        start, first = 1e-12 * offset - n * step / 2.0, 0
    else:
        put(buffer, "f", 96, rate)
        put(buffer, "q", 112, offset)
        depth, first = 40, 4
        put(buffer, "3I", 244, depth, first, n)
        start = 1e-12 * offset + (first - depth / 2.0) * step
    records = []
    for number, volts, shift, state, inverted in channels:
        at = at_channels + 28 * (number - 1)
        flags = (2, inverted) if state == 8 else (inverted, 2)
        put(buffer, "8Bff2B", at, state, 0, 1, 0, 9, 0, 0, 1, volts, shift, *flags)
        raw = counts(n)
        slope = f32(volts) / per_division
        slope = -slope if inverted else slope
        records.append(record(raw, start, step, -127.0 * slope - f32(shift), slope))
        pieces = [raw[0::2], raw[1::2]] if interwoven else [raw]
        places = [68, 72] if interwoven else [64 + 4 * number]
        for piece, place in zip(pieces, places):
            put(buffer, "I", place, len(buffer))
            buffer += bytes(first) + piece.tobytes()
    save(name, buffer, records)


ultravision("ds2000.wfm", "DS2A1528", [(1, 0.5, 0.1, 1, 0), (2, 2.0, -1.0, 1, 1)], 25.0, 120)
ultravision("ds2000_interwoven.wfm", "DS2D1624", [(2, 0.2, 0.05, 8, 1)], 25.0, 120, interwoven=True)
ultravision("ds4000.wfm", "DS4A1435", [(1, 50.0, 0.0, 1, 0), (4, 1.0, 0.25, 1, 1)], 32.0, 124)
ultravision("ds6000.wfm", "DS6104", [(1, 0.1, 0.0, 1, 0), (3, 1.0, 0.5, 1, 0)], 25.0, 120)


def dho(name, dho800):
    def block(number, kind, content):
        packed = zlib.compress(content)
        stored = packed + bytes(-len(packed) % 4)
        return struct.pack("<6H", number, kind, len(content), len(packed), len(stored), 0) + stored

    n, channels, ticks = 20, 2, 500
    tick, divisor = (8e-10, 7.5e12) if dho800 else (1e-8, 7.5e11)
    blocks = block(11, 17, b"\0" * 30 + (b"DHO824\0" if dho800 else b"DHO1074\0"))
    raw = random.integers(0, 65536, (n, channels)).astype("<u2")
    records = []
    for number in (1, 2):
        scale, centre = 750_000_000 * number, 25_000_000 * (3 - 2 * number)
        field = struct.pack("<i", centre) if dho800 else struct.pack("<q", centre)
        content = b"\1" + struct.pack("<q", scale) + bytes(29) + field + bytes(40)
        blocks += block(number, 5 if dho800 else 9, content)
        slope = scale / divisor
        volts = centre / (1e9 if dho800 else 1e8)
        start = -(n / 2.0) * (ticks * tick)
        records.append(record(raw[:, number - 1].copy(), start, ticks * tick, -volts - slope * 32768.0, slope))
    total = n * channels + (0 if dho800 else 3)
    header = struct.pack("<QQ6I", total, 7, ticks, 77, n, n, 0, 0)
    save(name, b"\2\0\0\0" + bytes(20) + blocks + bytes(12) + bytes(48) + header + raw.tobytes(), records)


dho("dho800.wfm", True)
dho("dho1000.wfm", False)


def container(name, version, waveforms):
    """`.bin`: `waveforms` are (label, waveform type, buffer type, element type, segment)."""
    wide = version == "03"
    body, records = b"", []
    for label, kind, buffer, dtype, segment in waveforms:
        raw = random.normal(size=12).astype("<f4") if dtype == "<f4" else counts(12)
        header = struct.pack("<5Ifddd2I16s16s24s16sdI", 140, kind, 1, 12, 0, 0.0, 0.0, 1e-6, 5e-6, 2, 1, b"2024-05-06",
                             b"07:08:09", b"MSO5074:MS5A1", label.encode(), 0.25 * segment, segment)
        size = struct.pack("<IHH" + ("Q" if wide else "I"), 16 if wide else 12, buffer, raw.itemsize, raw.nbytes)
        body += header + size + raw.tobytes()
        records.append(record(raw, -5e-6, 1e-6))
    head = 16 if wide else 12
    counts_field = struct.pack("<QI" if wide else "<II", head + len(body), len(waveforms))
    save(name, b"RG" + version.encode() + counts_field + body, records)


container("mso5000.bin", "01", [("CH1", 1, 1, "<f4", 1), ("CH2", 2, 2, "<f4", 1), ("CH2", 2, 3, "<f4", 1)])
container("mso5000_segments.bin", "01", [("CH1", 1, 1, "<f4", 1), ("CH1", 1, 1, "<f4", 2)])
container("mso5000_logic.bin", "01", [("LA", 6, 5, "<f4", 1), ("D7-D0", 6, 6, "|u1", 1)])
container("dho1000.bin", "03", [("", 1, 1, "<f4", 1), ("CH4", 1, 1, "<f4", 1)])

with open("manifest.json", "w") as file:
    json.dump(manifest, file, indent=1)
    file.write("\n")
