"""Sizes of a model's passes, in tokens, and threads that compute them."""

from bisect import bisect_left
from dataclasses import dataclass

import torch

# Every size is a multiple of 16, so that vectorised loops have no remainder in which another code path computes.
CANDIDATES = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
SMALLEST_LARGEST, LARGEST = 128, CANDIDATES[-1]
# Keeps a pass of a large model under about half a second on two cores.
PASS_PARAMETER_TOKENS = 26e9
# Cost of calling a tiny model, in parameters times tokens.
OVERHEAD_PARAMETER_TOKENS = 35e6
# Below, waking a second thread for each of many small products costs more than it computes (measured: at 0.25 M one
# thread is twice as fast as two, at 2.8 M as fast, at 52 M two are 1.2 times as fast).
ONE_THREAD_PARAMETERS = 2e6


@dataclass(frozen=True)
class Sizes:
    allowed: tuple[int, ...]
    # A pass's fixed cost, in tokens: this much padding costs as much as a second pass.
    overhead_tokens: float
    # Whether they give the same bits, at every place (proof.py).
    is_proven: bool = True

    @property
    def largest(self) -> int:
        return self.allowed[-1]

    def at_least(self, num_tokens: int) -> int:
        return self.allowed[min(bisect_left(self.allowed, num_tokens), len(self.allowed) - 1)]

    def most_slots(self, max_slots: int) -> int:
        """Largest number of requests that are decoded in one pass."""
        return max((size for size in self.allowed if size <= max_slots), default=self.allowed[0])

    def worthwhile(self, num_tokens: int) -> int:
        """Number of waiting tokens that the next pass should take: all, or as many as fill a smaller size."""
        if num_tokens >= self.largest:
            return self.largest
        size = self.at_least(num_tokens)
        below = bisect_left(self.allowed, num_tokens) - 1
        if size - num_tokens <= max(self.overhead_tokens, size / 8) or below < 0:
            return num_tokens
        return self.allowed[below]


def sizes_for(num_parameters: int, max_pass_tokens: int | None, device: torch.device) -> Sizes:
    """A GPU reads all weights in each pass, and hardly takes longer for many tokens."""
    on_cpu = min(LARGEST, max(SMALLEST_LARGEST, PASS_PARAMETER_TOKENS / num_parameters))
    largest = max_pass_tokens or (LARGEST if device.type == "cuda" else on_cpu)
    allowed = tuple(size for size in CANDIDATES if size <= largest) or CANDIDATES[:1]
    return Sizes(allowed, OVERHEAD_PARAMETER_TOKENS / num_parameters)


def threads_for(num_parameters: int, most: int) -> int:
    return 1 if num_parameters < ONE_THREAD_PARAMETERS else most
