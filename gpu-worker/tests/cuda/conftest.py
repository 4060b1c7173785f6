"""Algorithms are a process's own setting: other tests find it as it was."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def algorithms() -> Iterator[None]:
    before = torch.are_deterministic_algorithms_enabled()
    yield
    torch.use_deterministic_algorithms(before)
