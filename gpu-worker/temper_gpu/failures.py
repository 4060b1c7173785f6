"""The one list of failure types, the same as core/failures.ts (test/contract/failures.json holds both to it)."""

from typing import Literal, get_args

FailureType = Literal[
    "AgentFailed",
    "JudgeFailed",
    "EngineFailed",
    "ProgramFailed",
    "TrainerFailed",
    "OutOfMemory",
    "StoreCorrupt",
    "StoreUnavailable",
    "BadConfig",
    "PolicyMismatch",
    "StepConflict",
    "LossNotFinite",
    "StaleAttempt",
    "LaterVersion",
]

FAILURE_TYPES: tuple[FailureType, ...] = get_args(FailureType)

# Types that may pass by themselves; a retry of any other is useless.
RETRYABLE: frozenset[FailureType] = frozenset(
    [
        "JudgeFailed",
        "EngineFailed",
        "ProgramFailed",
        "TrainerFailed",
        "StoreUnavailable",
        "StaleAttempt",
        "LaterVersion",
    ]
)


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
