"""Adapters below float32: beside the weights, where a merge would lose them; and what is lost is seen."""

import random
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from temper_gpu.engine.embedded import adapted, policies
from temper_gpu.engine.embedded.adapted import AdaptedLinear, AdaptedModel
from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.policies import Policies
from temper_gpu.engine.embedded.proof import prove_sizes
from temper_gpu.engine.embedded.sizes import Sizes
from temper_gpu.engine.interface import AdapterSource, Generation, GenerationRequest
from temper_gpu.failures import TemperError
from temper_gpu.model.lora import (
    LORA_A,
    LORA_B,
    MAGNITUDE,
    PREFIX,
    Adapter,
    LoraLinear,
    initial_tensors,
    merged_weight,
    merged_weights,
    row_norms,
    target_modules,
)
from temper_gpu.model.models import BaseModel
from temper_gpu.server.answers import http_meaning
from tests.engine.embedded.tiny import Held, ask, held, open_engine, request, tiny_adapter, tiny_base
from tests.failing import failing
from tests.tier import IS_NIGHTLY

pytestmark = pytest.mark.numerics

# A fresh adapter after one step of Adam: every number of B has moved by about the learning rate.
LEARNING_RATE = 1e-4


@pytest.fixture(scope="module")
def engine(bfloat16: BaseModel) -> Iterator[EmbeddedEngine]:
    """For all tests: each brings adapters with hashes of their own."""
    engine = open_engine(bfloat16)
    yield engine
    engine.close()


def first_step(
    base: BaseModel, seed: int, rank: int = 16, learning_rate: float = LEARNING_RATE, has_magnitudes: bool = False
) -> Adapter:
    model = base.instantiate("eager")
    tensors = initial_tensors(model, target_modules(model, None), rank, seed, None, has_magnitudes)
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in tensors.items():
        if ".lora_B." in name:
            tensors[name] = learning_rate * torch.randn(tensor.shape, generator=generator).sign()
        elif name.endswith(MAGNITUDE):
            tensors[name] = tensor + 10 * learning_rate * torch.randn(tensor.shape, generator=generator).sign()
    return Adapter(f"{seed:064x}", tensors, rank, 2.0 * rank)


def ask_policy(engine: EmbeddedEngine, adapter: Adapter, seeds: range, together: bool = True) -> list[Generation]:
    futures = []
    for seed in seeds:
        asked = request(seed, 5 + seed % 40, 6)
        futures.append(engine.submit(held(adapter), asked, 300))
        if not together:
            futures[-1].result(300)
    return [future.result(300) for future in futures]


def open_policies(base: BaseModel, most: int = 8, lock: AbstractContextManager[object] | None = None) -> Policies:
    return Policies(base, most, lock or threading.Lock())


def share_left(changed_MO: Tensor, plain_MO: Tensor, wanted_MO: Tensor) -> float:
    return float(((changed_MO.float() - plain_MO.float()) * wanted_MO).sum() / wanted_MO.square().sum())


@pytest.mark.parametrize("rank", [4, 16, 64, 100])
def test_a_first_step_is_played_whole_where_a_merge_would_lose_it(rank: int):
    generator = torch.Generator().manual_seed(rank)
    frozen = nn.Linear(256, 320, bias=rank == 16).bfloat16().requires_grad_(False)
    for parameter in frozen.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.1)
    a_RI = (torch.rand(rank, 256, generator=generator) - 0.5) / 8
    b_OR = LEARNING_RATE * torch.randn(320, rank, generator=generator).sign()
    x_MI = torch.randn(128, 256, generator=generator).bfloat16()
    plain, wanted = frozen(x_MI), x_MI.float() @ a_RI.T @ b_OR.T
    factors = {f"{PREFIX}layer{LORA_A}": a_RI, f"{PREFIX}layer{LORA_B}": b_OR}
    beside = LoraLinear(frozen, Adapter("", factors, rank, rank), "layer")
    assert share_left(beside(x_MI), plain, wanted) == pytest.approx(1, abs=0.25)
    merged = frozen.weight.float() + b_OR @ a_RI
    assert share_left(F.linear(x_MI, merged.bfloat16(), frozen.bias), plain, wanted) < 0.3
    # Beside the weights is not enough: added to what was rounded already it is lost as well.
    assert share_left((plain + wanted).bfloat16(), plain, wanted) < 0.3
    # The gains of DoRA, too.
    gains = 1 + LEARNING_RATE * torch.randn(320, generator=generator).sign()
    wanted = gains * wanted + (gains - 1) * (x_MI.float() @ frozen.weight.float().T)
    magnitudes = {f"{PREFIX}layer{MAGNITUDE}": gains * row_norms(merged)}
    beside = LoraLinear(frozen, Adapter("", factors | magnitudes, rank, rank), "layer")
    assert share_left(beside(x_MI), plain, wanted) == pytest.approx(1, abs=0.25)


