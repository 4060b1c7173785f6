"""Where adapters stay beside the weights, policies share passes; each request gets the bits that it gets alone."""

import random
from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import temper_gpu.engine.embedded.engine as engine_module
from temper_gpu.engine.embedded import policies
from temper_gpu.engine.embedded.adapted import AdaptedLinear, AdaptedModel
from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.proof import prove_mixing
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.embedded.sizes import Sizes
from temper_gpu.engine.interface import AdapterSource, Generation, GenerationRequest
from temper_gpu.model.models import BaseModel
from tests.engine.embedded.test_adapters import first_step
from tests.engine.embedded.tiny import ask, held, open_engine, request, tiny_adapter

LOCK = DeviceLock()
SIZES = Sizes((16, 48, 128), 0)


def adapters_of(base: BaseModel) -> list[AdapterSource | None]:
    """The base model; an adapter on all layers, of one block of ranks and of two; one on two layers."""
    made = first_step(base, 1, 8, 3e-3), first_step(base, 2, 100, 3e-3), tiny_adapter(base, 3)
    return [None, *map(held, made)]


def asked(index: int) -> GenerationRequest:
    """Prompts begin alike; some answers are longer than the room that requests begin with."""
    rng, is_long = random.Random(index), index % 5 == 0
    prompt = request(index % 3, 40 if is_long else rng.choice([1, 15, 16, 70, 130]), 1).prompt_token_ids
    end = request(index, rng.choice([1, 5, 16]), 1).prompt_token_ids
    return GenerationRequest((*prompt, *end), 230 if is_long else 1 + index % 9, [1.0, 0.7, 0][index % 3], index)


REQUESTS = [asked(index) for index in range(24)]


@pytest.fixture(scope="module", params=["bfloat16", "float32 as on a GPU"])
def unmerged(request: pytest.FixtureRequest, base: BaseModel, bfloat16: BaseModel) -> Iterator[BaseModel]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        for module in (policies, engine_module):
            monkeypatch.setattr(module, "is_merged", lambda *_: False)
        yield bfloat16 if request.param == "bfloat16" else base


@pytest.fixture(scope="module")
def alone(unmerged: BaseModel) -> list[Generation]:
    engine, adapters = open_engine(unmerged, max_pass_tokens=128), adapters_of(unmerged)
    answers = [ask(engine, asked, adapters[index % 4]) for index, asked in enumerate(REQUESTS)]
    engine.close()
    return answers


@pytest.fixture(scope="module")
def tight(unmerged: BaseModel) -> Iterator[EmbeddedEngine]:
    """With a prefix cache, and with memory for few of the requests at once."""
    per_token = 2 * 2 * 2 * 16 * unmerged.dtype.itemsize
    sizes = {"kv_cache_bytes": 4096 * per_token, "prefix_cache_bytes": 1096 * per_token, "max_pass_tokens": 128}
    engine = open_engine(unmerged, LOCK, **sizes)
    yield engine
    engine.close()


def test_policies_together_answer_as_each_request_alone(
    unmerged: BaseModel, tight: EmbeddedEngine, alone: list[Generation]
):
    adapters = adapters_of(unmerged)
    for adapter in adapters:
        ask(tight, request(0, 5, 1), adapter)
    before = tight.counters()
    with LOCK:
        futures = [tight.submit(adapters[index % 4], asked, 300) for index, asked in enumerate(REQUESTS)]
    assert [future.result(300) for future in futures] == alone
    counters = tight.counters()
    assert counters["preemptions"] > before["preemptions"] and counters["prefix_hits"] > before["prefix_hits"]


@pytest.mark.numerics
@pytest.mark.parametrize("unmerged", ["bfloat16"], indirect=True)
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_schedule_of_several_policies_answers_as_each_request_alone(
    unmerged: BaseModel, tight: EmbeddedEngine, alone: list[Generation], data: st.DataObject
):
    """Requests come in bursts; a burst follows when an answer of the one before is there."""
    adapters = adapters_of(unmerged)
    bursts = data.draw(st.lists(st.lists(st.integers(0, 23), min_size=1, max_size=8), min_size=1, max_size=2))
    futures = []
    for burst in bursts:
        futures += [(index, tight.submit(adapters[index % 4], REQUESTS[index], 300)) for index in burst]
        futures[-1][1].result(300)
    assert [future.result(300) for _, future in futures] == [alone[index] for index, _ in futures]


def test_a_policy_answers_otherwise_than_another(unmerged: BaseModel, tight: EmbeddedEngine):
    answers = [ask(tight, REQUESTS[8], adapter).logprobs for adapter in adapters_of(unmerged)]
    assert len(set(map(tuple, answers))) == 4


