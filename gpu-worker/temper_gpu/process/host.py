"""Names of devices, number types and base models, as this host resolves them."""

import json
import os
import subprocess
from pathlib import Path

import torch

from temper_gpu.failures import TemperError
from temper_gpu.model.lora import dtype_name
from temper_gpu.model.memory import describe_error

# Lists GPUs and their driver, even if PyTorch cannot use them.
NVIDIA_SMI = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
SMI_S = 20.0


def choose_device(name: str) -> torch.device:
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        require_no_gpu()
        return torch.device("cpu")
    try:
        return torch.zeros(1, device=name, dtype=torch.uint8).device
    except (RuntimeError, AssertionError) as error:
        raise TemperError(
            "BadConfig",
            f"--device must be a device of this host, got {name} ({describe_error(error)}); pass --device cpu",
        ) from error


def require_no_gpu() -> None:
    """Refuses a host whose GPU PyTorch cannot use: it would silently train on the CPU."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return
    try:
        done = subprocess.run(NVIDIA_SMI, capture_output=True, text=True, timeout=SMI_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return
    found = [line.replace(", ", ", driver ", 1) for line in done.stdout.splitlines() if ", " in line]
    if not found:
        return
    cuda = torch.version.cuda
    built = "is built for CPUs" if cuda is None else f"is built for CUDA {cuda} and cannot use it"
    remedy = "install the GPU build" if cuda is None else "update the driver"
    raise TemperError(
        "BadConfig",
        f"--device auto must find a GPU that PyTorch can use, but this host has {found[0]}, and PyTorch "
        f"{torch.__version__} {built}; {remedy}, or pass --device cpu",
    )


def describe_device(device: torch.device, dtype: torch.dtype) -> dict[str, str]:
    """Log fields: the device and the type of a worker."""
    gpu = {"gpu": torch.cuda.get_device_name(device)} if device.type == "cuda" else {}
    return {"device": str(device), **gpu, "dtype": dtype_name(dtype)}


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """CPUs are fast in float32, which rounds least; GPUs have twice the speed and room in bfloat16."""
    if name == "auto":
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    return getattr(torch, name)


class ModelFolders:
    """Folders of this host's base models by name: `models.json`, read again when it changed."""

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else Path(path)
        self._stamp: int | None = None
        self._folders: dict[str, str] = {}

    def __call__(self) -> dict[str, str]:
        if self._path is None:
            return {}
        try:
            stamp = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return {}
        if stamp != self._stamp:
            self._folders, self._stamp = _parse_folders(self._path), stamp
        return self._folders


def _parse_folders(path: Path) -> dict[str, str]:
    try:
        folders = json.loads(path.read_bytes())
        if isinstance(folders, dict) and all(isinstance(folder, str) for folder in folders.values()):
            return folders
        reason = "it holds something else"
    except ValueError as error:
        reason = str(error)
    raise TemperError(
        "BadConfig", f'{path} must be a JSON object of names and folders, but {reason}; write {{"name": "/folder"}}'
    )
