"""What the engine promises beside its numbers: bounds, deadlines, policies in and out, and no silent death."""

import copy
import dataclasses
import itertools
import threading
import time
import weakref
from concurrent.futures import Future, wait
from types import SimpleNamespace

import pytest
import torch

from temper_gpu.answers import http_meaning
from temper_gpu.detokenizer import Detokenizer
from temper_gpu.engine import kv_cache, scheduler
from temper_gpu.engine.device_lock import DeviceLock
from temper_gpu.engine.engine import EmbeddedEngine
from temper_gpu.engine.interface import DeadlinePassed, Generation, GenerationRequest, QueueFull
from temper_gpu.engine.kv_cache import SlotCache
from temper_gpu.engine.requests import stop_check
from temper_gpu.engine.sizes import Sizes
from temper_gpu.engine.slots import Slots
from temper_gpu.failures import TemperError
from temper_gpu.lora import Adapter, merged_weights
from temper_gpu.settings import EngineSettings
from tests.engine.tiny import Held, ask, ask_together, held, open_engine, request, tiny_adapter


def locked_out(lock: DeviceLock, base, **settings) -> EmbeddedEngine:
    """An engine whose device somebody else has."""
    engine = EmbeddedEngine(base, EngineSettings(num_threads=1, **settings), lock)
    lock.acquire()
    return engine


def test_what_does_not_fit_the_context_window_is_refused(engine: EmbeddedEngine):
    with pytest.raises(TemperError, match=r"512 tokens of qwen2, got 500 \+ 13") as caught:
        ask(engine, request(0, 500, 13))
    assert caught.value.type == "BadConfig"
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


def test_a_stop_string_may_span_tokens():
    check = stop_check(("END",), lambda token_ids: "".join(map(chr, token_ids)))
    assert check is not None
    text = [ord(letter) for letter in "x" * 100 + "END"]
    assert [check(text[:length]) for length in (1, 101, 102, 103)] == [False, False, False, True]
    assert stop_check((), str) is None


def test_one_more_than_may_wait_is_refused(base):
    lock = DeviceLock()
    engine = locked_out(lock, base, max_waiting=3)
    futures = [engine.submit(None, request(seed, 5, 2), 60) for seed in range(3)]
    with pytest.raises(QueueFull, match="at most 3"):
        engine.submit(None, request(9, 5, 2), 60)
    lock.release()
    assert not wait(futures, 60).not_done
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
    future = engine.submit(None, request(0, 5, 400), 60)
    future.cancel()
    ask(engine, request(1, 5, 20))
    deadline = time.monotonic() + 10
    while engine.health().running and time.monotonic() < deadline:
        time.sleep(0.01)
    assert engine.health().running == 0


def test_more_requests_than_slots_take_turns(base):
    engine = open_engine(base, max_slots=16)
    requests = [request(seed, 12, 5) for seed in range(50)]
    assert ask_together(engine, requests) == [ask(engine, asked) for asked in requests]
    engine.close()


def test_memory_bounds_how_many_long_requests_run_at_once(base):
    per_token = 2 * 2 * 2 * 16 * 4
    engine = open_engine(base, kv_cache_bytes=64 * 128 * per_token, max_pass_tokens=128)
    requests = [request(seed, 12, 4) for seed in range(60)] + [
        request(99, 300, 30),
        *(request(s, 100, 5) for s in range(5)),
    ]
    assert ask_together(engine, requests)[:3] == [ask(engine, asked) for asked in requests[:3]]
    assert ask_together(engine, requests[:60]) == [ask(engine, asked) for asked in requests[:60]]
    engine.close()


