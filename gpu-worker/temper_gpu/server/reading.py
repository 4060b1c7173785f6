"""A request's deadline and body, and threads for slow reading and writing."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from starlette.requests import ClientDisconnect, Request

from temper_gpu.contract import BODY_TOO_LARGE, DEADLINE_HEADER, MAX_DEPTH
from temper_gpu.engine.interface import DeadlinePassed
from temper_gpu.failures import TemperError
from temper_gpu.server.answers import Refusal
from temper_gpu.server.settings import ServerSettings
from temper_gpu.server.tool_calls import is_deeper

# Number of longer bodies that are read at once: they take processors from the engine.
NUM_READERS = 2
DEADLINE_MS = re.compile("[0-9]{1,10}")

T = TypeVar("T")


@dataclass(frozen=True)
class Work:
    """The purpose of reading or writing: its deadline, and whether it is short."""

    request: Request
    end: float
    is_short: bool


class Readers:
    def __init__(self) -> None:
        self._free = asyncio.Semaphore(NUM_READERS)
        self._threads = ThreadPoolExecutor(NUM_READERS, thread_name_prefix="prompts")

    async def do(self, work: Work, do: Callable[..., T], *given: Any) -> T:
        """Runs short work on the loop, and long work in a thread, so that other requests do not wait."""
        if work.is_short:
            return do(*given)
        try:
            async with asyncio.timeout(work.end - time.monotonic()):
                await self._free.acquire()
        except TimeoutError as error:
            raise DeadlinePassed(
                "a long prompt must be read by its deadline, but other requests came first; allow more time or send "
                "fewer at once"
            ) from error
        try:
            if await work.request.is_disconnected():
                raise ClientDisconnect
            return await asyncio.get_running_loop().run_in_executor(self._threads, do, *given)
        finally:
            self._free.release()


def deadline_s(request: Request, settings: ServerSettings) -> float:
    given = request.headers.get(DEADLINE_HEADER)
    if given is None:
        return settings.default_deadline_s
    if not DEADLINE_MS.fullmatch(given) or not 0 < int(given) < 1 << 31:
        raise TemperError(
            "BadConfig", f"{DEADLINE_HEADER} must be milliseconds from now, got {given[:40]!r}; send 60000"
        )
    return int(given) / 1000


class Bodies:
    """Bodies that were not parsed yet: no more of them at once than there is memory for."""

    def __init__(self, settings: ServerSettings) -> None:
        self._most = settings.max_body_bytes
        self._most_held = settings.max_held_bytes
        self._num_held = 0

    @asynccontextmanager
    async def read(self, request: Request, end: float) -> AsyncIterator[bytes]:
        """Refused before it is read, if its client says how long it is."""
        with self._holding() as hold:
            hold(int(request.headers.get("content-length", "0")))
            yield await receive_body(request, end, hold)

    @contextmanager
    def _holding(self) -> Iterator[Callable[[int], None]]:
        held = 0

        def hold(num_bytes: int) -> None:
            """Counts bytes of this body, including those that are counted already."""
            nonlocal held
            if num_bytes > self._most:
                rule = f"a body must have at most {self._most} bytes, but this one has more"
                raise Refusal(413, BODY_TOO_LARGE, f"{rule}; shorten the conversation")
            more = max(0, num_bytes - held)
            if self._num_held + more > self._most_held:
                rule = f"bodies that are read at once must have at most {self._most_held} bytes together"
                raise Refusal(429, "too_much_at_once", f"{rule}, but with this one they have more; retry", 1)
            self._num_held += more
            held += more

        try:
            yield hold
        finally:
            self._num_held -= held


async def receive_body(request: Request, end: float, hold: Callable[[int], None]) -> bytes:
    chunks, size = [], 0
    try:
        async with asyncio.timeout(end - time.monotonic()):
            async for chunk in request.stream():
                size += len(chunk)
                hold(size)
                chunks.append(chunk)
    except TimeoutError as error:
        raise Refusal(408, "timeout", "a body must be complete by its deadline, but was not; retry") from error
    return b"".join(chunks)


def parse_json(body: bytes) -> Any:
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise TemperError("BadConfig", f"the body must be JSON, but is not ({error}); send application/json") from error
    # Recursion over a deeper body, here or in a template, would fail. Most bodies have fewer brackets than the limit.
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and is_deeper(parsed, MAX_DEPTH):
        raise TemperError(
            "BadConfig",
            f"the body must be nested at most {MAX_DEPTH} levels deep, but this one is deeper; make it flatter",
        )
    return parsed
