"""The GPU worker's HTTP server on an engine that answers at once: what one call costs it without the forward pass.

Prints its port, serves until it is killed; `/cpu` tells the processor seconds of this process. Logs go to a file, as a
local stack has it.
"""

import asyncio
import json
import random
import socket
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import torch
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from temper_gpu import event_loop
from temper_gpu.engine import EngineHost, Generation, GenerationRequest, Target
from temper_gpu.logs import configure_logs
from temper_gpu.models import POCKET, BaseModel, ModelLibrary
from temper_gpu.server import create_app, run_server
from temper_gpu.settings import ServerSettings

KEY = "bench"
ADAPTER = "0" * 64


class InstantEngine:
    """Always the same printable tokens; log-probabilities with as many digits as real ones."""

    def __init__(self, base: BaseModel, num_tokens: int) -> None:
        self.base = base
        rng = random.Random(0)
        token_ids = [base.tokenizer.convert_tokens_to_ids(rng.choice("123456789xo")) for _ in range(num_tokens)]
        self._generation = Generation(token_ids, torch.rand(num_tokens).neg().tolist(), "stop")

    def submit(
        self, policy: str | None, load: Any, request: GenerationRequest, deadline_s: float
    ) -> Future[Generation]:
        future: Future[Generation] = Future()
        future.set_result(self._generation)
        return future


class InstantHost:
    failure = None

    def __init__(self, engine: InstantEngine) -> None:
        self._target = Target(cast(Any, engine), ADAPTER, lambda: None)

    def find(self, name: str) -> Target:
        return self._target


async def serve(num_tokens: int) -> None:
    base = ModelLibrary(dict, torch.float32, torch.device("cpu")).get(POCKET)
    app = create_app(cast(EngineHost, InstantHost(InstantEngine(base, num_tokens))), ServerSettings(), KEY)

    async def with_clock(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/cpu":
            await JSONResponse({"cpu_s": time.process_time()})(scope, receive, send)
        else:
            await app(scope, receive, send)

    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
    await run_server(with_clock, listener, asyncio.Event())


if __name__ == "__main__":
    with Path(sys.argv[2]).open("w") as log_file:
        configure_logs(log_file)
        event_loop.run(serve(int(sys.argv[1])))
