"""Decoder layers that PyTorch compiles: it joins norms, rotations and activations into few kernels.

The bytes of a step must not depend on what its worker computed before. So layers are compiled once for a policy, on
tokens that are always the same, for rows of any number and length. What they were not compiled for is computed as it
would be without: trees, passes without a gradient, and the last layer, which leaves tokens out (last_layer.py).
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from temper_gpu.contract import LoraConfig
from temper_gpu.failures import TemperError
from temper_gpu.model.layers import expert_layers
from temper_gpu.training.faster_way import if_it_works

BACKEND = "inductor"
# Rules choose kernels, and no race between several of them. In this process: a layer is not worth a pool of others.
OPTIONS: dict[str, Any] = {"deterministic": True, "compile_threads": 1}
# Of one policy: one row or several, the first layer (its inputs have no gradient) or another one, each kind of layers.
MOST_COMPILED = 32
# Of gradients, relative to those of the layers as they are.
FAR = 1e-3
FAR_IN_HALF = 0.1

log = logging.getLogger(__name__)


def require_compilable(lora: LoraConfig | None, model: PreTrainedModel, name: str) -> None:
    """Raises BadConfig where it is not known that layers compile, for what trains or for the base model."""
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
    """One policy's at a time: another one's are computed as they are then."""

    def __init__(self, layers: Iterable[nn.Module], backend: str = BACKEND) -> None:
        import torch._dynamo.config
        from torch._dynamo.eval_frame import remove_from_cache

        torch._dynamo.config.recompile_limit = max(MOST_COMPILED, torch._dynamo.config.recompile_limit)
        # What was compiled for another policy counts towards the limit.
        remove_from_cache(_compute)
        options = OPTIONS if backend == BACKEND else None
        self._compute: Callable[..., Any] = torch.compile(_compute, dynamic=True, backend=backend, options=options)
        self._forwards = [(layer, layer.forward) for layer in layers]
        self._is_complete = False
        self._has_told = False

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Of a forward pass within, and of a backward pass that computes its layers again."""
        for layer, forward in self._forwards:
            layer.forward = partial(self._call, forward)
        try:
            yield
        finally:
            for layer, forward in self._forwards:
                layer.forward = forward

    def complete(self) -> None:
        """From now on nothing is compiled."""
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
    # Constant where it is compiled.
    if not torch.compiler.is_compiling():
        tell()
    return forward(*given, **options)


def find_compiled_layers(
    layers: Sequence[nn.Module],
    dtype: torch.dtype,
    gradients: Callable[[CompiledLayers | None], Tensor],
    backend: str = BACKEND,
) -> CompiledLayers | None:
    """None where they do not compile, or compute something else. `gradients`: of passes of every kind; None: with the
    layers as they are."""

    def try_out() -> tuple[CompiledLayers, float]:
        compiled = CompiledLayers(layers, backend)
        found, wanted = gradients(compiled), gradients(None)
        compiled.complete()
        return compiled, float((found - wanted).norm() / wanted.norm())

    most = FAR if dtype == torch.float32 else FAR_IN_HALF
    return if_it_works(try_out, most, log, "decoder layers are not compiled, it does not work here")