@pytest.fixture
def most_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The most bytes of slot tables that were there at once, by the tensors themselves."""
    most, living = [0], [0]
    zeros = torch.zeros

    def forget(num_bytes: int) -> None:
        living[0] -= num_bytes

    def counted(*arguments, **options):
        made = zeros(*arguments, **options)
        weakref.finalize(made, forget, made.nbytes)
        living[0] += made.nbytes
        most[0] = max(most[0], living[0])
        return made

    monkeypatch.setattr(kv_cache, "torch", SimpleNamespace(zeros=counted, long=torch.long))
    return most


@pytest.mark.parametrize("kib", [1024, 1500, 3000])
def test_the_key_value_cache_keeps_to_its_bound_while_it_grows_and_narrows(base, most_bytes: list[int], kib: int):
    engine = open_engine(base, kv_cache_bytes=kib << 10)
    most_bytes[0] = 0  # of the proof at start
    lengths = (12, 70, 12, 20, 40, 12, 5, 60)
    requests = [request(seed, lengths[seed % 8], 3) for seed in range(40)]
    longest = engine._scheduler.max_tokens
    assert ask_together(engine, requests) == [ask(engine, asked) for asked in requests]
    assert ask(engine, request(1, min(longest, 512) - 2, 2)).token_ids
    assert 0 < most_bytes[0] <= kib << 10
    engine.close()


def test_a_request_that_the_key_value_cache_has_no_room_for_is_refused_with_figures_and_the_flag(base):
    engine = open_engine(base, kv_cache_bytes=1 << 20)
    longest = engine._scheduler.max_tokens
    assert longest < 512 == base.context_window
    with pytest.raises(TemperError, match=rf"{longest - 2} \+ 3 tokens.*MiB.*1\.0 MiB.*--kv-cache-bytes") as caught:
        ask(engine, request(0, longest - 2, 3))
    assert (caught.value.type, http_meaning(caught.value)[0]) == ("BadConfig", 400)
    assert ask(engine, request(0, longest - 2, 2)).token_ids
    engine.close()


def test_a_model_of_which_not_one_block_fits_ends_the_start(base):
    wide = dataclasses.replace(base, config=copy.deepcopy(base.config))
    wide.config.num_hidden_layers = 4096
    with pytest.raises(TemperError, match=r"must hold 16 requests of 16 tokens \(272.0 MiB\).*--kv-cache-bytes"):
        Slots(SlotCache(wide.config, wide.dtype, wide.device), Sizes((16, 32), 0), 32, 1 << 20, 512)


def test_a_policy_answers_as_the_model_with_its_merged_weights(base):
    adapter = tiny_adapter(base, 1)
    merged = dataclasses.replace(base, tensors={**base.tensors, **merged_weights(base, adapter)})
    engine, expected = open_engine(base), open_engine(merged)
    asked = request(3, 12, 10)
    assert ask(engine, asked, held(adapter)) == ask(expected, asked)
    assert ask(engine, asked) != ask(expected, asked)
    engine.close()
    expected.close()


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


def test_many_requests_share_one_load_and_a_failed_load_fails_them_all(base):
    engine = open_engine(base)
    num_loads, may_go_on = [0], threading.Event()

    def load() -> Adapter:
        num_loads[0] += 1
        may_go_on.wait(10)
        raise TemperError("StoreCorrupt", "the adapter must have its hash, it has another")

    futures = [engine.submit(Held("a" * 64, load), request(seed, 5, 2), 60) for seed in range(8)]
    assert ask(engine, request(0, 5, 2)).token_ids  # others go on meanwhile
    may_go_on.set()
    for future in futures:
        with pytest.raises(TemperError, match="its hash"):
            future.result(60)
    assert num_loads == [1]
    engine.close()


def test_weights_that_are_not_finite_fail_their_request_and_nobody_else(base):
    engine = open_engine(base)
    expected = [ask(engine, request(seed, 40, 5)) for seed in range(8)]
    adapter = tiny_adapter(base, 1)
    adapter.tensors["base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"][0, 0] = torch.nan
    futures = [engine.submit(held(adapter), request(seed, 50, 5), 60) for seed in range(8)]
    for future in futures:
        with pytest.raises(TemperError, match="NaN") as caught:
            future.result(60)
        assert not caught.value.retryable
    assert ask_together(engine, [request(seed, 40, 5) for seed in range(8)]) == expected
    engine.close()


def test_a_dead_engine_fails_what_waits_says_so_and_refuses_more(base, monkeypatch: pytest.MonkeyPatch):
    deaths: list[BaseException] = []
    engine = EmbeddedEngine(base, EngineSettings(num_threads=1), on_death=deaths.append)
    monkeypatch.setattr(engine._scheduler, "_prefill", lambda sequences: 1 / 0)
    future = engine.submit(None, request(0, 5, 2), 60)
    with pytest.raises(TemperError, match="division by zero"):
        future.result(10)
    engine._thread.join(10)
    assert isinstance(engine.failure, ZeroDivisionError)
    assert deaths == [engine.failure]
    with pytest.raises(TemperError, match="is down") as caught:
        ask(engine, request(0, 5, 2))
    assert caught.value.retryable


def test_passes_without_room_fail_what_runs_and_after_three_in_a_row_for_good(base, monkeypatch: pytest.MonkeyPatch):
    engine = open_engine(base)
    expected = ask(engine, request(0, 5, 2))
    with monkeypatch.context() as patch:
        patch.setattr(engine._scheduler, "_prefill", lambda sequences: torch.empty(1 << 60))
        meanings = []
        for _ in range(4):
            with pytest.raises(TemperError, match=r"must fit into memory: .*tried to allocate \d+ bytes") as caught:
                ask(engine, request(0, 5, 2))
            meanings.append((caught.value.type, http_meaning(caught.value)[0]))
        assert meanings == [("EngineFailed", 503)] * 2 + [("OutOfMemory", 422)] * 2
        assert "lower --kv-cache-bytes or --slots" in caught.value.message
    assert (engine.failure, ask(engine, request(0, 5, 2))) == (None, expected)
    with monkeypatch.context() as patch:
        patch.setattr(engine._scheduler, "_decode", lambda sequences: bytearray(1 << 62))
        with pytest.raises(TemperError) as caught:
            ask(engine, request(0, 5, 2))
    assert caught.value.type == "EngineFailed"  # after an answer the count begins anew
    assert engine.health().running == 0
    engine.close()


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch):
    """Makes one later call of a function fail for lack of memory."""

    def fail(owner: object, name: str, nth: int) -> None:
        true, calls = getattr(owner, name), itertools.count(1)

        def scarce(*arguments, **options):
            if next(calls) == nth:
                torch.empty(1 << 60)
            return true(*arguments, **options)

        monkeypatch.setattr(owner, name, scarce)

    return fail


def submit_all(engine: EmbeddedEngine, requests: list[GenerationRequest]) -> list[Future[Generation]]:
    return [engine.submit(None, asked, 60) for asked in requests]


@pytest.mark.parametrize("place", ["prefill", "decode", "sampling", "table"])
def test_a_pass_without_room_fails_the_longest_request_alone(base, no_room, monkeypatch, place: str):
    lock = DeviceLock()
    engine = EmbeddedEngine(base, EngineSettings(num_threads=1), lock)
    requests = [request(seed, 5 + seed, 8) for seed in range(6)]
    requests[3] = request(3, 70, 9)
    expected = [ask(engine, asked) for asked in requests]
    monkeypatch.setattr(kv_cache, "torch", SimpleNamespace(zeros=torch.zeros, long=torch.long))
    owner, name, nth = {
        "prefill": (engine._scheduler._forward, "prefill", 1),
        # Of eight tokens three are there.
        "decode": (engine._scheduler._forward, "decode", 3),
        "sampling": (scheduler, "sample", 3),
        # In the middle of growing: the keys and values of those who have a slot already are gone.
        "table": (kv_cache.torch, "zeros", 6),
    }[place]
    engine._scheduler._slots.clear()
    no_room(owner, name, nth)
    with lock:
        futures = submit_all(engine, requests)
    with pytest.raises(TemperError, match=r"must fit into memory: .*retrying \(1 of 3\)") as caught:
        futures.pop(3).result(60)
    assert (caught.value.type, http_meaning(caught.value)[0]) == ("EngineFailed", 503)
    assert [future.result(60) for future in futures] == expected[:3] + expected[4:]
    assert ask(engine, requests[3]) == expected[3]
    assert (engine.health().running, engine.health().waiting) == (0, 0)
    engine.close()


def test_while_there_is_no_room_requests_are_dropped_one_by_one_the_longest_first(base, monkeypatch):
    lock, ended = DeviceLock(), []
    engine = EmbeddedEngine(base, EngineSettings(num_threads=1), lock)
    requests = [request(seed, 5 + seed, 2) for seed in (1, 3, 0, 2)]
    expected = ask(engine, requests[2])
    prefill = engine._scheduler._prefill

    def scarce(sequences):
        if len(sequences) > 1:
            torch.empty(1 << 60)
        prefill(sequences)

    monkeypatch.setattr(engine._scheduler, "_prefill", scarce)
    with lock:
        futures = submit_all(engine, requests)
        for index, future in enumerate(futures):
            future.add_done_callback(lambda _, index=index: ended.append(index))
    assert futures[2].result(60) == expected
    assert ended == [1, 3, 0, 2]
    # One lack of memory is one try, however many it takes along.
    for index in (0, 1, 3):
        with pytest.raises(TemperError, match=r"retrying \(1 of 3\)"):
            futures[index].result(60)
    engine.close()


def test_a_request_that_never_fits_is_refused_for_good_though_shorter_ones_are_answered(base, monkeypatch):
    engine = open_engine(base)
    prefill = engine._scheduler._prefill

    def scarce(sequences):
        if any(len(sequence.prompt) > 50 for sequence in sequences):
            torch.empty(1 << 60)
        prefill(sequences)

    monkeypatch.setattr(engine._scheduler, "_prefill", scarce)
    types = []
    for _ in range(3):
        with pytest.raises(TemperError) as caught:
            ask(engine, request(0, 60, 2))
        types.append(caught.value.type)
        assert ask(engine, request(1, 5, 2)).token_ids
    assert types == ["EngineFailed", "EngineFailed", "OutOfMemory"]
    engine.close()


def test_closing_fails_what_waits(base):
    lock = DeviceLock()
    engine = locked_out(lock, base)
    future = engine.submit(None, request(0, 5, 2), 60)
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
