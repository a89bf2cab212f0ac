import itertools
import pathlib

import numpy as np
import pytest

import spile
from support import arrays_of, golden

KEYS = [
    (),
    ...,
    0,
    -1,
    slice(None),
    slice(2, None, 3),
    slice(None, None, -2),
    (1, ...),
    (..., -2),
    (slice(1, -1), 0),
    (..., slice(None, None, -1)),
    np.int64(1),
    slice(5, 2),
]


@pytest.mark.parametrize(
    "name",
    ["sdf/epoch3d_0001.sdf", "taf/good/dims_3d_4x3x2.taf", "sdf/epoch1d_normal_0001.sdf"],
)
def test_indices_mean_what_they_mean_to_numpy(name):
    for array, key in itertools.product(arrays_of(spile.open(golden(name))).values(), KEYS):
        whole = array[...]
        try:
            expected = whole[key]
        except IndexError:
            with pytest.raises((IndexError, LookupError)):
                array[key]
            continue
        got = array[key]
        np.testing.assert_array_equal(got, expected)
        assert np.asarray(got).dtype == np.asarray(expected).dtype


def test_lists_masks_and_new_axes_mean_what_they_mean_to_numpy():
    for name in (
        "sdf/epoch3d_0001.sdf",
        "taf/good/dims_3d_4x3x2.taf",
        "gsd/py-5.0.1/hoomd_full.gsd",
    ):
        for array in arrays_of(spile.open(golden(name))).values():
            if array.ragged or array.ndim == 0 or 0 in array.shape:
                continue
            whole, last = np.asarray(array), array.shape[0] - 1
            rows = [last, 0, -1]
            keys = [rows, np.array(rows), None, (..., None), (None, 0), [], whole == whole]
            keys += [
                (slice(None, None, -1), None),
                np.arange(array.shape[0]) % 2 == 0,
                np.array([rows, rows]),
            ]
            if array.ndim > 1:
                keys += [(0, rows[1:2]), (rows, rows[1:2] * 3), (rows, ..., 0), (..., [0])]
            for key in keys:
                got, expected = array[key], whole[key]
                np.testing.assert_array_equal(got, expected)
                assert got.dtype == expected.dtype


def test_rows_that_are_far_apart_are_read_one_by_one(tmp_path):
    values = np.arange(1 << 20)
    spile.create(tmp_path / "a.npy", {"a": values})
    file = spile.open(tmp_path / "a.npy")
    (array,) = file.arrays().values()
    before = file._handle.open.bytes_read
    rows = [5, (1 << 20) - 1, 1 << 19]
    np.testing.assert_array_equal(array[rows], values[rows])
    assert file._handle.open.bytes_read - before < 1 << 10


def test_reductions_are_those_of_numpy():
    for name in (
        "sdf/epoch3d_0001.sdf",
        "taf/good/dims_3d_4x3x2.taf",
        "sdf/hand_bigendian_all.sdf",
    ):
        for array in arrays_of(spile.open(golden(name))).values():
            if array.ragged or array.dtype.kind not in "iuf" or array.size == 0:
                continue
            whole = np.asarray(array).astype(array.dtype.newbyteorder("="))
            for word in ("min", "max", "mean", "std"):
                with np.errstate(all="ignore"):
                    wide = whole.astype("f8") if word in ("mean", "std") else whole
                    expected = getattr(np, word)(wide)
                    got = getattr(array, word)()
                np.testing.assert_allclose(got, expected, rtol=1e-12, atol=0, equal_nan=True)
            np.testing.assert_array_equal(array.max(axis=0), whole.max(axis=0))
            np.testing.assert_array_equal(array.T, whole.T)
            np.testing.assert_array_equal(array.astype("c16"), whole.astype("c16"))


