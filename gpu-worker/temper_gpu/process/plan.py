"""What a model is, whether it can be served and trained, and whether it fits into this machine's memory. Reads no
weights.

Of a model of the Hugging Face hub or of a bucket only its config and tokenizer are downloaded. Prints one JSON object;
`refusal` says why the model cannot be used, where it cannot.
"""

from typing import TYPE_CHECKING, Any

from temper_gpu.contract import ModelPlanInput
from temper_gpu.failures import TemperError
from temper_gpu.process.described_model import find, prompts_of, read_template

if TYPE_CHECKING:
    import torch
    from transformers.modeling_utils import PreTrainedModel

    from temper_gpu.model.memory_plan import MemoryPlan
    from temper_gpu.process.needs import Machine

# Planned length of conversations, in tokens, if none is set.
USUAL_CONTEXT = 32_768


def run(work: ModelPlanInput) -> dict[str, Any]:
    from temper_gpu.model.memory_plan import count_parameters
    from temper_gpu.model.models import context_window_of
    from temper_gpu.model.outlines import open_outline
    from temper_gpu.process.host import choose_device
    from temper_gpu.process.needs import open_machine

    machine = open_machine(work.engine, choose_device(work.engine.device))
    name, template = work.model, read_template(work.chat_template)
    found = find(name, work.source)
    outline = open_outline(name, found.folder, template)
    window = context_window_of(outline.model.config)
    packing = refuse_packing(name, outline.model) if machine.settings.load_in4bit else None
    gaps: list[str] = []
    try:
        refusal = outline.refusal or packing
        gaps = [] if refusal else prompts_of(name, found.folder, template).gaps()
    except TemperError as error:
        refusal = error.message
    return {
        "model": name,
        "commit": found.commit,
        "architecture": type(outline.model).__name__,
        "parameters": count_parameters(outline.model),
        "contextWindow": window,
        "dtype": str(machine.dtype).removeprefix("torch."),
        "engine": work.engine.kind,
        "refusal": refusal,
        "templateGaps": gaps,
        "memory": None if refusal else plan(work, machine, outline.model),
    }


def refuse_packing(name: str, model: "PreTrainedModel") -> str | None:
    """The reason why layers cannot be packed; None if they can."""
    from temper_gpu.model.four_bit import require_packable

    try:
        require_packable(name, model)
    except TemperError as error:
        return error.message
    return None


def plan(work: ModelPlanInput, machine: "Machine", model: "PreTrainedModel") -> dict[str, Any]:
    import torch

    from temper_gpu.engine.embedded.needs import capacity_of
    from temper_gpu.engine.embedded.settings import EmbeddedSettings
    from temper_gpu.model.models import context_window_of
    from temper_gpu.process.needs import CPU, RowLengths, fit_micro_batch, plan_all, plan_main_memory, plan_vllm_alone

    lora, window, most = work.lora, context_window_of(model.config), work.micro_batch_tokens
    longest = None if work.context is None else min(window, work.context)
    options = (work.trains_entropy, work.optimizer, work.compared)
    if work.fit:
        most, found = fit_micro_batch(model, machine, lora, RowLengths(window, longest), most, *options)
        context = longest or min(window, most)
    else:
        context = longest or min(window, USUAL_CONTEXT)
        found = plan_all(model, machine, lora, context, most, *options)
    plans = [(machine.device, found)]
    capacity = None
    if isinstance(machine.engine, EmbeddedSettings):
        capacity = capacity_of(model, machine.dtype, machine.engine, context, machine.device)
    elif (alone := plan_vllm_alone(model, machine, machine.engine)) is not None:
        plans += [(torch.device("cuda", index), alone) for index in machine.engine.devices]
    whole = plan_main_memory(model, machine)
    if whole is not None:
        plans.append((CPU, whole))
    return {
        "context": context,
        "microBatchTokens": max(context, most),
        # Null for vLLM, which decides this itself.
        "longestRequest": None if capacity is None else capacity.longest_request,
        "requestsAtOnce": None if capacity is None else capacity.requests_at_once,
        "devices": [describe_plan(device, plan) for device, plan in plans],
    }


def describe_plan(device: "torch.device", plan: "MemoryPlan") -> dict[str, Any]:
    from temper_gpu.model.memory import total_bytes

    total = total_bytes(device)
    return {
        "device": str(device),
        "bytes": total,
        "needed": plan.num_bytes,
        "fits": plan.num_bytes <= total,
        "parts": [
            {"phase": part.phase, "name": part.name, "bytes": part.num_bytes, "reason": part.reason}
            for part in plan.parts
        ],
    }