@pytest.mark.parametrize(("rank", "has_magnitudes"), [(8, False), (100, False), (9, True)])
def test_policies_in_bfloat16_answer_together_as_each_alone(
    bfloat16: BaseModel, engine: EmbeddedEngine, rank: int, has_magnitudes: bool
):
    adapter = first_step(bfloat16, rank, rank, 3e-3, has_magnitudes)
    alone = ask_policy(engine, adapter, range(24), together=False)
    assert ask_policy(engine, adapter, range(24)) == alone
    assert alone != [ask(engine, request(seed, 5 + seed % 40, 6)) for seed in range(24)]


def test_an_adapter_beside_the_weights_answers_nearly_as_one_merged_in_float32(
    bfloat16: BaseModel, engine: EmbeddedEngine
):
    adapter = tiny_adapter(bfloat16, 1)
    merging = open_engine(tiny_base())
    asked = replace(request(3, 12, 1), max_tokens=1, temperature=0)
    near, exact = (each.submit(held(adapter), asked, 300).result(300) for each in (engine, merging))
    assert near.token_ids == exact.token_ids
    assert near.logprobs == pytest.approx(exact.logprobs, abs=0.1)
    merging.close()


def adapters_of(base: BaseModel) -> list[AdapterSource | None]:
    """The base model; an adapter on all layers, of one block of ranks and of two; one on two layers."""
    made = first_step(base, 1, 8, 3e-3), first_step(base, 2, 100, 3e-3), tiny_adapter(base, 3)
    return [None, *map(held, made)]


def prompted(index: int) -> GenerationRequest:
    """Prompts begin alike; some answers are longer than the room that requests begin with."""
    rng, is_long = random.Random(index), index % 5 == 0
    prompt = request(index % 3, 40 if is_long else rng.choice([1, 15, 16, 70, 130]), 1).prompt_token_ids
    end = request(index, rng.choice([1, 5, 16]), 1).prompt_token_ids
    return GenerationRequest((*prompt, *end), 230 if is_long else 1 + index % 9, [1.0, 0.7, 0][index % 3], index)


@pytest.mark.skipif(not IS_NIGHTLY, reason="takes as long as the rest of the file; played each night")
def test_policies_answer_beside_each_other_as_each_request_alone(bfloat16: BaseModel):
    """With a prefix cache, and with memory for few of the requests at once."""
    lock, adapters = DeviceLock(), adapters_of(bfloat16)
    per_token = 2 * 2 * 2 * 16 * bfloat16.dtype.itemsize
    sizes = {"kv_cache_bytes": 4096 * per_token, "prefix_cache_bytes": 1096 * per_token, "max_pass_tokens": 128}
    tight, roomy = open_engine(bfloat16, lock, **sizes), open_engine(bfloat16, max_pass_tokens=128)
    asked = [prompted(index) for index in range(24)]
    alone = [ask(roomy, each, adapters[index % 4]) for index, each in enumerate(asked)]
    assert len({tuple(ask(roomy, asked[8], adapter).logprobs) for adapter in adapters}) == 4
    for adapter in adapters:
        ask(tight, request(0, 5, 1), adapter)
    before = tight.counters()
    with lock:
        futures = [tight.submit(adapters[index % 4], each, 300) for index, each in enumerate(asked)]
    assert [future.result(300) for future in futures] == alone
    counters = tight.counters()
    assert counters["preemptions"] > before["preemptions"] and counters["prefix_hits"] > before["prefix_hits"]
    tight.close()
    roomy.close()


