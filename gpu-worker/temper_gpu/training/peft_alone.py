"""PEFT without bitsandbytes, which PEFT would import wherever it is installed, for layers that are not in use here."""

from temper_gpu.model.bits import without_bitsandbytes

with without_bitsandbytes():
    import peft

__all__ = ["peft"]
