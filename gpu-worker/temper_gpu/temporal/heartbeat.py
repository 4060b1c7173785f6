"""Heartbeats for work in a thread. The event loop sends them and never calls torch, so that a busy step still beats."""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

BEAT_EVERY_S = 1.0

T = TypeVar("T")

log = logging.getLogger(__name__)


async def run_with_heartbeats(
    executor: Executor, work: Callable[[Callable[[], bool]], T], beat: Callable[[], None]
) -> T:
    """Runs `work(is_cancelled)` in a thread and beats every second until it is done.

    A cancellation does not interrupt the thread: `is_cancelled` becomes true, and this function waits until the work
    ends. So a commit is never torn, and no second step starts beside the first. The cancelled work's error is only
    logged.
    """
    cancelled = threading.Event()
    result = asyncio.get_running_loop().run_in_executor(executor, work, cancelled.is_set)
    beats = asyncio.create_task(_beat_forever(beat))
    try:
        return await asyncio.shield(result)
    except asyncio.CancelledError:
        cancelled.set()
        try:
            await result
        except Exception as error:
            log.info("cancelled work ended: %r", error)
        raise
    finally:
        beats.cancel()


async def _beat_forever(beat: Callable[[], None]) -> None:
    while True:
        beat()
        await asyncio.sleep(BEAT_EVERY_S)