def test_infinite_values_decide_the_mean_of_all_parts():
    from spile._reduce import STREAMED

    for parts in (
        [[np.inf, 1], [1, 2]],
        [[1, 2], [np.inf, 1], [3]],
        [[np.inf], [-np.inf]],
        [[np.nan], [1]],
    ):
        whole = np.concatenate(parts)
        for word in ("mean", "std"):
            with np.errstate(all="ignore"):
                got = STREAMED[word](map(np.array, parts), 0, whole.dtype)
                expected = getattr(np, word)(whole)
            np.testing.assert_equal(got, expected)


def test_other_indices_are_refused():
    array = spile.open(golden("sdf/epoch3d_0001.sdf"))["Electric Field/Ex"]
    for key in ([99], [-99], True, [0.5], np.zeros(3, bool), (0, 0, 0, [0])):
        with pytest.raises(IndexError):
            array[key]
    with pytest.raises(spile.errors.ArgumentError, match="out of bounds"):
        array[99]


def test_bytes_are_in_the_order_of_the_file_unless_asked_otherwise():
    big = spile.open(golden("sdf/hand_bigendian_all.sdf"))
    little = spile.open(golden("sdf/hand_littleendian_all.sdf"))
    seen = 0
    for path, array in arrays_of(big).items():
        if array.dtype.byteorder == ">" and array.ndim:
            seen += 1
            assert array[...].dtype == array.dtype
            assert array.read(native=True).dtype.isnative
        if array.dtype.kind in "fiu" and path in little:
            np.testing.assert_array_equal(array[...], little[path][...])
    assert seen > 5


def test_views_show_the_bytes_of_the_file_and_cannot_be_written():
    path = golden("sdf/epoch3d_0001.sdf")
    copied = spile.open(path)["Electric Field/Ex"]
    with pytest.raises(spile.errors.ArgumentError, match="mmap=True"):
        copied.view()
    for file in (spile.open(path, mmap=True), spile.open(pathlib.Path(path).read_bytes())):
        view = file["Electric Field/Ex"].view()
        file.close()
        del file
        np.testing.assert_array_equal(view, copied[...])
        assert not view.flags.writeable and not view.flags.owndata
        with pytest.raises(ValueError):
            view[0, 0, 0] = 1.0
    mapped = spile.open(path, mmap=True)["Electric Field/Ex"]
    assert not mapped.__array__(copy=False).flags.owndata


def test_every_array_that_can_be_viewed_is_the_same_as_read():
    count = 0
    for path in pathlib.Path(golden("sdf")).glob("epoch*.sdf"):
        for array in arrays_of(spile.open(path, mmap=True)).values():
            try:
                view = array.view()
            except spile.errors.ArgumentError:
                continue
            np.testing.assert_array_equal(view, array[...])
            count += 1
    assert count > 100


def test_arrays_become_numpy_arrays():
    array = spile.open(golden("sdf/epoch3d_0001.sdf"))["Electric Field/Ex"]
    assert np.asarray(array).shape == array.shape
    assert np.asarray(array, "f4").dtype == "f4"
    np.testing.assert_array_equal(np.from_dlpack(array), array[...])
    mapped = spile.open(golden("sdf/epoch3d_0001.sdf"), mmap=True)["Electric Field/Ex"]
    np.testing.assert_array_equal(np.from_dlpack(mapped), array[...])
    assert float(np.mean(array)) == array[...].mean()


def test_streams_are_the_array_in_pieces():
    for name in ("sdf/epoch3d_0001.sdf", "taf/good/example_3d_101x3x2.taf"):
        for array in arrays_of(spile.open(golden(name))).values():
            for chunk in (1, 300, 1 << 30):
                parts = list(array.stream(chunk))
                if array.ndim:
                    axis = -1 if array._info.fortran else 0
                    np.testing.assert_array_equal(np.concatenate(parts, axis), array[...])
                else:
                    assert parts[0] == array[()]


def test_values_are_scaled_and_stored_values_are_available():
    array = next(iter(spile.open(golden("taf/good/type_int16_mapped.taf")).arrays().values()))
    intercept, slope = array.scaling
    assert array.dtype == "f8" and array.stored.dtype == "<i2"
    np.testing.assert_array_equal(array[...], intercept + slope * array.stored[...].astype("f8"))


