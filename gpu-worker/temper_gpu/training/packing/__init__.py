"""Rows → micro-batches. A packer lays the tokens; model and losses read a `MicroBatch`, however it was laid."""

from temper_gpu.training.packing.chains import deal, pack
from temper_gpu.training.packing.micro_batch import MicroBatch
from temper_gpu.training.packing.row import Begin, Row
from temper_gpu.training.packing.segments import Segment, SegmentTree

__all__ = ["Begin", "MicroBatch", "Row", "Segment", "SegmentTree", "deal", "pack"]
