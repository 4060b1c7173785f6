"""What is kept of prompts changes no bit, keeps to its bound, and saves what it should."""

import random
from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.pieces import cut, piece_keys
from temper_gpu.engine.embedded.prefix_cache import PrefixCache
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.interface import Generation, GenerationRequest
from tests.engine.embedded.tiny import ask, ask_together, held, open_engine, request, tiny_adapter

PER_TOKEN = 2 * 2 * 2 * 16 * 4
TINY = 3 * 64 * PER_TOKEN

rng = random.Random(0)
TEXTS = [request(seed, 400, 1).prompt_token_ids for seed in range(3)]


def prompt(seed: int) -> tuple[int, ...]:
    """Begins as others do, up to a length at which pieces end, or nearly; some are equal."""
    chosen = random.Random(seed % 37)
    shared = chosen.choice([0, 15, 16, 17, 33, 64, 65, 128, 130, 192, 320])
    tail = chosen.choice([0, 1, 15, 16, 31, 64, 70])
    return (*chosen.choice(TEXTS)[:shared], *request(seed % 5, tail or not shared, 1).prompt_token_ids)


REQUESTS = [GenerationRequest(prompt(seed), 1 + seed % 9, [1.0, 0.7, 0][seed % 3], seed) for seed in range(64)]


@pytest.fixture(scope="module")
def adapters(base):
    return [None, *(held(tiny_adapter(base, seed)) for seed in (1, 2))]


@pytest.fixture(scope="module")
def alone(base, adapters):
    engine = open_engine(base)
    answers = [ask(engine, asked, adapters[index % 3]) for index, asked in enumerate(REQUESTS)]
    assert engine.counters()["prefix_tokens"] == 0
    engine.close()
    return answers


@pytest.fixture(scope="module", params=[0, TINY, None], ids=["off", "tiny", "on"])
def engine(request, base):
    engine = open_engine(base, prefix_cache_bytes=request.param, max_slots=32)
    yield engine
    counters = engine.counters()
    assert (counters["prefix_hits"] > 0, counters["prefix_tokens"] > 0) == (request.param != 0,) * 2
    engine.close()


@pytest.mark.numerics
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_schedule_answers_as_each_request_alone_without_a_cache(
    engine: EmbeddedEngine, adapters, alone: list[Generation], data: st.DataObject
):
    """Requests come in bursts; a burst follows when an answer of the one before is there."""
    bursts = data.draw(st.lists(st.lists(st.integers(0, 63), min_size=1, max_size=24), min_size=1, max_size=3))
    futures = []
    for burst in bursts:
        futures += [(index, engine.submit(adapters[index % 3], REQUESTS[index], 300)) for index in burst]
        futures[-1][1].result(300)
    assert [future.result(300) for _, future in futures] == [alone[index] for index, _ in futures]


def test_a_group_computes_its_prompt_once_and_turns_only_what_is_new(base):
    lock = DeviceLock()
    engine = EmbeddedEngine(base, EmbeddedSettings(num_threads=1, max_pass_tokens=256), lock)
    group = [replace(request(0, 300, 3), seed=seed) for seed in range(8)]
    with lock:
        futures = [engine.submit(None, asked, 300) for asked in group]
    answers = [future.result(300) for future in futures]
    assert {name: engine.counters()[name] for name in ("prompt_tokens", "prefix_tokens", "prefix_hits")} == {
        "prompt_tokens": 300,
        "prefix_tokens": 7 * 300,
        "prefix_hits": 7,
    }
    assert len({tuple(answer.token_ids) for answer in answers}) > 1
    turn = (*group[0].prompt_token_ids, *answers[0].token_ids, *range(40))
    ask(engine, replace(group[0], prompt_token_ids=turn))
    assert engine.counters()["prompt_tokens"] == 300 + len(turn) - 256
    engine.close()


def test_kept_prefixes_give_way_to_a_request_that_needs_all_memory(base):
    engine = open_engine(base, kv_cache_bytes=1 << 20, prefix_cache_bytes=1 << 18)
    longest = engine.max_tokens
    expected = ask_together(engine, [request(seed, 130, 2) for seed in range(6)])
    assert 0 < engine.health().details["prefix_cache_bytes"] <= 1 << 18
    assert ask(engine, request(9, longest - 2, 2)).token_ids
    assert engine.health().details["prefix_cache_bytes"] <= (1 << 20) - longest * PER_TOKEN
    assert ask_together(engine, [request(seed, 130, 2) for seed in range(6)]) == expected
    engine.close()


def test_the_least_recently_used_piece_is_dropped_and_the_end_of_a_prompt_before_its_beginning(base):
    table = SlotCache(base.config, base.dtype, base.device)
    table.resize(16, 256)
    table.keys[0].normal_()
    cache = PrefixCache(table, 4 * 64 * PER_TOKEN)
    prompts = [torch.randint(256, (192,)).numpy() for _ in range(2)]
    keys = [piece_keys(None, tokens) for tokens in prompts]

    def keep(index: int) -> None:
        for key, piece in zip(keys[index], cut(prompts[index], index, 0, 192), strict=True):
            cache.keep(key, piece)
        cache.touch(keys[index])

    keep(0)
    assert cache.load(keys[0], 5, 0) == 192
    assert torch.equal(table.keys[0][5, :, :192], table.keys[0][0, :, :192])
    keep(1)
    assert cache.num_bytes == 4 * 64 * PER_TOKEN
    assert (cache.load(keys[0], 6, 0), cache.load(keys[1], 7, 0)) == (64, 192)
    cache.limit(64 * PER_TOKEN)
    assert (cache.load(keys[0], 6, 0), cache.load(keys[1], 7, 0)) == (0, 64)


def test_keys_of_pieces_tell_policies_tokens_and_cuts_apart():
    tokens = torch.arange(192).numpy()
    assert piece_keys(None, tokens) != piece_keys("a", tokens)
    assert piece_keys("a", tokens)[:2] == piece_keys("a", tokens[:130])[:2]
    assert piece_keys("a", tokens)[0] != piece_keys("a", tokens[:64])[0]
    changed = tokens.copy()
    changed[3] = 7
    assert not set(piece_keys("a", tokens)) & set(piece_keys("a", changed))
