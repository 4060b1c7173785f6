"""A real vLLM on the CPU, where TEMPER_VLLM_PYTHON names a Python that has it: one start, and one after a death."""

import json
import os
import signal
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from temper_gpu.engine.interface import GenerationRequest
from temper_gpu.engine.vllm import server
from temper_gpu.engine.vllm.client import Client
from temper_gpu.engine.vllm.engine import VllmEngine
from temper_gpu.engine.vllm.settings import External, VllmSettings, installed_version
from temper_gpu.model.detokenizer import Detokenizer
from temper_gpu.model.models import POCKET_FOLDER
from tests.engine.vllm.stood import Files, adapter_of, ask, ask_again, eventually, pocket_base, request, session_of
from tests.failing import failing

PYTHON = os.environ.get("TEMPER_VLLM_PYTHON")
pytestmark = pytest.mark.skipif(not PYTHON, reason="vLLM is not installed: temper setup vllm, then TEMPER_VLLM_PYTHON")


@dataclass(frozen=True)
class Swapped:
    """Names one adapter and hands another one over."""

    named: Files
    given: Files

    @property
    def sha256(self):
        return self.named.sha256

    def read(self):
        return self.named.read()

    def write_folder(self, folder: Path) -> None:
        self.given.write_folder(folder)


def start(**changes) -> VllmEngine:
    given = {"num_threads": 1, "slots": 16, "kv_cache_bytes": 64 << 20, **changes}
    settings = VllmSettings(PYTHON or "", installed_version(PYTHON or ""), **given)
    return VllmEngine(pocket_base(), str(POCKET_FOLDER), settings)


def long_prompt(seed: int) -> GenerationRequest:
    """vLLM's CPU build ends on such a prompt if a seed comes with it: none does."""
    return GenerationRequest(tuple(48 + (seed + i) % 64 for i in range(2400)), 4, 1.0, seed)


@contextmanager
def forwarding(path: str) -> Iterator[str]:
    """A port of TCP that leads to a server's Unix socket."""

    class Forward(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.socket(socket.AF_UNIX) as server:
                server.connect(path)
                back = threading.Thread(target=copy, args=(server, self.request), daemon=True)
                back.start()
                copy(self.request, server)
                back.join()

    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Forward) as listener:
        listener.daemon_threads = True
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listener.server_address[1]}"
        listener.shutdown()
        listener.block_on_close = False


@pytest.fixture(scope="module")
def real():
    engine = start()
    yield engine
    engine.close()


def test_log_probabilities_are_those_of_the_trainers_weights(real, pocket):
    for adapter in (None, adapter_of(pocket, 1)):
        asked = request(40, 16, temperature=0.8)
        answer = ask(real, asked, adapter)
        ids = torch.tensor([[*asked.prompt_token_ids, *answer.token_ids]])
        model = pocket.instantiate("sdpa")
        if adapter is not None:
            from temper_gpu.model.lora import attach

            model = attach(model, adapter.read())
        logits = model(input_ids=ids, use_cache=False).logits[0, 39:-1] / 0.8
        expected = logits.log_softmax(-1).gather(1, ids[0, 40:, None])[:, 0]
        assert (torch.tensor(answer.logprobs) - expected).abs().max() < 1e-3


def test_adapters_are_proven_whatever_their_size(real, pocket):
    for scale in (0.0, 3e-5, 0.05):
        assert ask(real, request(), adapter_of(pocket, 2, scale)).token_ids


@pytest.mark.parametrize(("scale", "told"), [(0.0, "as the base model does"), (0.2, "as another model would")])
def test_an_adapter_that_is_not_the_one_it_is_named_after_is_caught(real, pocket, scale, told):
    swapped = Swapped(adapter_of(pocket, 3), adapter_of(pocket, 4, scale))
    with failing("PolicyMismatch", told):
        real.submit(swapped, request(), 120).result(120)


def test_an_answer_ends_with_its_stop_string(real, pocket):
    text = Detokenizer(pocket.tokenizer).decode(ask(real, request(8, 24, temperature=0.0)).token_ids)
    answer = ask(real, request(8, 24, temperature=0.0, stop=(text[3:5],)))
    assert Detokenizer(pocket.tokenizer).decode(answer.token_ids) == text[: text.index(text[3:5]) + 2]


def test_an_answer_matches_its_schema(real, pocket):
    schema = {"enum": [{"cell": 1}, {"cell": 2}]}
    asked = replace(request(8, 60), schema=json.dumps(schema), stop_token_ids=pocket.end_token_ids)
    answer = ask(real, asked)
    assert json.loads(Detokenizer(pocket.tokenizer).decode(answer.token_ids)) in schema["enum"]
    with failing("BadConfig"):
        ask(real, replace(asked, schema='{"type": 7}'))


def test_prompts_beyond_one_pass_are_answered(real, pocket):
    adapter = adapter_of(pocket, 1)
    futures = [real.submit(adapter, long_prompt(seed), 300) for seed in range(4)]
    assert [len(future.result(300).token_ids) for future in futures] == [4] * 4


def test_it_is_the_same_as_a_server_that_somebody_else_runs(real, pocket, tmp_path):
    """Over TCP, and with a folder that it has under another path."""
    address, adapter = real._supervisor.now.server.address, adapter_of(pocket, 6)
    (tmp_path / "here").mkdir()
    (tmp_path / "there").symlink_to(tmp_path / "here")
    with forwarding(address.socket) as url:
        told = {"url": url, "key": address.key, "folder": tmp_path / "here", "folder_there": str(tmp_path / "there")}

        def external(**changes) -> VllmEngine:
            settings = VllmSettings("", "", external=External(**{**told, **changes}), slots=16)
            return VllmEngine(pocket, str(POCKET_FOLDER), settings)

        for changes, words in (
            ({"key": "another"}, "refused with status 401.*set TEMPER_VLLM_KEY"),
            ({"folder_there": "/srv/elsewhere"}, "must see the folder of engine.vllm.adapters"),
        ):
            with failing("BadConfig", words):
                external(**changes)
        engine = external()
        assert engine.recorded["engine"] == f"vllm {installed_version(PYTHON or '')} (external)"
        assert "system_fingerprint=vllm-" in engine.recorded["engineFlags"]
        assert ask(engine, request(), adapter).token_ids
        server.unload_adapter(Client(address), adapter.sha256)
        assert ask_again(engine, request(), adapter).token_ids
        assert engine.counters()["proofs"] == 3
        engine.close()
    assert list((tmp_path / "here").iterdir()) == []


def test_after_the_death_of_its_engine_core_it_comes_back_and_no_process_is_left(real, pocket):
    pid = real.health().details["pid"]
    youngest = max(session_of(pid))
    os.kill(youngest, signal.SIGKILL)
    assert ask_again(real, request(), adapter_of(pocket, 1)).token_ids
    assert eventually(lambda: session_of(pid) == [])
    assert real.counters()["starts"] == 2


def test_where_it_is_closed_no_process_is_left(real):
    pid = real.health().details["pid"]
    assert len(session_of(pid)) >= 3
    real.close()
    assert eventually(lambda: session_of(pid) == [])
