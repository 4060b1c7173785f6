"""AdamW with moments in float32 or in 8 bits, and how a checkpoint's file holds them.

In 8 bits (Dettmers et al. 2022, arXiv 2110.02861) a moment is quantised in blocks of 256 numbers, each to the nearest
code of a dynamic map, times the largest magnitude of its block. bitsandbytes does that; an update is PyTorch's, of the
numbers that the codes stand for.

A file has `step` and, for each parameter, `exp_avg/NAME` and `exp_avg_sq/NAME` in its shape. In 8 bits these are codes,
and `absmax/exp_avg/NAME` and `absmax/exp_avg_sq/NAME` are the magnitudes of their blocks, float32 [blocks]. Either kind
reads the other's file: the moments are converted.
"""

import math
from collections.abc import Iterable, Mapping
from functools import cache, partial
from importlib.metadata import version
from typing import Literal

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from temper_gpu.contract import OptimizerConfig
from temper_gpu.failures import TemperError
from temper_gpu.model.bits import NAME, import_bitsandbytes

MOMENTS = ("exp_avg", "exp_avg_sq")
# `adamw` is AdamW in float32.
OptimizerKind = Literal["adamw", "adamw_8bit"]
BLOCK = 256
# As in bitsandbytes, parameters with fewer numbers, and embeddings, keep moments in float32.
LEAST_NUMBERS = 4096
OPTION = "--optimizer adamw_8bit"
# Raised with every change of an update in 8 bits that changes its bits.
_REVISION = 2


def optimizer_fingerprint(kind: OptimizerKind) -> dict[str, str | int]:
    """The optimizer's part of the platform fingerprint; empty for float32."""
    return {} if kind == "adamw" else {NAME: version(NAME), "optimizer": _REVISION}


