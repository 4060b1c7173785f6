"""A process between the GPU worker and vLLM, which ends vLLM with all its children when either ends. It is run by path
and imports nothing of the package.

vLLM's child processes survive when it is killed. The guard leads a session with all of them. It ends the session when
its stdin ends (the GPU worker has the other end, so that SIGKILL of the worker ends it too), on SIGTERM, and when vLLM
ends. If the guard itself is killed, Linux kills vLLM, and the GPU worker kills the rest.

usage: guard.py FOLDER COMMAND…    FOLDER is removed in the end.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

PR_SET_PDEATHSIG = 1
# After SIGTERM vLLM ends its own children, which takes a moment on a GPU.
GRACE_S = 3.0


def main() -> None:
    folder, command = sys.argv[1], sys.argv[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def die_with_guard() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=die_with_guard)

    def end() -> None:
        child.terminate()
        time.sleep(GRACE_S)
        end_session(folder)

    def watch() -> None:
        while os.read(0, 4096):
            pass
        end()

    threading.Thread(target=watch, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=end, daemon=True).start())
    code = child.wait()
    print(f"vLLM ended with {describe(code)}", flush=True)
    end_session(folder)


def describe(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def end_session(folder: str) -> None:
    """Nothing of it may stay, this process included."""
    shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.flush()
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    main()
