"""Memory: the bound of the key-value cache, and what happens to a pass that has no room."""

import copy
import dataclasses
import itertools
import math
import weakref
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
import torch
from transformers import PreTrainedModel

from temper_gpu.engine.embedded import kv_cache, scheduler
from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.forward import Forward
from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.pieces import Piece
from temper_gpu.engine.embedded.prefix_cache import PrefixCache
from temper_gpu.engine.embedded.requests import Sequence
from temper_gpu.engine.embedded.sizes import Sizes
from temper_gpu.engine.embedded.slots import Slots
from temper_gpu.engine.interface import AdapterSource, Generation, GenerationRequest
from temper_gpu.failures import TemperError
from temper_gpu.server.answers import http_meaning
from tests.engine.embedded.tiny import ask, ask_together, held, open_engine, request, tiny_adapter


@pytest.fixture(scope="module")
def outgrowing(base) -> list[tuple[GenerationRequest, AdapterSource | None]]:
    """Answers are longer than the room that requests begin with; adapters take turns."""
    adapters = [None, held(tiny_adapter(base, 1))]
    return [(request(seed % 7, 10 + seed, 60 + 7 * seed), adapters[seed % 2]) for seed in range(18)]


@pytest.fixture(scope="module")
def answers_with_room(base, outgrowing) -> list[Generation]:
    roomy = open_engine(base)
    answers = [ask(roomy, *task) for task in outgrowing]
    assert roomy.counters()["preemptions"] == 0
    roomy.close()
    return answers


@pytest.mark.numerics
@pytest.mark.parametrize("prefix_cache_bytes", [0, 1 << 18])
def test_requests_that_outgrow_the_memory_begin_again_and_answer_the_same(
    base, outgrowing, answers_with_room, prefix_cache_bytes: int
):
    tight = open_engine(base, kv_cache_bytes=1 << 20, prefix_cache_bytes=prefix_cache_bytes)
    futures = [tight.submit(adapter, asked, 300) for asked, adapter in outgrowing]
    assert [future.result(300) for future in futures] == answers_with_room
    assert tight.counters()["preemptions"] > 0
    assert (tight.health().running, tight.health().waiting) == (0, 0)
    tight.close()


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
@pytest.mark.numerics
def test_the_key_value_cache_keeps_to_its_bound_while_it_grows_and_narrows(base, most_bytes: list[int], kib: int):
    engine = open_engine(base, kv_cache_bytes=kib << 10)
    most_bytes[0] = 0  # of the proof at start
    lengths = (12, 70, 12, 20, 40, 12, 5, 60)
    requests = [request(seed, lengths[seed % 8], 3) for seed in range(40)]
    longest = engine.max_tokens
    assert ask_together(engine, requests) == [ask(engine, asked) for asked in requests]
    assert ask(engine, request(1, min(longest, 512) - 2, 2)).token_ids
    assert 0 < most_bytes[0] <= kib << 10
    engine.close()


@pytest.mark.parametrize("was_preempted", [False, True])
def test_slots_that_a_long_request_left_narrow_their_room_beside_what_still_runs(base, was_preempted: bool):
    cache = SlotCache(base.config, base.dtype, base.device)
    slots = Slots(cache, PrefixCache(cache, 0), Sizes((16, 32), 0), 32, 2 << 20, 512)
    long, *short = [Sequence(None, request(0, length, 300), math.inf, str) for length in (400, *[12] * 12)]
    short[0].was_preempted = was_preempted
    assert slots.take(long)
    assert slots.take(short[0])
    cache.keys[0][short[0].slot, :, :12] = 7
    slots.positions[short[0].slot] = 12
    assert [slots.take(each) for each in short[1:3]] == [True, False]
    slots.release(long, True)
    # One that had too little room once keeps all that it may need.
    assert [slots.take(each) for each in short[2:]] == ([True, *[False] * 9] if was_preempted else [True] * 10)
    assert bool((cache.keys[0][short[0].slot, :, :12] == 7).all())


def test_a_request_that_the_key_value_cache_has_no_room_for_is_refused_with_figures_and_the_flag(base):
    engine = open_engine(base, kv_cache_bytes=1 << 20)
    longest = engine.max_tokens
    assert longest < 512 == base.context_window
    with pytest.raises(TemperError, match=rf"{longest - 2} \+ 3 tokens.*MiB.*1\.0 MiB.*--kv-cache-bytes") as caught:
        ask(engine, request(0, longest - 2, 3))
    assert (caught.value.type, http_meaning(caught.value)[0]) == ("BadConfig", 400)
    assert ask(engine, request(0, longest - 2, 2)).token_ids
    engine.close()


def test_a_model_of_which_not_one_block_fits_ends_the_start(base):
    wide = dataclasses.replace(base, config=copy.deepcopy(base.config))
    wide.config.num_hidden_layers = 4096
    with pytest.raises(TemperError, match=r"must hold 3 requests of 64 tokens \(256.0 MiB\).*--kv-cache-bytes"):
        cache = SlotCache(wide.config, wide.dtype, wide.device)
        Slots(cache, PrefixCache(cache, 1 << 18), Sizes((16, 32), 0), 32, 1 << 20, 512)


