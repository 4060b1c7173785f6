"""Any engine can stand behind the server: it asks for nothing that is not in the interface."""

import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import Future

import httpx
import pytest

from temper_gpu.engine.interface import (
    AdapterSource,
    Engine,
    EngineHealth,
    Generation,
    GenerationRequest,
    QueueFull,
    TextModel,
)
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.settings import ServerSettings
from tests.server.served import KEY, SHA256, chat, error, serving
from tests.server.templates import pocket

# Prints what came along that a server needs for no engine.
IMPORTS = """
import sys
import temper_gpu.server.server
print(*(name for name in sys.modules if name in ("torch", "temporalio") or name.startswith("temper_gpu.engine.")))
"""


class Scripted:
    """An engine without weights: it says the same whatever it is asked, up to a stop string."""

    def __init__(self, model: TextModel, text: str) -> None:
        self._model = model
        self._prompts = Prompts(model)
        self._text = text
        self.asked: list[tuple[str | None, GenerationRequest]] = []
        self.failure: str | None = None

    @property
    def model(self) -> TextModel:
        return self._model

    def submit(
        self, adapter: AdapterSource | None, request: GenerationRequest, deadline_s: float
    ) -> Future[Generation]:
        if request.max_tokens == 13:
            raise QueueFull("no place")
        self.asked.append((None if adapter is None else adapter.sha256, request))
        token_ids = self._prompts.tokenise(self._text)
        ends = (n for n in range(len(token_ids)) if any(s in self._prompts.decode(token_ids[:n]) for s in request.stop))
        token_ids = token_ids[: next(ends, len(token_ids))]
        future: Future[Generation] = Future()
        future.set_result(Generation(token_ids, [-0.5] * len(token_ids), "stop"))
        return future

    def health(self) -> EngineHealth:
        return EngineHealth(self.failure, 1, 2, (SHA256,), {"blocks": 3})

    def counters(self) -> Mapping[str, int | float]:
        return {"requests": len(self.asked)}


class OneEngine:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def names(self) -> list[str]:
        return [self._engine.model.name]

    def pin(self, base_model: str) -> str:
        return base_model

    def has(self, base_model: str) -> bool:
        return base_model in self.names()

    def started(self) -> Mapping[str, Engine]:
        return {self._engine.model.name: self._engine}

    def engine(self, base_model: str) -> Engine:
        return self._engine


@pytest.fixture(scope="module")
def model() -> TextModel:
    return pocket()


def test_an_engine_of_another_kind_is_served_with_templates_policies_and_stop_strings(model: TextModel):
    engine = Scripted(model, "one two three")
    with (
        serving(OneEngine(engine), ServerSettings()) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=30) as client,
    ):
        client.headers["authorization"] = f"Bearer {KEY}"
        body = chat(client, model="demo@1", stop=["two"], n=2, return_token_ids=True).json()
        assert body["adapter_sha256"] == SHA256
        assert [choice["message"]["content"] for choice in body["choices"]] == ["one ", "one "]
        assert bytes(body["choices"][0]["token_ids"]) == b"one two"
        assert [name for name, _ in engine.asked] == [SHA256, SHA256]
        asked = engine.asked[0][1]
        assert (asked.stop, asked.stop_token_ids) == (("two",), model.end_token_ids)
        assert list(asked.prompt_token_ids) == body["prompt_token_ids"]
        assert error(chat(client, max_tokens=13)) == (429, "EngineFailed", "queue_full")
        assert [each["id"] for each in client.get("/v1/models").json()["data"]] == ["pocket", "demo@1"]
        health = {"waiting": 1, "running": 2, "policies": [SHA256], "blocks": 3, "counters": {"requests": 2}}
        assert client.get("/health").json()["engines"] == {"pocket": health}
        engine.failure = "lost its device"
        assert client.get("/health").status_code == 503


def test_the_server_imports_the_interface_alone():
    printed = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["temper_gpu.engine.interface"]
