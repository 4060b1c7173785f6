"""log π of sampled tokens, and the entropy of the distributions that they were drawn from, by the output head.

A frozen head's gradients are found in the forward pass, while the logits are there. How log π and entropy of a token
change with its hidden state does not depend on the loss: the loss gives each of both a weight, in the backward pass. So
logits are computed once, and at most two vectors of the hidden size are kept of a token.

Shapes: N sampled tokens, D hidden size, V vocabulary, 1 a column.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

Scores = tuple[Tensor, Tensor]


def plain_scores(
    head: Callable[[Tensor], Tensor],
    hidden_ND: Tensor,
    targets_N: Tensor,
    temperatures_N: Tensor,
    trains_entropy: bool,
    chunk: int,
) -> Scores:
    """Scores of any head, trained or not, `chunk` tokens at a time."""
    rows = (hidden_ND, targets_N, temperatures_N)
    if len(hidden_ND) <= chunk:
        return _score_plainly(head, *rows, trains_entropy)
    parts = zip(*(of.split(chunk) for of in rows), strict=True)
    # Recomputation in the backward pass leaves one chunk's logits in memory at a time.
    scores = [
        checkpoint(_score_plainly, head, *part, trains_entropy, use_reentrant=False, preserve_rng_state=False)
        for part in parts
    ]
    logprobs_N, entropy_N = (torch.cat(column) for column in zip(*scores, strict=True))
    return logprobs_N, entropy_N


def _score_plainly(
    head: Callable[[Tensor], Tensor], hidden_ND: Tensor, targets_N: Tensor, temperatures_N: Tensor, trains_entropy: bool
) -> Scores:
    logits_NV = head(hidden_ND).float() / temperatures_N[:, None]
    logprobs_NV = F.log_softmax(logits_NV, -1)
    with torch.set_grad_enabled(trains_entropy and torch.is_grad_enabled()):
        entropy_N = -(logprobs_NV.exp() * logprobs_NV).sum(-1)
    return -F.nll_loss(logprobs_NV, targets_N, reduction="none"), entropy_N


def is_frozen(head: Any) -> bool:
    """Whether a head is a product with weights that do not train, and nothing else. Adapted layers have other types."""
    return type(head) is nn.Linear and head.bias is None and not head.weight.requires_grad


def frozen_head_scores(
    weight_VD: Tensor, hidden_ND: Tensor, targets_N: Tensor, temperatures_N: Tensor, trains_entropy: bool, chunk: int
) -> Scores:
    """The same for a frozen head, up to rounding."""
    has_gradient = hidden_ND.requires_grad and torch.is_grad_enabled()
    num_slopes = (2 if trains_entropy else 1) if has_gradient else 0
    return _FrozenHead.apply(hidden_ND, weight_VD, targets_N, temperatures_N, num_slopes, chunk)


class _FrozenHead(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        targets_N: Tensor,
        temperatures_N: Tensor,
        num_slopes: int,
        chunk: int,
    ):
        slopes = [torch.empty_like(hidden_ND) for _ in range(num_slopes)]
        rows = (hidden_ND, targets_N, temperatures_N, *slopes)
        parts = zip(*(of.split(chunk) for of in rows), strict=True)
        scores = [
            _score_chunk(weight_VD, hidden, targets, temperatures, tuple(of_part))
            for hidden, targets, temperatures, *of_part in parts
        ]
        logprobs_N, entropy_N = (torch.cat(column) for column in zip(*scores, strict=True))
        ctx.save_for_backward(*slopes)
        ctx.set_materialize_grads(False)
        if num_slopes < 2:
            ctx.mark_non_differentiable(entropy_N)
        return logprobs_N, entropy_N

    @staticmethod
    @once_differentiable
    # pyrefly: ignore[bad-override]
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        """Weighs and adds in float32, and rounds once."""
        grad_ND: Tensor | None = None
        for grad_N, slope_ND in zip(grads, ctx.saved_tensors, strict=False):
            if grad_N is not None:
                weighed_ND = grad_N[:, None] * slope_ND
                grad_ND = weighed_ND if grad_ND is None else grad_ND.add_(weighed_ND)
        return grad_ND if grad_ND is None else grad_ND.to(ctx.saved_tensors[0].dtype), None, None, None, None, None


def _score_chunk(
    weight_VD: Tensor, hidden_ND: Tensor, targets_N: Tensor, temperatures_N: Tensor, slopes: tuple[Tensor, ...]
) -> Scores:
    """log π and entropy; writes their slopes by the hidden states into `slopes`. Memory traffic of the logits
    dominates, so each line goes over them at most once, in place if possible."""
    targets_N1, temperatures_N1 = targets_N[:, None], temperatures_N[:, None]
    # Logits in the head's type; finally the factors of the weights.
    scratch_NV = F.linear(hidden_ND, weight_VD)
    largest_N1 = scratch_NV.amax(-1, keepdim=True) / temperatures_N1
    # Logits in float32, divided by the temperature, less the largest.
    shifted_NV = torch.addcdiv(-largest_N1, scratch_NV, temperatures_N1)
    target_N1 = shifted_NV.gather(1, targets_N1)
    odds_NV = shifted_NV.exp()
    sum_N1 = odds_NV.sum(-1, keepdim=True)
    weighed_NV = shifted_NV.mul_(odds_NV)
    mean_N1 = weighed_NV.sum(-1, keepdim=True) / sum_N1
    logprobs_N1 = target_N1 - sum_N1.log()
    scale_N1 = -1 / (sum_N1 * temperatures_N1)
    if len(slopes) > 0:
        # (1 at the target − p) / temperature
        torch.mul(odds_NV, scale_N1, out=scratch_NV)
        at_target_N1 = -torch.expm1(logprobs_N1) / temperatures_N1
        scratch_NV.scatter_(1, targets_N1, at_target_N1.to(scratch_NV.dtype))
        torch.mm(scratch_NV, weight_VD, out=slopes[0])
    if len(slopes) > 1:
        # −p (log p + entropy) / temperature
        weighed_NV.addcmul_(odds_NV, mean_N1, value=-1)
        torch.mul(weighed_NV, scale_N1, out=scratch_NV)
        torch.mm(scratch_NV, weight_VD, out=slopes[1])
    return logprobs_N1[:, 0], (sum_N1.log() - mean_N1)[:, 0]
