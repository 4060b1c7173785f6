"""The side of every other rank: receives a step's work, computes its share, and reports failures."""

import ctypes
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue

from temper_gpu.contract import TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.model.memory import is_out_of_memory
from temper_gpu.training.ranks.joined import Joined
from temper_gpu.training.trainer import Trainer

BEAT_S = 1.0
# PR_SET_PDEATHSIG of prctl(2).
_PARENT_DEATH = 1

log = logging.getLogger(__name__)


def join_steps(trainer_of: Callable[[Joined], Trainer], ranks: Joined, meeting: Path, pipe: Connection) -> None:
    """Joins the group and computes its steps until this process is ended."""
    die_with_parent()
    works: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, works), name="listen", daemon=True).start()
    tell = _Voice(pipe)
    trainer = trainer_of(ranks)
    tell(None)
    threading.Thread(target=_beat, args=(tell,), name="beat", daemon=True).start()
    ranks.join(meeting)
    ranks.meet()
    while True:
        try:
            trainer.join_step(TrainInput.model_validate_json(works.get()))
        except Exception as error:
            tell(describe(error))
            if not isinstance(error, TemperError):
                log.exception("rank failed", extra={"rank": ranks.rank})
            # Rank 0 ends the group. An early exit could lose what was sent.
            threading.Event().wait()


def describe(error: Exception) -> dict[str, str | None]:
    if isinstance(error, TemperError):
        return {"type": error.type, "message": error.message}
    kind = "OutOfMemory" if is_out_of_memory(error) else None
    return {"type": kind, "message": f"{type(error).__name__}: {error}"}


def die_with_parent() -> None:
    """Ignores signals and dies with the fork server, even if stopped. The fork server ends with the GPU worker."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # The GPU worker decides when to end, also after Ctrl-C in a terminal.
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL)


class _Voice:
    """Serialises messages of two threads."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._telling = threading.Lock()

    def __call__(self, what: dict[str, str | None] | None) -> None:
        with self._telling:
            self._pipe.send_bytes(json.dumps(what).encode())


def _listen(pipe: Connection, works: "SimpleQueue[bytes]") -> None:
    """Ends this process if the GPU worker is gone, also while other threads compute."""
    while True:
        try:
            works.put(pipe.recv_bytes())
        except (EOFError, OSError):
            os._exit(1)


def _beat(tell: _Voice) -> None:
    pause = threading.Event()
    while not pause.wait(BEAT_S):
        tell(None)
