"""Of `npm run bench -- gpu`: the machine, and facts about PyTorch's and cuBLAS' kernels that the code relies on."""

import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from gpu_report import Bench, gib
from torch import Tensor

from temper_gpu.engine.embedded.sizes import CANDIDATES
from temper_gpu.training.packing import SegmentTree, block_keys, plan_blocks
from temper_gpu.training.packing.segments import Segment
from temper_gpu.training.platform import fix_gpu_sums

# Temporal's client, and what reads schemas, need not be there.
OPTIONAL = ("temporalio", "llguidance", "bitsandbytes")
MODULES = ("engine.embedded.engine", "training.step", "training.trainer", "process.ranks", "engine.vllm.engine")


def machine(bench: Bench) -> None:
    names = ("torch", "transformers", "peft")
    bench.tell("versions", f"Python {sys.version.split()[0]}, " + ", ".join(f"{n} {version(n)}" for n in names))
    missing = []
    for name in MODULES:
        try:
            import_module(f"temper_gpu.{name}")
        except ImportError as error:
            missing.append(f"{name} ({error})")
    bench.tell("modules that do not import", "; ".join(missing) or "none")
    if not bench.is_gpu:
        return
    print(subprocess.run(["nvidia-smi"], capture_output=True, text=True).stdout[:1400])
    free, total = torch.cuda.mem_get_info()
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True
    ).stdout.strip()
    cudnn = torch.backends.cudnn.version()
    bench.tell("gpu", f"{torch.cuda.get_device_name()}, {gib(total)}, {gib(free)} free, driver {driver}, cuDNN {cudnn}")
    left, right = (torch.randn(8192, 8192, device=bench.device, dtype=torch.bfloat16) for _ in range(2))
    took = bench.seconds(lambda: left @ right)
    bench.tell("bfloat16 product of 8192³", f"{2 * 8192**3 / took / 1e12:,.0f} TFLOP/s")
    took = bench.seconds(lambda: left.float() @ right.float(), 3, 1)
    bench.tell("float32 product of 8192³, its casts included", f"{2 * 8192**3 / took / 1e12:,.0f} TFLOP/s")
    source = torch.randn(1 << 30, device=bench.device)
    target = torch.empty_like(source)
    took = bench.seconds(lambda: target.copy_(source))
    bench.tell("copy on the device", f"{2 * source.nbytes / took / 1e12:.2f} TB/s")
    x = torch.randn(64, device=bench.device)

    def many() -> None:
        for _ in range(1000):
            x.add_(1.0)

    bench.tell("a small kernel, launched from Python", f"{bench.seconds(many) * 1e3:.1f} µs")


def traps(bench: Bench) -> None:
    torch.use_deterministic_algorithms(True)
    with bench.tried("running sum of floats, deterministic"):
        torch.rand(4, 4096, device=bench.device).cumsum(-1, dtype=torch.float64)
        bench.tell("running sum of floats, deterministic", "works")
    with bench.tried("running sum of integers, deterministic"):
        torch.ones(4, 4096, device=bench.device).long().cumsum_(-1)
        bench.tell("running sum of integers, deterministic", "works")
    store_keys(bench)
    if bench.is_gpu:
        torch.use_deterministic_algorithms(True)
        chosen_kernels(bench)
        half_gradients(bench)
    tree_variants(bench)


def store_keys(bench: Bench) -> None:
    """One layer's keys of a decode pass, stored into the engine's table."""
    rows, heads, tokens, size = (4, 2, 64, 16) if bench.is_small else (64, 4, 4096, 128)
    table = torch.zeros(rows + 1, heads, tokens, size, device=bench.device, dtype=torch.bfloat16)
    flat = table.view(-1, size)
    slots = torch.arange(rows, device=bench.device)
    at = torch.full((rows,), 7, device=bench.device)
    states = torch.rand(rows, heads, size, device=bench.device, dtype=torch.bfloat16)
    places = ((slots[:, None] * heads + torch.arange(heads, device=bench.device)) * tokens + at[:, None]).flatten()

    def put() -> None:
        table[slots, :, at, :size] = states

    def copy() -> None:
        flat.index_copy_(0, places, states.view(-1, size))

    for name, function in (("index_put", put), ("index_copy of flat rows", copy)):
        for deterministic in (True, False):
            torch.use_deterministic_algorithms(deterministic)
            bench.clean()
            before = torch.cuda.memory_allocated() if bench.is_gpu else 0
            took = bench.seconds(function, 10)
            more = bench.peak() - before if bench.is_gpu else 0
            what = f"keys of {rows} slots by {name}, {'deterministic' if deterministic else 'plain'}"
            bench.tell(what, f"{took * 1e6:,.0f} µs, {gib(more)} besides a table of {gib(table.nbytes)}")


