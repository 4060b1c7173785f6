"""AdamW with moments in float32 or in 8 bits, and how a checkpoint's file holds them.

The 8-bit one is bitsandbytes' (Dettmers et al. 2022, arXiv 2110.02861): a moment is quantised in blocks of 256 numbers,
each to the nearest code of a dynamic map, times the largest magnitude of its block. The optimizer computes in float32.

A file has `step` and, for each parameter, `exp_avg/NAME` and `exp_avg_sq/NAME` in its shape. In 8 bits these are codes,
and `absmax/exp_avg/NAME` and `absmax/exp_avg_sq/NAME` are the magnitudes of their blocks, float32 [blocks]. Either kind
reads the other's file: the moments are converted.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from temper_gpu.contract import OptimizerConfig
from temper_gpu.failures import TemperError
from temper_gpu.model.bits import NAME, import_bitsandbytes

MOMENTS = ("exp_avg", "exp_avg_sq")
# `adamw` is AdamW in float32.
OptimizerKind = Literal["adamw", "adamw_8bit"]
# Limits of bitsandbytes: parameters with fewer numbers, and embeddings, keep moments in float32.
BLOCK = 256
LEAST_NUMBERS = 4096
# Numbers updated at once: on a CPU an update makes about five float32 copies of them.
MOST_AT_ONCE = 1 << 22
OPTION = "--optimizer adamw_8bit"


class Optimizer(Protocol):
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Loads a checkpoint's file of either kind in place."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """State in main memory, in the form of the file. The next step changes moments in place."""
        ...

    def step(self, config: OptimizerConfig, learning_rate: float) -> None: ...

    def zero_grad(self) -> None: ...


def create_optimizer(
    kind: OptimizerKind, parameters: Mapping[str, nn.Parameter], embeddings: frozenset[str] = frozenset()
) -> Optimizer:
    return Float32AdamW(parameters) if kind == "adamw" else EightBitAdamW(parameters, embeddings)


def optimizer_fingerprint(kind: OptimizerKind) -> dict[str, str]:
    """The optimizer's part of the platform fingerprint; empty for float32."""
    return {} if kind == "adamw" else {NAME: version(NAME)}


