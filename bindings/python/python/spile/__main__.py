"""``python -m spile``: the command line."""

import signal
import sys

from ._spile import main as run


def main():
    """Runs the command line and returns its exit status."""
    # Ctrl-C terminates the process at once, as in the program `spile`.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run(["spile", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
