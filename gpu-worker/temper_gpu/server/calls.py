"""A request of any kind that was read: what is sampled for it, and how its answer is written."""

import asyncio
import time
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request

from temper_gpu.engine.interface import DeadlinePassed, Generation
from temper_gpu.server.sampling import Asked, Telling
from temper_gpu.server.streams import Writer
from temper_gpu.server.targets import Target

# The engine drops a request at its deadline; this is for an engine that no longer does.
DEADLINE_GRACE_S = 2.0
# How often a request that takes longer is asked whether its client is still there.
PRESENCE_S = 0.5

Generating = asyncio.Future[Generation]


@dataclass(frozen=True)
class Call:
    request: Request
    model: str
    target: Target
    asked: list[Asked]
    telling: Telling
    seed: int
    writer: Writer
    started: float
    end: float

    @property
    def num_prompt_tokens(self) -> int:
        return sum(len(asked.prompt_ids) for asked in self.asked)

    async def require_presence(self) -> None:
        """Of the client, and of time."""
        if await self.request.is_disconnected():
            raise ClientDisconnect
        if time.monotonic() > self.end + DEADLINE_GRACE_S:
            raise DeadlinePassed("an answer must be ready by its deadline, but the engine gave none; retry")


def cancel(futures: list[Generating]) -> None:
    for future in futures:
        future.cancel()
