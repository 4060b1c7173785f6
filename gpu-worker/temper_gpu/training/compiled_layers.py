"""Decoder layers compiled by PyTorch, which joins norms, rotations and activations into few kernels.

A step's bytes must not depend on what its worker computed before. So each policy compiles its layers once, on fixed
tokens, for rows of any number and length. Everything else runs uncompiled: trees, passes without a gradient, and the
last layer, which leaves tokens out (last_layer.py).
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.contract import LoraConfig
from temper_gpu.failures import TemperError
from temper_gpu.model.layers import expert_layers
from temper_gpu.training.faster_way import if_it_works

BACKEND = "inductor"
# Fixed rules choose kernels, without benchmarks. Compilation runs in this process: a layer is not worth a pool of
# others.
OPTIONS: dict[str, Any] = {"deterministic": True, "compile_threads": 1}
# Compiled variants of one policy: one row or several, the first layer (its inputs have no gradient) or another, each
# kind of layers.
MOST_COMPILED = 32
# Largest difference of gradients, relative to those of uncompiled layers.
FAR = 1e-3
FAR_IN_HALF = 0.1

log = logging.getLogger(__name__)


def require_compilable(lora: LoraConfig | None, model: PreTrainedModel, name: str) -> None:
    """Raises BadConfig for trained parameters or base models that are not known to compile."""
    remedy = "start the GPU worker without --compile-layers (engine.compileLayers)"
    rule = "a run whose decoder layers are compiled must train an adapter"
    if lora is None:
        raise TemperError("BadConfig", f"{rule}, but it trains all weights; {remedy}, or leave --full-fine-tuning out")
    if lora.dropout:
        raise TemperError("BadConfig", f"{rule} without dropout, got {lora.dropout}; {remedy}, or leave it out")
    if lora.dora:
        raise TemperError("BadConfig", f"{rule} without magnitudes (DoRA); {remedy}, or leave --lora-dora out")
    if expert_layers(model):
        raise TemperError(
            "BadConfig",
            f"a base model whose decoder layers are compiled must be dense, but {name} has experts; {remedy}",
        )


class CompiledLayers:
    """Compiled layers of one policy at a time: those of other policies then run uncompiled."""

    def __init__(self, layers: Iterable[nn.Module], backend: str = BACKEND) -> None:
        import torch._dynamo.config
        from torch._dynamo.eval_frame import remove_from_cache

        torch._dynamo.config.recompile_limit = max(MOST_COMPILED, torch._dynamo.config.recompile_limit)
        # Variants of other policies would count towards the limit.
        remove_from_cache(_compute)
        options = OPTIONS if backend == BACKEND else None
        self._compute: Callable[..., Any] = torch.compile(_compute, dynamic=True, backend=backend, options=options)
        self._forwards = [(layer, layer.forward) for layer in layers]
        self._is_complete = False
        self._has_told = False

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Compiles the forward pass inside, and its recomputation in the backward pass."""
        for layer, forward in self._forwards:
            layer.forward = partial(self._call, forward)
        try:
            yield
        finally:
            for layer, forward in self._forwards:
                layer.forward = forward

    def complete(self) -> None:
        """Stops compiling."""
        self._is_complete = True

    def _call(self, forward: Callable[..., Any], *given: Any, **options: Any) -> Any:
        if not self._is_complete:
            return self._compute(forward, self._tell, *given, **options)
        with torch.compiler.set_stance("eager_on_recompile"):
            return self._compute(forward, self._tell, *given, **options)

    def _tell(self) -> None:
        if not self._has_told:
            log.warning("a pass is computed without compiled layers, they were not compiled for it")
            self._has_told = True


def _compute(forward: Callable[..., Any], tell: Callable[[], None], *given: Any, **options: Any) -> Any:
    # A constant in compiled code.
    if not torch.compiler.is_compiling():
        tell()
    return forward(*given, **options)


def find_compiled_layers(
    layers: Sequence[nn.Module],
    dtype: torch.dtype,
    gradients: Callable[[CompiledLayers | None], Tensor],
    backend: str = BACKEND,
) -> CompiledLayers | None:
    """None if layers do not compile, or compute something else. `gradients` runs passes of every kind; None: with
    uncompiled layers."""

    def try_out() -> tuple[CompiledLayers, float]:
        compiled = CompiledLayers(layers, backend)
        found, wanted = gradients(compiled), gradients(None)
        compiled.complete()
        return compiled, float((found - wanted).norm() / wanted.norm())

    most = FAR if dtype == torch.float32 else FAR_IN_HALF
    return if_it_works(try_out, most, log, "decoder layers are not compiled, it does not work here")
