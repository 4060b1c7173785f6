"""rsLoRA, DoRA, adapted layers and dropout: what trains, what samples and what PEFT loads are one policy."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from temper_gpu.contract import LoraConfig
from temper_gpu.failures import TemperError
from temper_gpu.model.lora import (
    LORA_B,
    MAGNITUDE,
    RANK_BLOCK,
    Adapter,
    adapter_bytes,
    attach,
    config_bytes,
    initial_tensors,
    merged_weights,
    parse_adapter,
    target_modules,
)
from temper_gpu.model.models import BaseModel
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.optimizers import initial_optimizer_tensors
from temper_gpu.training.packing import Packing, Row, pack
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.step import train_step
from tests.training.agreement import require_near
from tests.training.samples import lora, sampled_groups, tiny_base, train_config

pytestmark = pytest.mark.numerics

KINDS: dict[str, dict[str, Any]] = {
    "rslora": {"rslora": True},
    "dora": {"dora": True},
    "layers": {"layers": [1]},
    "all": {"rslora": True, "dora": True, "layers": [0], "target_modules": ["q_proj", "down_proj"], "dropout": 0.25},
}
IDS = [1, 30, 7, 7, 12, 3]


def lora_of(kind: str) -> LoraConfig:
    return lora().model_copy(update=KINDS[kind])


def trained(base: BaseModel, config: LoraConfig, size: float = 0.1) -> dict[str, Tensor]:
    """Every number of B, and every magnitude, has moved."""
    model = base.instantiate("eager")
    targets = target_modules(model, config.target_modules)
    tensors = initial_tensors(model, targets, config.rank, 0, config.layers, config.dora or False)
    generator = torch.Generator().manual_seed(1)
    for name, tensor in tensors.items():
        if name.endswith(LORA_B):
            tensors[name] = size * torch.randn(tensor.shape, generator=generator)
        elif name.endswith(MAGNITUDE):
            tensors[name] = tensor * (1 + size * torch.randn(tensor.shape, generator=generator))
    return tensors


def policy_of(base: BaseModel, config: LoraConfig, tensors: dict[str, Tensor]) -> TrainablePolicy:
    policy = TrainablePolicy(base, config)
    policy.load(tensors, initial_optimizer_tensors(tensors))
    return policy


def stored(config: LoraConfig, tensors: dict[str, Tensor]) -> tuple[Adapter, bytes, bytes]:
    targets = target_modules(tiny_base().instantiate("eager"), config.target_modules)
    files = adapter_bytes(tensors), config_bytes("tiny", config, targets)
    return parse_adapter(*files), *files


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_trainer_engine_merge_and_peft_compute_the_same_policy(kind: str, tmp_path: Path):
    base, config = tiny_base(), lora_of(kind)
    tensors = trained(base, config)
    adapter, weights, written = stored(config, tensors)
    (tmp_path / "adapter_model.safetensors").write_bytes(weights)
    (tmp_path / "adapter_config.json").write_bytes(written)
    by_peft = peft.PeftModel.from_pretrained(base.instantiate("eager"), tmp_path)
    ids_BT = torch.tensor([IDS])
    expected_BTV = by_peft(ids_BT).logits
    beside = attach(base.instantiate("eager"), adapter)
    merged = base.instantiate("eager", merged_weights(base, adapter))
    for model in (policy_of(base, config, tensors).model, beside, merged):
        torch.testing.assert_close(model(ids_BT).logits, expected_BTV, atol=1e-5, rtol=1e-4)
    plain_BTV = base.instantiate("eager")(ids_BT).logits
    usual = replace(adapter, tensors={name: t for name, t in tensors.items() if not name.endswith(MAGNITUDE)})
    usual_BTV = attach(base.instantiate("eager"), replace(usual, is_rank_stabilized=False))(ids_BT).logits
    assert float((expected_BTV - plain_BTV).abs().max()) > 0.1
    # What an option changes would be seen.
    assert kind == "layers" or float((expected_BTV - usual_BTV).abs().max()) > 0.01


def test_a_fresh_adapter_changes_nothing_and_trains_what_its_options_name():
    base = tiny_base()
    for kind in KINDS:
        config = lora_of(kind).model_copy(update={"dropout": 0})
        model = base.instantiate("eager")
        targets = target_modules(model, config.target_modules)
        fresh = initial_tensors(model, targets, config.rank, 0, config.layers, config.dora or False)
        adapter, _, _ = stored(config, fresh)
        for name, weight in merged_weights(base, adapter).items():
            assert torch.equal(weight, base.tensors[name])
        policy = policy_of(base, config, fresh)
        train_step(policy, StepInputs("x", sampled_groups("x"), train_config(lora=config), 1e-2))
        after = policy.adapter_tensors()
        assert after.keys() == fresh.keys()
        moved = {name for name in fresh if not torch.equal(after[name], fresh[name])}
        assert {name for name in fresh if name.endswith((LORA_B, MAGNITUDE))} <= moved
        layers = {name.split(".layers.")[1][0] for name in fresh}
        assert layers == {str(layer) for layer in config.layers or (0, 1)}
        assert any(name.endswith(MAGNITUDE) for name in fresh) == bool(config.dora)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layers": [0, 2]}, "numbers of the base model's 2 layers, from 0 to 1, got 2; correct --lora-layers"),
        (
            {"target_modules": ["gate"]},
            r"--lora-target-modules\) must name linear layers of the base model, got gate; use down_",
        ),
    ],
)
def test_what_the_base_model_has_not_is_refused(options: dict[str, Any], words: str):
    with pytest.raises(TemperError, match=words):
        TrainablePolicy(tiny_base(), lora().model_copy(update=options))


DROPPED = lora().model_copy(update={"dropout": 0.5})


FORKED = ([1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 9, 7], [1, 2, 3, 11, 5, 9, 7, 8, 3], [4, 2, 3])


def rows_of(ids: Sequence[list[int]]) -> list[Row]:
    rows = []
    for number, row in enumerate(ids):
        positions = [len(row) - 2, len(row) - 1]
        rows.append(Row(row, "attempt", positions, [-3.0] * 2, [1.0] * 2, [number - 1.5] * 2))
    return rows


def gradient(policy: TrainablePolicy, seed: str | None, max_tokens: int, packing: Packing) -> Tensor:
    policy.zero_grad()
    batches = pack(rows_of(FORKED), 8, max_tokens, policy.device, packing)
    for batch in batches:
        with policy.dropping(seed) if seed else torch.enable_grad():
            logprobs_N = policy.log_probabilities(batch).logprobs_N
            (batch.weighted_advantages_N * logprobs_N).sum().backward()
    return torch.cat([p.grad.flatten() for p in policy.parameters.values() if p.grad is not None])


def test_dropout_follows_from_the_seed_and_the_tokens_of_a_micro_batch(monkeypatch: pytest.MonkeyPatch):
    """Whatever was drawn before, and whether layers are computed again."""
    base = tiny_base()
    policy = policy_of(base, DROPPED, trained(base, DROPPED))
    layouts: list[tuple[int, Packing]] = [(1000, "rows"), (1, "rows"), (1000, "tree")]
    for max_tokens, packing in layouts:
        found = gradient(policy, "1/1/0", max_tokens, packing)
        torch.rand(3)
        assert torch.equal(gradient(policy, "1/1/0", max_tokens, packing), found)
        with monkeypatch.context() as patched:
            patched.setattr("temper_gpu.training.policy.free_bytes", lambda device: 1)
            assert torch.equal(gradient(policy, "1/1/0", max_tokens, packing), found)
        others = [gradient(policy, seed, max_tokens, packing) for seed in ("1/1/1", "1/2/0", None)]
        assert all(float((other - found).norm()) > 0.05 * float(found.norm()) for other in others)


def test_each_micro_batch_drops_inputs_of_its_own_and_leaves_torchs_numbers_alone(monkeypatch: pytest.MonkeyPatch):
    base = tiny_base()
    config = DROPPED.model_copy(update={"layers": [1], "target_modules": ["down_proj"]})
    policy = policy_of(base, config, trained(base, config))
    # Of one length: the numbers that PyTorch draws from one seed follow from how many it draws.
    batches = pack(rows_of([[1, 2, 3, 4], [1, 2, 3, 5], [4, 2, 3, 1]]), 8, 1, policy.device)
    drop, masks = F.dropout, []

    def spy(x: Tensor, share: float) -> Tensor:
        dropped = drop(x, share)
        masks.append(dropped == 0)
        return dropped

    monkeypatch.setattr(F, "dropout", spy)
    before = torch.get_rng_state()
    with policy.dropping("1/1/0"):
        for batch in batches:
            policy.log_probabilities(batch)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(0.3 < float(mask.float().mean()) < 0.7 for mask in masks)
    assert len({mask.shape for mask in masks}) == 1
    first, *others = masks
    assert len(others) == 2
    assert not any(torch.equal(first, other) for other in others)
    policy.log_probabilities(batches[0])
    assert len(masks) == 3


def test_a_step_with_dropout_compares_sampler_and_trainer_without_it_and_has_the_same_bytes_again():
    base = tiny_base()
    fresh = initial_tensors(base.instantiate("eager"), target_modules(base.instantiate("eager"), None), 4, 3)
    found = []
    for config, seed in ((DROPPED, "3/1"), (DROPPED, "3/1"), (DROPPED, "3/2"), (lora(), "3/1")):
        policy = policy_of(base, config, fresh)
        metrics = [
            train_step(
                policy, StepInputs("x", sampled_groups("x"), train_config(lora=config, passes=2), 1e-2, seed=seed)
            )
            for _ in range(1)
        ]
        found.append((hashlib.sha256(adapter_bytes(policy.adapter_tensors())).hexdigest(), metrics[0]["logprobK3"]))
    assert found[0] == found[1]
    assert len({adapter for adapter, _ in found}) == 3
    assert all(k3 < 1e-9 for _, k3 in found)


@pytest.mark.parametrize("kind", ["lora", "dora"])
def test_dropout_scales_what_is_left_as_torch_does(kind: str):
    """An adapter's mean output over many seeds is that without dropout."""
    base = tiny_base()
    config = DROPPED.model_copy(update={"layers": [1], "target_modules": ["down_proj"], **KINDS.get(kind, {})})
    policy = policy_of(base, config, trained(base, config))
    layer = policy.model.get_submodule("model.layers.1.mlp.down_proj")
    [batch] = pack(rows_of(FORKED), 8, 1000, policy.device)
    x = torch.randn(*batch.token_ids_BT.shape, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        with policy.without_adapter():
            frozen = layer(x)
        expected, total = layer(x) - frozen, torch.zeros(())
        for seed in range(400):
            torch.manual_seed(seed)
            with policy.dropping(str(seed)):
                total = total + layer(x) - frozen
    # Unscaled, half of it would be missing.
    assert float((total / 400 - expected).norm()) < 0.25 * float(expected.norm())


def in_bfloat16(base: BaseModel) -> BaseModel:
    return replace(base, tensors={name: tensor.bfloat16() for name, tensor in base.tensors.items()})


@pytest.mark.parametrize("to", [lambda base: base, in_bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["lora", "dora", "all"])
def test_layers_have_peft_s_numbers_and_gradients(kind: str, to: Callable[[BaseModel], BaseModel], tmp_path: Path):
    base, config = to(tiny_base()), lora().model_copy(update=KINDS.get(kind, {}))
    ours, other = (policy_of(base, config, trained(base, config)) for _ in range(2))
    _, weights, written = stored(config, trained(base, config))
    (tmp_path / "adapter_model.safetensors").write_bytes(weights)
    (tmp_path / "adapter_config.json").write_bytes(written)
    by_peft = peft.PeftModel.from_pretrained(base.instantiate(base.attention), tmp_path, is_trainable=True).eval()
    named = {name: parameter for name, parameter in by_peft.named_parameters() if parameter.requires_grad}
    theirs: Any = other._trained
    theirs.model, theirs.parameters = by_peft.get_base_model(), dict(sorted(named.items()))
    seed = "1/1/0" if config.dropout and base.dtype == torch.float32 else None
    for module in by_peft.modules():
        if seed and hasattr(module, "lora_dropout"):
            module.train()
    found, expected = (gradient(policy, seed, 1000, "rows") for policy in (ours, other))
    if base.dtype == torch.float32:
        require_near(found, expected)
    elif config.dora:
        # A last bit of a norm may round an output to its neighbour.
        assert (found - expected).norm() < 0.02 * expected.norm()
    else:
        assert torch.equal(found, expected)


def test_below_float32_a_gpus_trainer_computes_a_layer_as_the_engine_does(monkeypatch: pytest.MonkeyPatch):
    """The same bits; gradients are at least as near to those of float32 as PEFT's are."""
    half = in_bfloat16(tiny_base())
    whole = replace(half, tensors={name: tensor.float() for name, tensor in half.tensors.items()})
    config = lora(rank=RANK_BLOCK)
    tensors = trained(half, config, 0.02)
    exact = gradient(policy_of(whole, config, tensors), None, 1000, "rows")
    of_peft = gradient(policy_of(half, config, tensors), None, 1000, "rows")
    monkeypatch.setattr("temper_gpu.training.lora_layers.joins_halves", lambda device: True)
    policy = policy_of(half, config, tensors)
    found = gradient(policy, None, 1000, "rows")
    assert (found - exact).norm() < 1.2 * (of_peft - exact).norm() < 0.1 * exact.norm()
    adapter, _, _ = stored(config, tensors)
    beside = attach(half.instantiate("eager"), adapter)
    for name in ("model.layers.0.self_attn.q_proj", "model.layers.1.mlp.down_proj"):
        ours, engines = policy.model.get_submodule(name), beside.get_submodule(name)
        x = torch.randn(48, ours.frozen.in_features, generator=torch.Generator().manual_seed(0)).bfloat16()
        assert torch.equal(ours(x), engines(x))