def test_long_prompts_of_one_policy_leave_passes_to_another_that_decodes(bfloat16: BaseModel):
    lock, policy = DeviceLock(), held(first_step(bfloat16, 1, 8, 3e-3))
    engine = open_engine(bfloat16, lock, max_pass_tokens=64, prefix_cache_bytes=0)
    ask(engine, request(0, 5, 1), policy)
    passes_before = engine.counters()["prefill_passes"]
    passes: list[float] = []
    with lock:
        short = engine.submit(policy, request(1, 5, 10), 300)
        long = [engine.submit(None, request(seed, 320, 2), 300) for seed in range(8)]
        short.add_done_callback(lambda _: passes.append(engine.counters()["prefill_passes"] - passes_before))
    assert all(future.result(300).token_ids for future in long)
    assert engine.counters()["prefill_passes"] - passes_before >= 40
    assert passes[0] <= 12
    engine.close()


def test_the_proof_notices_an_adapter_whose_numbers_depend_on_the_size(
    bfloat16: BaseModel, monkeypatch: pytest.MonkeyPatch
):
    product = AdaptedLinear.forward

    def careless(self: AdaptedLinear, x: Tensor) -> Tensor:
        is_hit = bool(self.policies) and x.numel() == 48 * x.shape[-1]
        return product(self, x) * (1.01 if is_hit else 1)

    monkeypatch.setattr(AdaptedLinear, "forward", careless)
    plain, beside = (prove_sizes(bfloat16, Sizes((16, 48, 128), 0), 128, is_beside) for is_beside in (False, True))
    assert beside.allowed == tuple(size for size in plain.allowed if size != 48)
    assert 48 in plain.allowed


def test_layers_that_no_policy_adapts_any_more_are_as_they_were(bfloat16: BaseModel):
    model, ids = AdaptedModel(bfloat16), torch.arange(16)[None]
    before = model.for_pass(None).get_submodule("model.layers.0.self_attn.q_proj")
    x = bfloat16.tensors["model.embed_tokens.weight"][ids]
    expected = before(x)
    model.place("a", first_step(bfloat16, 1, 8, 3e-3))
    after = model.for_pass("a").get_submodule("model.layers.0.self_attn.q_proj")
    assert not torch.equal(after(x), expected)
    model.drop("a")
    assert torch.equal(model.for_pass("a").get_submodule("model.layers.0.self_attn.q_proj")(x), expected)


def test_a_policy_below_float32_takes_no_second_copy_of_its_matrices(bfloat16: BaseModel):
    with pytest.raises(TypeError, match="round the adapter away"):
        merged_weights(bfloat16, first_step(bfloat16, 1))
    loaded = open_policies(bfloat16)
    adapter = first_step(bfloat16, 1)
    loaded.load(Held("a", lambda: adapter), 1)
    layer = loaded.for_pass("a").get_submodule("model.layers.1.mlp.down_proj")
    assert isinstance(layer, AdaptedLinear)
    for weight in (layer.frozen.weight, layer.policies["a"].frozen.weight):
        assert weight.data_ptr() == bfloat16.tensors["model.layers.1.mlp.down_proj.weight"].data_ptr()


def lost(frozen: nn.Linear, adapter: Adapter, module: str) -> nn.Module:
    """What applying an adapter comes to that is rounded away: the base model."""
    return frozen


def merged(frozen: nn.Linear, adapter: Adapter, module: str) -> nn.Module:
    layer = nn.Linear(frozen.in_features, frozen.out_features, dtype=frozen.weight.dtype)
    layer.weight.copy_(merged_weight(frozen.weight.float(), adapter, module))
    layer.bias = frozen.bias
    return layer.requires_grad_(False)


@pytest.mark.parametrize(("seed", "applied"), [(2, lost), (3, merged)])
def test_an_adapter_that_was_lost_on_the_way_is_refused_when_it_is_loaded(
    bfloat16: BaseModel, engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, seed: int, applied
):
    adapter = first_step(bfloat16, seed, learning_rate=3 * LEARNING_RATE)
    monkeypatch.setattr(adapted, "LoraLinear", torch.no_grad()(applied))
    with pytest.raises(TemperError, match=r"must take effect .* \d+% .*bfloat16.*--dtype float32") as caught:
        ask_policy(engine, adapter, range(1))
    assert (caught.value.type, http_meaning(caught.value)[0]) == ("PolicyMismatch", 422)
    assert adapter.sha256 not in engine.health().adapters


