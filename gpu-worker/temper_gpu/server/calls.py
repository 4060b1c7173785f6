"""A request of any kind that was read: what is sampled for it, and how its answer is written."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect, Request

from temper_gpu.engine.interface import DeadlinePassed, Generation
from temper_gpu.server.sampling import Asked, Sampling
from temper_gpu.server.streams import Writer
from temper_gpu.server.targets import Target

# The engine drops a request at its deadline; this is for an engine that no longer does.
DEADLINE_GRACE_S = 2.0
# Most answers are there sooner. A client is watched from then on: a task that costs more than a short wait.
WATCH_AFTER_S = 0.1

Generating = asyncio.Future[Generation]


@dataclass(frozen=True)
class Call:
    request: Request
    target: Target
    asked: list[Asked]
    seed: int
    writer: Writer
    started: float
    end: float

    @property
    def sampling(self) -> Sampling:
        return self.asked[0].sampling

    @property
    def num_prompt_tokens(self) -> int:
        return sum(len(asked.prompt_ids) for asked in self.asked)

    async def attend(self, futures: Sequence[asyncio.Future[Any]]) -> None:
        """Waits until all of them are done, without polling, because thousands may wait here. Fails if the client hangs
        up, or at the deadline."""
        _, pending = await asyncio.wait(futures, timeout=WATCH_AFTER_S)
        if not pending:
            return
        gone = asyncio.ensure_future(self._gone())
        complete = asyncio.gather(*pending, return_exceptions=True)
        left_s = max(0.0, self.end + DEADLINE_GRACE_S - time.monotonic())
        try:
            await asyncio.wait([gone, complete], timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
        if complete.done():
            return
        if gone.done():
            raise ClientDisconnect
        raise DeadlinePassed("an answer must be ready by its deadline, but the engine gave none; retry")

    async def _gone(self) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass


def cancel(futures: list[Generating]) -> None:
    for future in futures:
        future.cancel()
