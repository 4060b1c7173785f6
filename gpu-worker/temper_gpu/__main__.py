"""python -m temper_gpu: one process that owns a device's weights. The environment is read here alone."""

import gc
import logging
import os
import resource
import socket
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import ModuleType

from temper_gpu.contract import ENGINE_KEY_VARIABLE, METRICS_KEY_VARIABLE, STANDING_BY, VLLM_KEY_VARIABLE
from temper_gpu.failures import TemperError
from temper_gpu.process.arguments import exit_code, parse_arguments
from temper_gpu.process.logs import configure_logs
from temper_gpu.process.startup import limit_spinning
from temper_gpu.store import Store, open_store

# A step begins with hundreds of calls at once.
BACKLOG = 2048
# Each client takes one. Shells, containers and services often begin with 1024, and may have far more.
OPEN_FILES = 1 << 16
# A tenth of what one that computes gets. At 19, the lowest, an import took half an hour on a busy machine.
BACKGROUND_PRIORITY = 10

# Run as a program, this module is named __main__.
log = logging.getLogger(__package__)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    try:
        key = require_key(os.environ.get(ENGINE_KEY_VARIABLE))
        configure_logs()
        limit_spinning()
        allow_open_files()
        if arguments.standby and not stand_by():
            return 0
        # Arguments are checked first, because torch and transformers take seconds to import.
        settings = arguments.settings
        listener = listen(settings.host, settings.port)
        store = open_checked_store(settings.store)
        compose = import_worker()
        keys = compose.Keys(key, os.environ.get(VLLM_KEY_VARIABLE, ""), os.environ.get(METRICS_KEY_VARIABLE, ""))
        compose.run_worker(settings, arguments.leash, keys, listener, store)
    except TemperError as error:
        print(f"temper_gpu: {error}", file=sys.stderr)
        return exit_code(error)
    return 0


def stand_by() -> bool:
    """Has everything imported when its turn comes, with the first byte on stdin. False: stdin ended instead."""
    import numpy  # noqa: F401  # its threads work for the process later: they start at normal priority

    # No priority can be raised again without privileges, but on Linux each thread has its own.
    with ThreadPoolExecutor(1, initializer=lower_priority) as background:
        background.submit(lambda: import_worker().import_polling()).result()
    log.info(STANDING_BY, extra={"pid": os.getpid()})
    return os.read(sys.stdin.fileno(), 1) != b""


def lower_priority() -> None:
    """Lowers the priority of this thread and of those that it starts: the previous worker is still computing."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BACKGROUND_PRIORITY)


def allow_open_files() -> None:
    """Allows as many open files as possible without privileges."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # macOS allows fewer than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def import_worker() -> ModuleType:
    """Half a million objects are made, and stay: looking among them for garbage costs a tenth of the start, and time
    in every collection to come."""
    gc.disable()
    from temper_gpu.process import compose

    gc.freeze()
    gc.enable()
    return compose


def require_key(key: str | None) -> str:
    if not key:
        raise TemperError(
            "BadConfig", f"{ENGINE_KEY_VARIABLE} must hold the key that clients send, got none; set it to a random text"
        )
    return key


def listen(host: str, port: int) -> socket.socket:
    """Binds the port before anything is loaded: a port in use fails at once, and early clients wait."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise TemperError(
            "BadConfig",
            f"the engine's port must be free, {host}:{port} is not ({os.strerror(error.errno or 0)}); "
            "pass another --port",
        ) from error


def open_checked_store(uri: str) -> Store:
    """Opens the store. An unavailable server may come back, so only permanent errors end the start."""
    store = open_store(uri)
    try:
        store.check()
    except TemperError as error:
        if not error.retryable:
            raise
        log.warning("store not reached yet: %s", error)
    return store


if __name__ == "__main__":
    sys.exit(main())
