"""`npm run bench -- gpu`: tokens a second and memory of engine and trainer on a random model of Qwen2.5-7B's shape,
in bfloat16, with LoRA of rank 16 on every layer. Parts that may differ are measured with and without."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F
from gpu_report import Bench, gib, random_base, shape

from temper_gpu.contract import LoraConfig, OptimizerConfig
from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.interface import GenerationRequest
from temper_gpu.model.lora import Adapter, initial_tensors, target_modules
from temper_gpu.model.models import BaseModel
from temper_gpu.training.groups import Attempt, Call, Group
from temper_gpu.training.head_scores import Scores, frozen_head_scores, plain_scores
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.optimizers import initial_optimizer_tensors
from temper_gpu.training.packing import MicroBatch, Packing, Row, pack
from temper_gpu.training.platform import repeatable
from temper_gpu.training.policy import MAX_LOGITS, TrainablePolicy
from temper_gpu.training.step import train_step
from tests.training.samples import train_config

LORA = LoraConfig(rank=16, alpha=32, target_modules=None)
OPTIMIZER = OptimizerConfig(beta1=0.9, beta2=0.99, epsilon=1e-8, weight_decay=0, max_grad_norm=1)
# Dense bfloat16 of an H100 or H200, by their datasheet.
PEAK_FLOPS = 990e12
WAIT_S = 300
FUSED = "temper_gpu.engine.embedded.paired.FUSED_ON"
PAIRED = "temper_gpu.engine.embedded.forward.PAIRED_ON"
FLAT = "temper_gpu.engine.embedded.kv_cache.FLAT_ON"


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
    torch.use_deterministic_algorithms(False)
    # The engine as it is; and before, with one product of each chunk and length of what is left behind the last one.
    ways: dict[str, dict[str, object]] = {
        "pairs": {},
        "pairs, products of their own": {FUSED: ()},
        "pairs, passes of up to 128": {},
        "tiles": {PAIRED: (), FLAT: ()},
    }
    for name, changed in ways.items():
        with bench.tried(f"engine, {name}"), ExitStack() as stack:
            for place, value in changed.items():
                stack.enter_context(patch(place, value))
            serve(bench, name, base, source, 128 if "128" in name else None)
        bench.clean()


def serve(bench: Bench, name: str, base: BaseModel, source: HeldAdapter, largest: int | None) -> None:
    bench.clean()
    started = time.perf_counter()
    kv_cache_bytes = 64 << 20 if bench.is_small else 16 << 30
    found = EmbeddedEngine(base, EmbeddedSettings(kv_cache_bytes=kv_cache_bytes, max_pass_tokens=largest))
    details, took = found.health().details, time.perf_counter() - started
    bench.tell(
        f"engine, {name}: start",
        f"{took:.1f} s, sizes {details['sizes']} of {found.candidates.allowed}, proven {details['proven']}",
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
    if bench.is_gpu and name in ("pairs", "tiles"):
        profile_decode(bench, name, found, source, prompts)
    found.close()


def profile_decode(bench: Bench, name: str, found: EmbeddedEngine, source: HeldAdapter, prompts: list) -> None:
    from torch._C._autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    # Prompts are computed already: the second request for one reuses it but for its last piece.
    futures = [found.submit(source, GenerationRequest(prompts[n % 8], 64, 1.0, n), WAIT_S) for n in range(64)]
    end = time.monotonic() + 10
    while found.health().running < 64 and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.2)
    before = dict(found.counters())
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        time.sleep(0.3)
    passes = found.counters()["decode_passes"] - before["decode_passes"]
    for future in futures:
        future.result(WAIT_S)
    kernels = [event for event in trace.events() or () if event.device_type == DeviceType.CUDA]
    busy = sum(event.device_time for event in kernels) / 1e6
    span = (max(e.time_range.end for e in kernels) - min(e.time_range.start for e in kernels)) / 1e6
    each = f"{len(kernels) / max(1, passes):,.0f} kernels and copies, {span / max(1, passes) * 1e3:.0f} ms"
    bench.tell(f"engine, {name}: a decode pass of 64", f"{each}, GPU busy {busy / span:.0%} of the time")
    print(trace.key_averages().table(sort_by="cuda_time_total", row_limit=8, max_name_column_width=60)[:3000])


@dataclass(frozen=True)
class Case:
    packing: Packing
    is_recomputed: bool
    most: int
    # Tokens that eight rows of 2,048 begin with.
    prompt: int = 512
    # Parts that may differ: what changes, and in which way it was before.
    before: str | None = field(default=None, kw_only=True)

    @property
    def name(self) -> str:
        kept = "recomputed" if self.is_recomputed else "kept"
        what = f"trainer, {self.packing} (prompt {self.prompt:,}), {kept}, {self.most:,}"
        return what + ("" if self.before is None else f", {self.before}")


CASES = (
    Case("rows", False, 8192),
    Case("tree", False, 8192, 1024),
    Case("tree", False, 16384),
    Case("tree", True, 16384),
    Case("rows", False, 16384),
    Case("tree", True, 16384, before="blocks"),
    Case("tree", False, 8192, 1024, before="blocks"),
)


def trainer(bench: Bench) -> None:
    """A group of eight rows with a prompt of 512 tokens and answers of 1,536, there and back. Then whole steps."""
    base = random_base(bench, shape(bench), half(bench))
    with repeatable(bench.device):
        policy = policy_of(bench, base)
        if bench.is_gpu:
            started = time.perf_counter()
            # Found now, for all cases.
            is_there = policy.tree_kernel is not None
            bench.tell("trainer: one kernel for trees", f"{is_there}, found in {time.perf_counter() - started:.1f} s")
        for case in CASES:
            held = {"tree_kernel": None} if case.before == "blocks" else {}
            with bench.tried(case.name), patch.dict(policy.__dict__, held):
                train(bench, policy, group_of_rows(bench, base, case.prompt), case)
    for packing in ("rows", "tree"):
        with bench.tried(f"step, {packing}"):
            whole_step(bench, policy, packing)
    finish(bench, policy, group_of_rows(bench, base, 1024))


def whole_step(bench: Bench, policy: TrainablePolicy, packing: str) -> None:
    """Four groups of eight, by the trainer's own entry, which chooses whether layers are kept."""
    prompt, answer, count = (32, 32, 4) if bench.is_small else (512, 1536, 8)
    rng, vocabulary = np.random.default_rng(0), policy.base.config.vocab_size

    def ids(length: int) -> list[int]:
        return [int(t) for t in rng.integers(0, vocabulary, length)]

    def attempt(head: list[int], reward: float) -> Attempt:
        return Attempt(reward, False, [Call(head, ids(answer), [-12.0] * answer, 1.0, "p")])

    groups = [Group(n, [attempt(head, m % 3) for m in range(count)]) for n in range(4) for head in [ids(prompt)]]
    config = train_config(
        lora=LORA, optimizer=OPTIMIZER, packing=packing, micro_batch_tokens=16384, max_logprob_mismatch=1e9
    )
    bench.clean()
    bench.wait()
    started = time.perf_counter()
    with repeatable(bench.device):
        metrics = train_step(policy, StepInputs("p", groups, config, 1e-5, seed="s"))
    bench.wait()
    took = time.perf_counter() - started
    computed, of_rows = metrics["computedTokens"], 4 * count * (prompt + answer)
    kept = "kept" if not policy.recomputes(16384) else "recomputed"
    told = f"{took:.2f} s, {computed:,} computed tokens, {of_rows / took:,.0f} tokens/s of rows"
    bench.tell(
        f"step, {packing}, 32 attempts of {prompt + answer:,}",
        f"{told}, MFU {mfu_of(policy, computed, took):.1%}, peak {gib(bench.peak())}; 16,384 tokens are {kept}; "
        f"loss {metrics['loss']:.4f}, gradNorm {metrics['gradNorm']:.4g}",
        {"seconds": took, "computed": computed, "mfu": mfu_of(policy, computed, took), "peak": bench.peak()},
    )