def chosen_kernels(bench: Bench) -> None:
    names = {0: "math", 1: "flash", 2: "efficient", 3: "cuDNN"}
    q, k = (torch.rand(1, heads, 256, 128, device=bench.device, dtype=torch.bfloat16) for heads in (28, 4))
    mask = torch.zeros(1, 1, 256, 256, device=bench.device, dtype=torch.bfloat16)
    full = k.repeat_interleave(7, 1)
    cases = {
        "causal, shared heads, bfloat16": (q, k, k, None, 0.0, True, True),
        "masked, bfloat16": (q, full, full, mask, 0.0, False, False),
        "masked, shared heads, bfloat16": (q, k, k, mask, 0.0, False, True),
        "causal, shared heads, float32": (q.float(), k.float(), k.float(), None, 0.0, True, True),
        "causal, float32": (q.float(), full.float(), full.float(), None, 0.0, True, False),
    }
    for name, (*given, is_gqa) in cases.items():
        with bench.tried(f"attention {name}"):
            chosen = torch._fused_sdp_choice(*given, enable_gqa=is_gqa)
            bench.tell(f"attention {name}", names.get(chosen, str(chosen)))


def half_gradients(bench: Bench) -> None:
    with bench.tried("product of halves in float32"):
        left, right = (torch.randn(256, 256, device=bench.device, dtype=torch.bfloat16) for _ in range(2))
        found = torch.mm(left, right, out_dtype=torch.float32)
        difference = (found - left.float() @ right.float()).norm() / found.norm()
        bench.tell("product of halves in float32", f"{found.dtype}, {float(difference):.1e} from that of floats")


def tree_of(prompt: int, answer: int, count: int) -> SegmentTree:
    answers = [Segment(0, prompt + n * answer, answer, 0) for n in range(count)]
    return SegmentTree((Segment(0, 0, prompt), *answers))


def tree_variants(bench: Bench) -> None:
    """Attention of one layer over a tree, forward and backward: in blocks as it is, with heads that share keys as rows
    of a batch, and in one kernel (FlexAttention)."""
    heads, key_heads, size = (4, 2, 16) if bench.is_small else (28, 4, 128)
    prompt, answer, count = (32, 48, 3) if bench.is_small else (512, 1536, 8)
    tree = tree_of(prompt, answer, count)
    num_tokens, dtype = prompt + count * answer, torch.bfloat16 if bench.is_gpu else torch.float32
    torch.manual_seed(0)

    def made(num_heads: int) -> Tensor:
        return torch.randn(1, num_heads, num_tokens, size, device=bench.device, dtype=dtype).requires_grad_()

    q, k, v = made(heads), made(key_heads), made(key_heads)
    blocks = plan_blocks(tree, None)
    masks = [mask_of(tree, blocks, block, dtype, bench.device) for block in blocks]

    def in_blocks(repeats: bool) -> Tensor:
        outputs, sizes = [], [len(block) for block in blocks]
        queries, keys, values = (tensor.split(sizes, 2) for tensor in (q, k, v))
        for index, block in enumerate(blocks):
            seen = (*block.before, index)
            key, value = (torch.cat([of[at] for at in seen], 2) for of in (keys, values))
            outputs.append((_repeated if repeats else _batched)(queries[index], key, value, masks[index]))
        return torch.cat(outputs, 2)

    compiled: list[Any] = []

    def flexed() -> Tensor:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        ends = tree.ends_T.to(bench.device)

        def mask(_b: Tensor, _h: Tensor, q_at: Tensor, k_at: Tensor) -> Tensor:
            return (k_at <= q_at) & (q_at < ends[k_at])

        if not compiled:
            started = time.perf_counter()
            block_mask = create_block_mask(mask, None, None, num_tokens, num_tokens, device=bench.device)
            bench.wait()
            bench.tell("block mask of that tree (FlexAttention)", f"{(time.perf_counter() - started) * 1e3:.0f} ms")
            compiled.extend((torch.compile(flex_attention, dynamic=False), block_mask))
        return compiled[0](q, k, v, block_mask=compiled[1], enable_gqa=True)

    kinds: dict[str, Callable[[], Tensor]] = {
        "blocks, keys repeated": lambda: in_blocks(True),
        "blocks, heads as a batch": lambda: in_blocks(False),
        "one kernel (FlexAttention)": flexed,
    }
    expected: list[Tensor] = []
    for name, attend in kinds.items():
        what = f"attention of one layer over a tree of {num_tokens:,}, {name}"
        with bench.tried(what):
            if name.endswith("(FlexAttention)") and not bench.is_gpu:
                continue
            compare_variant(bench, what, attend, (q, k, v), expected)


def compare_variant(
    bench: Bench, what: str, attend: Callable[[], Tensor], given: tuple[Tensor, ...], expected: list[Tensor]
) -> None:
    started = time.perf_counter()

    def both() -> list[Tensor]:
        return list(torch.autograd.grad(attend().float().square().sum(), given))

    first = both()
    bench.wait()
    took_first = time.perf_counter() - started
    is_same = all(torch.equal(one, other) for one, other in zip(first, both(), strict=True))
    if not expected:
        expected.extend(first)
    far = max(float((one - other).norm() / other.norm()) for one, other in zip(first, expected, strict=True))
    took = bench.seconds(both, 3, 0)
    bench.tell(what, f"{took * 1e3:.1f} ms (first {took_first:.1f} s), twice the same bits {is_same}, {far:.1e} away")


