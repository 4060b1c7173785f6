"""The text of an assistant: thoughts, an answer and calls; while it is sampled, the certain part of them."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from temper_gpu.server import harmony
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.sampling import Sampling, before_stop
from temper_gpu.server.thoughts import split_thoughts
from temper_gpu.server.tool_calls import ToolCall
from temper_gpu.server.tool_choice import ToolChoice

# Replacement character of incomplete or invalid bytes.
UNFINISHED = "\ufffd"


@dataclass(frozen=True)
class Answer:
    # None: no thoughts, or thoughts that stay in the content.
    thoughts: str | None
    content: str | None
    calls: tuple[ToolCall, ...] = ()
    num_malformed: int = 0


@dataclass(frozen=True)
class Reading:
    """Reads the text of one request's answers: thoughts, content, tool calls."""

    prompts: Prompts
    sampling: Sampling
    # None: without tools, everything except thoughts is the answer.
    tool_choice: ToolChoice | None
    separates_thoughts: bool
    # The prompt ends within thoughts.
    is_thinking: bool

    def whole(self, text: str) -> Answer:
        opening = "" if self.tool_choice is None else self.prompts.shown_opening(self.tool_choice)
        thoughts, rest = (None, text) if opening else self._split(text)
        if self.tool_choice is None:
            return Answer(thoughts, rest)
        form = self.prompts.tools.form
        parsed = form.parse(opening + (text if form is harmony.HARMONY_TOOLS else rest))
        calls = parsed.calls[:1] if self._is_single else parsed.calls
        return Answer(thoughts, parsed.content, calls, parsed.num_malformed)

    def num_thought_tokens(self, token_ids: Sequence[int]) -> int:
        """Number of tokens before the answer itself; 0 if thoughts are not separated."""
        decode = self.prompts.decode
        length = len(self.whole(decode(list(token_ids))).thoughts or "")
        if length == 0:
            return 0

        def has_all(count: int) -> bool:
            # Half a character is none yet.
            thoughts, _ = self._split(decode(list(token_ids[:count])).rstrip(UNFINISHED))
            return len(thoughts or "") >= length

        return bisect_left(range(len(token_ids)), True, key=has_all)

    def certain(self, text: str) -> tuple[str, str]:
        """Thoughts and answer so far, without text that later tokens may change."""
        if self.tool_choice is not None and self.tool_choice.is_opened:
            return "", ""
        thoughts, rest = self._split(safe_text(text, self.sampling, self._tags))
        rest = before_stop(rest, self._starts)
        # Blanks before thoughts or a call may turn out to be no part of the answer.
        return (thoughts or "").rstrip("\n"), rest if rest.strip() else ""

    @property
    def _is_single(self) -> bool:
        """Also where the template could not write several of them again."""
        return self.tool_choice is not None and (self.tool_choice.is_single or self.prompts.tools.writes_one_call)

    @property
    def _tags(self) -> tuple[str, ...]:
        thoughts = self.prompts.thoughts if self.separates_thoughts else None
        tags = () if thoughts is None else (thoughts.start, thoughts.end)
        return (*tags, *self._starts, *(harmony.TAGS if self.prompts.is_harmony else ()))

    @property
    def _starts(self) -> tuple[str, ...]:
        return () if self.tool_choice is None else self.prompts.tools.form.starts

    def _split(self, text: str) -> tuple[str | None, str]:
        if self.prompts.is_harmony:
            thoughts, told = harmony.split_channels(text)
            return (thoughts if self.separates_thoughts else None), told
        form = self.prompts.thoughts if self.separates_thoughts else None
        return split_thoughts(text, form, self.is_thinking)


def safe_text(text: str, sampling: Sampling, tags: tuple[str, ...] = ()) -> str:
    """The certain beginning of the text: it ends before a stop string, and before anything that may become one or a
    tag."""
    ended = before_stop(text, sampling.stop)
    if ended != text:
        return ended
    return text[: len(text) - max((overlap(text, end) for end in (*sampling.stop, *tags)), default=0)]


def overlap(text: str, end: str) -> int:
    """Number of characters at the end of the text that may begin `end`: at most all but one of them."""
    start = text.find(end[0], max(0, len(text) - len(end) + 1))
    while start >= 0 and not end.startswith(text[start:]):
        start = text.find(end[0], start + 1)
    return len(text) - start if start >= 0 else 0
