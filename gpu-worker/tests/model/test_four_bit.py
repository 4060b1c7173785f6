"""Base models whose linear layers are packed to NF4: the numbers, what trains beside them, and what samples."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedConfig

from temper_gpu.contract import LoraConfig
from temper_gpu.failures import TemperError
from temper_gpu.model.four_bit import BLOCK, FourBitLinear, pack, packed_layers
from temper_gpu.model.full_weights import initial_weights
from temper_gpu.model.lora import Adapter, initial_tensors, target_modules
from temper_gpu.model.merging import merge
from temper_gpu.model.models import POCKET_FOLDER, BaseModel, ModelLibrary, load_base
from temper_gpu.training.optimizers import initial_optimizer_tensors
from temper_gpu.training.packing import Row
from temper_gpu.training.packing import pack as batches_of
from temper_gpu.training.policy import TrainablePolicy
from tests.engine.embedded.tiny import SHAPE, Held, ask, open_engine, request, tiny_base
from tests.failing import failing

pytestmark = pytest.mark.numerics

CPU = torch.device("cpu")
# arXiv 2305.14314, appendix E.
NF4_VALUES = (
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
)


def of_pocket(load_in_4bit: bool = True) -> BaseModel:
    return load_base("pocket", str(POCKET_FOLDER), torch.float32, CPU, load_in_4bit=load_in_4bit)


def packed(base: BaseModel) -> BaseModel:
    layers = packed_layers(base.instantiate("eager"))
    weights = {f"{name}.weight": pack(layer.weight, CPU) for name, layer in layers.items()}
    plain = {name: tensor for name, tensor in base.tensors.items() if name not in weights}
    return replace(base, tensors=plain, packed=weights)


def unpacked(base: BaseModel) -> BaseModel:
    """The same numbers, whole."""
    return replace(base, tensors={name: base.weight(name) for name in base.shapes}, packed={})


def in_bfloat16(base: BaseModel) -> BaseModel:
    config = type(base.config)(**{**base.config.to_dict(), "dtype": "bfloat16"})
    return replace(base, config=config, tensors={name: tensor.bfloat16() for name, tensor in base.tensors.items()})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
# The second one's rows end within blocks.
@pytest.mark.parametrize("shape", [(6, 128), (64, 96), (2, 32)])
def test_a_weight_is_the_nearest_of_sixteen_numbers_times_the_largest_of_its_block(
    dtype: torch.dtype, shape: tuple[int, int]
):
    weight = (torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 0.02).to(dtype)
    blocks = weight.float().numpy().reshape(-1, BLOCK)
    largest = np.abs(blocks).max(1, keepdims=True)
    codes = np.abs((blocks / largest)[..., None] - np.array(NF4_VALUES, dtype=np.float32)).argmin(-1)
    expected = (np.array(NF4_VALUES, dtype=np.float32)[codes] * largest).reshape(shape)
    found = pack(weight, CPU).unpack()
    assert found.dtype == dtype
    assert torch.equal(found, torch.from_numpy(expected).to(dtype))


def test_a_block_of_zeros_stays_one():
    assert not pack(torch.zeros(2, BLOCK), CPU).unpack().any()


def test_linear_layers_are_packed_and_the_rest_stays_whole():
    base, whole = of_pocket(), of_pocket(load_in_4bit=False)
    assert {name.rsplit(".", 2)[-2] for name in base.packed} == set(target_modules(whole.instantiate("eager"), None))
    assert base.shapes == whole.shapes
    assert base.num_parameters == whole.num_parameters
    assert all(torch.equal(tensor, whole.tensors[name]) for name, tensor in base.tensors.items())
    assert base.sha256 == of_pocket().sha256 != whole.sha256
    model = base.instantiate("eager")
    assert isinstance(model.get_submodule("model.layers.0.mlp.up_proj"), FourBitLinear)
    ids_BT = torch.arange(20)[None]
    assert torch.equal(model(ids_BT).logits, unpacked(base).instantiate("eager")(ids_BT).logits)


OF_EXPERTS: Callable[[], PreTrainedConfig] = lambda: transformers.MixtralConfig(  # noqa: E731
    **SHAPE, num_local_experts=2, num_experts_per_tok=1
)
NARROW: Any = {**SHAPE, "hidden_size": 12, "intermediate_size": 10}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (OF_EXPERTS, "must have no mixture of experts to be loaded in 4 bits"),
        (lambda: transformers.LlamaConfig(**NARROW), "of whole blocks of 64 weights to be loaded in 4 bits"),
    ],
)
def test_models_that_hardly_anything_is_packed_of_are_refused(
    config: Callable[[], PreTrainedConfig], reason: str, tmp_path: Path
):
    shutil.copytree(POCKET_FOLDER, tmp_path / "model")
    AutoModelForCausalLM.from_config(config()).save_pretrained(tmp_path / "model")
    library = ModelLibrary(lambda: {"mine": str(tmp_path / "model")}, torch.float32, CPU, load_in_4bit=True)
    with failing("BadConfig", reason):
        library.get("mine")


LORA: dict[str, dict[str, Any]] = {"plain": {}, "dora": {"dora": True}, "both": {"dora": True, "dropout": 0.25}}


def gradients(base: BaseModel, options: dict[str, Any]) -> dict[str, Tensor]:
    config = LoraConfig(rank=4, alpha=8, target_modules=None, **options)
    model = base.instantiate("eager")
    tensors = initial_tensors(model, target_modules(model, None), 4, 0, has_magnitudes=config.dora or False)
    moved = {name: tensor + (0.05 if ".lora_B." in name else 0) for name, tensor in tensors.items()}
    policy = TrainablePolicy(base, config)
    policy.load(moved, initial_optimizer_tensors(moved))
    rows = [Row([1, 2, 3, 4 + n, 5], "attempt", [3, 4], [0.0] * 2, [1.0] * 2, [1.0] * 2) for n in range(3)]
    [batch] = batches_of(rows, 6, 100, base.device)
    with policy.dropping("seed"):
        policy.log_probabilities(batch).logprobs_N.sum().backward()
    return {name: parameter.grad for name, parameter in policy.parameters.items() if parameter.grad is not None}


@pytest.mark.parametrize("to", [lambda base: base, in_bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("kind", LORA)
def test_an_adapter_trains_beside_packed_weights_as_beside_the_same_numbers_whole(
    kind: str, to: Callable[[BaseModel], BaseModel]
):
    base = packed(to(tiny_base()))
    found, expected = (gradients(of, LORA[kind]) for of in (base, unpacked(base)))
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        assert gradient.any()
        assert torch.equal(gradient, expected[name]), name


@pytest.mark.parametrize("kind", LORA)
def test_the_backward_pass_keeps_no_unpacked_weight(kind: str):
    base = packed(tiny_base())
    shapes = {weight.shape for weight in base.packed.values()}
    kept: list[torch.Size] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.extend({tensor.shape, tensor.mT.shape if tensor.dim() > 1 else tensor.shape})
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        gradients(base, LORA[kind])
    assert kept
    assert not shapes & set(kept)


def test_what_samples_beside_packed_weights_is_what_trains():
    """Alone and in company, with adapters and without."""
    base = packed(tiny_base("llama"))
    model = base.instantiate("eager")
    tensors = initial_tensors(model, target_modules(model, None), 4, 0)
    moved = {name: tensor + (0.05 if ".lora_B." in name else 0) for name, tensor in tensors.items()}
    adapter = Held("a" * 64, lambda: Adapter("a" * 64, moved, 4, 8.0))
    policy = TrainablePolicy(base, LoraConfig(rank=4, alpha=8, target_modules=None))
    policy.load(moved, initial_optimizer_tensors(moved))
    engine = open_engine(base, max_pass_tokens=64)
    requests = [request(length, length, 8) for length in (5, 40, 17)]
    alone = [ask(engine, asked, adapter) for asked in requests]
    together = [engine.submit(of, asked, 60) for asked in requests for of in (adapter, None)]
    assert [future.result(60).logprobs for future in together[::2]] == [answer.logprobs for answer in alone]
    engine.close()
    for asked, answer in zip(requests, alone, strict=True):
        first, count = len(asked.prompt_token_ids), len(answer.token_ids)
        row = Row([*asked.prompt_token_ids, *answer.token_ids], positions=list(range(first, first + count)))
        row.logprobs, row.temperatures, row.advantages = answer.logprobs, [1.0] * count, [1.0] * count
        [batch] = batches_of([row], count, 1000, base.device)
        found = policy.log_probabilities(batch).logprobs_N.tolist()
        assert found == pytest.approx(answer.logprobs, abs=1e-4)


def test_a_merged_model_has_the_unpacked_numbers_and_the_adapter():
    base = packed(tiny_base())
    model = base.instantiate("eager")
    name = "model.layers.0.mlp.up_proj"
    tensors = initial_tensors(model, ["up_proj"], 4, 0, [0])
    adapter = Adapter("a", {key: tensor + 0.1 for key, tensor in tensors.items()}, 4, 8.0)
    merged = merge(base, adapter, torch.float32).model.state_dict()
    a_RI, b_OR = (adapter.tensors[key] for key in sorted(adapter.tensors))
    torch.testing.assert_close(merged[f"{name}.weight"], base.weight(f"{name}.weight") + 2 * b_OR @ a_RI)
    other = "model.layers.1.mlp.up_proj.weight"
    assert torch.equal(merged[other], base.weight(other))


def test_all_weights_train_whole_alone():
    with pytest.raises(TemperError, match="loaded in 4 bits; start the GPU worker without --load-in-4bit"):
        initial_weights(of_pocket())