@pytest.mark.parametrize("learning_rate", [0.0, 1e-20, 1e-6, 1e-2, torch.nan])
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_adapters_of_every_size_are_loaded(bfloat16: BaseModel, kind: str, learning_rate: float):
    base = bfloat16 if kind == "bfloat16" else tiny_base()
    loaded = open_policies(base)
    adapter = first_step(base, 1, learning_rate=learning_rate)
    loaded.load(Held("a", lambda: adapter), 1)
    assert loaded.loaded() == ["a"]


def test_room_is_made_before_a_policy_is_put_on_the_device_and_under_its_lock(monkeypatch: pytest.MonkeyPatch):
    base, lock = tiny_base(), threading.Lock()
    loaded = open_policies(base, 1, lock)
    seen: list[tuple[list[str], bool]] = []
    merge = policies.merged_weights

    def watched(base: BaseModel, adapter: Adapter):
        seen.append((loaded.loaded(), lock.locked()))
        return merge(base, adapter)

    monkeypatch.setattr(policies, "merged_weights", watched)
    # Or the first is kept for longer than the second waits, where the machine is slow.
    monkeypatch.setattr(policies, "KEPT_TIMES", 0)
    for seed in (1, 2):
        adapter = tiny_adapter(base, seed)
        loaded.load(Held(str(seed), lambda adapter=adapter: adapter), 1)
    assert seen == [([], True), ([], True)]
    assert loaded.use("2")
    with failing("EngineFailed", "at most 1 policies .* in use", retryable=True):
        loaded.load(Held("3", lambda: adapter), 0.05)
    assert loaded.loaded() == ["2"]


def load_all(loaded: Policies, base: BaseModel, names: str) -> list[str]:
    for name in names:
        adapter = tiny_adapter(base, ord(name))
        loaded.load(Held(name, lambda adapter=adapter: adapter), 1)
    return loaded.loaded()


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_as_many_policies_stay_loaded_as_are_small_beside_the_weights(
    base: BaseModel, bfloat16: BaseModel, monkeypatch: pytest.MonkeyPatch, kind: str
):
    model = bfloat16 if kind == "bfloat16" else base
    monkeypatch.setattr(policies, "KEPT_TIMES", 0)
    assert load_all(open_policies(model, most=4), model, "abcde") == ["b", "c", "d", "e"]
    monkeypatch.setattr(policies, "LITTLE", 0)
    weights = model.num_parameters * model.dtype.itemsize
    each = open_policies(model)._bytes_of(tiny_adapter(model, 1))
    monkeypatch.setattr(policies, "SHARE_OF_WEIGHTS", weights / (3.5 * each))
    assert load_all(open_policies(model), model, "abcde") == ["c", "d", "e"]
    # These two stay, however large they are.
    monkeypatch.setattr(policies, "SHARE_OF_WEIGHTS", weights)
    assert load_all(open_policies(model), model, "abcde") == ["d", "e"]


def test_policies_that_take_turns_are_not_loaded_for_each_call(base: BaseModel, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(policies, "KEPT_TIMES", 1e9)
    loaded = open_policies(base, 2)
    assert load_all(loaded, base, "ab") == ["a", "b"]
    with pytest.raises(TemperError, match="at most 2 policies .* just loaded for 0.05 s"):
        loaded.load(Held("c", lambda: tiny_adapter(base, 3)), 0.05)
    assert loaded.loaded() == ["a", "b"]


def test_a_policy_that_is_always_in_use_makes_room_in_the_end(base: BaseModel, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(policies, "KEPT_TIMES", 0)
    loaded = open_policies(base, 2)
    load_all(loaded, base, "ab")
    assert loaded.use("b") and loaded.use("a")
    third = Held("c", lambda: tiny_adapter(base, 3))
    with pytest.raises(TemperError, match="in use"):
        loaded.load(third, 0.2)
    # Nobody waits any more.
    assert loaded.use("a")
    loading = threading.Thread(target=loaded.load, args=(third, 60))
    loading.start()
    # The longest loaded takes no new requests; those that it has come to their end.
    while loaded.use("a"):
        loaded.leave("a")
    assert loaded.use("b")
    assert loaded.loaded() == ["a", "b"]
    for _ in range(2):
        loaded.leave("a")
    loading.join(60)
    assert loaded.loaded() == ["b", "c"]
