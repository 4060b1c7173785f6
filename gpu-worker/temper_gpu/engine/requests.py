"""What is asked of the engine, and what it answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class GenerationRequest:
    prompt_token_ids: tuple[int, ...]
    max_tokens: int
    # 0 takes the likeliest token.
    temperature: float
    # The only source of chance: the same request with the same seed samples the same tokens.
    seed: int
    stop_token_ids: frozenset[int] = frozenset()
    # Asked after each token about all tokens so far; true ends the answer (stop strings).
    is_stopped: Callable[[Sequence[int]], bool] | None = None


@dataclass(frozen=True)
class Generation:
    """Sampled tokens, the one that ended the answer included, and their log-probabilities after temperature."""

    token_ids: list[int]
    logprobs: list[float]
    finish_reason: Literal["stop", "length"]