def test_ragged_elements_are_offsets_and_values():
    array = next(a for a in spile.open(golden("scda/v_basic.scd")).arrays().values() if a.ragged)
    offsets, values = array.offsets, array.values
    assert array.shape == (len(offsets) - 1,) and offsets[-1] == len(values)
    for k, element in enumerate(array):
        np.testing.assert_array_equal(element, values[int(offsets[k]) : int(offsets[k + 1])])
    assert len(array[::2]) == (len(array) + 1) // 2
    with pytest.raises(IndexError):
        array[len(array)]
    with pytest.raises(TypeError, match="offsets"):
        np.asarray(array)


def test_frames_are_the_first_dimension_or_stand_alone():
    file = spile.open(golden("gsd/py-5.0.1/hoomd_varying_N.gsd"))
    position = file["particles/position"]
    assert position.frames == file.frames and position.ragged
    counts = np.diff(position.offsets.astype(int))
    for k in range(file.frames):
        part = position[k]
        assert (0 if part is None else len(part)) == counts[k]
    assert sum(counts) == len(position.values)
    first = int(np.argmax(counts > 0))
    frame = position.frame(first)
    assert frame.frames is None and frame.shape == position[first].shape
    with pytest.raises(IndexError):
        position.frame(file.frames)


def test_sums_of_what_python_reads_are_those_of_the_files():
    """The digests of `spile.hash`, confirmed by the golden manifests, equal those of the values read."""
    import hashlib

    for name in ("sdf/epoch2d_4ranks_id4_0002.sdf", "taf/good/example_3d_101x3x2.taf"):
        file = spile.open(golden(name))
        for row in spile.hash(file)["arrays"]:
            array = file[row["path"]].stored
            little = array[...].astype(array.dtype.newbyteorder("<"))
            content = little.tobytes("F" if array._info.fortran else "C")
            assert hashlib.sha256(content).hexdigest() == row["sha256"], row["path"]


def test_arrays_know_role_mesh_centring_and_component():
    file = spile.open(golden("sdf/epoch2d_4ranks_id4_0001.sdf"))
    ex, bz = file["Electric Field/Ex"], file["Magnetic Field/Bz"]
    assert (ex.role, ex.mesh, ex.centring) == ("field", "Grid/Grid", "face")
    assert ex.component == ("E", 0) and bz.component == ("B", 2)
    assert bz.centring == "node" and ex.point_set is None
    assert ex.long_name == "Electric Field/Ex" and ex.units == "V/m"
    density = file["Derived/Number_Density"]
    assert density.centring == "cell" and density.component is None
    px = file["Particles/Px/electron"]
    assert (px.role, px.point_set, px.component) == ("points", "electron", ("P", 0))
    assert px.mesh == "Grid/Particles/electron" and px.centring is None
    assert file["Grid/Grid/X"].role == "mesh" and file["Wall-time"].role == "data"


def test_roles_of_other_formats():
    gsd = spile.open(golden("gsd/py-5.0.1/hoomd_full.gsd"))
    assert gsd["particles/velocity"].role == "points"
    assert gsd["configuration/box"].role == "cell"
    taf = spile.open(golden("taf/good/example_2d_101x3.taf"))["data"]
    assert taf.mesh is None and taf.component is None and taf.role in ("data", "trace")


def test_bands_have_dimensions_spin_k_and_band():
    group = spile.open(golden("iotk/qe54_si/si.save"))["Root/EIGENVALUES"]
    bands = group["bands"]
    assert bands.dims == ("spin", "k", "band") and bands.shape == (1, 3, 6)
    for k in range(3):
        single = group[f"K-POINT.{k + 1}/DATAFILE/EIGENVALUES"]
        np.testing.assert_array_equal(bands[0, k], single[...])
