"""Attempts → training rows, by exact token ids.

A call whose prompt extends a row of its attempt exactly (prompt and answers so far) goes on in that row; any other
call forks a new row, which shares the attempt's advantage. Only sampled tokens are trained, and each of them once: in
the row of the call that sampled it. Where it stands in another row's prompt, it is context.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from temper_gpu.training.groups import Attempt, Call

TruncatedPolicy = Literal["mask", "penalise", "keep"]


@dataclass
class Row:
    """`positions` of the sampled tokens in `token_ids`, ascending; the other lists run beside them."""

    advantage: float
    token_ids: list[int]
    positions: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    temperatures: list[float] = field(default_factory=list)

    def append_sampled(self, call: Call) -> None:
        self.positions.extend(range(len(self.token_ids), len(self.token_ids) + len(call.token_ids)))
        self.token_ids.extend(call.token_ids)
        self.logprobs.extend(call.logprobs)
        self.temperatures.extend([call.temperature] * len(call.token_ids))


@dataclass(frozen=True)
class Rows:
    rows: list[Row]
    num_forks: int

    @property
    def num_trained_tokens(self) -> int:
        return sum(len(row.positions) for row in self.rows)


def build_rows(attempts: Sequence[Attempt], advantages: Sequence[float | None], truncated: TruncatedPolicy) -> Rows:
    """`advantages` is None for an attempt that is no data. Truncated attempts are left out under `mask`."""
    rows: list[Row] = []
    num_forks = 0
    for attempt, advantage in zip(attempts, advantages, strict=True):
        if advantage is None or (attempt.truncated and truncated == "mask"):
            continue
        of_attempt = attempt_rows(attempt.calls, advantage)
        num_forks += max(0, len(of_attempt) - 1)
        rows.extend(of_attempt)
    return Rows(rows, num_forks)


def attempt_rows(calls: Sequence[Call], advantage: float) -> list[Row]:
    rows: list[Row] = []
    for call in calls:
        if not call.token_ids:
            continue
        row = _extended(rows, call.prompt_token_ids)
        if row is None:
            row = Row(advantage, list(call.prompt_token_ids))
            rows.append(row)
        else:
            row.token_ids.extend(call.prompt_token_ids[len(row.token_ids) :])
        row.append_sampled(call)
    return rows


def _extended(rows: list[Row], prompt: list[int]) -> Row | None:
    """The longest row that the prompt begins with."""
    matching = [
        row for row in rows if len(row.token_ids) <= len(prompt) and prompt[: len(row.token_ids)] == row.token_ids
    ]
    return max(matching, key=lambda row: len(row.token_ids), default=None)
