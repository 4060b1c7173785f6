"""What the engine promises beside its numbers: bounds, deadlines, policies in and out, and no silent death."""

import dataclasses
import threading
import time
from concurrent.futures import Future, wait
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transformers import PreTrainedModel

from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.forward import Forward
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.interface import DeadlinePassed, Generation, QueueFull
from temper_gpu.failures import TemperError
from temper_gpu.model.detokenizer import Detokenizer, stop_check
from temper_gpu.model.lora import Adapter
from tests.engine.embedded.tiny import Held, ask, ask_together, held, open_engine, request, tiny_adapter
from tests.failing import failing


def locked_out(lock: DeviceLock, base, **settings) -> EmbeddedEngine:
    """An engine whose device somebody else has."""
    engine = EmbeddedEngine(base, EmbeddedSettings(num_threads=1, max_pass_tokens=256, **settings), lock)
    lock.acquire()
    return engine


def test_what_does_not_fit_the_context_window_is_refused(engine: EmbeddedEngine):
    with failing("BadConfig", r"512 tokens of qwen2, got 500 \+ 13"):
        ask(engine, request(0, 500, 13))
    assert len(ask(engine, request(0, 500, 12)).token_ids) <= 12


def test_a_stop_token_ends_an_answer_and_stands_in_it(engine: EmbeddedEngine):
    free = ask(engine, request(1, 12, 20))
    stopped = ask(engine, dataclasses.replace(request(1, 12, 20), stop_token_ids=frozenset([free.token_ids[5]])))
    end = free.token_ids.index(free.token_ids[5]) + 1
    assert (stopped.token_ids, stopped.finish_reason) == (free.token_ids[:end], "stop")
    assert free.finish_reason == "length"


def test_a_stop_string_ends_an_answer_with_the_token_that_completes_it(engine: EmbeddedEngine):
    free = ask(engine, request(1, 12, 20))
    decode = Detokenizer(engine.base.tokenizer).decode
    stop = decode(free.token_ids[4:6])
    stopped = ask(engine, dataclasses.replace(request(1, 12, 20), stop=("not in it", stop)))
    end = next(length for length in range(1, 21) if stop in decode(free.token_ids[:length]))
    assert (stopped.token_ids, stopped.finish_reason) == (free.token_ids[:end], "stop")
    assert stopped.logprobs == free.logprobs[:end]


@given(text=st.text("ab漢é", max_size=30), stop=st.text("ab漢é", min_size=1, max_size=3))
def test_a_long_stop_string_costs_little_and_ends_no_other_answer(text: str, stop: str):
    """Bytes are tokens, so characters span some."""
    num_decoded = 0

    def decode(token_ids: list[int]) -> str:
        nonlocal num_decoded
        num_decoded += len(token_ids)
        return bytes(token_ids).decode(errors="replace")

    check = stop_check((stop, "z" * 1000), decode)
    assert check is not None
    token_ids = list(text.encode())
    answers = [token_ids[:length] for length in range(1, len(token_ids) + 1)]
    ends = (len(answer) for answer in answers if stop in bytes(answer).decode(errors="replace"))
    assert next((len(answer) for answer in answers if check(answer)), None) == next(ends, None)
    num_decoded = 0
    assert not check(list(b"." * 4000))
    assert num_decoded < 20
    assert stop_check((), decode) is None


def test_one_more_than_may_wait_is_refused(base):
    lock = DeviceLock()
    engine = locked_out(lock, base, max_waiting=3)
    futures = [engine.submit(None, request(seed, 5, 2), 300) for seed in range(3)]
    with pytest.raises(QueueFull, match="at most 3"):
        engine.submit(None, request(9, 5, 2), 300)
    lock.release()
    assert not wait(futures, 300).not_done
    engine.close()


def test_a_request_past_its_deadline_is_dropped_even_while_the_device_is_taken(base):
    lock = DeviceLock()
    engine = locked_out(lock, base)
    future = engine.submit(None, request(0, 5, 2), 0.1)
    with pytest.raises(DeadlinePassed, match="waiting for a slot"):
        future.result(10)
    lock.release()
    assert ask(engine, request(0, 5, 2)).token_ids
    engine.close()


def test_an_abandoned_request_gives_its_slot_back(engine: EmbeddedEngine):
    future = engine.submit(None, request(0, 5, 400), 300)
    future.cancel()
    ask(engine, request(1, 5, 20))
    deadline = time.monotonic() + 100
    while engine.health().running and time.monotonic() < deadline:
        time.sleep(0.01)
    assert engine.health().running == 0


def test_the_least_recently_used_policy_makes_room(base):
    engine = open_engine(base, max_policies=2)
    loads: list[str] = []

    def use(seed: int) -> None:
        adapter = tiny_adapter(base, seed)

        def load() -> Adapter:
            loads.append(adapter.sha256[-1])
            return adapter

        ask(engine, request(0, 5, 2), Held(adapter.sha256, load))

    for seed in (1, 2, 1, 3, 1, 2):
        use(seed)
    assert loads == ["1", "2", "3", "2"]
    assert [sha256[-1] for sha256 in engine.health().adapters] == ["1", "2"]
    engine.close()


