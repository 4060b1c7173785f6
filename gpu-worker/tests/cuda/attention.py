"""Attention on the fake GPU: the rule by which PyTorch's C++ picks a kernel on an H100, and what stands for the kernels
that CPUs do not have.

Without a mask, halves are attended to by FlashAttention. All else is the memory-efficient kernel's: cuDNN's is not
deterministic. In float32, heads that share keys get copies (newer builds of PyTorch would compute all scores).

Shapes: B rows, H heads, Q queries, K keys, D head size.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from tests.cuda.fake_gpu import FakeGpu

# Of the rows of a mask, in numbers: what is laid otherwise is copied first.
ALIGNMENT = 8
# Sums of the softmax come in as many.
SUMS = 32
aten = torch.ops.aten
_plain = F.scaled_dot_product_attention


def attend_on_gpu(gpu: "FakeGpu") -> Callable[..., Tensor]:
    """In the place of torch.nn.functional's."""

    def attend(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if query.device.type != "cuda":
            return _plain(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if attn_mask is None and query.dtype.itemsize == 2 and not gpu.has_numbers:
            return aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, scale=scale)[0]
        if enable_gqa and key.shape[1] != query.shape[1]:
            key, value = (each.repeat_interleave(query.shape[1] // key.shape[1], 1) for each in (key, value))
        if attn_mask is not None:
            attn_mask = aligned(attn_mask).expand(*query.shape[:3], key.shape[2])
        needs_sums = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad)
        options: dict[str, Any] = {"is_causal": is_causal, "scale": scale}
        return aten._scaled_dot_product_efficient_attention(query, key, value, attn_mask, needs_sums, **options)[0]

    return attend


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


class FlexAttention:
    """Stands for the kernel that Triton compiles, on tensors without numbers: one launch, and two of the backward pass.
    What it is told to see, test_tree_kernel.py checks."""

    def __init__(self, gpu: "FakeGpu", num_seen: int) -> None:
        """`num_seen`: pairs of a query and a key, of each head."""
        self._gpu = gpu
        self._num_seen = num_seen
        self.num_calls = 0

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, block_mask: Any, scale: float, enable_gqa: bool
    ) -> Tensor:
        if not enable_gqa and key.shape[1] != query.shape[1]:
            raise RuntimeError("FlexAttention must be told that heads share keys")
        if any(length != query.shape[2] for length in block_mask.seq_lengths):
            raise RuntimeError(f"a mask must be as long as the row, got {block_mask.seq_lengths} for {query.shape[2]}")
        self.num_calls += 1
        return _Flex.apply(query, key, value, self)  # pyright: ignore[reportReturnType]

    def launch(self, name: str, tensors: tuple[Tensor, ...], launches: int, work: float) -> None:
        num_bytes = sum(each.numel() * each.itemsize for each in tensors)
        query = tensors[0]
        total = work * query.shape[1] * query.shape[3] * self._num_seen
        self._gpu.launched.add(name, tensors, launches, num_bytes, total)


class _Flex(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, kernel: FlexAttention) -> Tensor:
        ctx.save_for_backward(query, key, value)
        ctx.kernel = kernel
        kernel.launch("flex_attention", (query, key, value, query), 1, 4)
        return torch.empty_like(query)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        given = ctx.saved_tensors
        ctx.kernel.launch("flex_attention_backward", (*given, *grads, *given), 2, 10)
        return *map(torch.empty_like, given), None
