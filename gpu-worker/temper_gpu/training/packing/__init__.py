"""Rows → micro-batches. A packer lays out the tokens; model and losses read every `MicroBatch` alike."""

from temper_gpu.training.packing.blocks import Block, block_keys, plan_blocks
from temper_gpu.training.packing.micro_batch import MicroBatch, num_computed_tokens
from temper_gpu.training.packing.packer import Packing, deal, pack
from temper_gpu.training.packing.row import Begin, Row
from temper_gpu.training.packing.segments import Segment, SegmentTree

__all__ = [
    "Begin",
    "Block",
    "MicroBatch",
    "Packing",
    "Row",
    "Segment",
    "SegmentTree",
    "block_keys",
    "deal",
    "num_computed_tokens",
    "pack",
    "plan_blocks",
]
