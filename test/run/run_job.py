"""`python run_job.py FILE COMMAND…` runs a command and writes the processor time in seconds that it and its
descendants took into FILE. SIGTERM, or the death of whoever started it, ends the command with all its descendants;
what a command leaves running is named and ended, too. On Linux that holds for processes whose parents have ended (the
daemon of a local stack belongs to no command); elsewhere for the command's process group."""

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
IS_LINUX = sys.platform == "linux"
# A daemon ends some time after the last command that uses it.
LEFT_S = 30.0
# For what cleans up when it is told to end.
GRACE_S = 5.0
LOOK_EVERY_S = 0.1
ENDED = 124


class Told(Exception):
    pass


def end(_signal: int, _frame: object) -> None:
    raise Told


def descendants() -> list[int]:
    """Those that run or are stopped; the dead wait for their parents."""
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            parents[int(name)] = int(parent)
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass


def wait_for_others(seconds: float) -> list[int]:
    until = time.monotonic() + seconds
    while (left := descendants()) and time.monotonic() < until:
        reap()
        time.sleep(LOOK_EVERY_S)
    reap()
    return left


def send(number: int, pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def end_all(child: int) -> None:
    if not IS_LINUX:
        send(signal.SIGKILL, [-child])
        return
    send(signal.SIGTERM, descendants())
    while left := wait_for_others(GRACE_S):
        send(signal.SIGKILL, left)


def title_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().replace("\0", " ").strip()
    except OSError:
        return str(pid)


def wait(child: int) -> int:
    ended, status = None, 0
    while ended != child:
        ended, status = os.waitpid(-1, 0)
    code = os.waitstatus_to_exitcode(status)
    for pid in wait_for_others(LEFT_S) if IS_LINUX else []:
        print(f"left running, ended now: {title_of(pid)}", flush=True)
    return code if code >= 0 else 128 - code


def main(file: str, command: list[str]) -> int:
    if IS_LINUX:
        process = ctypes.CDLL(None).prctl
        process(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        process(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # Told from here on, it is so where it can end the command.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        if not IS_LINUX:
            os.setpgid(0, 0)
        os.execvp(command[0], command)
    # A terminal sends it to the command as well, which ends as it likes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        code = wait(child)
    except Told:
        code = ENDED
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end_all(child)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(file, "w") as output:
        output.write(f"{used.ru_utime + used.ru_stime:.1f}")
    return code


sys.exit(main(sys.argv[1], sys.argv[2:]))
