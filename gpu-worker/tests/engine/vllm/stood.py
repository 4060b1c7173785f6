"""A vLLM engine of the pocket model before a stand-in server, and adapters for it."""

import hashlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from temper_gpu.contract import LoraConfig
from temper_gpu.engine.interface import Generation, GenerationRequest
from temper_gpu.engine.vllm.engine import VllmEngine
from temper_gpu.engine.vllm.settings import VllmSettings
from temper_gpu.failures import TemperError
from temper_gpu.model.lora import Adapter, adapter_bytes, config_bytes, initial_tensors, parse_adapter, target_modules
from temper_gpu.model.models import POCKET_FOLDER, BaseModel, load_base


@dataclass(frozen=True)
class Files:
    """An adapter as a store has it."""

    adapter: bytes
    config: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.adapter).hexdigest()

    def read(self) -> Adapter:
        return parse_adapter(self.adapter, self.config)

    def write_folder(self, folder: Path) -> None:
        (folder / "adapter_config.json").write_bytes(self.config)
        (folder / "adapter_model.safetensors").write_bytes(self.adapter)


def pocket_base(dtype: torch.dtype = torch.float32) -> BaseModel:
    return load_base("pocket", str(POCKET_FOLDER), dtype, torch.device("cpu"))


def adapter_of(base: BaseModel, seed: int, scale: float = 0.05) -> Files:
    """On every linear layer; `scale` of B, which is zero at the beginning of a run."""
    model = base.instantiate("sdpa")
    targets, lora = target_modules(model, None), LoraConfig(rank=8, alpha=16, target_modules=None)
    tensors = initial_tensors(model, targets, 8, seed)
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in tensors.items():
        if ".lora_B." in name:
            tensors[name] = torch.randn(tensor.shape, generator=generator) * scale
    return Files(adapter_bytes(tensors), config_bytes(base.name, lora, targets))


def settings(fault_file: Path, **changes) -> VllmSettings:
    environment = {"BEHIND": str(fault_file.with_name("behind"))}
    given = {"slots": 16, "start_timeout_s": 120.0, "backoff_s": (0.05, 0.2), "environment": environment, **changes}
    program = (sys.executable, str(Path(__file__).with_name("stand_in.py")))
    return VllmSettings(sys.executable, "0.0", command=program, **given)


def request(length: int = 4, max_tokens: int = 6, **changes) -> GenerationRequest:
    given = {"temperature": 1.0, "seed": 1, **changes}
    return GenerationRequest(tuple(range(48, 48 + length)), max_tokens, **given)


def ask(engine: VllmEngine, of: GenerationRequest, adapter: Files | None = None) -> Generation:
    return engine.submit(adapter, of, 120).result(120)


def ask_again(engine: VllmEngine, of: GenerationRequest, adapter: Files | None = None) -> Generation:
    """As callers do after an outage."""
    while True:
        try:
            return ask(engine, of, adapter)
        except TemperError as error:
            if not error.retryable:
                raise
            time.sleep(0.05)


def session_of(pid: int) -> list[int]:
    """Processes of a session that are alive."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and os.getsid(int(folder.name)) == pid:
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                found += [int(folder.name)] if state != "Z" else []
        except OSError:
            continue
    return found


def eventually(condition: Callable[[], bool], within_s: float = 60.0) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False
