"""``python -m spile``: the command line."""

import signal
import sys

from . import _parallel
from ._spile import main as run


def main():
    """Runs the command line and returns its exit status."""
    # Ctrl-C terminates the process at once, as in the program `spile`.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.argv[1:2] == ["convert"] and _parallel.ranks() > 1:
        return _parallel.main(sys.argv[2:])
    return run(["spile", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
