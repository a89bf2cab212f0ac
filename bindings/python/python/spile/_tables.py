"""Conversion to pandas and Arrow."""

from .errors import ArgumentError


def series(array):
    """A one-dimensional array as a series."""
    import pandas as pd

    if array.ndim != 1 or array.ragged:
        raise ArgumentError(f"{array.path}: expected one dimension, found shape {array.shape}")
    index = None
    if len(array.coords) == 1:
        ((name, points),) = array.coords.items()
        index = pd.Index(getattr(points, "values", points), name=name)
    return pd.Series(array.read(native=True), index=index, name=array.name)


def frame(group):
    """One-dimensional arrays as a data frame."""
    import pandas as pd

    return pd.DataFrame(columns(group))


def arrow(columns):
    """Columns as an Arrow table, without a copy where possible."""
    import pyarrow as pa

    return pa.table({name: pa.array(values) for name, values in columns.items()})


def columns(group):
    """One-dimensional arrays of the most frequent length, by path."""
    lines = {p: a for p, a in group.arrays().items() if not a.ragged and a.ndim == 1}
    lengths = [array.shape[0] for array in lines.values()]
    if not lengths:
        raise ArgumentError("the group has no one-dimensional arrays")
    most = max(set(lengths), key=lengths.count)
    wanted = {path: array for path, array in lines.items() if array.shape[0] == most}
    return {path: array.read(native=True) for path, array in wanted.items()}
