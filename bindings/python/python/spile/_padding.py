"""Frames of different lengths as one array."""

import numpy as np

__all__ = ["filled"]


def filled(key, shape, dtype, read):
    """Selected frames as one array, padded with NaN or zeros."""
    frames, rest = key[0], key[1:]
    one = not isinstance(frames, slice)
    numbers = [int(frames)] if one else range(*frames.indices(shape[0]))
    empty = np.nan if np.dtype(dtype).kind in "fc" else np.zeros((), dtype)
    out = np.full((len(numbers), *shape[1:]), empty, dtype)
    for place, frame in enumerate(numbers):
        part = read(frame)
        if part is not None:
            out[(place, *[slice(0, n) for n in np.shape(part)[:1]])] = part
    out = out[(slice(None), *rest)]
    return out[0] if one else out
