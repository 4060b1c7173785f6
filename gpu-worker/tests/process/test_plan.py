"""The memory plan: what it says before weights are read is what the tensors have."""

import dataclasses
import json
import shutil
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    GptOssConfig,
    MistralConfig,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3MoeConfig,
)

from temper_gpu.contract import EngineSettings, LoraConfig, ModelPlanInput, Vllm
from temper_gpu.engine.embedded.adapted import AdaptedLinear
from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.needs import (
    capacity_of,
    loaded_policies,
)
from temper_gpu.engine.embedded.policies import Policies
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.vllm.settings import VllmSettings
from temper_gpu.failures import TemperError
from temper_gpu.model.lora import Adapter, initial_tensors, target_modules
from temper_gpu.model.memory_plan import PROCESS_BYTES, count_parameters, weights_part
from temper_gpu.model.models import POCKET_FOLDER, BaseModel, ModelLibrary, load_base, outline
from temper_gpu.model.outlines import without_numbers
from temper_gpu.process import needs
from temper_gpu.process.__main__ import print_answer
from temper_gpu.training.needs import optimizer_bytes, state_bytes
from temper_gpu.training.optimizers import initial_optimizer_tensors
from temper_gpu.training.packing import Row, pack
from temper_gpu.training.policy import TrainablePolicy
from tests.engine.embedded.tiny import held
from tests.failing import failing

