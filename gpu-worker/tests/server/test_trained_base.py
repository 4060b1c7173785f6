"""Policies of a store before a server whose base model is another one than they were trained on."""

import contextlib
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from temper_gpu.commits.checkpoints import QUANTIZED, Manifest, publish_commit
from temper_gpu.commits.resolver import StoreResolver
from temper_gpu.engine.embedded.host import EngineHost
from temper_gpu.model.lora import adapter_bytes, config_bytes, initial_tensors
from temper_gpu.model.models import BaseModel
from temper_gpu.server.settings import ServerSettings
from temper_gpu.server.targets import Targets
from temper_gpu.store import FileStore
from tests.commits.written import LORA, TARGETS, manifest
from tests.server.served import KEY, chat, error, serving

OTHER_WEIGHTS = "d" * 64


class Bases:
    """Of a host's engines."""

    def __init__(self, host: EngineHost) -> None:
        self._host = host
        self.num_asked = 0

    def get(self, name: str) -> BaseModel:
        self.num_asked += 1
        return self._host.engine(name).base


@pytest.fixture
def bases(host: EngineHost) -> Bases:
    return Bases(host)


def commit(store: FileStore, base: BaseModel, **changes: Any) -> Manifest:
    tensors = initial_tensors(base.instantiate("eager"), TARGETS, 2, seed=1)
    of_pocket = {
        "base_model": "pocket",
        "base_model_sha256": base.sha256,
        "adapter": store.put_blob(adapter_bytes(tensors)),
        "adapter_config": store.put_blob(config_bytes("pocket", LORA, TARGETS)),
    }
    made = manifest(store, step=changes.pop("step", 2)).model_copy(update={**of_pocket, **changes})
    return publish_commit(store, "demo", made)[0].manifest


@contextlib.contextmanager
def client_of(host: EngineHost, targets: Targets) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {KEY}"}
    with (
        serving(host, ServerSettings(), targets) as url,
        httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as client,
    ):
        yield client


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"platform": {"dtype": "bfloat16"}},
            "trained with pocket in bfloat16, but this GPU worker loads it in float32; start it with --dtype bfloat16 "
            "(engine.dtype in temporal.config.ts)",
        ),
        (
            {"platform": {"quantization": QUANTIZED}},
            "trained with pocket in 4 bits, but this GPU worker loads it whole; start it with --load-in-4bit "
            "(engine.loadIn4bit in temporal.config.ts)",
        ),
        ({"base_model_sha256": OTHER_WEIGHTS}, f"trained with pocket of sha256 {OTHER_WEIGHTS}, but this host has "),
    ],
)
def test_a_policy_of_another_base_is_refused_before_anything_is_sampled(
    store: FileStore, host: EngineHost, bases: Bases, changes: dict[str, Any], words: str
):
    engine = host.engine("pocket")
    commit(store, engine.base, **changes)
    before = engine.counters()
    with client_of(host, Targets(StoreResolver(store), host, bases)) as client:
        for _ in range(2):
            response = chat(client, model="demo@2")
            assert error(response) == (422, "PolicyMismatch", "cannot_answer")
            message = response.json()["error"]["message"]
            assert message.startswith("demo@2 must be used with the base model that it was trained on: it was ")
            assert words in message
    assert engine.counters() == before


def test_a_policy_of_this_base_is_compared_once_and_so_are_the_other_steps_of_its_run(
    store: FileStore, host: EngineHost, bases: Bases
):
    base = host.engine("pocket").base
    for step in (2, 3):
        commit(store, base, step=step)
    commit(store, base, step=4, base_model_sha256=OTHER_WEIGHTS)
    with client_of(host, Targets(StoreResolver(store), host, bases)) as client:
        for step in (2, 3, 2, 3):
            assert chat(client, model=f"demo@{step}").status_code == 200
        assert bases.num_asked == 1
        assert error(chat(client, model="demo@4"))[1] == "PolicyMismatch"
        assert chat(client, model="demo@2").status_code == 200


def test_a_server_of_any_base_answers_with_policies_of_another_type(store: FileStore, host: EngineHost):
    base = host.engine("pocket").base
    made = commit(store, base, platform={"dtype": "bfloat16"}, base_model_sha256=OTHER_WEIGHTS)
    with client_of(host, Targets(StoreResolver(store), host, None)) as client:
        assert chat(client, model="demo@2").json()["adapter_sha256"] == made.adapter.sha256
