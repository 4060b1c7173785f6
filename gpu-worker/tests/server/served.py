"""The HTTP server on a free port with the pocket model, for the tests that meet it as clients do."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import torch

from temper_gpu.commits.resolver import ResolvedPolicy
from temper_gpu.engine.interface import Engines
from temper_gpu.failures import TemperError
from temper_gpu.model.lora import Adapter
from temper_gpu.process import event_loop
from temper_gpu.server.server import create_app, run_server
from temper_gpu.server.settings import ServerSettings
from temper_gpu.server.targets import Targets
from tests.engine.embedded.tiny import Held

KEY = "a secret of this test"
METRICS_KEY = "opens metrics alone"
SHA256 = "c" * 64
ASKED = {"model": "pocket", "messages": [{"role": "user", "content": "1x34o6789"}], "seed": 3, "max_tokens": 4}
TEMPLATES: dict[str, str] = {}
MODULE = "base_model.model.model.layers.0.mlp.down_proj"


class Resolver:
    """`demo@1` is a policy, the rest are base models."""

    def resolve(self, name: str) -> ResolvedPolicy:
        if name == "demo@1":
            return ResolvedPolicy("pocket", Held(SHA256, adapter), None)
        if name == "corrupt@1":
            raise TemperError("StoreCorrupt", "the manifest must have its hash, it has another")
        if "@" in name:
            raise TemperError("BadConfig", f"the policy {name} must be a committed step, found none")
        return ResolvedPolicy(name, None, None)

    def recall(self, name: str) -> ResolvedPolicy | None:
        return None if "@" in name else self.resolve(name)


def find_template(sha256: str) -> str:
    """Of the templates that a test put there."""
    if sha256 in TEMPLATES:
        return TEMPLATES[sha256]
    raise TemperError("BadConfig", f"the chat template must be in the store, but it has no blobs/{sha256}")


def adapter() -> Adapter:
    torch.manual_seed(0)
    parts = {"lora_A": torch.randn(2, 192), "lora_B": torch.randn(96, 2)}
    return Adapter(SHA256, {f"{MODULE}.{part}.weight": tensor for part, tensor in parts.items()}, 2, 2.0)


@contextlib.contextmanager
def serving(engines: Engines, settings: ServerSettings, targets: Targets | None = None) -> Iterator[str]:
    asked = targets or Targets(Resolver(), engines, None)
    listener = socket.create_server(("127.0.0.1", 0))
    ready: list[Any] = []

    async def serve() -> None:
        stopping = asyncio.Event()
        ready.append((asyncio.get_running_loop(), stopping))
        app = create_app(engines, asked, settings, KEY, find_template, metrics_key=METRICS_KEY)
        await run_server(app, settings, listener, stopping)

    thread = threading.Thread(target=event_loop.run, args=(serve(),))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        loop, stopping = ready[0]
        loop.call_soon_threadsafe(stopping.set)
        thread.join(20)


def chat(client: httpx.Client, headers: dict[str, str] | None = None, **changes: Any) -> httpx.Response:
    """Asks again while a model is being loaded, as clients do: on a busy machine that takes its time."""
    while True:
        response = client.post("/v1/chat/completions", json={**ASKED, **changes}, headers=headers)
        if response.status_code != 503 or response.json()["error"]["code"] != "loading":
            return response
        time.sleep(float(response.headers["retry-after"]))


def error(response: httpx.Response) -> tuple[int, str, str]:
    body = response.json()["error"]
    return response.status_code, body["type"], body["code"]
