"""The inputs of attention besides tokens and positions: masks for rows, plans for trees. Shapes: T tokens."""

import math
from typing import Any

import torch
from torch import Tensor

from temper_gpu.model.layers import attention_heads, attention_windows, layer_kinds
from temper_gpu.model.models import BaseModel
from temper_gpu.training.packing import MicroBatch
from temper_gpu.training.tree_attention import TreePlan, attend_tree
from temper_gpu.training.tree_kernel import Heads, Kernel, find_kernel


def attention_inputs(base: BaseModel, batch: MicroBatch, is_recomputed: bool, kernel: Kernel | None) -> dict[str, Any]:
    """Rows get their masks from transformers, unless torch's attention would convert these again in every layer and
    keep them for the backward pass."""
    windows, is_eager = attention_windows(base.config), base.attention == "eager"
    if not batch.attention.is_chains:
        return {"tree_plan": TreePlan(batch.attention, windows, is_eager, is_recomputed, kernel)}
    width = batch.token_ids_BT.shape[1]
    if is_eager or not any(window is not None and window <= width for window in windows):
        return {}
    return {"attention_mask": window_masks(base, width)}


def window_masks(base: BaseModel, width: int) -> dict[str, Tensor | None] | Tensor | None:
    """A mask for each kind of layers, or the only one, as models take them. None: causal attention alone."""
    masks = {
        kind: None if window is None or width < window else window_mask_11TT(width, window, base)
        for kind, window in dict(zip(layer_kinds(base.config), attention_windows(base.config), strict=True)).items()
    }
    return masks if len(masks) > 1 else next(iter(masks.values()))


def window_mask_11TT(width: int, window: int, base: BaseModel) -> Tensor:
    """The mask as numbers that are added to scores, as torch makes it from booleans."""
    places_T = torch.arange(width, device=base.device)
    ahead_TT = places_T[:, None] - places_T
    hidden_TT = (ahead_TT < 0) | (ahead_TT >= window)
    return torch.zeros(1, 1, width, width, dtype=base.dtype, device=base.device).masked_fill_(hidden_TT, -math.inf)


def find_tree_kernel(base: BaseModel) -> Kernel | None:
    heads = Heads(*attention_heads(base.config), base.dtype, base.device)
    return find_kernel(heads, attention_windows(base.config), attend_tree)
