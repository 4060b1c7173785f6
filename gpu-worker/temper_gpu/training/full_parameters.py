"""Full fine-tuning: all weights of the base model train.

The parameters are float32. A base model in a smaller type computes with rounded copies of them, made again after each
update: a change that is smaller than the type's last place is kept, and adds up (mixed precision training, Micikevicius
et al. 2018, arXiv 1710.03740, section 3.1). Gradients of copies are added up in float32, micro-batch by micro-batch.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from temper_gpu.model.full_weights import DTYPE, initial_weights, replaced_weights, require_weights
from temper_gpu.model.models import BaseModel
from temper_gpu.training.recomputation import saved_bytes_per_token
from temper_gpu.training.sharding import WholeBase


class FullParameters:
    def __init__(self, base: BaseModel) -> None:
        self._base = base
        self.parameters = {name: nn.Parameter(tensor.clone()) for name, tensor in initial_weights(base).items()}
        # Rounded copies, for parameters that the model has in another type.
        self._rounded: dict[str, nn.Parameter] = {}
        computing: dict[str, Tensor] = {}
        for name, names in base.parameter_names.items():
            computing |= dict.fromkeys(names, self._computing(name))
        # Tied weights are one parameter under each of their names.
        self.model: Any = base.instantiate(base.attention, computing)
        embedding = self.model.get_input_embeddings().weight
        self.embeddings = frozenset(name for name in self.parameters if computing[name] is embedding)
        self.weights = WholeBase()
        self.saved_bytes_per_token = saved_bytes_per_token(self.model, None, base.dtype)
        for parameter in computing.values():
            parameter.requires_grad_(True)

    def _computing(self, name: str) -> nn.Parameter:
        own, parameter = self._base.tensors[name], self.parameters[name]
        if own.dtype == DTYPE:
            return parameter
        rounded = self._rounded[name] = nn.Parameter(own.clone())

        def collect(computed: Tensor) -> None:
            gradient, computed.grad = computed.grad, None
            if gradient is not None:
                before = parameter.grad
                parameter.grad = gradient.to(DTYPE) if before is None else before.add_(gradient)

        rounded.register_post_accumulate_grad_hook(collect)
        return rounded

    def require_same(self, what: str, tensors: Mapping[str, Tensor]) -> None:
        require_weights(self._base, what, tensors)

    @torch.no_grad()
    def updated(self) -> None:
        for name, rounded in self._rounded.items():
            rounded.copy_(self.parameters[name])

    @cached_property
    def _plain(self) -> Any:
        return self._base.instantiate(self._base.attention)

    def as_base(self) -> AbstractContextManager[None]:
        return self._in_place(self._plain)

    def dropping(self) -> AbstractContextManager[None]:
        return nullcontext()

    def as_checkpoint(self, tensors: Mapping[str, Tensor]) -> AbstractContextManager[None]:
        return self._in_place(self._base.instantiate(self._base.attention, replaced_weights(self._base, tensors)))

    @contextmanager
    def _in_place(self, model: Any) -> Iterator[None]:
        own, self.model = self.model, model
        try:
            yield
        finally:
            self.model = own
