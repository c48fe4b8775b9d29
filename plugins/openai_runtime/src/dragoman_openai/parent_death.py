"""Becomes another program that the kernel kills when the process that started it is gone.

Run as a script on Linux, with the id of that process, and the program with its arguments.
"""

import os
import signal
import sys


def main() -> None:
    """Ask for the signal, look whether it is too late already, and become the program."""
    import ctypes

    parent, program = int(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG; it survives exec
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and exec would keep that
    if os.getppid() == parent:
        os.execvp(program[0], program)  # noqa: S606 - the operator's own program


if __name__ == "__main__":
    main()
