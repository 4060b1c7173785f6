"""What one forward and backward pass works on.

Shapes: B rows, T padded tokens, N sampled tokens of the micro-batch.
"""

from dataclasses import dataclass

from torch import Tensor

from temper_gpu.training.packing.segments import SegmentTree


@dataclass(frozen=True)
class MicroBatch:
    """A sequence is a training row as it was sampled: a chain of tokens from the first to the last.

    The packer of today lays one sequence in each row. One that lays a tree puts several in a row, where they share the
    tokens that they begin with. Losses are defined on sequences, whatever the layout.
    """

    token_ids_BT: Tensor
    # Counted along a token's own sequence. A single row of them where all rows count alike.
    positions_BT: Tensor
    attention: SegmentTree
    # Where, in the flattened B · T, the hidden state stands that predicts the n-th sampled token.
    sources_N: Tensor
    targets_N: Tensor
    # Whose sampled token it is, of `num_sequences`; those of one sequence stand together, in order.
    sequences_N: Tensor
    num_sequences: int
    sampled_logprobs_N: Tensor
    temperatures_N: Tensor
    weighted_advantages_N: Tensor
