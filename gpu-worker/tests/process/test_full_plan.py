"""The memory plan of runs that train all weights."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from transformers import Qwen2Config

from temper_gpu.engine.embedded.policies import Policies
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.failures import TemperError
from temper_gpu.model.full_weights import FullWeights, initial_weights
from temper_gpu.model.models import POCKET_FOLDER, load_base
from temper_gpu.process import needs
from temper_gpu.process.compose import check_for_vllm
from temper_gpu.training.needs import MicroBatches
from temper_gpu.training.optimizers import OptimizerKind, initial_optimizer_tensors
from temper_gpu.training.packing import pack
from temper_gpu.training.policy import TrainablePolicy
from tests.engine.embedded.tiny import held
from tests.live_bytes import peak_bytes
from tests.process.test_plan import (
    CONFIGS,
    CPU,
    DTYPES,
    SMALL_CACHE,
    nbytes,
    planned,
    random_base,
    row,
    shape_of,
    training,
)


@pytest.mark.parametrize(
    ("kind", "dtype", "recomputes"),
    [("dense", torch.float32, True), ("dense", torch.bfloat16, False), ("experts", torch.float32, False)],
)
def test_a_micro_batch_takes_about_what_is_planned(
    kind: str, dtype: torch.dtype, recomputes: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(TrainablePolicy, "recomputes", lambda self, num_tokens: recomputes)
    train = training(TrainablePolicy(random_base(CONFIGS[kind], dtype), None))
    planned = MicroBatches(shape_of(CONFIGS[kind]), dtype, None, 100).num_bytes(recomputes)
    assert 0.9 * peak_bytes(train) <= planned <= 2.1 * peak_bytes(train)


@pytest.mark.parametrize(
    ("dtype", "optimizer"), [*((dtype, "adamw") for dtype in DTYPES), (torch.bfloat16, "adamw_8bit")]
)
def test_the_parts_are_those_of_the_tensors(
    dtype: torch.dtype, optimizer: OptimizerKind, capsys: pytest.CaptureFixture[str]
):
    engine = SMALL_CACHE.model_copy(update={"dtype": str(dtype).removeprefix("torch.")})
    told = planned(capsys, lora=None, context=256, optimizer=optimizer, engine=engine)
    [device] = told["memory"]["devices"]
    parts = {part["name"]: part["bytes"] for part in device["parts"]}

    base = load_base("pocket", str(POCKET_FOLDER), dtype, CPU)
    frozen = {tensor.data_ptr() for tensor in base.tensors.values()}
    policy, start = TrainablePolicy(base, None, optimizer=optimizer), initial_weights(base)
    policy.load(start, initial_optimizer_tensors(start))
    assert parts["weights in training"] == parts["gradients"] == nbytes(policy.parameters.values())
    assert parts["optimizer"] == nbytes(t for name, t in policy.optimizer_tensors().items() if name != "step")
    copies = {p.data_ptr(): p for p in policy.model.parameters()}
    rounded = [copy for copy in copies.values() if copy.dtype != torch.float32]
    assert parts.get("rounded weights", 0) == nbytes(rounded)
    # Two files are as large as four of the weights: more than gradients and a micro-batch of the pocket model's take.
    assert ("commit" in parts) == (4 * parts["gradients"] > parts["gradients"] + parts["micro-batch"])

    policies = Policies(base, 8, nullcontext())
    policies.load(held(FullWeights("1", start)), 1)
    own = {t.data_ptr(): t for t in policies.for_pass("1").parameters() if t.data_ptr() not in frozen}
    # In float32 the very tensors that were read.
    assert policies._loaded["1"].num_bytes == nbytes(start.values() if dtype == torch.float32 else own.values())
    assert parts["policies"] % policies._loaded["1"].num_bytes == 0


def test_checkpoints_that_a_step_is_compared_with_are_kept_as_they_were_read(capsys: pytest.CaptureFixture[str]):
    def parts_of(**fields: Any) -> dict[str, int]:
        engine = SMALL_CACHE.model_copy(update={"dtype": "bfloat16"})
        [device] = planned(capsys, context=256, engine=engine, **fields)["memory"]["devices"]
        return {part["name"]: part["bytes"] for part in device["parts"]}

    full, alone = parts_of(lora=None, compared=2), parts_of(lora=None)
    base = load_base("pocket", str(POCKET_FOLDER), torch.bfloat16, CPU)
    assert full["compared weights"] == 2 * nbytes(initial_weights(base).values())
    assert full.keys() - alone.keys() == {"compared weights"}
    # Adapters are too small to count.
    assert parts_of(compared=2) == parts_of()


@pytest.mark.parametrize("dtype", DTYPES)
def test_comparing_takes_less_than_the_gradients_after_it(dtype: torch.dtype):
    base = random_base(CONFIGS["dense"], dtype)
    policy, other = TrainablePolicy(base, None), initial_weights(base)
    [batch] = pack([row(100)], 99, 100, CPU)

    def compare() -> None:
        with torch.no_grad(), policy.with_adapter(other):
            policy.log_probabilities(batch)

    def train() -> None:
        policy.log_probabilities(batch).logprobs_N.sum().backward()

    assert peak_bytes(compare) < peak_bytes(train)


def test_a_run_that_trains_all_weights_is_refused_where_they_cannot_be_sampled_from_or_have_no_room(
    monkeypatch: pytest.MonkeyPatch,
):
    with pytest.raises(TemperError, match="vLLM takes only adapters per request; set engine.kind to embedded"):
        check_for_vllm(None)
    monkeypatch.setattr(needs, "total_bytes", lambda device: 3 << 29)
    machine = needs.Machine(CPU, torch.float32, EmbeddedSettings(kv_cache_bytes=1 << 26))
    # 30 million parameters.
    config = Qwen2Config(
        hidden_size=512, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8, vocab_size=20_000
    )
    model = shape_of(config)
    needs.refuse_without_room(machine, "mine", model)
    with pytest.raises(TemperError, match=r"mine must fit into .* optimizer .* train an adapter"):
        needs.refuse_without_room_to_train(machine, "mine", model)