def mixing_engine(base: BaseModel, monkeypatch: pytest.MonkeyPatch, mixing: str, **settings) -> EmbeddedEngine:
    """Whatever this processor's bits are."""
    monkeypatch.setattr(engine_module, "prove_mixing", lambda base, sizes, max_slots: (sizes, mixing))
    given = {"num_threads": 1, "max_pass_tokens": 64, "prefix_cache_bytes": 0, **settings}
    return EmbeddedEngine(base, EmbeddedSettings(**given), LOCK)


@pytest.mark.parametrize(("mixing", "num_passes"), [("any", 9), ("alike", 3 * 9), ("none", 4 * 9)])
def test_policies_share_passes_as_far_as_that_is_proven(
    bfloat16: BaseModel, monkeypatch: pytest.MonkeyPatch, mixing: str, num_passes: int
):
    engine, adapters = mixing_engine(bfloat16, monkeypatch, mixing), adapters_of(bfloat16)
    for adapter in adapters:
        ask(engine, request(0, 5, 1), adapter)
    with LOCK:
        futures = [engine.submit(adapters[seed % 4], request(seed, 5, 10), 300) for seed in range(12)]
    assert all(future.result(300).token_ids for future in futures)
    assert engine.counters()["decode_passes"] == num_passes
    engine.close()


@pytest.mark.parametrize("mixing", ["any", "none"])
def test_long_prompts_of_one_policy_leave_passes_to_another_that_decodes(
    bfloat16: BaseModel, monkeypatch: pytest.MonkeyPatch, mixing: str
):
    engine, adapters = mixing_engine(bfloat16, monkeypatch, mixing), adapters_of(bfloat16)
    ask(engine, request(0, 5, 1), adapters[1])
    passes_before = engine.counters()["prefill_passes"]
    passes: list[float] = []
    with LOCK:
        short = engine.submit(adapters[1], request(1, 5, 10), 300)
        long = [engine.submit(None, request(seed, 320, 2), 300) for seed in range(8)]
        short.add_done_callback(lambda _: passes.append(engine.counters()["prefill_passes"] - passes_before))
    assert all(future.result(300).token_ids for future in long)
    assert engine.counters()["prefill_passes"] - passes_before >= 40
    assert passes[0] <= 12
    engine.close()


@pytest.mark.parametrize(("is_plain_row_alone", "found"), [(True, {"alike", "none"}), (False, {"none"})])
def test_rows_that_differ_in_company_compute_alone(
    bfloat16: BaseModel, monkeypatch: pytest.MonkeyPatch, is_plain_row_alone: bool, found: set[str]
):
    starts = AdaptedLinear._starts

    def careless(self, x_MI, weight, adapted, has_plain: bool):
        return starts(self, x_MI, weight, adapted, has_plain) + (0.01 if has_plain or not is_plain_row_alone else 0)

    monkeypatch.setattr(AdaptedLinear, "_starts", careless)
    sizes, mixing = prove_mixing(bfloat16, SIZES, 128)
    assert mixing in found
    # Alone they are the same in every size.
    assert sizes.largest == 128


def test_where_rows_are_as_alone_any_policies_share_a_pass(bfloat16: BaseModel, monkeypatch: pytest.MonkeyPatch):
    """By computing each policy for all rows, whatever this processor's bits are."""

    def by_policy(self, x_1MI, sharing):
        out_1MO = self.frozen(x_1MI)
        for share in sharing.shares:
            if share.policy is not None:
                out_1MO[:, share.rows_N] = self.policies[share.policy](x_1MI)[:, share.rows_N]
        return out_1MO

    monkeypatch.setattr(AdaptedLinear, "_shared", by_policy)
    assert prove_mixing(bfloat16, SIZES, 128)[1] == "any"


def test_layers_that_no_policy_adapts_any_more_are_as_they_were(bfloat16: BaseModel):
    model, ids = AdaptedModel(bfloat16, SIZES), torch.arange(16)[None]
    before = model.for_pass([(None, 16)]).get_submodule("model.layers.0.self_attn.q_proj")
    x = bfloat16.tensors["model.embed_tokens.weight"][ids]
    expected = before(x)
    model.place("a", first_step(bfloat16, 1, 8, 3e-3))
    after = model.for_pass([("a", 16)]).get_submodule("model.layers.0.self_attn.q_proj")
    assert not torch.equal(after(x), expected)
    model.drop("a")
    assert torch.equal(model.for_pass([(None, 16)]).get_submodule("model.layers.0.self_attn.q_proj")(x), expected)