def initial_optimizer_tensors(trained: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """State of step 0, the same for every optimizer."""
    zeros = {f"{moment}/{name}": torch.zeros_like(tensor) for name, tensor in trained.items() for moment in MOMENTS}
    return {**zeros, "step": torch.tensor(0.0)}


def moments_bytes(shapes: Iterable[torch.Size], kind: OptimizerKind) -> int:
    return len(MOMENTS) * sum(_moment_bytes(shape.numel(), kind) for shape in shapes)


def _moment_bytes(count: int, kind: OptimizerKind) -> int:
    if kind == "adamw" or count < LEAST_NUMBERS:
        return count * torch.float32.itemsize
    return count * torch.uint8.itemsize + math.ceil(count / BLOCK) * torch.float32.itemsize


def in_float32(tensors: Mapping[str, Tensor], key: str) -> Tensor:
    """A tensor of a checkpoint's file; 8-bit codes are converted to their numbers."""
    stored = tensors[key]
    if stored.dtype != torch.uint8:
        return stored
    absmax = tensors[_absmax(key)]
    if absmax.shape != (math.ceil(stored.numel() / BLOCK),):
        raise TemperError(
            "StoreCorrupt",
            f"a moment in 8 bits must have one magnitude for each {BLOCK} numbers, but {key} has "
            f"{list(absmax.shape)} for {stored.numel():,}; restore the checkpoint from a copy",
        )
    functional = import_bitsandbytes(OPTION).functional
    return functional.dequantize_blockwise(stored, absmax=absmax, code=_map_of(key), blocksize=BLOCK)


def without_scales(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A checkpoint's file as float32 would have it."""
    return {key: in_float32(tensors, key) for key in tensors if not key.startswith(_absmax(""))}


class Float32AdamW:
    def __init__(self, parameters: Mapping[str, nn.Parameter]) -> None:
        self._parameters = parameters
        self._adamw = torch.optim.AdamW(list(parameters.values()), fused=True)

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Keeps allocations, and AdamW's own records of its parameters."""
        for name, parameter in self._parameters.items():
            state = self._adamw.state.setdefault(parameter, _zero_state(parameter))
            for moment in MOMENTS:
                state[moment].copy_(in_float32(tensors, f"{moment}/{name}"))
            state["step"].copy_(tensors["step"])

    def tensors(self) -> dict[str, Tensor]:
        states = {name: self._adamw.state[parameter] for name, parameter in self._parameters.items()}
        moments = {f"{moment}/{name}": state[moment].cpu() for name, state in states.items() for moment in MOMENTS}
        return {**moments, "step": next(iter(states.values()))["step"].cpu().clone()}

    def step(self, config: OptimizerConfig, learning_rate: float) -> None:
        _set_options(self._adamw, config, learning_rate)
        self._adamw.step()

    def zero_grad(self) -> None:
        self._adamw.zero_grad()


@dataclass(frozen=True)
class _Part:
    """A flat part of a parameter. `numbers` and its moments are views, so an update changes the whole."""

    whole: nn.Parameter
    numbers: nn.Parameter
    begin: int

    def take_gradient(self) -> None:
        gradient = self.whole.grad
        part = None if gradient is None else gradient.reshape(-1)[self.begin :][: self.numbers.numel()]
        self.numbers.grad = part


class EightBitAdamW:
    """AdamW of bitsandbytes. Its state is views of `_moments`, which have the names and shapes of the file."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], embeddings: frozenset[str] = frozenset()) -> None:
        """`embeddings` keep moments in float32 (section 2.3 of the paper): gradients of their rows differ widely in
        size."""
        counts = {name: parameter.numel() for name, parameter in parameters.items() if name not in embeddings}
        packed = packed_moments(counts)
        self._parameters = parameters
        self._moments: dict[str, Tensor] = {}
        self._num_steps = 0
        self._parts = [part for parameter in parameters.values() for part in _parts_of(parameter)]
        self._adamw = import_bitsandbytes(OPTION).optim.AdamW8bit([part.numbers for part in self._parts])
        for name, parameter in parameters.items():
            for moment in MOMENTS:
                self._moments |= _zero_moment(f"{moment}/{name}", parameter, name in packed)
        names = {parameter: name for name, parameter in parameters.items()}
        for part in self._parts:
            self._adamw.state[part.numbers] = self._state_of(names[part.whole], part)

    def _state_of(self, name: str, part: _Part) -> dict[str, Any]:
        """State under bitsandbytes' names."""
        state: dict[str, Any] = {}
        begin, end = part.begin, part.begin + part.numbers.numel()
        for place, key in enumerate((f"{moment}/{name}" for moment in MOMENTS), 1):
            state[f"state{place}"] = self._moments[key].view(-1)[begin:end]
            if _absmax(key) in self._moments:
                state[f"absmax{place}"] = self._moments[_absmax(key)][begin // BLOCK : math.ceil(end / BLOCK)]
                state[f"qmap{place}"] = _map_of(key).to(part.whole.device)
        return state

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        for name in self._parameters:
            for moment in MOMENTS:
                self._load_moment(tensors, f"{moment}/{name}")
        self._num_steps = int(tensors["step"])

    def _load_moment(self, tensors: Mapping[str, Tensor], key: str) -> None:
        own, absmax = self._moments[key], self._moments.get(_absmax(key))
        if absmax is None:
            own.copy_(in_float32(tensors, key))
        elif tensors[key].dtype == torch.uint8:
            own.copy_(tensors[key])
            absmax.copy_(tensors[_absmax(key)])
        else:
            quantize = import_bitsandbytes(OPTION).functional.quantize_blockwise
            codes, found = quantize(tensors[key].to(own.device), code=_map_of(key), blocksize=BLOCK)
            own.copy_(codes)
            absmax.copy_(found.absmax)

    def tensors(self) -> dict[str, Tensor]:
        moments = {key: tensor.cpu() for key, tensor in self._moments.items()}
        return {**moments, "step": torch.tensor(float(self._num_steps))}

    @torch.no_grad()
    def step(self, config: OptimizerConfig, learning_rate: float) -> None:
        _set_options(self._adamw, config, learning_rate)
        for part in self._parts:
            part.take_gradient()
            state = self._adamw.state[part.numbers]
            state["step"] = self._num_steps
            _forget_unscaled(state)
        self._adamw.step()
        self._num_steps += 1

    def zero_grad(self) -> None:
        self._adamw.zero_grad()
        for parameter in self._parameters.values():
            parameter.grad = None


def _forget_unscaled(state: Mapping[str, Any]) -> None:
    """Forgets first moments whose second moment is rounded to zero, because it is tiny beside its block's largest.
    Otherwise their ratio would move a parameter by a multiple of the learning rate once its gradient is zero (an expert
    without tokens, an embedding of an absent token)."""
    if "qmap2" in state:
        state["state1"].masked_fill_(state["state2"] == _zero_code("exp_avg_sq"), _zero_code("exp_avg"))


def _parts_of(parameter: nn.Parameter) -> list[_Part]:
    """Moments of small parameters are float32, not in blocks."""
    flat = parameter.detach().view(-1)
    starts = range(0, len(flat), MOST_AT_ONCE)
    return [_Part(parameter, nn.Parameter(flat[start : start + MOST_AT_ONCE]), start) for start in starts]


def _zero_moment(key: str, parameter: nn.Parameter, is_packed: bool) -> dict[str, Tensor]:
    if not is_packed:
        return {key: torch.zeros_like(parameter)}
    absmax = torch.zeros(math.ceil(parameter.numel() / BLOCK), device=parameter.device)
    return {key: torch.zeros_like(parameter, dtype=torch.uint8), _absmax(key): absmax}


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


def _absmax(key: str) -> str:
    """Unique key: moments' names begin with the moment's own."""
    return f"absmax/{key}"


def _map_of(key: str) -> Tensor:
    """The values of a tensor's codes as shares of a block's magnitude, float32 [256], ascending. First moments have
    signs."""
    return _dynamic_map(key.partition("/")[0] == "exp_avg")


@cache
def _dynamic_map(signed: bool) -> Tensor:
    return import_bitsandbytes(OPTION).functional.create_dynamic_map(signed=signed)


@cache
def _zero_code(moment: str) -> int:
    return int((_map_of(moment) == 0).nonzero())


def _zero_state(parameter: nn.Parameter) -> dict[str, Tensor]:
    step = torch.tensor(0.0, device=parameter.device)
    return {"step": step, **{moment: torch.zeros_like(parameter) for moment in MOMENTS}}


def _set_options(optimizer: torch.optim.Optimizer, config: OptimizerConfig, learning_rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"], group["betas"] = learning_rate, (config.beta1, config.beta2)
        group["eps"], group["weight_decay"] = config.epsilon, config.weight_decay
