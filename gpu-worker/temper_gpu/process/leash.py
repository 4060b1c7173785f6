"""The leash: a pipe from the parent process on stdin. When the parent dies, the pipe ends, and this process too."""

import os
import threading
from collections.abc import Callable

_READ_BYTES = 4096


def on_leash(descriptor: int, let_go: Callable[[], None]) -> threading.Thread:
    """Calls `let_go` once the pipe's other end is closed."""

    def wait() -> None:
        while os.read(descriptor, _READ_BYTES):
            pass
        let_go()

    thread = threading.Thread(target=wait, name="leash", daemon=True)
    thread.start()
    return thread
