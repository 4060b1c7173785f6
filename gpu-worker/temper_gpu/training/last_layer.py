"""A decoder's last layer, computed only for the tokens that predict a sampled one.

Other tokens need only keys and values there. Queries, output projection, norms and feed-forward network see the
predicting tokens alone, forward and backward: with a long prompt and a short answer that saves nearly all of a layer.
These modules treat each token separately, so its numbers stay the same up to rounding.

Shapes: B rows, T padded tokens, S tokens that predict, D hidden size.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn

# Largest share of predicting tokens: above it, selecting them costs what it saves.
MOST_PREDICTING = 0.75


class LastLayer:
    """Replaces the `forward` of one layer's modules for good, because recomputation in the backward pass calls it
    too."""

    def __init__(self, layer: Any) -> None:
        # Places in the flattened B · T; None: all tokens. Stays until the next pass.
        self.places_S: Tensor | None = None
        # Inputs of all tokens while the layer computes; normalised ones after its first norm.
        self._inputs_BTD: Tensor | None = None
        _replace(layer, self._compute)
        attention: Any = layer.self_attn
        _replace(attention, self._attend)
        for owner, name, function in (
            (layer, "input_layernorm", self._normalise),
            (attention, "q_proj", self._query),
            (attention, "o_proj", self._project),
        ):
            if hasattr(owner, name):
                _replace(getattr(owner, name), function)

    def _compute(self, forward: Callable[..., Any], inputs_BTD: Tensor, *others: Any, **options: Any) -> Any:
        if self.places_S is None:
            return forward(inputs_BTD, *others, **options)
        self._inputs_BTD = inputs_BTD
        try:
            return forward(self._chosen(inputs_BTD), *others, **options)
        finally:
            self._inputs_BTD = None

    def _normalise(self, forward: Callable[[Tensor], Tensor], hidden: Tensor) -> Tensor:
        if self._inputs_BTD is None:
            return forward(hidden)
        self._inputs_BTD = forward(self._inputs_BTD)
        return self._chosen(self._inputs_BTD)

    def _attend(self, forward: Callable[..., Any], **options: Any) -> Any:
        """Computes keys and values of all tokens."""
        if self._inputs_BTD is None:
            return forward(**options)
        return forward(**{**options, "hidden_states": self._inputs_BTD})

    def _query(self, forward: Callable[[Tensor], Tensor], normed_BTD: Tensor) -> Tensor:
        """Zeros for tokens without a query."""
        if self.places_S is None:
            return forward(normed_BTD)
        [asked_SQ] = forward(self._chosen(normed_BTD))
        num_rows, width, _ = normed_BTD.shape
        return scattered(asked_SQ, self.places_S, num_rows * width).view(num_rows, width, -1)

    def _project(self, forward: Callable[[Tensor], Tensor], attended_BTQ: Tensor) -> Tensor:
        return forward(attended_BTQ if self.places_S is None else self._chosen(attended_BTQ))

    def _chosen(self, hidden_BTD: Tensor) -> Tensor:
        """[1, S, D]."""
        assert self.places_S is not None
        return hidden_BTD.flatten(0, 1).index_select(0, self.places_S)[None]


def scattered(tensor_S: Tensor, places_S: Tensor, num_places: int) -> Tensor:
    """Scatters along the first dimension; zeros elsewhere."""
    return tensor_S.new_zeros(num_places, *tensor_S.shape[1:]).index_copy_(0, places_S, tensor_S)


def _replace(module: nn.Module, function: Callable[..., Any]) -> None:
    module.forward = partial(function, module.forward)


def find_last_layer(decoder: Any) -> LastLayer | None:
    """None if the decoder is not built like those of transformers."""
    layers: Any = getattr(decoder, "layers", [None])
    last = layers[-1]
    return LastLayer(last) if hasattr(getattr(last, "self_attn", None), "o_proj") else None