def initial_optimizer_tensors(trained: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """State of step 0, the same for every optimizer."""
    zeros = {f"{moment}/{name}": torch.zeros_like(tensor) for name, tensor in trained.items() for moment in MOMENTS}
    return {**zeros, "step": torch.tensor(0.0, dtype=torch.float32)}


def moments_bytes(shapes: Iterable[torch.Size], kind: OptimizerKind) -> int:
    return len(MOMENTS) * sum(_moment_bytes(shape.numel(), kind) for shape in shapes)


def _moment_bytes(count: int, kind: OptimizerKind) -> int:
    if kind == "adamw" or count < LEAST_NUMBERS:
        return count * torch.float32.itemsize
    return count * torch.uint8.itemsize + math.ceil(count / BLOCK) * torch.float32.itemsize


def in_float32(tensors: Mapping[str, Tensor], key: str) -> Tensor:
    """A tensor of a checkpoint's file; 8-bit codes are converted to their numbers."""
    stored = tensors[key]
    return stored if stored.dtype != torch.uint8 else _dequantised(key, stored, _magnitudes(tensors, key))


def without_scales(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A checkpoint's file as float32 would have it."""
    return {key: in_float32(tensors, key) for key in tensors if not key.startswith(_absmax(""))}


class AdamW:
    def __init__(
        self, kind: OptimizerKind, parameters: Mapping[str, nn.Parameter], embeddings: frozenset[str] = frozenset()
    ) -> None:
        """In 8 bits, `embeddings` keep moments in float32 (section 2.3 of the paper): gradients of their rows differ
        widely in size."""
        counts = {name: parameter.numel() for name, parameter in parameters.items() if name not in embeddings}
        self._parameters = parameters
        self._packed = set() if kind == "adamw" else packed_moments(counts)
        self._num_steps = 0
        # By the names of the file.
        self._moments: dict[str, Tensor] = {}
        for name, parameter in parameters.items():
            for key in _keys(name):
                zeros = torch.zeros_like(parameter.detach())
                self._moments |= _quantised(key, zeros) if name in self._packed else {key: zeros}

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Loads a checkpoint's file of either kind in place."""
        for name, parameter in self._parameters.items():
            for key in _keys(name):
                if name not in self._packed:
                    stored = {key: in_float32(tensors, key)}
                elif tensors[key].dtype == torch.uint8:
                    stored = {key: tensors[key], _absmax(key): _magnitudes(tensors, key)}
                else:
                    stored = _quantised(key, tensors[key].to(parameter.device))
                for own, tensor in stored.items():
                    self._moments[own].copy_(tensor)
        self._num_steps = int(tensors["step"])

    def tensors(self) -> dict[str, Tensor]:
        """State in main memory, in the form of the file. The next step changes moments in place."""
        moments = {key: tensor.cpu() for key, tensor in self._moments.items()}
        return {**moments, "step": torch.tensor(self._num_steps, dtype=torch.float32)}

    @torch.no_grad()
    def step(self, config: OptimizerConfig, learning_rate: float) -> None:
        """Parameters without a gradient stay as they are, and so do their moments. Those in 8 bits are unpacked for one
        parameter at a time."""
        update = partial(_update, config, learning_rate, self._num_steps)
        gradients = {name: p.grad for name, p in self._parameters.items() if p.grad is not None}
        whole = [name for name in gradients if name not in self._packed]
        update([[self._parameters[n], gradients[n], *(self._moments[key] for key in _keys(n))] for n in whole])
        for name in [name for name in gradients if name in self._packed]:
            first, second = moments = [in_float32(self._moments, key) for key in _keys(name)]
            # A second moment is rounded to zero if it is tiny beside its block's largest. The first one would then move
            # the parameter by a multiple of the learning rate once its gradient is zero (an expert without tokens).
            first.masked_fill_(second == 0, 0)
            update([[self._parameters[name], gradients[name], *moments]])
            for key, moment in zip(_keys(name), moments, strict=True):
                self._moments |= _quantised(key, moment)
        self._num_steps += 1

    def zero_grad(self) -> None:
        for parameter in self._parameters.values():
            parameter.grad = None


def _update(config: OptimizerConfig, learning_rate: float, num_steps: int, rows: list[list[Tensor]]) -> None:
    """Each row is a parameter, its gradient and its moments."""
    parameters, gradients, firsts, seconds = ([row[place] for row in rows] for place in range(4))
    adamw(
        parameters,
        gradients,
        firsts,
        seconds,
        max_exp_avg_sqs=[],
        # Made on the device, so that nothing waits for it; the update counts it up.
        state_steps=[torch.full((), num_steps, dtype=torch.float32, device=each.device) for each in parameters],
        fused=True,
        amsgrad=False,
        beta1=config.beta1,
        beta2=config.beta2,
        lr=learning_rate,
        weight_decay=config.weight_decay,
        eps=config.epsilon,
        maximize=False,
    )


def packed_moments(counts: Mapping[str, int]) -> set[str]:
    """Names of the parameters whose moments are in 8 bits: large ones, but no embeddings.

    Raises BadConfig if there is none, or no bitsandbytes.
    """
    import_bitsandbytes(OPTION)
    packed = {name for name, count in counts.items() if count >= LEAST_NUMBERS}
    if not packed:
        raise TemperError(
            "BadConfig",
            f"{OPTION} needs a trained tensor of at least {LEAST_NUMBERS:,} numbers, because smaller ones, and "
            f"embeddings, keep their moments in float32, but the largest of {len(counts)} has "
            f"{max(counts.values(), default=0):,}; leave it out",
        )
    return packed


def _quantised(key: str, numbers: Tensor) -> dict[str, Tensor]:
    """Codes, and the magnitudes of their blocks, by the names of the file."""
    functional, code = import_bitsandbytes(OPTION).functional, _map(key.partition("/")[0], numbers.device)
    codes, state = functional.quantize_blockwise(numbers, code=code, blocksize=BLOCK)
    return {key: codes, _absmax(key): state.absmax}


def _dequantised(key: str, codes: Tensor, absmax: Tensor) -> Tensor:
    functional, code = import_bitsandbytes(OPTION).functional, _map(key.partition("/")[0], codes.device)
    return functional.dequantize_blockwise(codes, absmax=absmax, code=code, blocksize=BLOCK)


@cache
def _map(moment: str, device: torch.device) -> Tensor:
    """What codes stand for, as shares of a block's magnitude: float32 [256], ascending. First moments have signs."""
    return import_bitsandbytes(OPTION).functional.create_dynamic_map(signed=moment == "exp_avg").to(device)


def _magnitudes(tensors: Mapping[str, Tensor], key: str) -> Tensor:
    absmax, count = tensors[_absmax(key)], tensors[key].numel()
    if absmax.shape != (math.ceil(count / BLOCK),):
        raise TemperError(
            "StoreCorrupt",
            f"a moment in 8 bits must have one magnitude for each {BLOCK} numbers, but {key} has "
            f"{list(absmax.shape)} for {count:,}; restore the checkpoint from a copy",
        )
    return absmax


def _keys(name: str) -> list[str]:
    return [f"{moment}/{name}" for moment in MOMENTS]


def _absmax(key: str) -> str:
    """Unique key: moments' names begin with the moment's own."""
    return f"absmax/{key}"