def mfu_of(policy: TrainablePolicy, computed: float, took: float) -> float:
    """The share of the peak; frozen weights take two of the three products of a layer."""
    embedding = policy.base.config.vocab_size * policy.base.config.hidden_size
    return 4.0 * (policy.base.num_parameters - embedding) * computed / took / PEAK_FLOPS


def head(bench: Bench) -> None:
    """The output head alone, of 12,288 sampled tokens, forward and backward."""
    num_tokens, size, vocabulary = (48, 64, 500) if bench.is_small else (12288, 3584, 152064)
    hidden_ND, weight_VD = (
        torch.randn(count, size, device=bench.device).mul_(0.1).to(half(bench)) for count in (num_tokens, vocabulary)
    )
    hidden_ND.requires_grad_()
    others = (torch.arange(num_tokens, device=bench.device), torch.ones(num_tokens, device=bench.device))
    chunk = max(1, MAX_LOGITS // vocabulary)
    ways: dict[str, Callable[[bool], Scores]] = {
        "forward": lambda trains: frozen_head_scores(weight_VD, hidden_ND, *others, trains, chunk),
        "plain": lambda trains: plain_scores(partial(F.linear, weight=weight_VD), hidden_ND, *others, trains, chunk),
    }
    for name, trains_entropy in product(ways, (False, True)):

        def go_once(name: str = name, trains_entropy: bool = trains_entropy) -> None:
            logprobs_N, entropy_N = ways[name](trains_entropy)
            (logprobs_N.sum() + entropy_N.sum() if trains_entropy else logprobs_N.sum()).backward()

        with repeatable(bench.device):
            bench.clean()
            took = bench.seconds(go_once, 3, 1)
        what = f"trainer, output head, {name}{', with entropy' if trains_entropy else ''}"
        bench.tell(what, f"{took * 1e3:.1f} ms, peak {gib(bench.peak())}", took)


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
                place=n * answer,
            )
        )
    return rows


def train(bench: Bench, policy: TrainablePolicy, rows: list[Row], case: Case) -> None:
    policy.recomputes = lambda num_tokens: case.is_recomputed
    policy.zero_grad()
    batches = pack(rows, 1, case.most, bench.device, case.packing)
    bench.clean()
    before = torch.cuda.memory_allocated() if bench.is_gpu else 0
    took = bench.seconds(lambda: go(policy, batches), 2, 1)
    computed = sum(batch.token_ids_BT.numel() for batch in batches)
    of_rows = sum(len(row.token_ids) for row in rows)
    mfu = mfu_of(policy, computed, took)
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
    policy.recomputes = lambda num_tokens: True
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
    from torch._C._autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    for packing in ("tree",):
        [batch, *_] = pack(rows, 1, 8192, bench.device, packing)
        with profile(activities=[ProfilerActivity.CUDA]) as trace:
            go(policy, [batch])
            bench.wait()
        kernels = [event for event in trace.events() or () if event.device_type == DeviceType.CUDA]
        busy = sum(event.device_time for event in kernels) / 1e6
        bench.tell(f"trainer: a micro-batch of 8,192, {packing}", f"{len(kernels):,} kernels and copies, {busy:.2f} s")
        print(trace.key_averages().table(sort_by="cuda_time_total", row_limit=12, max_name_column_width=60)[:3500])
        policy.zero_grad()
