"""The answer to one request as server-sent events, while it is sampled."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from temper_gpu.engine.interface import Generation, OnToken
from temper_gpu.failures import TemperError
from temper_gpu.server.answers import error_body, unexpected
from temper_gpu.server.calls import DEADLINE_GRACE_S, Call, Generating, cancel
from temper_gpu.server.http_limits import hang_up
from temper_gpu.server.sampling import Sampled
from temper_gpu.server.streams import DONE, event

# Event of a choice: a token, or its end (None).
TokenOrEnd = tuple[int, Sampled | None]
Answered = Callable[[Call, list[Generation], float], None]
# Tokens that take a few milliseconds to send.
MOST_AT_ONCE = 256


class Tokens:
    """Tokens that the engine samples for one request, received from its threads."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._sampled: asyncio.Queue[TokenOrEnd] = asyncio.Queue()

    def on_token(self, index: int) -> OnToken:
        def hear(token_id: int, logprob: float, top_logprobs: list[tuple[int, float]]) -> None:
            sampled = Sampled(token_id, logprob, top_logprobs)
            with suppress(RuntimeError):  # the loop has ended, and its readers with it
                self._loop.call_soon_threadsafe(self._sampled.put_nowait, (index, sampled))

        return hear

    def expect_ends(self, futures: list[Generating]) -> None:
        for index, future in enumerate(futures):
            future.add_done_callback(lambda _, index=index: self._sampled.put_nowait((index, None)))

    async def first(self, call: Call) -> list[TokenOrEnd]:
        """Waits for the first tokens, and for the client to hang up, before the stream begins."""
        hearing = asyncio.ensure_future(self.next())
        try:
            await call.attend([hearing])
            return hearing.result()
        finally:
            hearing.cancel()

    async def next(self) -> list[TokenOrEnd]:
        """Returns at least one event, and more if the client reads slower than the engine samples."""
        items = [await self._sampled.get()]
        while not self._sampled.empty() and len(items) < MOST_AT_ONCE:
            items.append(self._sampled.get_nowait())
        if not self._sampled.empty():
            await asyncio.sleep(0)  # so much is left that others would wait for this client
        return items


async def open_stream(call: Call, tokens: Tokens, futures: list[Generating], answered: Answered) -> "EventStream":
    """Opens a stream after the first token: an error before it still has its own status."""
    tokens.expect_ends(futures)
    try:
        first = await tokens.first(call)
        for future in futures:
            if future.done():
                future.result()
    except BaseException:
        cancel(futures)
        raise
    first_token_s = time.perf_counter() - call.started
    events = events_of(call, tokens, futures, first)

    def end() -> None:
        answered(call, [future.result() for future in futures], first_token_s)

    return EventStream(guarded(call, events, end), futures, call.end)


class EventStream(StreamingResponse):
    """A stream whose requests end with it. It ends some time after their deadline, even if the client does not read."""

    def __init__(self, events: AsyncIterator[bytes], futures: list[Generating], end: float) -> None:
        super().__init__(events, headers={"cache-control": "no-cache"}, media_type="text/event-stream")
        self._futures = futures
        self._end = end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(self._end + DEADLINE_GRACE_S - time.monotonic()):
                await super().__call__(scope, receive, send)
        except TimeoutError:
            hang_up(scope)
        finally:
            cancel(self._futures)


async def guarded(call: Call, events: AsyncIterator[bytes], end: Callable[[], None]) -> AsyncIterator[bytes]:
    """Sends errors after the status as events."""
    try:
        async for each in events:
            yield each
        end()
    except Exception as error:
        yield event(error_body(error if isinstance(error, TemperError) else unexpected(error, call.request)))
    yield DONE


async def events_of(
    call: Call, tokens: Tokens, futures: list[Generating], first: list[TokenOrEnd]
) -> AsyncIterator[bytes]:
    for chunk in call.writer.begin():
        yield event(chunk)
    items, num_ended = first, 0
    while True:
        for index, sampled, is_ended in by_choice(items):
            num_ended += is_ended
            for chunk in call.writer.more(index, sampled):
                yield event(chunk)
            for chunk in call.writer.end(index, futures[index].result()) if is_ended else ():
                yield event(chunk)
        if num_ended == len(futures):
            break
        items = await tokens.next()
    if call.sampling.with_usage:
        yield event(call.writer.used([future.result() for future in futures]))


def by_choice(items: list[TokenOrEnd]) -> Iterator[tuple[int, list[Sampled], bool]]:
    """The tokens of each choice that was heard of, and whether it is complete."""
    choices: dict[int, list[Sampled | None]] = {}
    for index, token in items:
        choices.setdefault(index, []).append(token)
    for index, heard in choices.items():
        tokens = [token for token in heard if token is not None]
        yield index, tokens, len(tokens) < len(heard)
