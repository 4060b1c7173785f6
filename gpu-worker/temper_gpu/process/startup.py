"""Settings that keep a process from wasting processor time, made before torch is imported. Imports nothing heavy."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Spins of a thread before it sleeps: about 0.1 ms.
SPINS = "3000"
# Allocations between two collections. Python's default of 700 spends a quarter of the imports on collections.
SELDOM = 100_000


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Collects garbage seldom, for a program that imports half a million objects, answers once, and ends."""
    before = gc.get_threshold()
    gc.set_threshold(SELDOM, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def limit_spinning() -> None:
    """PyTorch's threads wait for each other by spinning, on Linux for 3 ms. Other processes of the stack share the
    processors, so they spin for a moment only: long enough for the next operation of a pass, which a sleeping thread
    begins too late. Read by OpenMP's runtime when torch is imported."""
    if "OMP_WAIT_POLICY" in os.environ:
        return
    # The number is GNU's, whose threads would otherwise not spin at all once two pools of them share the processors.
    is_counted = sys.platform == "linux"
    os.environ["OMP_WAIT_POLICY"] = "ACTIVE" if is_counted else "PASSIVE"
    if is_counted:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
