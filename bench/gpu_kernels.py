"""`npm run bench -- gpu`: the machine, and facts about PyTorch's and cuBLAS' kernels that the code relies on."""

import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise

import torch
from gpu_report import Bench, gib

from temper_gpu.engine.embedded.sizes import CANDIDATES
from temper_gpu.training.platform import fix_gpu_sums

# Temporal's client, and what reads schemas, need not be there.
OPTIONAL = ("temporalio", "llguidance", "bitsandbytes")
MODULES = ("engine.embedded.engine", "training.step", "training.trainer", "process.ranks", "engine.vllm.engine")


def machine(bench: Bench) -> None:
    names = ("torch", "transformers")
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
            chosen = torch.ops.aten._fused_sdp_choice(*given, enable_gqa=is_gqa)
            bench.tell(f"attention {name}", names.get(chosen, str(chosen)))


def half_gradients(bench: Bench) -> None:
    with bench.tried("product of halves in float32"):
        left, right = (torch.randn(256, 256, device=bench.device, dtype=torch.bfloat16) for _ in range(2))
        found = torch.mm(left, right, out_dtype=torch.float32)
        difference = (found - left.float() @ right.float()).norm() / found.norm()
        bench.tell("product of halves in float32", f"{found.dtype}, {float(difference):.1e} from that of floats")


def invariance(bench: Bench) -> None:
    """Whether a row's bits depend on its place, or on the number of rows: what the engine's proof asks of cuBLAS."""
    torch.use_deterministic_algorithms(False)
    widths = ((64, 96), (96, 64)) if bench.is_small else ((3584, 3584), (3584, 512), (3584, 18944), (18944, 3584))
    settings: dict[str, object] = {"as it is by default": True, "sums not rounded": False}
    if bench.is_gpu:
        # The next setting needs it.
        torch.backends.cuda.preferred_blas_library("cublaslt")
        settings["sums not cut"] = (False, False)
    for dtype in (torch.bfloat16,) if bench.is_gpu else (torch.bfloat16, torch.float32):
        for name, value in settings.items():
            if dtype == torch.float32 and name != "as it is by default":
                continue
            with bench.tried(f"linear layers, {dtype}, {name}"):
                torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = value
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
