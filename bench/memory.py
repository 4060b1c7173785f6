"""One row of `npm run bench -- memory`, in a process of its own: what a random model of Qwen2.5-0.5B's shapes takes in
main memory at its worst moment, above the imports, and what was planned before its weights were read.

The last line is one JSON object.
"""

import argparse
import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from transformers import (
    AutoTokenizer,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from temper_gpu.contract import LoraConfig
from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.needs import capacity_of
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.interface import GenerationRequest
from temper_gpu.model.lora import Adapter, initial_tensors, target_modules
from temper_gpu.model.memory_plan import Part
from temper_gpu.model.models import POCKET_FOLDER, BaseModel, load_base, outline
from temper_gpu.process.needs import Machine, micro_batch_part, plan_all, plan_serving
from temper_gpu.training.needs import MicroBatches
from temper_gpu.training.optimizers import initial_optimizer_tensors
from temper_gpu.training.packing import Row, pack
from temper_gpu.training.policy import TrainablePolicy

CPU = torch.device("cpu")
LORA = LoraConfig(rank=16, alpha=32, target_modules=None)
SHARED = {
    "vocab_size": 151936,
    "max_position_embeddings": 32768,
    "tie_word_embeddings": True,
}
QWEN_HALF_B = Qwen2Config(
    **SHARED,
    hidden_size=896,
    intermediate_size=4864,
    num_hidden_layers=24,
    num_attention_heads=14,
    num_key_value_heads=2,
)
# A small model's width, and as many experts for a token as Qwen3-30B-A3B has.
MIXTURE = Qwen3MoeConfig(
    **SHARED,
    hidden_size=1024,
    intermediate_size=3072,
    moe_intermediate_size=384,
    num_hidden_layers=8,
    num_attention_heads=16,
    num_key_value_heads=4,
    num_experts=32,
    num_experts_per_tok=8,
)
SHAPES = {
    "dense": (Qwen2ForCausalLM, QWEN_HALF_B),
    "mixture": (Qwen3MoeForCausalLM, MIXTURE),
}
CONTEXT = 4096
WAIT_S = 3000
NUM_REQUESTS = 32
NUM_PROMPTS = 3
SETTINGS = EmbeddedSettings(max_slots=NUM_REQUESTS, prefix_cache_bytes=256 << 20)
MIB = 1 << 20


class HeldAdapter:
    """An adapter that is in memory only while it is read."""

    def __init__(self, sha256: str, read: Callable[[], Adapter]) -> None:
        self.sha256 = sha256
        self.read = read

    def write_folder(self, folder: Path) -> None:
        raise NotImplementedError


def make(folder: str, kind: str) -> None:
    torch.manual_seed(0)
    architecture, config = SHAPES[kind]
    with torch.device("meta"):
        model = architecture(config).to(torch.bfloat16)
    model = model.to_empty(device="cpu")
    for name, parameter in model.named_parameters():
        torch.nn.init.normal_(parameter, std=0.02) if parameter.dim() > 1 else torch.nn.init.ones_(parameter)
        if name.endswith("bias"):
            torch.nn.init.zeros_(parameter)
    model.tie_weights()
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(POCKET_FOLDER).save_pretrained(folder)


def serve(folder: str, dtype: torch.dtype) -> list[Part]:
    """NUM_REQUESTS at once, of 2,000 to 4,000 tokens, for as many policies as stay loaded. Prompts begin alike, so that
    few tokens are computed; each request has keys of its own all the same."""
    model = outline(folder)
    # Memory that these requests fill.
    per_token = capacity_of(model, dtype, SETTINGS, CONTEXT, CPU).bytes_per_token
    num_bytes = (NUM_REQUESTS + 1) * CONTEXT * per_token * 21 // 20 + (SETTINGS.prefix_cache_bytes or 0)
    settings = replace(SETTINGS, kv_cache_bytes=num_bytes)
    parts = plan_serving(model, Machine(CPU, dtype, settings), LORA, CONTEXT).parts
    del model
    engine = EmbeddedEngine(load_base("bench", folder, dtype, CPU), settings)
    policies = [adapter_of(engine.base, number) for number in range(num_policies(parts))]
    # pyrefly: ignore[bad-argument-type]
    futures = [engine.submit(policies[number % len(policies)], request(number), 3000) for number in range(NUM_REQUESTS)]
    for future in futures:
        future.result(3000)
    engine.close()
    return list(parts)


def num_policies(parts: Sequence[Part]) -> int:
    [reason] = [part.reason for part in parts if part.name == "policies"]
    return int(reason.partition(" ")[0])


def adapter_of(base: BaseModel, number: int) -> HeldAdapter:
    def read() -> Adapter:
        model = outline(base.folder or "")
        tensors = initial_tensors(model, target_modules(model, None), LORA.rank, number)
        return Adapter(
            f"{number:064x}",
            {name: torch.full_like(t, 1e-3) for name, t in tensors.items()},
            16,
            32,
        )

    return HeldAdapter(f"{number:064x}", read)


def request(number: int) -> GenerationRequest:
    prompt = number % NUM_PROMPTS
    chance = random.Random(prompt)
    tokens = [chance.randrange(150_000) for _ in range(2000 + 990 * prompt)]
    return GenerationRequest((*tokens, number), 24, 0.8, number)


def train(
    folder: str,
    dtype: torch.dtype,
    num_rows: int,
    row_tokens: int,
    recomputes: bool | None,
) -> list[Part]:
    """Two micro-batches of such rows, and a step of the optimizer. None: the trainer chooses, by what is free."""
    num_tokens = num_rows * row_tokens
    model = outline(folder)
    machine = Machine(CPU, dtype, SETTINGS)
    kept = ("weights", "adapter in training", "optimizer", "gradients")
    parts = [part for part in plan_all(model, machine, LORA, 64, 64).parts if part.name in kept]
    policy = TrainablePolicy(load_base("bench", folder, dtype, CPU), LORA)
    chosen = policy.recomputes(num_tokens) if recomputes is None else recomputes
    TrainablePolicy.recomputes = lambda self, num_tokens: chosen  # type: ignore[method-assign]
    parts.append(micro_batch_part(MicroBatches(model, dtype, LORA, num_tokens), chosen))
    start = initial_tensors(model, target_modules(model, None), LORA.rank, 0)
    policy.load(start, initial_optimizer_tensors(start))
    del start, model
    ones = [1.0] * (row_tokens - 1)
    # They differ from their first token on.
    rows = [
        Row(
            [7 + n] * row_tokens,
            "attempt",
            list(range(1, row_tokens)),
            ones,
            ones,
            ones,
        )
        for n in range(num_rows)
    ]
    for _ in range(2):
        [batch] = pack(rows, num_tokens - num_rows, num_tokens, CPU)
        policy.log_probabilities(batch).logprobs_N.sum().backward()
    policy.clip_gradients(1.0)
    return parts


def peak_kib() -> int:
    return int(re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[0])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=["make", "serve", "train"])
    parser.add_argument("--folder", required=True)
    parser.add_argument("--kind", default="dense")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--tokens", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--recompute", choices=["yes", "no", "chosen"], default="no")
    chosen = parser.parse_args()
    if chosen.work == "make":
        return make(chosen.folder, chosen.kind)
    torch.set_num_threads(2)
    dtype, recomputes = (
        getattr(torch, chosen.dtype),
        {"yes": True, "no": False, "chosen": None}[chosen.recompute],
    )
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_kib()
    parts = (
        serve(chosen.folder, dtype)
        if chosen.work == "serve"
        else train(chosen.folder, dtype, chosen.rows, chosen.tokens, recomputes)
    )
    measured = (peak_kib() - before) * 1024
    planned = sum(part.num_bytes for part in parts if part.name != "process")
    for part in parts:
        print(f"{part.num_bytes / MIB:10,.0f} {part.name}: {part.reason}")
    print(
        json.dumps(
            {
                "plannedMiB": round(planned / MIB),
                "measuredMiB": round(measured / MIB),
                "ratio": planned / measured,
            }
        )
    )


if __name__ == "__main__":
    main()
