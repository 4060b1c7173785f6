"""How many base models a GPU worker holds: the one that was asked longest ago, and that nobody uses, makes room."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from temper_gpu.engine.embedded import host as hosts
from temper_gpu.engine.embedded.host import EngineHost
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.interface import GenerationRequest
from temper_gpu.model.models import POCKET_FOLDER, ModelLibrary
from temper_gpu.process import room as rooms
from temper_gpu.process.needs import Machine
from temper_gpu.process.room import Room
from tests.engine.embedded.tiny import proving_once
from tests.failing import failing

CPU = torch.device("cpu")
SETTINGS = EmbeddedSettings(num_threads=1, max_pass_tokens=64)
MACHINE = Machine(CPU, torch.float32, SETTINGS)


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, str]:
    """The same model under five names."""
    return {name: str(shutil.copytree(POCKET_FOLDER, tmp_path / name)) for name in "abcde"}


@pytest.fixture
def room() -> Room:
    return Room(MACHINE)


@pytest.fixture
def host(folders: dict[str, str], room: Room, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineHost]:
    monkeypatch.setattr(hosts, "MOST_MODELS", 2)
    library = ModelLibrary(lambda: folders, torch.float32, CPU, room.require)
    host = EngineHost(library, SETTINGS, on_death=lambda error: None)
    room.loaded, room.close_idle = library.loaded, host.close_idle
    yield host
    host.close()


@pytest.fixture(scope="module", autouse=True)
def models_proven_once() -> Iterator[None]:
    with proving_once():
        yield


def sample(host: EngineHost, name: str) -> int:
    request = GenerationRequest(prompt_token_ids=(1, 2), max_tokens=1, temperature=1.0, seed=7)
    return host.engine(name).submit(None, request, 60.0).result(60.0).token_ids[0]


def test_the_model_that_was_asked_longest_ago_makes_room_and_answers_the_same_when_it_is_asked_again(host: EngineHost):
    first = sample(host, "a")
    sample(host, "b")
    sample(host, "a")
    closed = host.started()["b"]
    sample(host, "c")
    assert set(host.started()) == {"a", "c"} == set(host._library.loaded())
    with failing("EngineFailed", "is down", retryable=True):
        closed.submit(None, GenerationRequest((1,), 1, 1.0, 0), 1.0)
    assert sample(host, "b") == first
    assert set(host.started()) == {"b", "c"}


def test_neither_a_model_in_training_nor_one_with_requests_is_closed(host: EngineHost, monkeypatch: pytest.MonkeyPatch):
    host.trained = lambda: "a"
    for name in "abc":
        sample(host, name)
    assert set(host.started()) == {"a", "c"}
    monkeypatch.setattr(type(host.engine("c")), "is_idle", False)
    sample(host, "d")
    assert set(host.started()) == {"a", "c", "d"}


def test_a_model_that_does_not_fit_beside_the_others_has_them_closed_first(
    host: EngineHost, room: Room, monkeypatch: pytest.MonkeyPatch
):
    sample(host, "a")
    need = room._needs["a"]
    own = rooms.process_part(CPU).num_bytes
    for free, held in ((2 * need, {"a", "b"}), (2 * need - 1, {"b"})):
        monkeypatch.setattr(rooms, "total_bytes", lambda device, free=free: own + free)
        host.engine("a")
        sample(host, "b")
        assert set(host.started()) == held
        while host.close_idle():
            pass
    assert host.started() == {} == {name: None for name in room.loaded()}


def test_memory_that_does_not_suffice_after_all_is_taken_from_idle_models(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch
):
    sample(host, "a")
    prove, tried = EngineHost._prove, []

    def prove_with_room(self: EngineHost, base):
        tried.append(sorted(self.started()))
        if "a" in self.started():
            raise MemoryError
        return prove(self, base)

    monkeypatch.setattr(EngineHost, "_prove", prove_with_room)
    sample(host, "b")
    assert tried == [["a"], []]
    assert set(host.started()) == {"b"}
