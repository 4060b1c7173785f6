"""The vLLM engine before a stand-in server: what it asks for, what it makes of answers, and what outlives a server."""

import dataclasses
import os
import signal
import threading

import pytest
import torch

from temper_gpu.engine.interface import ContextTooLong, DeadlinePassed, Distribution
from temper_gpu.engine.vllm.server import parameters
from temper_gpu.engine.vllm.switching import Release
from temper_gpu.failures import TemperError
from temper_gpu.model.detokenizer import Detokenizer
from tests.engine.vllm.stood import adapter_of, ask, ask_again, eventually, request, session_of
from tests.failing import failing


def test_an_answer_has_the_sampled_tokens_and_their_log_probabilities_after_temperature(engine, pocket):
    asked = request(8, 12, temperature=0.5)
    answer = ask(engine, asked)
    ids = torch.tensor([[*asked.prompt_token_ids, *answer.token_ids]])
    logits = pocket.instantiate("sdpa")(input_ids=ids, use_cache=False).logits[0, 7:-1] / 0.5
    expected = logits.log_softmax(-1).gather(1, ids[0, 8:, None])[:, 0]
    assert torch.allclose(torch.tensor(answer.logprobs), expected, atol=1e-5)
    assert (len(answer.token_ids), answer.finish_reason) == (12, "length")


def test_the_likeliest_tokens_are_told_beside_each_sampled_one(engine):
    answer = ask(engine, request(max_tokens=3, num_top_logprobs=2))
    assert [len(top) for top in answer.top_logprobs] == [2, 2, 2]
    for top, token_id, logprob in zip(answer.top_logprobs, answer.token_ids, answer.logprobs, strict=True):
        assert top == sorted(top, key=lambda each: -each[1])
        assert dict(top).get(token_id, logprob) == logprob


def test_what_changes_a_distribution_is_passed_on_by_its_name():
    told = parameters(Distribution(top_p=0.9, top_k=5, repetition_penalty=1.1, logit_bias=((7, -1.0),)))
    assert (told["top_p"], told["top_k"], told["repetition_penalty"], told["min_p"]) == (0.9, 5, 1.1, 0.0)
    assert told["logit_bias"] == {"7": -1.0}
    names = {field.name for field in dataclasses.fields(Distribution)}
    assert told.keys() == names, "a new one has to be passed on, too"


def test_an_adapter_is_loaded_once_under_its_hash_and_dropped_when_others_come(engine, pocket, fault):
    first, *others = (adapter_of(pocket, seed) for seed in range(3))
    before = engine.counters()["proofs"]
    for _ in range(2):
        ask(engine, request(), first)
    assert engine.counters()["proofs"] == before + 1
    for adapter in others:
        ask(engine, request(), adapter)
    assert engine.health().adapters == tuple(adapter.sha256 for adapter in others)


def test_an_answer_ends_with_the_token_that_completes_a_stop_string_wherever_vllm_ends_it(engine, pocket, fault):
    detokenizer = Detokenizer(pocket.tokenizer)
    text = detokenizer.decode(ask(engine, request(max_tokens=24, temperature=0.0)).token_ids)
    stop = text[4:6]
    expected = text[: text.index(stop) + len(stop)]
    answer = ask(engine, request(max_tokens=24, temperature=0.0, stop=(stop,)))
    assert (detokenizer.decode(answer.token_ids), answer.finish_reason) == (expected, "stop")
    # A server that found the string in a text of its own goes on.
    fault.write_text("stops early")
    again = ask(engine, request(max_tokens=24, temperature=0.0, stop=(stop,)))
    fault.write_text("")
    assert (again.token_ids, again.finish_reason) == (answer.token_ids, "stop")
    assert again.logprobs == pytest.approx(answer.logprobs, abs=1e-5)


def test_requests_that_cannot_be_answered_are_refused_before_they_are_sent(engine):
    with pytest.raises(ContextTooLong):
        engine.submit(None, request(max_tokens=5000), 10)
    with pytest.raises(TemperError, match="temperature must be finite"):
        engine.submit(None, request(temperature=float("nan")), 10)


def test_a_deadline_passes_and_an_abandoned_request_frees_its_place(engine, fault):
    fault.write_text("hangs")
    with pytest.raises(DeadlinePassed):
        engine.submit(None, request(), 0.3).result(60)
    abandoned = engine.submit(None, request(), 600)
    assert eventually(lambda: engine.health().running == 1)
    abandoned.cancel()
    assert eventually(lambda: engine.health().running == 0)
    fault.write_text("")
    assert ask(engine, request()).token_ids


def test_after_the_death_of_its_server_what_was_in_hand_fails_as_an_outage_and_the_rest_is_answered(
    engine, pocket, fault
):
    adapter = adapter_of(pocket, 7)
    ask(engine, request(), adapter)
    pid = engine.health().details["pid"]
    starts = engine.counters()["starts"]
    fault.write_text("dies")
    with failing("EngineFailed", "being restarted", retryable=True):
        ask(engine, request(), adapter)
    fault.write_text("")
    assert ask_again(engine, request(), adapter).token_ids
    assert engine.counters()["starts"] > starts
    assert session_of(pid) == []


def test_no_process_is_left_where_the_guard_itself_is_killed(engine):
    pid = engine.health().details["pid"]
    assert len(session_of(pid)) == 3
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: session_of(pid) == [])
    assert ask_again(engine, request()).token_ids


@pytest.fixture
def told(engine, fault):
    """Since the test began."""
    file = fault.with_name("told")
    file.write_text("")
    return lambda: file.read_text().split()


@pytest.mark.parametrize(
    ("release", "first", "last"),
    [
        ("nothing", [], []),
        ("cache", ["/sleep?level=0", "/release_kv_cache_memory"], ["/wake_up?tags=kv_cache"]),
        ("all", ["/sleep?level=1"], ["/wake_up"]),
    ],
)
def test_whatever_is_released_requests_wait_until_it_is_back(engine, told, release: Release, first, last):
    engine.pause()
    assert engine.release(release) == release
    future = engine.submit(None, request(), 60)
    with pytest.raises(TimeoutError):
        future.result(0.3)
    assert engine.health().details["state"] == ("asleep" if release == "all" else "paused")
    assert told() == first
    engine.resume()
    assert future.result(60).token_ids
    assert (told(), engine.health().details["state"]) == ([*first, *last], "ready")


def test_a_start_is_awaited_before_memory_is_released(engine, told, monkeypatch):
    begun, may_end = threading.Event(), threading.Event()
    start = engine._supervisor._start

    def start_slowly():
        begun.set()
        assert may_end.wait(60)
        return start()

    monkeypatch.setattr(engine._supervisor, "_start", start_slowly)
    os.kill(engine.health().details["pid"], signal.SIGKILL)
    assert begun.wait(60)
    training = threading.Thread(target=lambda: (engine.pause(), engine.release("all")))
    training.start()
    training.join(0.3)
    assert (training.is_alive(), told()) == (True, [])
    may_end.set()
    training.join(60)
    assert told() == ["/sleep?level=1"]
    engine.resume()
    assert ask(engine, request()).token_ids


def test_a_vllm_that_keeps_its_cache_sleeps(engine, told, fault):
    starts = engine.counters()["starts"]
    fault.write_text("keeps its cache")
    engine.pause()
    assert engine.release("cache") == "all"
    engine.resume()
    assert told() == ["/sleep?level=0", "/sleep?level=1", "/wake_up"]
    assert ask(engine, request()).token_ids
    assert engine.counters()["starts"] == starts
