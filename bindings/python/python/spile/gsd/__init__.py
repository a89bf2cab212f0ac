"""GSD files with the names of the package gsd: `spile.gsd.fl` (chunks) and `spile.gsd.hoomd` (frames
of the HOOMD schema). Programs switch by changing their imports.

>>> import spile.gsd.hoomd
>>> with spile.gsd.hoomd.open(spile.sample("gsd")) as trajectory:
...     trajectory[0].particles.N
np.uint32(20)
"""

from . import fl, hoomd

__all__ = ["fl", "hoomd"]
