"""How much of a change is left, where rounding, or a server, may have lost some of it.

The share is the regression of what was found on what was wanted. Rounding is noise in it, which averages out over many
numbers.
"""

import math

from torch import Tensor

# Bounds of a proof: the share of a change that must be found, and the noise up to which it can be judged.
LEAST_SHARE, MOST_NOISE = 0.5, 0.15


class ChangeKept:
    def __init__(self) -> None:
        self._found = self._wanted = self._noise = 0.0

    def add(self, wanted: Tensor, found: Tensor, noise: Tensor | float) -> None:
        """`noise`: standard deviation of each number that was found."""
        wanted = wanted.double()
        self._found += float((wanted * found.double()).sum())
        self._wanted += float(wanted.square().sum())
        self._noise += float((wanted * noise).square().sum())

    @property
    def share(self) -> float | None:
        """None: nothing was to change."""
        return self._found / self._wanted if self._wanted else None

    @property
    def noise(self) -> float:
        """Standard deviation of the share; infinite if nothing was to change."""
        return self._noise**0.5 / self._wanted if self._wanted else math.inf

    @property
    def is_lost(self) -> bool:
        """False if the noise hides it."""
        is_less = math.isfinite(self._found) and self._found < LEAST_SHARE * self._wanted
        return is_less and self.noise < MOST_NOISE
