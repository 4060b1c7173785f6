"""What names mean on this host: of devices, of types of numbers, and of base models."""

import json
from pathlib import Path

import torch

from temper_gpu.failures import TemperError
from temper_gpu.model.memory import describe_error


def choose_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.zeros(1, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise TemperError(
            "BadConfig",
            f"--device must be a device of this host, got {name} ({describe_error(error)}); pass --device cpu",
        ) from error


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """float32 computes what a CPU is fast at and rounds least; a GPU has twice the speed and room in bfloat16."""
    if name == "auto":
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    return getattr(torch, name)


class ModelFolders:
    """What names of base models mean on this host: `models.json`, read again when it changed."""

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
