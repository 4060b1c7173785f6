"""Event loops: the process's own, and one apart from it for the server."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main)


async def run_apart(serve: Callable[[asyncio.Event], Coroutine[Any, Any, None]], stopping: asyncio.Event) -> None:
    """Runs `serve` on an event loop and a thread of its own, until it ends or `stopping` is set here, of which it is
    told by an event of its own. What holds up one of the two loops does not hold up the other."""
    began: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def main() -> None:
        ended = asyncio.Event()
        began.set_result((asyncio.get_running_loop(), ended))
        await serve(ended)

    serving = asyncio.ensure_future(asyncio.to_thread(run, main()))
    waiting = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        await asyncio.wait([serving, asyncio.wrap_future(began)], return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            loop, ended = began.result()
            with suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(ended.set)
        await serving


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop takes a quarter of the CPU time off a served call; Windows has none, and does with asyncio's own."""
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop
