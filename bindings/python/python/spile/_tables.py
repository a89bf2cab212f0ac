"""Arrays as tables of pandas."""

from .errors import ArgumentError


def series(array):
    """An array of one dimension."""
    import pandas as pd

    if array.ndim != 1 or array.ragged:
        raise ArgumentError(f"{array.path} is no column: its shape is {array.shape}")
    index = array.coords.get(array.dims[0])
    if index is not None:
        index = pd.Index(getattr(index, "values", index), name=array.dims[0])
    return pd.Series(array.read(native=True), index=index, name=array.name)


def frame(group):
    """Arrays of one dimension; the length that most have is that of the table."""
    import pandas as pd

    columns = {p: a for p, a in group.arrays().items() if not a._about[7] and a.ndim == 1}
    lengths = [array.shape[0] for array in columns.values() if not array.ragged]
    if not lengths:
        raise ArgumentError("there are no arrays of one dimension here")
    most = max(set(lengths), key=lengths.count)
    wanted = {p: a for p, a in columns.items() if not a.ragged and a.shape[0] == most}
    return pd.DataFrame({path: array.read(native=True) for path, array in wanted.items()})
