"""``python -m spile``: the command line, which the wheel carries."""

import signal
import sys

from ._spile import main as run


def main():
    # As the program itself does: an interrupt and a closed pipe end it at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run(["spile", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
