"""Tokens of a text that continues other text.

Tokenizers like SentencePiece's put a blank before the first word of a text. A template does not write that blank in the
middle of a turn, and a model that continues the prompt would not begin with it.
"""

from collections.abc import Callable
from functools import cached_property

from temper_gpu.failures import TemperError

# Texts to put before another one: at least one of them stays a separate token with every tokenizer.
ANCHORS = ("\n", "1", "-", "。")


class Continuation:
    def __init__(self, name: str, tokenise: Callable[[str], list[int]]) -> None:
        self._name = name
        self._tokenise = tokenise

    @cached_property
    def is_needed(self) -> bool:
        """Whether the tokenizer encodes the beginning of a text differently from its continuation."""
        return any(self._behind(anchor, "a") not in (None, self._tokenise("a")) for anchor in ANCHORS)

    def __call__(self, text: str) -> list[int]:
        if not text or not self.is_needed:
            return self._tokenise(text)
        found = (self._behind(anchor, text) for anchor in ANCHORS)
        ids = next((each for each in found if each is not None), None)
        if ids is None:
            raise TemperError(
                "BadConfig",
                f"the tokenizer of {self._name} must write {text[:40]!r} in the middle of a turn, but joins it with "
                "whatever is before it; pass another template by --chat-template",
            )
        return ids

    def _behind(self, anchor: str, text: str) -> list[int] | None:
        before, both = self._tokenise(anchor), self._tokenise(anchor + text)
        return both[len(before) :] if both[: len(before)] == before else None