def test_a_policy_with_many_waiting_requests_keeps_no_other_from_its_turn(base):
    """One slot comes free again and again, and each time somebody of the first policy waits for it."""
    lock, ended = DeviceLock(), []
    engine = EmbeddedEngine(base, EmbeddedSettings(num_threads=1, max_pass_tokens=256, max_slots=16), lock)
    others = held(tiny_adapter(base, 1))
    ask(engine, request(0, 5, 1), others)
    requests = [*(request(seed, 5, 200) for seed in range(15)), *(request(seed, 5, 2) for seed in range(15, 40))]
    late: list[Future[Generation]] = []

    def told(token_id: int, logprob: float, top: object) -> None:
        if not late:
            late.append(engine.submit(others, request(99, 5, 2), 300))
            late[0].add_done_callback(lambda _: ended.append("late"))

    requests[0] = dataclasses.replace(requests[0], on_token=told)
    with lock:
        futures = [engine.submit(None, asked, 300) for asked in requests]
        for future in futures:
            future.add_done_callback(lambda _: ended.append("early"))
    assert not wait(futures, 300).not_done
    assert ended.index("late") < 5
    engine.close()


def test_many_requests_share_one_load_and_a_failed_load_fails_them_all(engine: EmbeddedEngine):
    num_loads, may_go_on = [0], threading.Event()

    def load() -> Adapter:
        num_loads[0] += 1
        may_go_on.wait(10)
        raise TemperError("StoreCorrupt", "the adapter must have its hash, it has another")

    futures = [engine.submit(Held("a" * 64, load), request(seed, 5, 2), 300) for seed in range(8)]
    assert ask(engine, request(0, 5, 2)).token_ids  # others go on meanwhile
    may_go_on.set()
    for future in futures:
        with pytest.raises(TemperError, match="its hash"):
            future.result(300)
    assert num_loads == [1]


def test_weights_that_are_not_finite_fail_their_request_and_nobody_else(base, engine: EmbeddedEngine):
    expected = [ask(engine, request(seed, 40, 5)) for seed in range(8)]
    adapter = tiny_adapter(base, 99)  # of no other test: the engine keeps it
    adapter.tensors["base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"][0, 0] = torch.nan
    futures = [engine.submit(held(adapter), request(seed, 50, 5), 300) for seed in range(8)]
    for future in futures:
        with failing("LossNotFinite", "NaN", retryable=False):
            future.result(300)
    assert ask_together(engine, [request(seed, 40, 5) for seed in range(8)]) == expected


def test_a_dead_engine_fails_what_waits_says_so_and_refuses_more(base, monkeypatch: pytest.MonkeyPatch):
    deaths: list[BaseException] = []
    engine = EmbeddedEngine(base, EmbeddedSettings(num_threads=1, max_pass_tokens=256), on_death=deaths.append)
    monkeypatch.setattr(Forward, "prefill", lambda *_: 1 / 0)
    future = engine.submit(None, request(0, 5, 2), 300)
    with pytest.raises(TemperError, match="division by zero"):
        future.result(10)
    engine.close()
    assert isinstance(engine.failure, ZeroDivisionError)
    assert deaths == [engine.failure]
    with failing("EngineFailed", "is down", retryable=True):
        ask(engine, request(0, 5, 2))


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_a_request_that_fails_a_pass_twice_fails_alone_and_the_others_are_answered(
    phase: str, base, monkeypatch: pytest.MonkeyPatch
):
    """At its fifth token, or at its prompt: two that are alike, of an adapter, among nine."""
    deaths: list[BaseException] = []
    settings = EmbeddedSettings(num_threads=1, max_pass_tokens=256, max_slots=16)
    engine = EmbeddedEngine(base, settings, on_death=deaths.append)
    adapter = held(tiny_adapter(base, 98))
    others = [request(seed, 12 + seed, 8) for seed in range(9)]
    expected = [ask(engine, other) for other in others]
    poison, compute = request(77, 100, 8), getattr(Forward, phase)

    def fail_with(forward: Forward, model: PreTrainedModel, *given: Any) -> Tensor:
        # Pieces of prompts, or slots, tokens and positions. Others are shorter.
        end = max(piece.end for piece in given[0]) if phase == "prefill" else given[2].max()
        if end == (100 if phase == "prefill" else 104):
            raise IndexError("index out of range in self")
        return compute(forward, model, *given)

    monkeypatch.setattr(Forward, phase, fail_with)
    futures = [engine.submit(None, others[0], 300), *(engine.submit(adapter, poison, 300) for _ in range(2))]
    rest = [engine.submit(None, other, 300) for other in others[1:]]
    for future in futures[1:]:
        with pytest.raises(IndexError, match="out of range"):
            future.result(300)
    assert [future.result(300) for future in (futures[0], *rest)] == expected
    assert (deaths, engine.health().running, engine.health().waiting) == ([], 0, 0)
    engine.close()


def test_closing_fails_what_waits(base):
    lock = DeviceLock()
    engine = locked_out(lock, base)
    future = engine.submit(None, request(0, 5, 2), 300)
    engine.close()
    with pytest.raises(TemperError, match="was closed"):
        future.result(10)
    with pytest.raises(TemperError, match="is down"):
        ask(engine, request(0, 5, 2))


def test_the_device_goes_to_whoever_waits_longest():
    lock, order = DeviceLock(), []
    lock.acquire()

    def take(name: str) -> None:
        with lock:
            order.append(name)

    threads = []
    for name in "abc":
        threads.append(threading.Thread(target=take, args=(name,)))
        threads[-1].start()
        time.sleep(0.05)
    assert not lock.acquire(timeout=0.01)
    lock.release()
    for thread in threads:
        thread.join(10)
    assert order == ["a", "b", "c"]
    assert lock.acquire(blocking=False)
