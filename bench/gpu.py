"""`npm run bench -- gpu`: on a machine with a GPU, whether the GPU worker computes there what it computes on a CPU, how
fast, and in how much memory. It needs torch, transformers and the GPU worker's smaller packages; no network, no
Temporal, no weights.

    PYTHONPATH=gpu-worker python3 bench/gpu.py [--parts NAME,NAME] [--seconds 360] [--device cuda] [--small]
                                              [--out FILE]

`--small --device cpu` tries the bench itself. A part that fails is a row, and the next one begins; a part for which no
time is left is left out. The last line is one JSON object.
"""

import argparse
import json
import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path

# Read when CUDA starts, and when torch is imported.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# A second thread that spins until the first is done costs ten times what it computes.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import gpu_kernels
import gpu_parity
import gpu_speed
import gpu_trees
import torch
from gpu_report import Bench

from temper_gpu.training.platform import make_deterministic

# With the seconds that each takes on an H200, about.
PARTS: dict[str, tuple[Callable[[Bench], None], float]] = {
    "machine": (gpu_kernels.machine, 4),
    "trees": (gpu_trees.trees, 60),
    "trainer": (gpu_speed.trainer, 100),
    "head": (gpu_speed.head, 4),
    "engine": (gpu_speed.engine, 60),
    "engine-parity": (gpu_parity.engine_parity, 25),
    "trainer-parity": (gpu_parity.trainer_parity, 8),
    "other-trainings": (gpu_parity.other_trainings, 12),
    "tests": (gpu_parity.tests, 45),
    "again": (gpu_trees.again, 30),
    "memory": (gpu_parity.memory, 3),
    "traps": (gpu_kernels.traps, 3),
    "invariance": (gpu_kernels.invariance, 3),
    "ranks": (gpu_parity.ranks, 15),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seconds", type=float, default=360)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out")
    given = parser.parse_args()
    device = torch.device("cuda", 0) if given.device == "cuda" else torch.device(given.device)
    make_deterministic(2)
    bench = Bench(device, given.small)
    end = time.monotonic() + given.seconds
    for name in given.parts.split(","):
        function, expected_s = PARTS[name]
        if time.monotonic() + expected_s / 2 > end:
            bench.tell(name, "left out, no time")
        else:
            run(bench, name, function)
        if given.out:
            Path(given.out).write_text(json.dumps(bench.numbers, indent=1, default=str))
    print("\n" + "\n".join(f"{name:72.72s} | {text[:420]}" for name, text in bench.rows))
    print(json.dumps({"bench": "gpu", **bench.numbers}, default=str))


def run(bench: Bench, name: str, function: Callable[[Bench], None]) -> None:
    print(f"== {name}", flush=True)
    started = time.monotonic()
    try:
        function(bench)
    except Exception:
        bench.tell(name, f"FAILS: {traceback.format_exc(limit=-5)[-1200:]}")
        bench.clean()
    bench.clean()
    bench.tell(f"seconds of {name}", f"{time.monotonic() - started:.1f}")


if __name__ == "__main__":
    main()