def mask_of(tree: SegmentTree, blocks: tuple, block, dtype: torch.dtype, device: torch.device) -> Tensor | None:
    if block.is_causal:
        return None
    keys_K = block_keys(blocks, block)
    hidden_QK = ~tree.mask_QK(block.queries_Q(None), keys_K)
    width = len(keys_K) + -len(keys_K) % 8
    mask = torch.zeros(len(block), width, dtype=dtype)
    mask[:, : len(keys_K)].masked_fill_(hidden_QK, torch.finfo(dtype).min)
    return mask.to(device)[None, None, :, : len(keys_K)]


def _repeated(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    times = query.shape[1] // key.shape[1]
    key, value = (of.repeat_interleave(times, 1) for of in (key, value))
    return F.scaled_dot_product_attention(query, key, value, mask, is_causal=mask is None)


def _batched(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Each key head is a row of the batch, with the query heads that share it."""
    key_heads, times = key.shape[1], query.shape[1] // key.shape[1]
    query = query.unflatten(1, (key_heads, times))[0]
    key, value = (of[0][:, None].expand(-1, times, -1, -1) for of in (key, value))
    out = F.scaled_dot_product_attention(query, key, value, mask, is_causal=mask is None)
    return out.flatten(0, 1)[None]


def invariance(bench: Bench) -> None:
    """Whether a row's bits depend on its place, or on the number of rows: what the engine's proof asks of cuBLAS."""
    torch.use_deterministic_algorithms(False)
    widths = ((64, 96), (96, 64)) if bench.is_small else ((3584, 3584), (3584, 512), (3584, 18944), (18944, 3584))
    settings: dict[str, object] = {"as it is by default": True, "sums not rounded": False}
    if bench.is_gpu:
        settings["sums not cut"] = (False, False)
    for dtype in (torch.bfloat16, torch.float32):
        for name, value in settings.items():
            if dtype == torch.float32 and name != "as it is by default":
                continue
            with bench.tried(f"linear layers, {dtype}, {name}"):
                torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = value  # pyright: ignore
                for width in widths:
                    found = linear_groups(bench, dtype, *width)
                    bench.tell(f"linear {width[0]} → {width[1]}, {dtype}, {name}", found)
        fix_gpu_sums()
        bench.tell(
            f"products of attention whose bits depend on the number of rows, {dtype}", batch_dependence(bench, dtype)
        )


def linear_groups(bench: Bench, dtype: torch.dtype, num_inputs: int, num_outputs: int) -> str:
    """Sizes of a pass that give equal bits, as groups; what depends on places stands apart."""
    generator = torch.Generator(device=bench.device).manual_seed(0)
    sizes = CANDIDATES[:5] if bench.is_small else CANDIDATES
    x = torch.randn(sizes[-1], num_inputs, device=bench.device, dtype=dtype, generator=generator)
    weight = torch.randn(num_outputs, num_inputs, device=bench.device, dtype=dtype, generator=generator)
    placed, found = [], {}
    for size in sizes:
        order = torch.randperm(size, device=bench.device, generator=generator)
        y = x[:size] @ weight.T
        if not torch.equal(x[:size][order] @ weight.T, y[order]):
            placed.append(size)
        found[size] = y[:16]
    groups: list[list[int]] = [[sizes[0]]]
    for last, size in pairwise(sizes):
        if torch.equal(found[last], found[size]):
            groups[-1].append(size)
        else:
            groups.append([size])
    text = " | ".join(f"{group[0]}–{group[-1]}" if len(group) > 1 else str(group[0]) for group in groups)
    return f"equal bits: {text}; by place: {placed or 'none'}"


def batch_dependence(bench: Bench, dtype: torch.dtype) -> str:
    generator = torch.Generator(device=bench.device).manual_seed(0)
    most, odd = (64, []) if bench.is_small else (512, [])
    for queries, keys in ((7, 32), (7, 64), (7, 128), (7, 256), (28, 256), (112, 64), (448, 256)):
        q = torch.randn(most, queries, 128, device=bench.device, dtype=dtype, generator=generator)
        k = torch.randn(most, keys, 128, device=bench.device, dtype=dtype, generator=generator)
        scores = torch.bmm(q, k.mT)
        shares = scores.softmax(-1)
        mixed = torch.bmm(shares, k)
        for count in (count for count in (3, 4, 8, 12, 16, 32, 64, 100, 128, 256) if count <= most):
            is_same = torch.equal(torch.bmm(q[:count], k[:count].mT), scores[:count])
            if not (is_same and torch.equal(torch.bmm(shares[:count], k[:count]), mixed[:count])):
                odd.append((queries, keys, count))
    return str(odd) if odd else "none"
