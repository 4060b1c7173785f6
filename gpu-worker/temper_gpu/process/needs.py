"""Memory plan of a GPU worker: the parts of its engine and its trainer on each device."""

import math
from dataclasses import dataclass, field
from pathlib import Path

import torch
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.contract import DEFAULT_KV_CACHE_BYTES, VLLM_LORA_RANK, EngineSettings, LoraConfig, TrainConfig
from temper_gpu.engine.embedded import needs as embedded
from temper_gpu.engine.embedded.policies import is_merged, policy_bytes
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.vllm import needs as vllm
from temper_gpu.engine.vllm.process import is_shared
from temper_gpu.engine.vllm.settings import External, VllmSettings
from temper_gpu.engine.vllm.switching import Held, StepNeed
from temper_gpu.failures import TemperError
from temper_gpu.model.four_bit import BITS_PER_WEIGHT, packed_layers
from temper_gpu.model.lora import adapted_layers, dtype_name, target_modules
from temper_gpu.model.memory import free_bytes, total_bytes
from temper_gpu.model.memory_plan import (
    MemoryPlan,
    Part,
    Phase,
    bits_parts,
    count_parameters,
    process_part,
    require_room,
    weights_part,
)
from temper_gpu.process.host import choose_dtype
from temper_gpu.training import needs as trainer
from temper_gpu.training.optimizers import BLOCK, OptimizerKind

GIB = 1 << 30
CPU = torch.device("cpu")
# Keys and values get one part in this many of a GPU's memory. In the embedded engine, a request of 32k tokens takes
# 7.1 GiB for Qwen2.5-7B.
KV_CACHE_SHARE = 4
# In tokens. A smaller micro-batch saves hardly any memory, because each row's own needs remain.
LEAST_MICRO_BATCH = 512
# In tokens. On a GPU, this size with layers kept is as fast as twice the size (measured on an H200, 7 billion
# parameters).
LEAST_KEPT = 4096
# Parts of vLLM that it can release.
VLLM_WEIGHTS, VLLM_ADAPTERS, VLLM_CACHE = "vLLM's weights", "vLLM's adapters", "vLLM's key-value cache"
# The default adapter of a run (core/rules/run-defaults.ts).
USUAL_LORA = LoraConfig(rank=16, alpha=32, target_modules=None)


@dataclass(frozen=True)
class Machine:
    """The device, type and engine that open a model, and the settings that they come from."""

    device: torch.device
    dtype: torch.dtype
    engine: EmbeddedSettings | VllmSettings
    settings: EngineSettings = field(default_factory=EngineSettings)


@dataclass(frozen=True)
class RowLengths:
    """Row lengths of a run, up to the context window. `longest` is None if unknown."""

    window: int
    longest: int | None = None


