"""`python processor_time.py FILE COMMAND…` runs a command and writes the processor time in seconds that it and its
descendants took into FILE. On Linux it also waits for processes whose parents have ended: the daemon of a local stack
belongs to no command."""

import ctypes
import os
import resource
import signal
import sys

PR_SET_CHILD_SUBREAPER = 36


def main(file: str, command: list[str]) -> int:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if child == 0:
        os.execvp(command[0], command)
    # A terminal sends it to the command as well, which ends as it likes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended, status = None, 0
    while ended != child:
        ended, status = os.waitpid(-1, 0)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(file, "w") as output:
        output.write(f"{used.ru_utime + used.ru_stime:.1f}")
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


sys.exit(main(sys.argv[1], sys.argv[2:]))
