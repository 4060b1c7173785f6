"""Elementwise functions whose numbers do not depend on an element's place.

torch's elementwise loops are cut by threads without regard to rows, and what is left of a thread's share after its
whole vectors is computed by other code (the C library's `exp`), with other last bits. So shares are made of whole
vectors: the inputs are padded until they are. Where they are already, nothing is copied.
"""

from collections.abc import Callable
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

# Loop unit: two vectors of AVX-512 in the smallest type.
WHOLE_VECTORS = 64
# The least elements that torch gives a thread; some kernels take less, all of them a power of two.
GRAINS = (32768, 16384, 4096, 2048, 1024)


def elementwise(function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    first = inputs[0]
    if first.device.type != "cpu":
        return function(*inputs)
    num_elements = first.numel()
    padding = padded_size(num_elements, torch.get_num_threads()) - num_elements
    # Made contiguous, because elements apart from each other would be computed one by one.
    flat = [each.reshape(-1) for each in inputs]
    if padding:
        flat = [F.pad(each, (0, padding)) for each in flat]
    return function(*flat)[:num_elements].view(first.shape)


@lru_cache(maxsize=4096)
def padded_size(num_elements: int, num_threads: int) -> int:
    """The next size that every number of threads which torch may choose cuts into whole vectors."""
    size = -(-num_elements // WHOLE_VECTORS) * WHOLE_VECTORS
    while not all(size % (WHOLE_VECTORS * threads) == 0 for threads in _threads_used(size, num_threads)):
        size += WHOLE_VECTORS
    return size


def _threads_used(num_elements: int, num_threads: int) -> set[int]:
    return {min(num_threads, -(-num_elements // grain)) for grain in GRAINS}
