"""Errors of the contract's types."""

from typing import get_args

from temper_gpu.contract import RETRYABLE, FailureType

FAILURE_TYPES: tuple[FailureType, ...] = get_args(FailureType)


class TemperError(Exception):
    """An error at a named boundary. The message gives subject, rule, value, remedy."""

    def __init__(self, type: FailureType, message: str) -> None:
        super().__init__(message)
        self.type: FailureType = type
        self.message = message

    @property
    def retryable(self) -> bool:
        return self.type in RETRYABLE

    def __reduce__(self):
        return (TemperError, (self.type, self.message))
