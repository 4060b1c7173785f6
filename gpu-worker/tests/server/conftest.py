"""One server with the pocket model, for the files that meet it as clients do."""

from collections.abc import Iterator

import httpx
import pytest
import torch

from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.embedded.host import EngineHost
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.model.models import ModelLibrary
from temper_gpu.server.settings import ServerSettings
from tests.server.served import KEY, serving


@pytest.fixture(scope="package")
def device_lock() -> DeviceLock:
    return DeviceLock()


@pytest.fixture(scope="package")
def host(device_lock: DeviceLock) -> Iterator[EngineHost]:
    library = ModelLibrary(lambda: {}, torch.float32, torch.device("cpu"))
    settings = EmbeddedSettings(num_threads=1, max_pass_tokens=256, max_waiting=8)
    host = EngineHost(library, settings, device_lock, on_death=lambda error: None)
    # A busy machine needs longer than a request waits.
    host.engine("pocket")
    yield host
    host.close()


@pytest.fixture(scope="package")
def url(host: EngineHost) -> Iterator[str]:
    with serving(host, ServerSettings(max_body_bytes=100_000, hosts=frozenset(["gpu.example"]))) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {KEY}"}, timeout=60, trust_env=False) as client:
        yield client
