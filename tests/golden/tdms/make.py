"""TDMS files written by nptdms, and files of single segments in layouts that it does not write: python3 make.py.
tests/interop/tdms_nptdms.py compares what nptdms and spile read."""

import struct

import numpy as np
from nptdms import ChannelObject, GroupObject, RootObject, TdmsWriter

START = np.datetime64("2024-03-01T12:34:56.250000")
TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16", "?"]


def linear(number, slope, intercept, source):
    name = f"NI_Scale[{number}]_"
    return {name + "Scale_Type": "Linear", name + "Linear_Slope": slope, name + "Linear_Y_Intercept": intercept,
            name + "Linear_Input_Source": np.uint32(source)}


def cubic(number, coefficients, source):
    name = f"NI_Scale[{number}]_"
    found = {name + "Scale_Type": "Polynomial", name + "Polynomial_Input_Source": np.uint32(source)}
    for k, value in enumerate(coefficients):
        found[f"{name}Polynomial_Coefficients[{k}]"] = value
    return {**found, f"{name}Polynomial_Coefficients_Size": np.uint32(len(coefficients))}


def types():
    root = RootObject({"author": "nptdms", "day": START})
    group = GroupObject("all types", {"count": np.int32(len(TYPES))})
    channels = []
    for code in TYPES:
        values = (np.arange(7) * 3 - (0 if code[0] in "u?" else 9)).astype(code)
        channels.append(ChannelObject("all types", code, values))
    channels.append(ChannelObject("all types", "text", ["", "ab", "µ", "a longer text"]))
    channels.append(ChannelObject("all types", "times", START + np.arange(5) * np.timedelta64(1500, "us")))
    with TdmsWriter("types.tdms") as writer:
        writer.write_segment([root, group, *channels])


def segments():
    """Several segments: more values, a new channel, other properties, a time base and scales."""
    wave = {"wf_increment": 1e-4, "wf_start_offset": -0.5, "wf_start_time": START, "unit_string": "V"}
    scaled = {**linear(0, 0.5, -1.0, 0xFFFFFFFF), "NI_Number_Of_Scales": np.uint32(1), "NI_Scaling_Status": "unscaled"}
    both = {**linear(0, 2.0, 1.0, 0xFFFFFFFF), **cubic(1, [1.0, -2.0, 0.25, 0.5], 0),
            "NI_Number_Of_Scales": np.uint32(2), "NI_Scaling_Status": "unscaled"}
    with TdmsWriter("segments.tdms") as writer:
        for k in range(3):
            a = ChannelObject("g'1", "a/b", np.arange(10 * k, 10 * k + 10, dtype="i2"), {**wave, **scaled})
            b = ChannelObject("g'1", "b", np.arange(4, dtype="f8") + k, {"last": np.int32(k)})
            more = [ChannelObject("g'1", "poly", np.arange(5, dtype="i4") - 2, both)] if k else []
            writer.write_segment([GroupObject("g'1", {"k": float(k)}), a, b, *more])


def text(value):
    return struct.pack("<I", len(value)) + value


def segment(objects, data, contents, order="<", incomplete=False):
    meta = struct.pack(order + "I", len(objects)) + b"".join(objects)
    end = 2**64 - 1 if incomplete else len(meta) + len(data)
    lead = b"TDSm" + struct.pack("<I", contents) + struct.pack(order + "IQQ", 4713, end, len(meta))
    return lead + meta + data


def channel(name, kind, count, order="<", properties=b"", number=0):
    path = f"/'g'/'{name}'".encode()
    index = struct.pack(order + "IIIQ", 20, kind, 1, count)
    return struct.pack(order + "I", len(path)) + path + index + struct.pack(order + "I", number) + properties


def layouts():
    rows = np.zeros(6, [("a", "<i2"), ("b", "<f8")])
    rows["a"], rows["b"] = np.arange(6) - 3, np.arange(6) / 4
    objects = [channel("a", 2, 6), channel("b", 10, 6)]
    one = segment(objects, rows.tobytes(), 2 | 4 | 8 | 32)
    # The second segment repeats the objects of the first without metadata.
    two = b"TDSm" + struct.pack("<IIQQ", 8 | 32, 4713, rows.nbytes, 0) + rows.tobytes()
    open("interleaved.tdms", "wb").write(one + two)

    big = [channel("a", 2, 3, ">"), channel("b", 9, 2, ">")]
    data = np.array([1, -2, 300], ">i2").tobytes() + np.array([0.5, -8], ">f4").tobytes()
    # Two chunks, and a segment that its writer did not complete.
    first = segment(big, data + data, 2 | 4 | 8 | 64, ">")
    open("big_endian.tdms", "wb").write(first + segment(big, data + data[:8], 2 | 4 | 8 | 64, ">", True))

    # DAQmx: two channels of int16 in rows of one buffer, with a linear scale each.
    scalers = lambda offset: struct.pack("<IIQ", 0xFFFFFFFF, 1, 5) + struct.pack("<I", 1) + \
        struct.pack("<IIIII", 3, 0, offset, 0, 0) + struct.pack("<II", 1, 4)
    objects = []
    for k in range(2):
        path = f"/'g'/'d{k}'".encode()
        props = b""
        for name, kind, value in [("NI_Number_Of_Scales", 7, struct.pack("<I", 2)),
                                  ("NI_Scaling_Status", 0x20, text(b"unscaled")),
                                  ("NI_Scale[1]_Scale_Type", 0x20, text(b"Linear")),
                                  ("NI_Scale[1]_Linear_Slope", 10, struct.pack("<d", 0.5 + k)),
                                  ("NI_Scale[1]_Linear_Y_Intercept", 10, struct.pack("<d", -1.0)),
                                  ("NI_Scale[1]_Linear_Input_Source", 7, struct.pack("<I", 0))]:
            props += text(name.encode()) + struct.pack("<I", kind) + value
        objects.append(text(path) + struct.pack("<I", 0x1269) + scalers(2 * k) + struct.pack("<I", 6) + props)
    rows = np.arange(10, dtype="<i2") - 4
    open("daqmx.tdms", "wb").write(segment(objects, rows.tobytes() * 2, 2 | 4 | 8 | 128))


types()
segments()
layouts()
