"""Decoder layers that are compiled have the numbers of those that are not, and nothing is compiled after the start.

PyTorch's own backends without generated code stand for the one that a GPU has, which takes a minute to compile on a
CPU; `npm run bench -- gpu` compares that one.
"""

import logging
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo.config
from torch import Tensor, nn
from torch._dynamo.utils import counters
from transformers import Qwen2Config, Qwen3Config

from temper_gpu.commits.checkpoints import read_parent
from temper_gpu.contract import LoraConfig
from temper_gpu.failures import TemperError
from temper_gpu.model.models import BaseModel
from temper_gpu.training.compiled_layers import CompiledLayers, find_compiled_layers, require_compilable
from temper_gpu.training.packing import Packing, Row, pack
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.trainer import Trainer
from tests.engine.embedded.tiny import random_base
from tests.training.agreement import gradients, require_same_gradients
from tests.training.samples import TinyLibrary, lora, open_folder, tiny_experts
from tests.training.test_packing import policy_with_a_step_behind_it
from tests.training.test_trainer import run_steps

SHAPE: dict[str, Any] = {
    "vocab_size": 37,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.2,
}
BASES: dict[str, BaseModel] = {
    "Qwen2.5": random_base("qwen2", Qwen2Config(**SHAPE)),
    "Qwen3": random_base("qwen3", Qwen3Config(**SHAPE, head_dim=16)),
}
# The first layer's inputs have no gradient. With `aot_eager`, which takes three times as long, an inner layer alone is
# compiled here, and the first layer alone for halves.
WAYS = [
    ("aot_eager", "Qwen2.5", slice(1, 2)),
    # The two tests that follow go on with its policy.
    ("eager", "Qwen3", slice(3)),
]
EAGER = "a pass is computed without compiled layers"


