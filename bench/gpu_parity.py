"""`npm run bench -- gpu`: engine and trainer beside the CPU's numbers, the tests that take a GPU, what only a GPU's
process meets."""

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from gpu_report import Bench, gib
from torch import Tensor

from temper_gpu.contract import LoraConfig
from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.interface import Distribution
from temper_gpu.model.full_weights import initial_weights
from temper_gpu.model.lora import Adapter
from temper_gpu.model.memory import describe_memory, free_memory, is_out_of_memory
from temper_gpu.model.models import POCKET_FOLDER, BaseModel, load_base
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.metrics import Metrics
from temper_gpu.training.optimizers import OptimizerKind, initial_optimizer_tensors
from temper_gpu.training.platform import between_steps, repeatable
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.step import train_step
from tests.engine.embedded.tiny import held, request, tiny_adapter
from tests.engine.embedded.tiny import tiny_base as tiny_base_of
from tests.training.samples import sampled_groups, tiny_base, train_config

GPU_WORKER = Path(__file__).parents[1] / "gpu-worker"
CPU = torch.device("cpu")
LENGTHS = (3, 20, 70, 130, 300)
EVERYTHING = Distribution(0.9, 40, 0.02, 0.3, 0.4, 1.2, ((3, 5.0), (8, -100.0)))
COMPARED = ("loss", "gradNorm", "entropy", "logprobK3")
# Tests of the suite that compute on a GPU where there is one.
GPU_TESTS = ("tests/training/test_trees.py", "tests/training/test_tree_kernel.py", "-k", "cuda")
TESTS_S = 100


@dataclass(frozen=True)
class Way:
    lora: LoraConfig | None
    optimizer: OptimizerKind = "adamw"


LORA = Way(train_config().lora)
Answers = list[tuple[Sequence[int], Sequence[float]]]


def moved(base: BaseModel, device: torch.device, dtype: torch.dtype) -> BaseModel:
    tensors = {name: tensor.to(device, dtype) for name, tensor in base.tensors.items()}
    return replace(base, tensors=tensors, buffers={name: buffer.to(device) for name, buffer in base.buffers.items()})


def engine_parity(bench: Bench) -> None:
    """Beside the CPU's answers in the same type. In bfloat16 two ways of rounding soon sample different tokens."""
    between_steps(bench.device)
    for kind in ("qwen2", "odd"):
        cpu_base = tiny_base_of(kind)
        adapter = tiny_adapter(cpu_base, 3)
        for dtype in (torch.float32, torch.bfloat16):
            name = f"engine, {kind}, {dtype}"
            with bench.tried(name):
                wanted, _ = answers(moved(cpu_base, CPU, dtype), adapter)
                found, details = answers(moved(cpu_base, bench.device, dtype), adapter)
                told = ", ".join(f"{key} {details[key]}" for key in ("proven", "sizes"))
                bench.tell(name, f"{compared(wanted, found)}; {told}")


def compared(wanted: Answers, found: Answers) -> str:
    num_same, num_tokens, far = 0, 0, 0.0
    for (ids, logprobs), (other_ids, other_logprobs) in zip(wanted, found, strict=True):
        pairs = zip(ids, other_ids, logprobs, other_logprobs, strict=False)
        common = list(takewhile(lambda pair: pair[0] == pair[1], pairs))
        num_same, num_tokens = num_same + len(common), num_tokens + len(ids)
        far = max([far, *(abs(one - other) for _, _, one, other in common)])
    return f"{num_same} of {num_tokens} tokens before the first other one, log-probabilities within {far:.1e}"


def answers(base: BaseModel, adapter: Adapter) -> tuple[Answers, dict]:
    """Five requests one after another with and without the adapter, then all at once; the last with every parameter."""
    engine = EmbeddedEngine(base, EmbeddedSettings(num_threads=2, max_pass_tokens=256, kv_cache_bytes=256 << 20))
    asked = [request(seed, length, 16, 0.9) for seed, length in enumerate(LENGTHS)]
    asked.append(replace(asked[2], distribution=EVERYTHING, num_top_logprobs=3))
    sources = (None, held(adapter))
    alone = [engine.submit(source, each, 120).result(120) for each in asked for source in sources]
    futures = [engine.submit(source, each, 120) for each in asked for source in sources]
    together = [future.result(120) for future in futures]
    details = dict(engine.health().details)
    details["proven"] = f"{details['proven']} (alone as together: {alone == together})"
    engine.close()
    return [(each.token_ids, each.logprobs) for each in alone], details


def trainer_parity(bench: Bench) -> None:
    cpu_base = tiny_base()
    for dtype in (torch.float32, torch.bfloat16):
        there = moved(cpu_base, bench.device, dtype)
        for packing in ("rows", "tree"):
            for is_recomputed in (False, True):
                name = f"trainer, {dtype}, {packing}, {'recomputed' if is_recomputed else 'kept'}"
                with bench.tried(name):
                    compare_steps(bench, name, cpu_base, there, packing, is_recomputed)


