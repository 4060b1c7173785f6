"""The GPU worker's HTTP server on an engine that answers at once: what one call costs it without the forward pass.

Prints its port, serves until it is killed; `/cpu` tells the processor seconds of this process. Logs go to a file, as a
local stack has it.
"""

import asyncio
import contextlib
import json
import random
import socket
import sys
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import torch
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from temper_gpu.commits.resolver import ResolvedPolicy
from temper_gpu.engine.interface import AdapterSource, Engine, EngineHealth, Generation, GenerationRequest
from temper_gpu.model.lora import Adapter
from temper_gpu.model.models import POCKET, BaseModel, ModelLibrary
from temper_gpu.process import event_loop
from temper_gpu.process.logs import configure_logs
from temper_gpu.server.server import create_app, run_server
from temper_gpu.server.settings import ServerSettings
from temper_gpu.server.targets import Targets

KEY = "bench"
ADAPTER = "0" * 64


class InstantEngine:
    """Always the same printable tokens; log-probabilities with as many digits as real ones."""

    def __init__(self, base: BaseModel, num_tokens: int) -> None:
        self.model = base
        rng = random.Random(0)
        token_ids = [base.tokenizer.convert_tokens_to_ids(rng.choice("123456789xo")) for _ in range(num_tokens)]
        self._generation = Generation(token_ids, torch.rand(num_tokens).neg().tolist(), "stop")

    def submit(
        self, adapter: AdapterSource | None, request: GenerationRequest, deadline_s: float
    ) -> Future[Generation]:
        future: Future[Generation] = Future()
        future.set_result(self._generation)
        return future

    def health(self) -> EngineHealth:
        return EngineHealth(None, 0, 0, (ADAPTER,), {})

    def counters(self) -> Mapping[str, int | float]:
        return {}


class InstantEngines:
    def __init__(self, engine: InstantEngine) -> None:
        self._engine = engine

    def names(self) -> list[str]:
        return [POCKET]

    def pin(self, base_model: str) -> str:
        return base_model

    def has(self, base_model: str) -> bool:
        return base_model == POCKET

    def started(self) -> Mapping[str, Engine]:
        return {POCKET: self._engine}

    def engine(self, base_model: str) -> Engine:
        return self._engine


@dataclass(frozen=True)
class NoAdapter:
    """Known by its hash alone: nothing is loaded here."""

    sha256: str

    def read(self) -> Adapter:
        raise NotImplementedError

    def write_folder(self, folder: Path) -> None:
        raise NotImplementedError


class OnePolicy:
    """Whatever is asked for, it is this one."""

    def resolve(self, name: str) -> ResolvedPolicy:
        return ResolvedPolicy(POCKET, NoAdapter(ADAPTER), None)

    def recall(self, name: str) -> ResolvedPolicy:
        return self.resolve(name)


async def serve(num_tokens: int) -> None:
    base = ModelLibrary(dict, torch.float32, torch.device("cpu")).get(POCKET)
    engines, settings = InstantEngines(InstantEngine(base, num_tokens)), ServerSettings()
    app = create_app(engines, Targets(OnePolicy(), engines, None), settings, KEY)

    async def with_clock(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/cpu":
            await JSONResponse({"cpu_s": time.process_time()})(scope, receive, send)
        else:
            await app(scope, receive, send)

    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
    await run_server(with_clock, settings, listener, asyncio.Event())


if __name__ == "__main__":
    with Path(sys.argv[2]).open("w") as log_file:
        with contextlib.redirect_stdout(log_file):
            configure_logs()
        event_loop.run(serve(int(sys.argv[1])))