def row(length: int, first: int = 0) -> Row:
    ids = [(first + 5 * n) % SHAPE["vocab_size"] for n in range(length)]
    positions = list(range(length // 2, length))
    ones = [1.0] * len(positions)
    return Row(ids, "attempt", positions, [0.0] * len(positions), ones, ones)


def rows_of(*lengths: int) -> list[Row]:
    return [row(length, n) for n, length in enumerate(lengths)]


@cache
def policy_of(backend: str) -> TrainablePolicy:
    kind, compiled = next((kind, layers) for each, kind, layers in WAYS if each == backend)
    policy = policy_with_a_step_behind_it(BASES[kind])
    layers = policy.model.get_decoder().layers[compiled]
    found = find_compiled_layers(layers, torch.float32, policy._probe_gradients, backend)
    assert found is not None
    policy.compiled_layers = found
    return policy


def trained(policy: TrainablePolicy, rows: list[Row], packing: Packing = "rows") -> tuple[Tensor, dict[str, Tensor]]:
    policy.zero_grad()
    scores = []
    for batch in pack(rows, 1, 10**6, policy.device, packing):
        scores.append(policy.log_probabilities(batch).logprobs_N)
        (scores[-1] * torch.linspace(-1, 2, len(scores[-1]))).sum().backward()
    return torch.cat(scores).detach(), gradients(policy)


def without(policy: TrainablePolicy, make: Callable[[], Any]) -> Any:
    compiled, policy.compiled_layers = policy.compiled_layers, None
    try:
        return make()
    finally:
        policy.compiled_layers = compiled


@pytest.mark.parametrize("backend", [backend for backend, _, _ in WAYS])
def test_rows_of_any_number_and_length_have_the_numbers_of_layers_as_they_are(
    backend: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """Kept and computed again; nothing more is compiled for them."""
    policy = policy_of(backend)
    compiled = counters["stats"]["unique_graphs"]
    for is_recomputed in (False, True):
        monkeypatch.setattr(policy, "recomputes", lambda num_tokens, is_recomputed=is_recomputed: is_recomputed)
        for lengths in ([200], [12, 30], [7, 7, 140]):
            rows = rows_of(*lengths)
            found, plain = trained(policy, rows), without(policy, lambda rows=rows: trained(policy, rows))
            torch.testing.assert_close(found[0], plain[0], rtol=1e-5, atol=1e-5)
            require_same_gradients(found[1], plain[1])
    assert counters["stats"]["unique_graphs"] == compiled
    assert EAGER not in caplog.text


def test_trees_and_passes_without_a_gradient_have_the_bits_of_layers_as_they_are():
    policy = policy_of("eager")
    rows = [replace(row(40), token_ids=[*row(38).token_ids, other, 0]) for other in range(4)]
    [batch] = pack(rows, 1, 10**6, policy.device, "tree")
    assert not batch.attention.is_chains

    def both() -> list[Tensor]:
        with torch.no_grad():
            [chains] = pack(rows, 1, 10**6, policy.device)
            scores = policy.log_probabilities(chains).logprobs_N
        return [scores, *trained(policy, rows, "tree")[1].values()]

    found, plain = both(), without(policy, both)
    assert all(map(torch.equal, found, plain))


def test_a_pass_that_layers_were_not_compiled_for_is_computed_without_them_and_told_once(
    caplog: pytest.LogCaptureFixture,
):
    policy = policy_of("eager")
    rows = rows_of(20, 30)
    compiled = counters["stats"]["unique_graphs"]
    # Layers compare what they were compiled for with what is set.
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(not before)
    found, plain = trained(policy, rows), without(policy, lambda: trained(policy, rows))
    torch.use_deterministic_algorithms(before)
    assert counters["stats"]["unique_graphs"] == compiled
    assert found[0].equal(plain[0]) and all(found[1][name].equal(tensor) for name, tensor in plain[1].items())
    assert caplog.text.count(EAGER) == 1


class Doubled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * x


def test_another_policy_compiles_its_own_layers(monkeypatch: pytest.MonkeyPatch):
    """What was compiled before does not count towards the limit."""
    monkeypatch.setattr("temper_gpu.training.compiled_layers.MOST_COMPILED", 2)
    for _ in range(2):
        layer = Doubled()

        def computed(compiled: CompiledLayers | None, layer: Doubled = layer) -> Tensor:
            with nullcontext() if compiled is None else compiled.computing():
                return torch.cat([layer.forward(x).flatten() for x in (torch.ones(3), torch.ones(2, 3))])

        before = counters["stats"]["unique_graphs"]
        with torch._dynamo.config.patch(recompile_limit=2):
            assert find_compiled_layers([layer], torch.float32, computed, "eager") is not None
        assert counters["stats"]["unique_graphs"] == before + 2


def test_layers_that_do_not_compile_or_compute_something_else_are_left_as_they_are(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING)
    layer, x = Doubled(), torch.ones(3)

    def fails(compiled: CompiledLayers | None) -> Tensor:
        if compiled is not None:
            raise RuntimeError("Failed to find C compiler")
        return x

    def differs(compiled: CompiledLayers | None) -> Tensor:
        return x if compiled is None else 1.01 * x

    assert find_compiled_layers([layer], torch.float32, fails, "eager") is None
    assert find_compiled_layers([layer], torch.float32, differs, "eager") is None
    assert find_compiled_layers([layer], torch.bfloat16, differs, "eager") is not None
    # pyrefly: ignore[missing-attribute]
    reasons = [record.reason for record in caplog.records]
    assert reasons == ["RuntimeError: Failed to find C compiler", "their gradients differ by 0.01"]
    assert layer.forward(x).equal(2 * x)


@pytest.mark.parametrize(
    ("trained", "words"),
    [
        (None, "must train an adapter, but it trains all weights; start the GPU worker without --compile-layers"),
        (lora().model_copy(update={"dropout": 0.1}), "an adapter without dropout, got 0.1"),
        (lora().model_copy(update={"dora": True}), r"an adapter without magnitudes \(DoRA\)"),
    ],
)
def test_what_trains_otherwise_is_refused(trained: LoraConfig | None, words: str):
    with pytest.raises(TemperError, match=words) as caught:
        TrainablePolicy(BASES["Qwen2.5"], trained, compiles=True)
    assert caught.value.type == "BadConfig"


def test_a_base_model_with_experts_is_refused():
    base = tiny_experts()
    with pytest.raises(TemperError, match="must be dense, but tiny-experts has experts"):
        require_compilable(lora(), base.instantiate("eager"), base.name)


def test_adapters_in_halves_compile_as_a_gpu_has_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("temper_gpu.training.lora_parameters.joins_halves", lambda device: True)
    base = BASES["Qwen2.5"]
    halves = {name: tensor.bfloat16() for name, tensor in base.tensors.items()}
    policy = policy_with_a_step_behind_it(replace(base, tensors=halves))
    assert policy.dtype == torch.bfloat16
    layers = policy.model.get_decoder().layers[:1]
    before = counters["stats"]["unique_graphs"]
    assert find_compiled_layers(layers, torch.bfloat16, policy._probe_gradients, "aot_eager") is not None
    assert counters["stats"]["unique_graphs"] == before + 2


def test_a_manifest_says_that_layers_were_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lighter = partial(find_compiled_layers, backend="eager")
    monkeypatch.setattr("temper_gpu.training.policy.find_compiled_layers", lighter)
    store = open_folder(tmp_path)
    told = []
    for run, compiles in (("compiled", True), ("plain", False)):
        trainer = Trainer(TinyLibrary(), store, nullcontext(), compiles=compiles)
        [_, step] = run_steps(store, [trainer], run)
        told.append(read_parent(store, step).manifest)
    assert [manifest.platform.get("layers") for manifest in told] == ["compiled", None]
    assert [manifest.has_compiled_layers for manifest in told] == [True, False]
