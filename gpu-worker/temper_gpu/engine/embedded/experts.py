"""A mixture of experts in which a token's numbers do not depend on other tokens.

transformers multiplies all tokens of an expert as one matrix. How many rows that has, and with it the kernel and the
last bits, depends on the other requests of the pass. Here an expert's tokens are cut into blocks of one size, and the
last block is padded: all products have one shape, and the proof at start (proof.py) shows that a row's place in it does
not matter. That is slower, because most blocks of a small pass are padding.

Shapes: M tokens of a pass, K experts of a token, N = M · K pairs of both, D hidden size, C rows of a block.
"""

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

EXPERTS = "temper_blocks"
BLOCK = 16


def block_experts(experts, hidden_MD: Tensor, index_MK: Tensor, weights_MK: Tensor) -> Tensor:
    """The function that transformers calls in every mixture, after its router."""
    chosen_N = index_MK.flatten()
    counts = torch.bincount(chosen_N, minlength=experts.num_experts).tolist()
    output_ND = hidden_MD.new_empty(len(chosen_N), hidden_MD.shape[1])
    for expert, pairs in enumerate(chosen_N.argsort(stable=True).split(counts)):
        for block_C in pairs.split(BLOCK) if len(pairs) else ():
            rows_CD = hidden_MD[block_C // index_MK.shape[1]]
            padded_CD = F.pad(rows_CD, (0, 0, 0, BLOCK - len(block_C)))
            output_ND[block_C] = one_expert(experts, expert, padded_CD)[: len(block_C)]
    # Added one after another: the order of a sum over an axis may depend on a token's place.
    first, *others = (output_ND.view(*index_MK.shape, -1).float() * weights_MK[..., None].float()).unbind(1)
    for other in others:
        first = first + other
    return first.to(hidden_MD.dtype)


def one_expert(experts, expert: int, rows_CD: Tensor) -> Tensor:
    up = _linear(experts, "gate_up_proj" if experts.has_gate else "up_proj", expert, rows_CD)
    return _linear(experts, "down_proj", expert, experts._apply_gate(up) if experts.has_gate else experts.act_fn(up))


def _linear(experts, name: str, expert: int, rows: Tensor) -> Tensor:
    weight = getattr(experts, name)[expert]
    bias = getattr(experts, f"{name}_bias")[expert] if experts.has_bias else None
    return F.linear(rows, weight.mT if experts.is_transposed else weight, bias)


ALL_EXPERTS_FUNCTIONS.register(EXPERTS, block_experts)
