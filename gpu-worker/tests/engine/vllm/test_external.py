"""A vLLM server that somebody else runs: what is asked of it at the start, what of every answer, and what becomes of a
run when it is away, comes back as another one, or others load and unload adapters there."""

import os
import threading
import time
from pathlib import Path

import pytest
import torch

from temper_gpu.engine.vllm.folders import LEFT_BEHIND_S, SharedFolders
from temper_gpu.engine.vllm.host import VllmHost
from temper_gpu.failures import TemperError
from temper_gpu.model.models import ModelLibrary
from tests.engine.vllm.elsewhere import THERE, Elsewhere
from tests.engine.vllm.stood import adapter_of, ask, ask_again, eventually, request
from tests.failing import failing


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def running(pocket, shared):
    elsewhere = Elsewhere(pocket, shared)
    yield elsewhere
    elsewhere.stop()


@pytest.fixture
def elsewhere(running):
    """As it was, for the next test."""
    yield running
    running.fault = ""
    running.stop()
    running.start()


@pytest.fixture
def engine(elsewhere):
    engine = elsewhere.engine()
    yield engine
    engine.close()


def test_adapters_reach_it_by_the_shared_folder_and_nothing_of_them_stays(engine, elsewhere, pocket):
    first, *others = (adapter_of(pocket, seed) for seed in range(3))
    answer = ask(engine, request(8, 12, temperature=0.5), first)
    assert (len(answer.token_ids), answer.finish_reason) == (12, "length")
    assert elsewhere.served.cards()[1]["root"] == f"{THERE}/{first.sha256}"
    for adapter in others:
        ask(engine, request(), adapter)
    kept = {adapter.sha256 for adapter in others}
    assert {path.name for path in elsewhere.folder.iterdir()} == kept == set(elsewhere.served.names())
    engine.close()
    assert (list(elsewhere.folder.iterdir()), elsewhere.served.names()) == ([], [])


def test_manifests_say_what_it_is_and_the_smaller_context_counts(elsewhere):
    elsewhere.stop()
    elsewhere.start(context_window=1024)
    engine = elsewhere.engine()
    told = {"engine": "vllm 0.0 (external)", "engineFlags": "max_model_len=1024 system_fingerprint=vllm-0.0-1"}
    assert (engine.recorded, engine.model.context_window) == (told, 1024)
    assert elsewhere.url not in str(engine.health().details)
    engine.close()


@pytest.mark.parametrize(
    ("fault", "kind", "told"),
    [
        ("no version", "BadConfig", "must lead to a vLLM server, but .*, which tells no version at /version"),
        ("no loading", "BadConfig", "has no /v1/load_lora_adapter; start it with --enable-lora and VLLM_ALLOW_RUNTIME"),
        ("no lora", "BadConfig", "must be started with --enable-lora, but was not"),
        ("another base", "PolicyMismatch", "must serve the weights of pocket.*--base-model and --dtype that it serves"),
        ("raw", "PolicyMismatch", "after temperature.*start it with --logprobs-mode=processed_logprobs"),
        ("another model", "PolicyMismatch", "must answer as served, but answered as 'another'"),
    ],
)
def test_what_it_lacks_is_named_before_it_answers(elsewhere, fault, kind, told):
    elsewhere.fault = fault
    with pytest.raises(TemperError, match=told) as caught:
        elsewhere.engine()
    assert (caught.value.type, list(elsewhere.folder.iterdir())) == (kind, [])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"key": "of another"}, "401.*set TEMPER_VLLM_KEY to the key that it was started with"),
        ({"folder_there": "/mnt/other"}, "must see the folder of engine.vllm.adapters.*now /mnt/other"),
        ({"folder": Path("/nowhere")}, "must be a folder that this host can write to, but /nowhere is not"),
    ],
)
def test_a_wrong_key_and_a_folder_that_is_not_shared_are_the_users_mistake(elsewhere, changes, told):
    with pytest.raises(TemperError, match=told) as caught:
        elsewhere.engine(**changes)
    assert caught.value.type == "BadConfig"
    assert "somebody else" not in str(caught.value)


def test_sglang_is_refused_by_its_name(elsewhere):
    elsewhere.stop()
    elsewhere.start(owner="sglang")
    with failing("BadConfig", "is an SGLang server: its answers do not name the adapter"):
        elsewhere.engine()


def test_a_rank_that_it_has_no_room_for_is_the_users_mistake(engine, elsewhere, pocket):
    elsewhere.served.max_lora_rank = 4
    with failing("BadConfig", "LoRA rank 8.*start it with a higher --max-lora-rank"):
        ask(engine, request(), adapter_of(pocket, 1))


