"""For every test: the kernels that the worker's process uses (training/platform.py)."""

from temper_gpu.training.platform import fix_kernels

fix_kernels()
