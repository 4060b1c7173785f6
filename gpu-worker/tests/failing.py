"""What tests say of an error: its type, its words, and whether it may pass."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from temper_gpu.failures import TemperError


@contextmanager
def failing(type_: str, match: str | None = None, retryable: bool | None = None) -> Iterator[None]:
    with pytest.raises(TemperError, match=match) as caught:
        yield
    assert caught.value.type == type_
    assert retryable in (None, caught.value.retryable)
