"""Reductions of values that are read in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction that keeps the type of the values."""

    def reduced(parts: Iterable[np.ndarray], _ddof: int, dtype: np.dtype) -> Any:
        found = np.array([choose(part) for part in parts if part.size])
        return choose(found.astype(dtype.newbyteorder("=")))

    return reduced


def _moments(parts: Iterable[np.ndarray]) -> tuple[int, float, float]:
    """Number, mean and sum of squared deviations of the values of all parts (Chan, Golub, LeVeque)."""
    count, mean, squares = 0, 0.0, 0.0
    with np.errstate(invalid="ignore"):
        for part in parts:
            if not part.size:
                continue
            own = np.mean(part, dtype="f8")
            deviations = np.sum(np.square(np.subtract(part, own, dtype="f8")))
            shift, total = float(own - mean), count + part.size
            if not np.isfinite(shift):
                # Infinite or missing values decide the mean; there is no deviation.
                mean, squares, count = mean + float(own), np.nan, total
                continue
            squares += float(deviations) + shift * shift * count * part.size / total
            mean += shift * part.size / total
            count = total
    return count, mean, squares


def _std(parts: Iterable[np.ndarray], ddof: int, _dtype: np.dtype) -> Any:
    count, _, squares = _moments(parts)
    return np.sqrt(np.float64(squares) / (count - ddof)) if count > ddof else np.float64(np.nan)


#: Reductions of the values of several parts.
STREAMED: dict[str, Callable[..., Any]] = {
    "min": _extreme(np.min),
    "max": _extreme(np.max),
    "mean": lambda parts, _ddof, _dtype: np.float64(_moments(parts)[1]),
    "std": _std,
}