def test_passes_without_room_fail_what_runs_and_after_three_in_a_row_for_good(base, monkeypatch: pytest.MonkeyPatch):
    engine = open_engine(base)
    expected = ask(engine, request(0, 5, 2))
    with monkeypatch.context() as patch:
        patch.setattr(Forward, "prefill", lambda *_: torch.empty(1 << 60))
        meanings = []
        for _ in range(4):
            with pytest.raises(TemperError, match=r"must fit into memory: .*tried to allocate \d+ bytes") as caught:
                ask(engine, request(0, 5, 2))
            meanings.append((caught.value.type, http_meaning(caught.value)[0]))
        assert meanings == [("EngineFailed", 503)] * 2 + [("OutOfMemory", 422)] * 2
        assert "lower --kv-cache-bytes or --slots" in caught.value.message
    assert (engine.failure, ask(engine, request(0, 5, 2))) == (None, expected)
    with monkeypatch.context() as patch:
        patch.setattr(Forward, "decode", lambda *_: bytearray(1 << 62))
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
    return [engine.submit(None, asked, 300) for asked in requests]


@pytest.mark.parametrize("place", ["prefill", "decode", "sampling", "table"])
def test_a_pass_without_room_fails_the_longest_request_alone(base, no_room, monkeypatch, place: str):
    lock = DeviceLock()
    roomy, engine = (open_engine(base, lock, prefix_cache_bytes=None) for _ in range(2))
    requests = [request(seed, 5 + seed, 8) for seed in range(6)]
    requests[3] = request(3, 70, 9)
    expected = [ask(roomy, asked) for asked in requests]
    roomy.close()
    monkeypatch.setattr(kv_cache, "torch", SimpleNamespace(zeros=torch.zeros, long=torch.long))
    owner, name, nth = {
        "prefill": (Forward, "prefill", 1),
        # Of eight tokens three are there.
        "decode": (Forward, "decode", 3),
        "sampling": (scheduler, "sample", 3),
        # In the middle of growing: the keys and values of those who have a slot already are gone.
        "table": (kv_cache.torch, "zeros", 2),
    }[place]
    no_room(owner, name, nth)
    with lock:
        futures = submit_all(engine, requests)
    with pytest.raises(TemperError, match=r"must fit into memory: .*retrying \(1 of 3\)") as caught:
        futures.pop(3).result(300)
    assert (caught.value.type, http_meaning(caught.value)[0]) == ("EngineFailed", 503)
    assert [future.result(300) for future in futures] == expected[:3] + expected[4:]
    assert ask(engine, requests[3]) == expected[3]
    assert (engine.health().running, engine.health().waiting) == (0, 0)
    engine.close()


def test_a_request_without_room_while_it_is_repeated_alone_fails_alone(base, monkeypatch: pytest.MonkeyPatch):
    lock, failed = DeviceLock(), []
    engine = open_engine(base, lock)
    requests = [request(seed, 100, 2) for seed in range(2)]
    expected = ask(engine, requests[1])
    prefill, resize = Forward.prefill, SlotCache.resize

    def fail_once(forward: Forward, model: PreTrainedModel, pieces: list[Piece]) -> torch.Tensor:
        if not failed:
            failed.append("pass")
            raise RuntimeError("a kernel failed")
        return prefill(forward, model, pieces)

    def scarce(cache: SlotCache, num_slots: int, capacity: int) -> None:
        # The plain request between them needs a short table.
        if failed == ["pass"] and capacity > 64:
            failed.append("memory")
            torch.empty(1 << 60)
        resize(cache, num_slots, capacity)

    monkeypatch.setattr(Forward, "prefill", fail_once)
    monkeypatch.setattr(SlotCache, "resize", scarce)
    with lock:
        futures = submit_all(engine, requests)
    with pytest.raises(TemperError, match="must fit into memory"):
        futures[0].result(300)
    assert futures[1].result(300) == expected
    assert (engine.failure, engine.health().running, engine.health().waiting) == (None, 0, 0)
    engine.close()


def test_while_there_is_no_room_requests_are_dropped_one_by_one_the_longest_first(base, monkeypatch):
    lock, ended = DeviceLock(), []
    engine = open_engine(base, lock)
    requests = [request(seed, 5 + seed, 2) for seed in (1, 3, 0, 2)]
    expected = ask(engine, requests[2])
    prefill = Forward.prefill

    def scarce(forward: Forward, model: PreTrainedModel, pieces: list[Piece]) -> torch.Tensor:
        if len({piece.slot for piece in pieces}) > 1:
            torch.empty(1 << 60)
        return prefill(forward, model, pieces)

    monkeypatch.setattr(Forward, "prefill", scarce)
    with lock:
        futures = submit_all(engine, requests)
        for index, future in enumerate(futures):
            future.add_done_callback(lambda _, index=index: ended.append(index))
    assert futures[2].result(300) == expected
    assert ended == [1, 3, 0, 2]
    # One lack of memory is one try, however many it takes along.
    for index in (0, 1, 3):
        with pytest.raises(TemperError, match=r"retrying \(1 of 3\)"):
            futures[index].result(300)
    engine.close()


def test_a_request_that_never_fits_is_refused_for_good_though_shorter_ones_are_answered(base, monkeypatch):
    engine = open_engine(base)
    prefill = Forward.prefill

    def scarce(forward: Forward, model: PreTrainedModel, pieces: list[Piece]) -> torch.Tensor:
        if any(piece.end > 50 for piece in pieces):
            torch.empty(1 << 60)
        return prefill(forward, model, pieces)

    monkeypatch.setattr(Forward, "prefill", scarce)
    types = []
    for _ in range(3):
        with pytest.raises(TemperError) as caught:
            ask(engine, request(0, 60, 2))
        types.append(caught.value.type)
        assert ask(engine, request(1, 5, 2)).token_ids
    assert types == ["EngineFailed", "EngineFailed", "OutOfMemory"]
    engine.close()