def other_trainings(bench: Bench) -> None:
    """All weights, 8-bit AdamW, a base model in 4 bits; each beside the CPU's."""
    both, pocket = (torch.float32, torch.bfloat16), str(POCKET_FOLDER)
    ways = {"all weights": Way(None), "all weights, 8-bit AdamW": Way(None, "adamw_8bit")}
    for dtype in both:
        for name, way in ways.items():
            with bench.tried(f"trainer, {dtype}, {name}"):
                base = tiny_base() if way.optimizer == "adamw" else load_base("pocket", pocket, torch.float32, CPU)
                there = moved(base, bench.device, dtype)
                compare_steps(bench, f"trainer, {dtype}, {name}", base, there, "rows", False, way)
    for dtype in both:
        with bench.tried(f"trainer, {dtype}, base model in 4 bits"):
            base, there = (
                load_base("pocket", pocket, of, device, load_in_4bit=True)
                for of, device in ((torch.float32, CPU), (dtype, bench.device))
            )
            compare_steps(bench, f"trainer, {dtype}, base model in 4 bits", base, there, "tree", False)


def compare_steps(
    bench: Bench,
    name: str,
    cpu_base: BaseModel,
    there: BaseModel,
    packing: str,
    is_recomputed: bool,
    way: Way = LORA,
) -> None:
    wanted, wanted_adapter = step(cpu_base, packing, is_recomputed, way)
    found, one = step(there, packing, is_recomputed, way)
    _, two = step(there, packing, is_recomputed, way)
    is_same = all(torch.equal(one[key], two[key]) for key in one)
    far = norm([one[key] - wanted_adapter[key] for key in one]) / norm(list(wanted_adapter.values()))
    what = "adapter" if way.lora is not None else "weights"
    told = ", ".join(f"{key} {found[key]:.6g} (CPU {wanted[key]:.6g})" for key in COMPARED)
    bench.tell(name, f"{told}; {what} {far:.1e} from the CPU's; twice the same bytes {is_same}")


def norm(tensors: list[Tensor]) -> float:
    return float(torch.cat([tensor.flatten() for tensor in tensors]).norm())


def step(base: BaseModel, packing: str, is_recomputed: bool, way: Way = LORA) -> tuple[Metrics, dict[str, Tensor]]:
    config = train_config(lora=way.lora, packing=packing, micro_batch_tokens=256, max_logprob_mismatch=1e9)
    policy = TrainablePolicy(base, config.lora, optimizer=way.optimizer)
    policy.recomputes = lambda num_tokens: is_recomputed
    generator = torch.Generator().manual_seed(1)
    start = {n: torch.randn(p.shape, generator=generator) * 0.05 for n, p in policy.parameters.items()}
    if way.lora is None:
        start = {name: tensor.cpu() for name, tensor in initial_weights(base).items()}
    policy.load(start, initial_optimizer_tensors(start))
    with repeatable(base.device):
        metrics = train_step(
            policy, StepInputs("p", sampled_groups("p", shared=24, num_attempts=6), config, 1e-2, seed="s")
        )
    return metrics, policy.adapter_tensors()


def tests(bench: Bench) -> None:
    """The suite's own, in a process of their own."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *GPU_TESTS]
    started = time.monotonic()
    try:
        done = subprocess.run(command, cwd=GPU_WORKER, capture_output=True, text=True, timeout=TESTS_S)
        lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR", "E  "))]
        last = [line for line in done.stdout.splitlines() if " in " in line and ("passed" in line or "failed" in line)]
        told = "; ".join([f"exit code {done.returncode}", *last[-1:], *lines[:6]])
        print(done.stdout[-1500:], done.stderr[-500:])
    except subprocess.TimeoutExpired:
        told = f"not done after {TESTS_S} s"
    bench.tell(f"tests: {' '.join(GPU_TESTS)}", f"{told} ({time.monotonic() - started:.0f} s)"[:400])


def ranks(bench: Bench) -> None:
    """A process of the trainer's fork server, while this one computes on the same GPU."""
    multiprocessing.set_forkserver_preload(["temper_gpu.process.ranks"])
    forkserver.ensure_running()
    context = multiprocessing.get_context("forkserver")
    here, there = context.Pipe()
    process = context.Process(target=in_fork, args=(there, str(bench.device)))
    process.start()
    there.close()
    bench.tell("a forked rank", here.recv() if here.poll(60) else "says nothing for 60 s")
    process.join(5)


def in_fork(pipe: Connection, device: str) -> None:
    try:
        x = torch.ones(1024, device=device)
        pipe.send(f"computes {float(x @ x)} on {device}")
    except Exception as error:
        pipe.send(f"FAILS: {error!r}"[:300])


def memory(bench: Bench) -> None:
    """A lack of it is recognised, and leaves nothing behind."""
    if not bench.is_gpu:
        return
    before = torch.cuda.memory_reserved()
    try:
        torch.empty(1 << 40, device=bench.device, dtype=torch.uint8)
    except Exception as error:
        known, words = is_out_of_memory(error), describe_memory(bench.device)
        bench.tell("a lack of memory", f"{type(error).__name__}, recognised {known}; {words}")
    free_memory()
    bench.tell("reserved before and after it", f"{gib(before)}, {gib(torch.cuda.memory_reserved())}")