def test_an_adapter_that_somebody_unloads_is_loaded_and_proven_again(engine, elsewhere, pocket):
    adapter = adapter_of(pocket, 1)
    ask(engine, request(), adapter)
    proofs = engine.counters()["proofs"]
    elsewhere.served.unload(adapter.sha256)
    with failing("EngineFailed", "must know .*, but does not", retryable=True):
        ask(engine, request(), adapter)
    assert ask(engine, request(), adapter).token_ids
    assert engine.counters()["proofs"] == proofs + 1


def test_an_answer_is_given_away_only_if_its_adapter_is_still_the_one_that_was_proven(engine, elsewhere, pocket):
    adapter = adapter_of(pocket, 1)
    ask(engine, request(), adapter)
    elsewhere.served.replace(adapter.sha256, "/srv/somebody/elses")
    with failing("EngineFailed", "was replaced there while it answered; retry", retryable=True):
        ask(engine, request(), adapter)
    assert ask(engine, request(), adapter).token_ids
    assert elsewhere.served.cards()[1]["root"] == f"{THERE}/{adapter.sha256}"


def test_an_outage_is_told_until_it_is_over_and_all_is_proven_again(engine, elsewhere, pocket):
    adapter = adapter_of(pocket, 1)
    ask(engine, request(), adapter)
    proofs = engine.counters()["proofs"]
    elsewhere.fault = "hangs"
    in_hand = engine.submit(adapter, request(), 120)
    assert eventually(lambda: engine.health().running == 1)
    elsewhere.stop()
    with failing("EngineFailed", "ended before it answered .*; Temper waits until it is back", retryable=True):
        in_hand.result(60)
    away = f"awaited: the vLLM server {elsewhere.url} must answer, but does not"
    assert eventually(lambda: str(engine.health().details["state"]).startswith(away))
    with failing("EngineFailed", "must answer, but does not .*start it, or correct engine.vllm.url", retryable=True):
        ask(engine, request(), adapter)
    elsewhere.fault = ""
    elsewhere.start()
    assert ask_again(engine, request(), adapter).token_ids
    assert engine.counters()["proofs"] == proofs + 2


def test_a_server_that_is_not_there_yet_is_an_outage(elsewhere):
    elsewhere.stop()
    with failing("EngineFailed", "must answer, but does not .*start it", retryable=True):
        elsewhere.engine()


@pytest.mark.parametrize("told", [{"fingerprint": "vllm-0.0-2"}, {"context_window": 512}])
def test_a_server_that_became_another_one_unseen_is_proven_again_before_it_answers(engine, elsewhere, told):
    """As behind a proxy, which hides that it was restarted."""
    ask(engine, request())
    for name, value in told.items():
        setattr(elsewhere.served, name, value)
    assert ask_again(engine, request()).token_ids
    assert engine.counters()["starts"] == 2
    assert (engine.model.context_window == 512) == ("context_window" in told)


def test_a_server_that_comes_back_with_another_model_ends_the_run_and_is_looked_at_again_when_asked_again(elsewhere):
    library = ModelLibrary(dict, torch.float32, torch.device("cpu"))
    host = VllmHost(library, elsewhere.settings())
    engine = host.engine("pocket")
    assert host.recorded("pocket")["engine"] == "vllm 0.0 (external)"
    elsewhere.stop()
    assert eventually(lambda: "must answer" in str(engine.health().details["state"]))
    elsewhere.fault = "another base"
    elsewhere.start()
    assert eventually(lambda: engine.health().failure is not None)
    with pytest.raises(TemperError, match="must serve the weights of pocket") as caught:
        ask(engine, request())
    assert (caught.value.type, host.started()) == ("PolicyMismatch", {})
    elsewhere.fault = ""
    assert ask(host.engine("pocket"), request()).token_ids
    assert (host.shared(), list(host.started())) == ({}, ["pocket"])
    host.close()


def test_a_folder_of_an_adapter_is_complete_or_not_there_and_of_nobody_is_removed(tmp_path, pocket):
    adapter, other = adapter_of(pocket, 1), adapter_of(pocket, 2)
    folders = SharedFolders(tmp_path, f"{THERE}/")
    broken = tmp_path / adapter.sha256
    broken.mkdir()
    (broken / "adapter_model.safetensors").write_bytes(b"half")
    writers = [threading.Thread(target=folders.write, args=(adapter,)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert folders.write(adapter) == f"{THERE}/{adapter.sha256}"
    assert [path.name for path in tmp_path.iterdir()] == [adapter.sha256]
    assert (broken / "adapter_model.safetensors").read_bytes() == adapter.adapter
    # Of a process that ended without removing it, a day ago; what is in use is renewed.
    left = tmp_path / other.sha256
    left.mkdir()
    (tmp_path / "of mine").mkdir()
    for path in tmp_path.iterdir():
        os.utime(path, (0, time.time() - LEFT_BEHIND_S - 60))
    folders.renew()
    assert folders.remove_left_behind() == [other.sha256]
    assert {path.name for path in tmp_path.iterdir()} == {adapter.sha256, "of mine"}
