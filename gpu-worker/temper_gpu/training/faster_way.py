"""A faster way to compute the same, tried before it is used."""

import logging
from collections.abc import Callable
from typing import TypeVar

from temper_gpu.model.memory import is_out_of_memory

Way = TypeVar("Way")


def if_it_works(
    try_out: Callable[[], tuple[Way, float]], most: float, log: logging.Logger, otherwise: str
) -> Way | None:
    """Uses a faster way if it works. `try_out` returns it with the relative difference of its gradients. The result is
    None, and `otherwise` is logged, if that exceeds `most` or `try_out` raises. Lack of memory is raised, because it
    says nothing about the way."""
    try:
        way, far = try_out()
        if far <= most:
            return way
        reason = f"their gradients differ by {far:.2g}"
    except Exception as error:
        # Triton needs a C compiler and lacks some GPUs; PyTorch's compiler raises errors of many types.
        if is_out_of_memory(error):
            raise
        reason = f"{type(error).__name__}: {str(error)[:300]}"
    log.warning(otherwise, extra={"reason": reason})
    return None
