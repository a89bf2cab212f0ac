"""Arrays as tables of pandas and Arrow."""

from .errors import ArgumentError


def series(array):
    """An array of one dimension."""
    import pandas as pd

    if array.ndim != 1 or array.ragged:
        raise ArgumentError(f"{array.path} is no column: its shape is {array.shape}")
    index = None
    if len(array.coords) == 1:
        ((name, points),) = array.coords.items()
        index = pd.Index(getattr(points, "values", points), name=name)
    return pd.Series(array.read(native=True), index=index, name=array.name)


def frame(group):
    """Arrays of one dimension, as pandas has them."""
    import pandas as pd

    return pd.DataFrame(columns(group))


def arrow(columns):
    """Columns as Arrow has them: without a copy where their bytes allow it."""
    import pyarrow as pa

    return pa.table({name: pa.array(values) for name, values in columns.items()})


def columns(group):
    """Arrays of one dimension; the length that most have is that of the table."""
    lines = {p: a for p, a in group.arrays().items() if not a.ragged and a.ndim == 1}
    lengths = [array.shape[0] for array in lines.values()]
    if not lengths:
        raise ArgumentError("there are no arrays of one dimension here")
    most = max(set(lengths), key=lengths.count)
    wanted = {path: array for path, array in lines.items() if array.shape[0] == most}
    return {path: array.read(native=True) for path, array in wanted.items()}