CPU = torch.device("cpu")
DTYPES = [torch.float32, torch.bfloat16]
LORA = LoraConfig(rank=8, alpha=16, target_modules=None)
GIB = 1 << 30
# Of Qwen/Qwen2.5-7B-Instruct.
QWEN_7B = Qwen2Config(
    vocab_size=152064,
    hidden_size=3584,
    intermediate_size=18944,
    num_hidden_layers=28,
    num_attention_heads=28,
    num_key_value_heads=4,
    max_position_embeddings=32768,
    tie_word_embeddings=False,
)
MIXTURE = {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": 2}


def shape_of(config: PreTrainedConfig) -> PreTrainedModel:
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


@pytest.fixture(scope="module")
def pocket() -> PreTrainedModel:
    return outline(str(POCKET_FOLDER))


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_cache_policies_and_optimizer_are_those_of_the_tensors(pocket: PreTrainedModel, dtype: torch.dtype):
    base = load_base("pocket", str(POCKET_FOLDER), dtype, CPU)
    weights = {tensor.data_ptr(): tensor.nbytes for tensor in base.tensors.values()}
    assert weights_part(pocket, dtype).num_bytes == sum(weights.values())

    cache = SlotCache(base.config, dtype, CPU)
    cache.resize(3, 64)
    assert capacity_of(pocket, dtype, EmbeddedSettings(), 64, CPU).bytes_per_token * 4 * 64 == nbytes(cache.tables)

    policy = TrainablePolicy(base, LORA)
    targets = target_modules(pocket, None)
    start = initial_tensors(pocket, targets, LORA.rank, 0)
    policy.load(start, initial_optimizer_tensors(start))
    assert state_bytes(pocket, LORA) == nbytes(policy.parameters.values())
    moments = [tensor for name, tensor in policy.optimizer_tensors().items() if name != "step"]
    assert optimizer_bytes(pocket, LORA) == nbytes(moments)

    policies = Policies(base, 8, nullcontext())
    adapter = Adapter("1", start, LORA.rank, LORA.alpha)
    policies.load(held(adapter), 1)
    model = policies.for_pass("1")
    own = [tensor for tensor in held_by(model) if tensor.data_ptr() not in weights]
    each, _ = needs.policy_of(pocket, needs.Machine(CPU, dtype, EmbeddedSettings()), LORA)
    planned = loaded_policies(pocket, dtype, each, 8)
    assert (planned.count, planned.bytes_each) == (8, nbytes(own))
    assert policies._loaded["1"].num_bytes == planned.bytes_each


def held_by(model: PreTrainedModel) -> list[Tensor]:
    layers = [module for module in model.modules() if isinstance(module, AdaptedLinear)]
    factors = [own for layer in layers for own in layer.policies.values()]
    blocks = [block for module in factors for block in (*module._a_blocks, *module._b_blocks)]
    # Blocks are views of one tensor, which padding made.
    return [*model.parameters(), *blocks]


def nbytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


TINY: dict[str, Any] = {
    "vocab_size": 264,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
MOE: dict[str, Any] = {"num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 40}
CONFIGS: dict[str, PreTrainedConfig] = {
    "dense": Qwen2Config(**TINY),
    "window": MistralConfig(**TINY, sliding_window=25),
    "half with a window": Qwen2Config(**TINY, use_sliding_window=True, sliding_window=25, max_window_layers=3),
    "experts": Qwen3MoeConfig(**TINY, **MOE),
    "one dense layer": Qwen3MoeConfig(**TINY, **MOE, mlp_only_layers=[0]),
    "experts in turns": Qwen3MoeConfig(**TINY, **MOE, decoder_sparse_step=2),
    # Attention with sinks, which torch's fast one does not know.
    "sinks": GptOssConfig(**TINY, num_local_experts=4, num_experts_per_tok=2, head_dim=16, sliding_window=25),
}


def random_base(config: PreTrainedConfig, dtype: torch.dtype) -> BaseModel:
    torch.manual_seed(0)
    return without_numbers(config, dtype, CPU)


def row(num_tokens: int) -> Row:
    ones = [1.0] * (num_tokens - 1)
    return Row([1] * num_tokens, "attempt", list(range(1, num_tokens)), ones, ones, ones)


def training(policy: TrainablePolicy) -> Callable[[], None]:
    """A micro-batch that has been trained once, so that what a policy makes once is there."""
    [batch] = pack([row(100)], 99, 100, CPU)

    def train() -> None:
        policy.log_probabilities(batch).logprobs_N.sum().backward()

    train()
    return train


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_base_model_in_4_bits_takes_what_its_packed_weights_take(pocket: PreTrainedModel, dtype: torch.dtype):
    base = load_base("pocket", str(POCKET_FOLDER), dtype, CPU, load_in_4bit=True)
    held = [part for packed in base.packed.values() for _, part in packed.parts()]
    own = {tensor.data_ptr(): tensor.nbytes for tensor in base.tensors.values()}
    machine = needs.Machine(CPU, dtype, EmbeddedSettings(), EngineSettings(load_in4bit=True))
    weights, unpacked = needs.base_parts(pocket, machine)
    assert weights.num_bytes == sum(own.values()) + nbytes(held)
    assert unpacked.num_bytes == max(weight.shape.numel() for weight in base.packed.values()) * dtype.itemsize


def test_7b_in_4_bits_takes_two_fifths_of_bfloat16(monkeypatch: pytest.MonkeyPatch):
    model, gpu = shape_of(QWEN_7B), torch.device("cuda")
    machine = needs.Machine(gpu, torch.bfloat16, EmbeddedSettings(), EngineSettings(load_in4bit=True))
    weights, unpacked = needs.base_parts(model, machine)
    assert "6,525,288,448 weights × 4.5 bits, 1,090,328,064 parameters × 2 bytes (bfloat16)" in weights.reason
    assert weights.num_bytes / (2 * count_parameters(model)) == pytest.approx(0.38, abs=0.01)
    assert unpacked.num_bytes == 2 * 18944 * 3584
    # A GPU's weights are packed in main memory, of which they take what they are.
    memory = {"cuda": 16 * GIB, "cpu": 14 * GIB}
    monkeypatch.setattr(needs, "total_bytes", lambda device: memory[device.type])
    with pytest.raises(TemperError, match=r"weights before they are packed 14.2 GiB.*use a host with more main memory"):
        needs.refuse_without_room(machine, "m", model)
    memory["cpu"] = 16 * GIB
    needs.refuse_without_room(machine, "m", model)


def test_a_model_that_exceeds_the_device_is_refused_before_its_weights_are_read(tmp_path: Path, monkeypatch):
    folder = Path(shutil.copytree(POCKET_FOLDER, tmp_path / "model"))
    next(folder.glob("*.safetensors")).write_bytes(b"weights that nobody reads")
    monkeypatch.setattr(needs, "total_bytes", lambda device: GIB // 2)
    machine = needs.Machine(CPU, torch.float32, EmbeddedSettings())
    library = ModelLibrary(lambda: {"m": str(folder)}, torch.float32, CPU, partial(needs.refuse_without_room, machine))
    with failing(
        "BadConfig",
        r"must fit into the 512.0 MiB of its device, but needs .*key-value cache.*lower --kv-cache-bytes "
        r"\(engine.kvCacheBytes in temporal.config.ts\), start with --dtype",
    ):
        library.get("m")


def test_ranks_on_a_cpu_need_a_base_model_each(monkeypatch: pytest.MonkeyPatch):
    model = shape_of(QWEN_7B)
    alone, three = (
        needs.Machine(CPU, torch.float32, EmbeddedSettings(), EngineSettings(devices=count)) for count in (1, 3)
    )
    weights = 4 * count_parameters(model)
    plans = [needs.plan_serving(model, machine, needs.USUAL_LORA, None) for machine in (alone, three)]
    assert plans[1].num_bytes - plans[0].num_bytes == 2 * weights
    on_gpus = needs.Machine(torch.device("cuda"), torch.float32, EmbeddedSettings(), EngineSettings(devices=3))
    assert "other ranks" not in [part.name for part in needs.plan_serving(model, on_gpus, needs.USUAL_LORA, None).parts]
    monkeypatch.setattr(needs, "total_bytes", lambda device: plans[0].num_bytes + weights)
    with pytest.raises(TemperError, match=r"other ranks.*lower --devices"):
        needs.refuse_without_room(three, "m", model)


def test_a_sharded_base_model_needs_its_part_and_one_group_of_weights_at_a_time(monkeypatch: pytest.MonkeyPatch):
    model, gpu, vllm = shape_of(QWEN_7B), torch.device("cuda"), VllmSettings("", "", devices=(4,))
    weights = 2 * count_parameters(model)
    machine = needs.Machine(gpu, torch.bfloat16, vllm, EngineSettings(devices=4, shard_base_model=True))
    parts = {part.name: part for part in needs.plan_serving(model, machine, needs.USUAL_LORA, None).parts}
    assert parts["part of the weights"].num_bytes == weights // 4
    # The embedding, and the output head, are larger than a layer.
    gathered = parts["gathered weights"]
    assert (gathered.phase, gathered.num_bytes) == ("training", 2 * 152064 * 3584 * 2)
    whole = needs.plan_main_memory(model, machine)
    assert whole is not None and whole.num_bytes == weights + PROCESS_BYTES
    # All ranks share a CPU's memory: the first one has the whole, and its part, too.
    on_cpu = needs.Machine(CPU, torch.float32, EmbeddedSettings(), EngineSettings(devices=4, shard_base_model=True))
    alone = needs.plan_serving(model, needs.Machine(CPU, torch.float32, EmbeddedSettings()), needs.USUAL_LORA, None)
    planned = needs.plan_serving(model, on_cpu, needs.USUAL_LORA, None)
    assert planned.of("always") - alone.of("always") == 2 * weights
    assert planned.of("training") == 4 * 2 * gathered.num_bytes
    assert needs.plan_main_memory(model, on_cpu) is None
    memory = {"cuda": 4 * GIB, "cpu": weights}
    monkeypatch.setattr(needs, "total_bytes", lambda device: memory[device.type])
    for enough, complaint in (("cuda", "use a host with more main memory"), ("cpu", "part of the weights 3.5 GiB")):
        monkeypatch.setitem(memory, enough, 80 * GIB)
        with pytest.raises(TemperError, match=complaint):
            needs.refuse_without_room(machine, "m", model)
        monkeypatch.setitem(memory, enough, 4 * GIB)


SMALL_CACHE = EngineSettings(device="cpu", kv_cache_bytes=8388608)


def planned(capsys: pytest.CaptureFixture[str], **fields: Any) -> dict[str, Any]:
    """What the program prints of the pocket model, or of another one."""
    usual = {"model": "pocket", "micro_batch_tokens": 512, "lora": needs.USUAL_LORA, "engine": SMALL_CACHE}
    assert print_answer("plan", ModelPlanInput(**{**usual, **fields}).model_dump_json(by_alias=True).encode()) == 0
    return json.loads(capsys.readouterr().out)


def test_the_program_says_what_a_model_is_and_needs(capsys: pytest.CaptureFixture[str]):
    told = planned(capsys, context=256)
    assert (told["architecture"], told["refusal"], told["memory"]["microBatchTokens"]) == (
        "Qwen2ForCausalLM",
        None,
        512,
    )
    [device] = told["memory"]["devices"]
    parts = {part["name"]: part for part in device["parts"]}
    assert (device["fits"], parts["key-value cache"]["bytes"]) == (True, 8388608)
    assert device["needed"] > parts["process"]["bytes"] + parts["micro-batch"]["bytes"]
    assert parts["weights"]["reason"] == f"{told['parameters']:,} parameters × 4 bytes (float32)"


def test_the_largest_micro_batch_that_fits_into_free_memory_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def fitted(free: int | None, **more: Any) -> tuple[int, int]:
        monkeypatch.setattr(needs, "free_bytes", lambda device: free)
        memory = planned(capsys, **{"micro_batch_tokens": 4096, "fit": True, **more})["memory"]
        return memory["microBatchTokens"], memory["devices"][0]["needed"]

    whole, most = fitted(None)
    assert (whole, fitted(most)) == (4096, (4096, most))
    half, less = fitted(most - 1)
    assert (half, less < most) == (2048, True)
    # No smaller one is tried, and what does not fit now may fit once others have ended.
    assert fitted(1)[0] == 512
    # What a run trains counts, too.
    assert fitted(None, trains_entropy=True)[1] > most
    assert fitted(None, lora=needs.USUAL_LORA.model_copy(update={"dora": True}))[1] != most
    # A micro-batch holds the longest row whole: what is smaller takes as much.
    longest, as_much = fitted(1, context=1500)
    assert (longest, fitted(1, context=1500, micro_batch_tokens=1500)) == (1500, (1500, as_much))
    assert fitted(1, context=100)[0] == 512


def told_of(changes: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str], **fields: Any) -> dict[str, Any]:
    """Of the pocket model's folder with another config. Its weights are not even there."""
    shutil.copytree(POCKET_FOLDER, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    return planned(capsys, model="mine", source=str(folder), **fields)


def test_the_program_says_why_a_model_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    told = told_of({"use_bidirectional_attention": True}, tmp_path / "model", capsys)
    assert "must attend to earlier tokens only" in told["refusal"] and told["memory"] is None


def test_what_experts_compute_is_reckoned_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    told = told_of(MIXTURE, tmp_path / "model", capsys)
    [device] = told["memory"]["devices"]
    parts = {part["name"]: part for part in device["parts"]}
    assert told["refusal"] is None and parts["forward pass"]["bytes"] > 0
    assert parts["micro-batch"]["bytes"] > 0


def test_a_server_elsewhere_takes_nothing_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    server = EngineSettings(kind="vllm", vllm=Vllm(url="http://gpu-host:8000"))
    [device] = told_of({}, tmp_path / "model", capsys, engine=server)["memory"]["devices"]
    always = [part["name"] for part in device["parts"] if part["phase"] == "always"]
    assert always == ["process", "weights", "adapter in training", "optimizer"]


def test_on_gpus_of_its_own_vllm_is_reckoned_apart():
    model, vllm = shape_of(QWEN_7B), VllmSettings("", "", devices=(1, 2), kv_cache_bytes=8 * GIB)
    machine = needs.Machine(torch.device("cuda", 0), torch.bfloat16, vllm)
    names = [part.name for part in needs.plan_serving(model, machine, needs.USUAL_LORA, 1024).parts]
    assert names == ["CUDA", "weights"]
    alone = needs.plan_vllm_alone(model, machine, vllm)
    assert alone is not None
    weights = next(part for part in alone.parts if part.name == "vLLM's weights")
    assert weights.num_bytes == 7_615_616_512
    shared = dataclasses.replace(vllm, devices=())
    beside = needs.plan_serving(model, dataclasses.replace(machine, engine=shared), needs.USUAL_LORA, 1024)
    # It sleeps while a step is trained.
    assert {part.phase for part in beside.parts if part.name.startswith("vLLM")} == {"serving"}
