"""Of `npm run bench -- gpu`: tokens a second and memory of engine and trainer on a random model of Qwen2.5-7B's shape,
in bfloat16, with LoRA of rank 16 on every layer. Parts that may differ are measured with and without."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from gpu_report import Bench, gib, random_base, shape

from temper_gpu.contract import LoraConfig, OptimizerConfig
from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.settings import EngineSettings
from temper_gpu.engine.interface import GenerationRequest
from temper_gpu.model.lora import Adapter, initial_tensors, target_modules
from temper_gpu.model.models import BaseModel
from temper_gpu.training.optimizers import initial_optimizer_tensors
from temper_gpu.training.packing import MicroBatch, Packing, Row, pack
from temper_gpu.training.platform import repeatable
from temper_gpu.training.policy import TrainablePolicy

LORA = LoraConfig(rank=16, alpha=32, target_modules=None)
OPTIMIZER = OptimizerConfig(beta1=0.9, beta2=0.99, epsilon=1e-8, weight_decay=0, max_grad_norm=1)
# Dense bfloat16 of an H100 or H200, by their datasheet.
PEAK_FLOPS = 990e12
WAIT_S = 300
TREES = "temper_gpu.training.tree_attention.REMADE_ON"
JOINS = "temper_gpu.training.lora_parameters.joins_halves"


class HeldAdapter:
    def __init__(self, adapter: Adapter) -> None:
        self.sha256 = adapter.sha256
        self._adapter = adapter

    def read(self) -> Adapter:
        return self._adapter

    def write_folder(self, folder: Path) -> None:
        raise NotImplementedError


def half(bench: Bench) -> torch.dtype:
    return torch.bfloat16 if bench.is_gpu else torch.float32


def engine(bench: Bench) -> None:
    """Start with its proof, then 64 requests at once: eight prompts of 512 tokens, answers of 32 to 96."""
    base = random_base(bench, shape(bench), half(bench))
    model = base.instantiate("eager")
    tensors = {name: t + 0.001 for name, t in initial_tensors(model, target_modules(model, None), 16, 0).items()}
    source = HeldAdapter(Adapter("a" * 64, tensors, 16, 32.0))
    ways: dict[str, tuple[int | None, bool]] = {"passes as a CPU's, deterministic kernels": (None, True)}
    ways["passes as a CPU's"] = (None, False)
    if bench.is_gpu:
        ways["passes of up to 2,048"] = (2048, False)
    for name, (largest, deterministic) in ways.items():
        with bench.tried(f"engine, {name}"):
            torch.use_deterministic_algorithms(deterministic)
            serve(bench, name, base, source, largest)
        bench.clean()


def serve(bench: Bench, name: str, base: BaseModel, source: HeldAdapter, largest: int | None) -> None:
    bench.clean()
    started = time.perf_counter()
    kv_cache_bytes = 64 << 20 if bench.is_small else 16 << 30
    found = EmbeddedEngine(base, EngineSettings(kv_cache_bytes=kv_cache_bytes, max_pass_tokens=largest))
    details, took = found.health().details, time.perf_counter() - started
    bench.tell(
        f"engine, {name}: start",
        f"{took:.1f} s, sizes {details['sizes']} of {found.candidates.allowed}, proven {details['proven']}, mixing "
        f"{details['mixing']}",
    )
    rng, vocabulary = np.random.default_rng(0), base.config.vocab_size
    length, answers = (40, (4, 12)) if bench.is_small else (512, (32, 96))
    prompts = [tuple(int(t) for t in rng.integers(0, vocabulary, length)) for _ in range(8)]
    lengths = [int(n) for n in rng.integers(*answers, 64)]
    found.submit(source, GenerationRequest(prompts[0][:32], 2, 1.0, 0), WAIT_S).result(WAIT_S)
    before, begun = dict(found.counters()), time.perf_counter()
    # Longest first: those that end leave the others' positions as they are.
    futures = [found.submit(source, GenerationRequest(prompts[n % 8], lengths[n], 1.0, n), WAIT_S) for n in range(64)]
    tokens = sum(len(future.result(WAIT_S).token_ids) for future in futures)
    took = time.perf_counter() - begun
    did = {key: value - before[key] for key, value in found.counters().items()}
    passes = did["prefill_passes"] + did["decode_passes"]
    bench.tell(
        f"engine, {name}: 64 requests",
        f"{tokens / took:,.0f} sampled tokens/s, {took:.1f} s; {did['prefill_passes']} prefill and "
        f"{did['decode_passes']} decode passes, {did['forward_s'] / max(1, passes) * 1e3:.0f} ms each; peak "
        f"{gib(bench.peak())}",
        tokens / took,
    )
    if bench.is_gpu and largest is None and not torch.are_deterministic_algorithms_enabled():
        profile_decode(bench, name, found, source, prompts)
    found.close()


def profile_decode(bench: Bench, name: str, found: EmbeddedEngine, source: HeldAdapter, prompts: list) -> None:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        futures = [found.submit(source, GenerationRequest(prompts[n % 8], 2, 1.0, n), WAIT_S) for n in range(16)]
        for future in futures:
            future.result(WAIT_S)
    kernels = [event for event in trace.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    busy = sum(event.device_time for event in kernels) / 1e6
    span = (max(e.time_range.end for e in kernels) - min(e.time_range.start for e in kernels)) / 1e6
    bench.tell(
        f"engine, {name}: two tokens of 16 requests", f"{len(kernels):,} kernels, GPU busy {busy:.2f} s of {span:.2f} s"
    )
    print(trace.key_averages().table(sort_by="cuda_time_total", row_limit=8, max_name_column_width=60)[:3000])


@dataclass(frozen=True)
class Case:
    packing: Packing
    is_recomputed: bool
    most: int
    # Tokens that eight rows of 2,048 begin with.
    prompt: int = 512
    # Of the parts that may differ: what changes, and in which way it was before.
    before: str | None = field(default=None, kw_only=True)

    @property
    def name(self) -> str:
        kept = "recomputed" if self.is_recomputed else "kept"
        what = f"trainer, {self.packing} (prompt {self.prompt:,}), {kept}, {self.most:,}"
        return what + ("" if self.before is None else f", {self.before}")


CASES = (
    Case("rows", True, 16384, before="PEFT's factors"),
    Case("rows", False, 8192, before="PEFT's factors"),
    Case("rows", True, 16384),
    Case("rows", False, 8192),
    Case("rows", False, 4096),
    Case("tree", True, 16384),
    Case("tree", False, 8192, 1024),
    Case("tree", True, 16384, before="masks made again"),
)


def trainer(bench: Bench) -> None:
    """A group of eight rows with a prompt of 512 tokens and answers of 1,536: forward and backward."""
    base = random_base(bench, shape(bench), half(bench))
    for before in ("PEFT's factors", None):
        with repeatable(bench.device), patched(JOINS, (lambda device: False) if before else None):
            policy = policy_of(bench, base)
            for case in CASES:
                if (case.before == "PEFT's factors") == bool(before):
                    with bench.tried(case.name), patched(TREES, ("cpu", "cuda") if is_remade(case) else None):
                        train(bench, policy, group_of_rows(bench, base, case.prompt), case)
            if before is None:
                finish(bench, policy, group_of_rows(bench, base, 1024))
            del policy
            bench.clean()


def is_remade(case: Case) -> bool:
    return case.before == "masks made again"


@contextmanager
def patched(place: str, value: object | None) -> Iterator[None]:
    if value is None:
        yield
    else:
        with patch(place, value):
            yield


def policy_of(bench: Bench, base: BaseModel) -> TrainablePolicy:
    bench.clean()
    policy = TrainablePolicy(base, LORA)
    start = {name: torch.randn(p.shape) * 0.01 for name, p in policy.parameters.items()}
    policy.load(start, initial_optimizer_tensors(start))
    return policy


def group_of_rows(bench: Bench, base: BaseModel, prompt: int) -> list[Row]:
    prompt, answer, count = (32, 32, 4) if bench.is_small else (prompt, 2048 - prompt, 8)
    rng, vocabulary = np.random.default_rng(0), base.config.vocab_size
    head = [int(t) for t in rng.integers(0, vocabulary, prompt)]
    rows = []
    for n in range(count):
        ids = head + [int(t) for t in rng.integers(0, vocabulary, answer)]
        rows.append(
            Row(
                ids,
                "attempt",
                list(range(prompt, len(ids))),
                [0.0] * answer,
                [1.0] * answer,
                [1.0] * answer,
                n * answer,
            )
        )
    return rows


def train(bench: Bench, policy: TrainablePolicy, rows: list[Row], case: Case) -> None:
    policy.recomputes = lambda num_tokens: case.is_recomputed  # pyright: ignore[reportAttributeAccessIssue]
    policy.zero_grad()
    batches = pack(rows, 1, case.most, bench.device, case.packing)
    bench.clean()
    before = torch.cuda.memory_allocated() if bench.is_gpu else 0
    took = bench.seconds(lambda: go(policy, batches), 2, 1)
    embedding = policy.base.config.vocab_size * policy.base.config.hidden_size
    body = policy.base.num_parameters - embedding
    computed = sum(batch.token_ids_BT.numel() for batch in batches)
    of_rows = sum(len(row.token_ids) for row in rows)
    # Frozen weights: two of the three products of a layer.
    mfu = 4.0 * body * computed / took / PEAK_FLOPS
    largest = max(batch.token_ids_BT.numel() for batch in batches)
    each = (bench.peak() - before) / largest
    bench.tell(
        case.name,
        f"{took:.2f} s, {computed / took:,.0f} computed tokens/s ({of_rows / took:,.0f} of rows), MFU {mfu:.1%}, peak "
        f"{gib(bench.peak())}, {each / 1e6:.2f} MB a token of {len(batches)} micro-batches of {largest:,}"
        + ("" if case.packing == "rows" or not batches[0].attention.is_chains else ", LAID AS ROWS"),
        {"seconds": took, "mfu": mfu, "peak": bench.peak(), "bytes_per_token": each},
    )
    policy.zero_grad()


def go(policy: TrainablePolicy, batches: list[MicroBatch]) -> None:
    for batch in batches:
        policy.log_probabilities(batch).logprobs_N.sum().backward()


def finish(bench: Bench, policy: TrainablePolicy, rows: list[Row]) -> None:
    """After the gradient: the update, what is read for a commit, what the allocator keeps; and a profile."""
    policy.recomputes = lambda num_tokens: True  # pyright: ignore[reportAttributeAccessIssue]
    batches = pack(rows, 1, 16384, bench.device, "rows")
    go(policy, batches)
    policy.clip_gradients(1.0)
    took = bench.seconds(lambda: policy.optimizer_step(OPTIMIZER, 1e-5), 1, 0)
    bench.tell("trainer: optimizer step", f"{took * 1e3:.1f} ms")
    took = bench.seconds(lambda: (policy.adapter_tensors(), policy.optimizer_tensors()), 1, 0)
    bench.tell("trainer: adapter and moments to main memory", f"{took:.2f} s")
    if not bench.is_gpu:
        return
    kept = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    bench.clean()
    left = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    bench.tell("trainer: what its allocator keeps after a step", f"{gib(kept)}, given back: {gib(left)}")
    from torch.profiler import ProfilerActivity, profile

    for packing in ("rows", "tree"):
        [batch, *_] = pack(rows, 1, 8192, bench.device, packing)
        with profile(activities=[ProfilerActivity.CUDA]) as trace:
            go(policy, [batch])
            bench.wait()
        kernels = [event for event in trace.events() if event.device_type == torch.autograd.DeviceType.CUDA]
        busy = sum(event.device_time for event in kernels) / 1e6
        bench.tell(f"trainer: a micro-batch of 8,192, {packing}", f"{len(kernels):,} kernels and copies, {busy:.2f} s")
        print(trace.key_averages().table(sort_by="cuda_time_total", row_limit=16, max_name_column_width=70)[:5000])
        policy.zero_grad()
