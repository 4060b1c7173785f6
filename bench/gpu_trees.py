"""`npm run bench -- gpu`: a tree's attention in one kernel beside its blocks, how far both are from float32, what is
compiled when. Run as a program, it prints a hash of the kernel's numbers: another process must find the same.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from gpu_report import Bench
from torch import Tensor
from transformers import Qwen2Config, Qwen2ForCausalLM

from temper_gpu.contract import LoraConfig
from temper_gpu.training import tree_kernel
from temper_gpu.training.optimizers import initial_optimizer_tensors
from temper_gpu.training.packing import Row, Segment, SegmentTree, pack
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.tree_attention import attend_tree
from temper_gpu.training.tree_kernel import Heads, Kernel, find_kernel, padded_length
from tests.training.samples import base_of

HEADS = (28, 4, 128)
# Tokens of a prompt and of each answer, and how many answers.
SHAPES = ((512, 1536, 8), (512, 1500, 8), (512, 512, 8))
NAMES = ("output", "queries", "keys", "values")


def tree_of(prompt: int, answer: int, count: int) -> SegmentTree:
    answers = [Segment(0, prompt + n * answer, answer, 0) for n in range(count)]
    return SegmentTree((Segment(0, 0, prompt), *answers))


def made(bench: Bench, num_tokens: int, dtype: torch.dtype) -> tuple[list[Tensor], Tensor]:
    """Queries, keys and values; and a gradient of the output."""
    heads, key_heads, size = (4, 2, 16) if bench.is_small else HEADS
    generator = torch.Generator(device=bench.device).manual_seed(0)

    def one(*shape: int) -> Tensor:
        return torch.randn(*shape, device=bench.device, dtype=dtype, generator=generator)

    given = [one(1, count, num_tokens, size).requires_grad_() for count in (heads, key_heads, key_heads)]
    return given, one(1, num_tokens, heads, size)


def both(kernel: Kernel | None, tree: SegmentTree, given: Sequence[Tensor], gradient: Tensor) -> list[Tensor]:
    """Forward and backward."""
    output = attend_tree(kernel, tree, None, *given)
    return [output.detach(), *torch.autograd.grad(output, given, gradient)]


def trees(bench: Bench) -> None:
    dtype = torch.bfloat16 if bench.is_gpu else torch.float32
    heads = Heads(*((4, 2, 16) if bench.is_small else HEADS), dtype, bench.device)
    torch.use_deterministic_algorithms(True)
    started = time.perf_counter()
    kernel = find_kernel(heads, [None], attend_tree)
    bench.tell("trees: the kernel is found and tried", f"{kernel is not None}, {time.perf_counter() - started:.1f} s")
    if kernel is None and bench.is_gpu:
        # An error is told.
        kernel = tree_kernel._compiled()
    for number, shape in enumerate(((32, 48, 3),) if bench.is_small else SHAPES):
        tree = tree_of(*shape)
        num_tokens = tree.segments[-1].stop
        given, gradient = made(bench, num_tokens, dtype)
        name = f"trees: attention of one layer, {num_tokens:,} tokens"
        exact = [tensor.detach().float().requires_grad_() for tensor in given]
        wanted = both(None, tree, exact, gradient.float()) if number == 0 else []
        for way, one in {"blocks": None, "one kernel": kernel}.items():
            if way == "one kernel" and kernel is None:
                continue
            with bench.tried(f"{name}, {way}"):
                compare(bench, f"{name}, {way}", one, tree, given, gradient, wanted)
        if number == 0 and kernel is not None:
            started = time.perf_counter()
            with torch.no_grad():
                attend_tree(kernel, tree, None, *given)
            bench.wait()
            told = f"{time.perf_counter() - started:.1f} s"
            bench.tell(f"trees: the first call without a gradient, {padded_length(num_tokens):,}", told)
    with bench.tried("trees: gradients of a model"):
        model_gradients(bench)


def compare(
    bench: Bench,
    name: str,
    kernel: Kernel | None,
    tree: SegmentTree,
    given: list[Tensor],
    gradient: Tensor,
    wanted: list[Tensor],
) -> None:
    started = time.perf_counter()
    first = both(kernel, tree, given, gradient)
    bench.wait()
    took_first = time.perf_counter() - started
    is_same = all(map(torch.equal, first, both(kernel, tree, given, gradient)))
    took = bench.seconds(lambda: both(kernel, tree, given, gradient), 3, 0)
    far = [distance(one, other) for one, other in zip(first, wanted, strict=False)]
    told = ", ".join(f"{what} {value:.1e}" for what, value in zip(NAMES, far, strict=False))
    bench.tell(
        name,
        f"{took * 1e3:.1f} ms (first {took_first:.1f} s), twice the same bits {is_same}"
        + (f", from float32: {told}" if told else ""),
        {"ms": took * 1e3, "first_s": took_first, "same": is_same, "from_float32": far},
    )


def distance(one: Tensor, other: Tensor) -> float:
    return float((one.float() - other.float()).norm() / other.float().norm())


def model_gradients(bench: Bench) -> None:
    """Gradients of an adapter on four layers, from rows in float32."""
    rows = rows_of(8, 300, 200)
    wanted = gradient_of(bench, torch.float32, rows, "rows", True)
    half = torch.bfloat16
    ways = {"rows": ("rows", True), "blocks": ("tree", False), "one kernel": ("tree", True)}
    for name, (packing, has_kernel) in ways.items():
        far = distance(gradient_of(bench, half, rows, packing, has_kernel), wanted)
        bench.tell(f"trees: gradient of an adapter in bfloat16, {name}", f"{far:.2e} from float32's", far)


def gradient_of(bench: Bench, dtype: torch.dtype, rows: list[Row], packing: str, has_kernel: bool) -> Tensor:
    torch.manual_seed(5)
    config = Qwen2Config(
        vocab_size=512,
        hidden_size=512,
        intermediate_size=1024,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=2,
        tie_word_embeddings=False,
    )
    base = base_of("wide", Qwen2ForCausalLM(config).to(bench.device, dtype))
    policy = TrainablePolicy(base, LoraConfig(rank=8, alpha=16, target_modules=None))
    generator = torch.Generator().manual_seed(1)
    start = {n: torch.randn(p.shape, generator=generator) * 0.05 for n, p in policy.parameters.items()}
    policy.load(start, initial_optimizer_tensors(start))
    if not has_kernel:
        policy.__dict__["tree_kernel"] = None
    # pyrefly: ignore[bad-argument-type]
    for batch in pack(rows, 1, 4096, bench.device, packing):
        policy.log_probabilities(batch).logprobs_N.sum().backward()
    return torch.cat([p.grad.flatten() for p in policy.parameters.values() if p.grad is not None])


def rows_of(count: int, shared: int, own: int) -> list[Row]:
    generator = torch.Generator().manual_seed(2)

    def ids(length: int) -> list[int]:
        return torch.randint(0, 512, (length,), generator=generator).tolist()

    prompt, places = ids(shared), list(range(shared, shared + own))
    ones = [1.0] * own
    return [Row([*prompt, *ids(own)], "attempt", places, [0.0] * own, ones, ones) for _ in range(count)]


def again(bench: Bench) -> None:
    """In another process, whose compiler has kept nothing."""
    if not bench.is_gpu:
        return
    here = digest(bench)
    with tempfile.TemporaryDirectory() as folder:
        kept = {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor", "TRITON_CACHE_DIR": f"{folder}/triton"}
        done = subprocess.run(
            [sys.executable, __file__],
            env={**os.environ, **kept, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)])},
            capture_output=True,
            text=True,
            timeout=90,
        )
    there = done.stdout.split()[-1] if done.stdout.split() else done.stderr[-300:]
    told = f"{here == there}" + ("" if here == there else f": {there}")
    bench.tell("trees: another process finds the same bits", told)


def digest(bench: Bench) -> str:
    torch.use_deterministic_algorithms(True)
    kernel = find_kernel(Heads(*HEADS, torch.bfloat16, bench.device), [None], attend_tree)
    tree = tree_of(300, 200, 8)
    found = both(kernel, tree, *made(bench, tree.segments[-1].stop, torch.bfloat16))
    return hashlib.sha256(b"".join(t.float().cpu().numpy().tobytes() for t in found)).hexdigest()


if __name__ == "__main__":
    print(digest(Bench(torch.device("cuda", 0), False)))
