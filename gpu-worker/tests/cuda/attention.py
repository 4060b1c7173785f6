"""Attention on the fake GPU: the rule by which PyTorch's C++ picks a kernel on an H100, and what stands for the kernels
that CPUs do not have.

All but halves without a mask is the memory-efficient kernel's: cuDNN's is not deterministic. In float32, heads that
share keys get copies (newer builds of PyTorch would compute all scores).

Shapes: B rows, H heads, Q queries, K keys, D head size.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

# Of the rows of a mask, in numbers: what is laid otherwise is copied first.
ALIGNMENT = 8
# Sums of the softmax come in as many.
SUMS = 32
aten = torch.ops.aten
_plain = F.scaled_dot_product_attention


def attend_on_gpu(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """In the place of torch.nn.functional's."""
    if query.device.type != "cuda":
        return _plain(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    if enable_gqa and key.shape[1] != query.shape[1]:
        key, value = (each.repeat_interleave(query.shape[1] // key.shape[1], 1) for each in (key, value))
    if attn_mask is not None:
        attn_mask = aligned(attn_mask).expand(*query.shape[:3], key.shape[2])
    needs_sums = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad)
    options: dict[str, Any] = {"is_causal": is_causal, "scale": scale}
    return aten._scaled_dot_product_efficient_attention(query, key, value, attn_mask, needs_sums, **options)[0]


def aligned(mask: Tensor) -> Tensor:
    if mask.stride(-1) == 1 and not any(stride % ALIGNMENT for stride in mask.stride()[:-1]):
        return mask
    padding = ALIGNMENT - mask.shape[-1] % ALIGNMENT
    return F.pad(mask, (0, padding))[..., : mask.shape[-1]]


def efficient(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    require_heads(query, key, attn_bias)
    out, sums_BHQ = aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, dropout_p, is_causal, attn_mask=attn_bias, scale=scale
    )
    # What nobody may read.
    sums_BHQ = F.pad(sums_BHQ, (0, -query.shape[2] % SUMS), value=float("nan"))
    none = torch.zeros((), dtype=torch.long)
    return out, sums_BHQ if compute_log_sumexp else sums_BHQ[..., :0], none, none.clone()


def efficient_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    out: Tensor,
    logsumexp: Tensor,
    _seed: Tensor,
    _offset: Tensor,
    dropout_p: float,
    _mask: list[bool],
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor, None]:
    require_heads(query, key, attn_bias)
    sums_BHQ = logsumexp[..., : query.shape[2]].contiguous()
    given = (grad.contiguous(), query, key, value, out, sums_BHQ)
    backward = aten._scaled_dot_product_flash_attention_for_cpu_backward
    return *backward(*given, dropout_p, is_causal, attn_mask=attn_bias, scale=scale), None


def require_heads(query: Tensor, key: Tensor, attn_bias: Tensor | None) -> None:
    if key.shape[1] != query.shape[1]:
        raise RuntimeError(f"the memory-efficient kernel must get as many heads of keys as of queries, got {key.shape}")
    if attn_bias is None:
        return
    wanted = (*query.shape[:3], key.shape[2])
    if attn_bias.shape != wanted:
        raise RuntimeError(
            f"a mask must have the shape {wanted} for the memory-efficient kernel, got {attn_bias.shape}"
        )
    if attn_bias.stride(-1) != 1 or any(stride % ALIGNMENT for stride in attn_bias.stride()[:-1]):
        raise RuntimeError(f"the rows of a mask must begin at multiples of {ALIGNMENT}, got {attn_bias.stride()}")


# Kernels without a CPU's code, by what computes the same.
STAND_INS: dict[str, Callable[..., Any]] = {
    "_scaled_dot_product_efficient_attention": efficient,
    "_scaled_dot_product_efficient_attention_backward": efficient_backward,
}
