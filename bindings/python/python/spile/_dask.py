"""Lazy dask arrays. Chunks are read by the worker that computes them, also in other processes."""


class Lazy:
    """A picklable array in native byte order, to be indexed by dask."""

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array

    dtype = property(lambda self: self.array.dtype.newbyteorder("="))
    shape = property(lambda self: self.array.shape)
    ndim = property(lambda self: self.array.ndim)

    def __getitem__(self, key):
        return self.array.read(key, native=True)

    def __reduce__(self):
        return Lazy, (self.array,)


def array(array, chunks):
    """`array` as a dask array."""
    import dask.array as da

    if array.ragged:
        raise TypeError(f"{array.path} is ragged, which dask does not support")
    lazy = Lazy(array)
    return da.from_array(lazy, chunks=chunks, asarray=False, fancy=False, meta=None)