def default_kv_cache_bytes(device: torch.device) -> int:
    """A share of the GPU's total memory. Free memory would vary, and manifests record vLLM's flags."""
    if device.type != "cuda":
        return DEFAULT_KV_CACHE_BYTES
    return max(GIB, total_bytes(device) // KV_CACHE_SHARE // GIB * GIB)


def open_machine(engine: EngineSettings, device: torch.device) -> Machine:
    """Settings of vLLM still lack its installation, or the key and folder of an external server."""
    require_same_weights(engine)
    return Machine(
        device,
        choose_dtype(engine.dtype, device),
        vllm_settings(engine, device) if engine.kind == "vllm" else embedded_settings(engine, device),
        engine,
    )


def require_same_weights(engine: EngineSettings) -> None:
    """Refuses settings that sample from other weights than they train on. `core/rules/engine-rules.ts` checks temper's
    own settings; this covers settings written by hand."""
    if engine.load_in4bit and (engine.kind == "vllm" or engine.shard_base_model):
        other = "the embedded engine" if engine.kind == "vllm" else "a whole base model on each device"
        raise TemperError("BadConfig", f"loadIn4bit must come with {other}; leave it out")


def vllm_settings(engine: EngineSettings, device: torch.device) -> VllmSettings:
    devices = tuple(engine.vllm.devices)
    on, url = torch.device("cuda", devices[0]) if devices else device, engine.vllm.url
    return VllmSettings(
        python="",
        version="",
        devices=devices,
        num_threads=engine.threads,
        slots=engine.slots,
        kv_cache_bytes=engine.kv_cache_bytes or default_kv_cache_bytes(on),
        max_policies=engine.vllm.policies,
        external=None if url is None else External(url.rstrip("/"), "", Path(), ""),
    )


def embedded_settings(engine: EngineSettings, device: torch.device) -> EmbeddedSettings:
    return EmbeddedSettings(
        num_threads=engine.threads,
        max_slots=engine.slots,
        kv_cache_bytes=engine.kv_cache_bytes or default_kv_cache_bytes(device),
        prefix_cache_bytes=engine.prefix_cache_bytes,
    )


def plan_serving(model: PreTrainedModel, machine: Machine, lora: LoraConfig | None, context: int | None) -> MemoryPlan:
    """The trainer's device while it serves. Without `context`: only the parts that no request changes."""
    imports = [process_part(machine.device), *bits_parts(machine.device, machine.settings.load_in4bit)]
    parts = [*imports, *base_parts(model, machine)]
    if isinstance(machine.engine, EmbeddedSettings):
        parts += embedded_parts(model, machine, machine.engine, lora, context)
    elif machine.engine.external is None and shares_memory(machine.device, machine.engine):
        parts += vllm_parts(model, machine, machine.engine)
    return MemoryPlan(tuple(parts))


def base_parts(model: PreTrainedModel, machine: Machine) -> list[Part]:
    """The base model's parts; on a CPU, those of all ranks."""
    weights, count = _weights_part(model, machine), machine.settings.devices
    is_on_cpu = machine.device.type == "cpu"
    if not machine.settings.shard_base_model:
        others = count - 1
        rest = Part("always", "other ranks", others * weights.num_bytes, f"{others} × the weights")
        own = [weights, *_unpacked_parts(model, machine)]
        return [*own, rest] if others and is_on_cpu else own
    gathered = trainer.gathered_bytes(model, machine.dtype)
    what = "the largest layer, embedding or head, twice while it comes together"
    if is_on_cpu:
        # The first rank sends the others their parts. Its engine samples from the whole model.
        return [
            weights,
            Part("always", "parts of the weights", weights.num_bytes, f"{count} × 1/{count} of the weights"),
            Part("training", "gathered weights", count * gathered, f"{count} × {what}"),
        ]
    part = -(-weights.num_bytes // count)
    return [
        Part("always", "part of the weights", part, f"1/{count} of {weights.reason}"),
        Part("training", "gathered weights", gathered, what),
    ]


def _weights_part(model: PreTrainedModel, machine: Machine) -> Part:
    if not machine.settings.load_in4bit:
        return weights_part(model, machine.dtype)
    packed = sum(layer.weight.numel() for layer in packed_layers(model).values())
    rest, size = count_parameters(model) - packed, machine.dtype.itemsize
    name = dtype_name(machine.dtype)
    reason = f"{packed:,} weights × {BITS_PER_WEIGHT:g} bits, {rest:,} parameters × {size} bytes ({name})"
    return Part("always", "weights", int(packed * BITS_PER_WEIGHT) // 8 + rest * size, reason)


def _unpacked_parts(model: PreTrainedModel, machine: Machine) -> list[Part]:
    """Packed layers are unpacked one at a time, by engine and trainer alike."""
    if not machine.settings.load_in4bit:
        return []
    largest = max(layer.weight.numel() for layer in packed_layers(model).values()) * machine.dtype.itemsize
    return [
        Part("always", "unpacked layer", machine.settings.devices * largest, "the largest one, while it is computed")
    ]


def plan_main_memory(model: PreTrainedModel, machine: Machine) -> MemoryPlan | None:
    """The whole base model in the first rank's main memory, if GPUs hold parts of it; otherwise None."""
    if not machine.settings.shard_base_model or machine.device.type == "cpu":
        return None
    return MemoryPlan((process_part(CPU), weights_part(model, machine.dtype)))


def embedded_parts(
    model: PreTrainedModel, machine: Machine, settings: EmbeddedSettings, lora: LoraConfig | None, context: int | None
) -> list[Part]:
    dtype = machine.dtype
    capacity = embedded.capacity_of(model, dtype, settings, context or 1, machine.device)
    each, kind = policy_of(model, machine, lora)
    policies = embedded.loaded_policies(model, dtype, each, settings.max_policies)
    parts = [
        Part("always", "policies", policies.count * policies.bytes_each, f"{policies.count} × {kind}"),
        Part("always", "key-value cache", capacity.num_bytes, f"{capacity.bytes_per_token:,} bytes a token"),
    ]
    if context is not None:
        num_bytes = embedded.pass_bytes(model, dtype, settings, context, machine.device)
        parts.append(Part("serving", "forward pass", num_bytes, "activations of a layer, logits, sampling"))
    return parts


def policy_of(model: PreTrainedModel, machine: Machine, lora: LoraConfig | None) -> tuple[int, str]:
    """Bytes that a loaded policy adds to the base model, and a description of them."""
    if lora is None:
        return count_parameters(model) * machine.dtype.itemsize, "all weights"
    merged = is_merged(machine.dtype, machine.device, machine.settings.load_in4bit)
    adapted = adapted_layers(model, target_modules(model, lora.target_modules), lora.layers)
    each = policy_bytes([layer.weight.shape for _, layer in adapted], lora.rank, machine.dtype, merged)
    num_layers = len(adapted)
    return each, f"the {num_layers} adapted matrices, merged" if merged else f"factors of {num_layers} matrices"


def vllm_parts(model: PreTrainedModel, machine: Machine, settings: VllmSettings) -> list[Part]:
    """vLLM releases memory on a shared GPU while a step trains, if both do not fit; on a CPU it does not."""
    phase: Phase = "always" if machine.device.type == "cpu" else "serving"
    num_devices = max(1, len(settings.devices))
    weights = weights_part(model, machine.dtype)
    share = "" if num_devices == 1 else f", on {num_devices} GPUs"
    adapters = vllm.adapters_bytes(model, machine.dtype, settings)
    return [
        Part(phase, VLLM_WEIGHTS, weights.num_bytes // num_devices, weights.reason + share),
        Part(
            phase,
            VLLM_ADAPTERS,
            adapters // num_devices,
            f"{settings.max_policies}, room for rank {VLLM_LORA_RANK}{share}",
        ),
        Part(phase, VLLM_CACHE, settings.kv_cache_bytes, "as set"),
        Part(phase, "vLLM itself", vllm.PROCESS_BYTES, "passes, CUDA graphs, context (an estimate)"),
    ]


def plan_all(
    model: PreTrainedModel,
    machine: Machine,
    lora: LoraConfig | None,
    context: int,
    micro_batch_tokens: int,
    trains_entropy: bool = False,
    optimizer: OptimizerKind = "adamw",
    num_compared: int = 0,
) -> MemoryPlan:
    """The trainer's device, for conversations of up to `context` tokens."""
    serving = plan_serving(model, machine, lora, context)
    parts = (*serving.parts, *training_parts(model, machine, lora, optimizer, num_compared))
    batches = trainer.MicroBatches(model, machine.dtype, lora, max(context, micro_batch_tokens), trains_entropy)
    left = total_bytes(machine.device) - MemoryPlan(parts).of("always")
    recomputes = batches.are_recomputed(left, machine.device)
    plan = MemoryPlan((*parts, micro_batch_part(batches, recomputes)))
    return MemoryPlan((*plan.parts, *commit_parts(model, machine, lora, plan.of("training"))), recomputes)


def switching_needs(model: PreTrainedModel, machine: Machine, train: TrainConfig) -> tuple[StepNeed, Held]:
    """A step's needs on the trainer's GPU beyond the parts that are always loaded, and vLLM's share of that GPU."""
    assert isinstance(machine.engine, VllmSettings)
    lora, num_tokens = train.lora, train.micro_batch_tokens
    # A longer row gets a micro-batch of its own. Whether it fits shows when it is trained.
    batches = trainer.MicroBatches(model, machine.dtype, lora, num_tokens, train.entropy_coefficient > 0)
    parts = [*base_parts(model, machine), *training_parts(model, machine, lora, train.optimizer.kind)]
    rest = MemoryPlan(tuple(parts)).of("training")
    kept, recomputed = (rest + batches.num_bytes(recomputes) for recomputes in (False, True))
    taken = {part.name: part.num_bytes for part in vllm_parts(model, machine, machine.engine)}
    need = StepNeed(kept, recomputed, batches.free_to_keep(machine.device))
    return need, Held(cache=taken[VLLM_CACHE], weights=taken[VLLM_WEIGHTS] + taken[VLLM_ADAPTERS])


def training_parts(
    model: PreTrainedModel,
    machine: Machine,
    lora: LoraConfig | None,
    optimizer: OptimizerKind = "adamw",
    num_compared: int = 0,
) -> list[Part]:
    """Training parts that do not depend on the rows. On a CPU, all ranks share one memory."""
    state, rounded = trainer.state_bytes(model, lora), trainer.rounded_bytes(model, lora, machine.dtype)
    numbers = f"{state // trainer.STATE_DTYPE.itemsize:,} numbers × {trainer.STATE_DTYPE.itemsize} bytes"
    what = "adapter in training" if lora is not None else "weights in training"
    parts = [
        Part("always", what, state, numbers),
        optimizer_part(model, lora, optimizer, numbers),
        *bits_parts(machine.device, optimizer != "adamw" and not machine.settings.load_in4bit),
        Part("training", "gradients", state, numbers),
    ]
    if num_compared and lora is None and machine.device.type == "cpu":
        # Compared weights stay in the type of the file. Rounded or on a GPU, they take no more than the gradients,
        # which come after them.
        parts.append(Part("training", "compared weights", num_compared * state, f"{num_compared} × {numbers}"))
    if rounded:
        parts.append(Part("always", "rounded weights", rounded, f"copies that compute, {dtype_name(machine.dtype)}"))
    if lora is None and machine.settings.devices > 1 and machine.device.type == "cpu":
        others = (machine.settings.devices - 1) * sum(part.num_bytes for part in parts)
        parts.append(Part("always", "training in other ranks", others, f"{machine.settings.devices - 1} × as much"))
    return parts


def optimizer_part(model: PreTrainedModel, lora: LoraConfig | None, optimizer: OptimizerKind, numbers: str) -> Part:
    if optimizer != "adamw":
        numbers = f"1 byte a number, 4 for each {BLOCK} of them; 4 bytes for embeddings and small tensors"
    return Part("always", "optimizer", trainer.optimizer_bytes(model, lora, optimizer), f"two moments, {numbers}")


def commit_parts(model: PreTrainedModel, machine: Machine, lora: LoraConfig | None, training: int) -> list[Part]:
    """Memory that a commit needs beyond training. Micro-batch and gradients are freed by then."""
    more = trainer.commit_bytes(model, lora) - training
    if machine.device.type != "cpu" or more <= 0:
        return []
    # Step 0 is float32 for every optimizer.
    return [Part("training", "commit", more, "both moments as one file, beside a copy, less the gradients before it")]


def fit_micro_batch(
    model: PreTrainedModel,
    machine: Machine,
    lora: LoraConfig | None,
    rows: RowLengths,
    most: int,
    trains_entropy: bool,
    optimizer: OptimizerKind = "adamw",
    num_compared: int = 0,
) -> tuple[int, MemoryPlan]:
    """The largest micro-batch that fits into free memory, halved from `most` on; the smallest if none fits. Rows of
    unknown length are assumed to be no longer than it. On a GPU, a smaller one that keeps its layers is preferred:
    recomputing them takes a third more time."""
    free = free_bytes(machine.device)
    num_tokens, found = most, None
    while True:
        context = rows.longest or min(rows.window, num_tokens)
        plan = plan_all(model, machine, lora, context, num_tokens, trains_entropy, optimizer, num_compared)
        # A micro-batch below the longest row takes as much as that row.
        smaller = max(num_tokens // 2, rows.longest or 0)
        is_least = not LEAST_MICRO_BATCH <= smaller < num_tokens
        if free is None or plan.num_bytes <= free or is_least:
            if found is None or not plan.recomputes:
                found = num_tokens, plan
            if not plan.recomputes or is_least or smaller < least_kept(machine.device):
                return found
        num_tokens = smaller


def least_kept(device: torch.device) -> float:
    """The smallest micro-batch that is preferred for keeping its layers."""
    return LEAST_KEPT if device.type == "cuda" else math.inf


def micro_batch_part(batches: trainer.MicroBatches, recomputes: bool) -> Part:
    what = "inputs of layers, one layer's activations" if recomputes else "activations"
    entropy = ", their entropies" if batches.trains_entropy else ""
    reason = f"{what} and logits of {batches.num_tokens:,} tokens{entropy}"
    return Part("training", "micro-batch", batches.num_bytes(recomputes), reason)


def shares_memory(device: torch.device, settings: VllmSettings) -> bool:
    return device.type == "cpu" or is_shared(device, settings)


def plan_vllm_alone(model: PreTrainedModel, machine: Machine, settings: VllmSettings) -> MemoryPlan | None:
    """Plan of each GPU that vLLM has for itself; None if there is none."""
    if settings.external is not None or shares_memory(machine.device, settings):
        return None
    return MemoryPlan(tuple(vllm_parts(model, machine, settings)))


def refuse_without_room(machine: Machine, name: str, model: PreTrainedModel) -> None:
    """Refuses, before reading weights, a model that exceeds the total memory. A run's own adapters may be larger."""
    plan = plan_serving(model, machine, USUAL_LORA, None)
    require_room(name, plan.parts, total_bytes(machine.device), remedy_of(machine))
    if machine.settings.load_in4bit:
        before = [process_part(CPU), weights_part(model, machine.dtype, whose=" before they are packed")]
        require_room(name, before, total_bytes(CPU), "use a host with more main memory")
    whole = plan_main_memory(model, machine)
    if whole is not None:
        require_room(name, whole.parts, total_bytes(CPU), "use a host with more main memory")


def refuse_without_room_to_train(
    machine: Machine, name: str, model: PreTrainedModel, optimizer: OptimizerKind = "adamw"
) -> None:
    """Refuses a run that trains all weights, before it begins. Micro-batches, which may be small, are left out."""
    parts = [*plan_serving(model, machine, None, None).parts, *training_parts(model, machine, None, optimizer)]
    training = MemoryPlan(tuple(parts)).of("training")
    remedy = f"train an adapter (leave --full-fine-tuning out), {remedy_of(machine)}"
    require_room(name, [*parts, *commit_parts(model, machine, None, training)], total_bytes(machine.device), remedy)


def remedy_of(machine: Machine) -> str:
    ways = [
        "lower --kv-cache-bytes (engine.kvCacheBytes in temporal.config.ts)",
        *(["start with --dtype bfloat16"] if machine.dtype == torch.float32 else []),
        *(["lower --devices"] if machine.settings.devices > 1 and machine.device.type == "cpu" else []),
        *(
            ["pass --shard-base-model"]
            if machine.device.type == "cuda" and not machine.settings.shard_base_model
            else []
        ),
        "use a smaller model",
    ]
    return ", ".join(ways[:-1]) + ", or " + ways[-1]
