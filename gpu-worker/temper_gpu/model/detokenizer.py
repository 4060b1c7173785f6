"""Token ids to the text of an answer: what stop strings are searched in, and what a client reads."""

from collections.abc import Callable
from typing import Any

# Around a call of a tool, in what a model writes.
START, END = "<tool_call>", "</tool_call>"
# Other control tokens of answers, by family: calls, and thoughts before them.
STRUCTURE = frozenset(
    [
        *(START, END, "<think>", "</think>"),
        *("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]"),
        *("<start_function_call>", "<end_function_call>", "<escape>"),
        *("<|tool_call>", "<tool_call|>", '<|"|>', "<|channel>", "<channel|>"),
        "<|python_tag|>",
    ]
)
# gpt-oss writes several messages in one answer. Other families have some of these tokens, too, and end turns with them.
HARMONY = frozenset(["<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|return|>", "<|call|>"])
# Numbers of last tokens: those that decode in microseconds, and those that contain the newest character as a whole.
LONG_SPAN, NEWEST = 256, 8


class Detokenizer:
    """Special tokens are left out of the text, but for those that say what is a call or a thought."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        # The Rust tokenizer beneath is thirty microseconds cheaper a call than its wrapper; slow tokenizers have none.
        self._backend = getattr(tokenizer, "backend_tokenizer", None)
        self._hidden = hidden_ids(tokenizer)

    def decode(self, token_ids: list[int]) -> str:
        if self._hidden:
            token_ids = [token_id for token_id in token_ids if token_id not in self._hidden]
        tokenizer = self._tokenizer if self._backend is None else self._backend
        return tokenizer.decode(token_ids, skip_special_tokens=not self._hidden)


def hidden_ids(tokenizer: Any) -> frozenset[int]:
    """Special tokens but those that structure an answer, where a tokenizer has some; empty otherwise."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    special = {token_id: token.content for token_id, token in added.items() if token.special}
    shown = STRUCTURE | (HARMONY if is_harmony(tokenizer) else frozenset())
    if shown.isdisjoint(special.values()):
        return frozenset()
    return frozenset(token_id for token_id, text in special.items() if text not in shown)


def is_harmony(tokenizer: Any) -> bool:
    texts = {token.content for token in getattr(tokenizer, "added_tokens_decoder", {}).values() if token.special}
    return {"<|channel|>", "<|message|>"} <= texts


def stop_check(stops: tuple[str, ...], decode: Callable[[list[int]], str]) -> Callable[[list[int]], bool] | None:
    """A check to run after each token. It decodes no more of the end than the longest stop string can span."""
    if not stops:
        return None
    # A token is at least one byte, a character at most four.
    span = 4 * max(map(len, stops)) + 8
    ends = tuple({stop[-1] for stop in stops})

    def is_stopped(token_ids: list[int]) -> bool:
        # A stop string that was not there before ends with the newest token. Most tokens are no end of a long one.
        if span > LONG_SPAN and not any(map(decode(token_ids[-NEWEST:]).__contains__, ends)):
            return False
        tail = decode(token_ids[-span:])
        return any(stop in tail for stop in stops)

    return is_stopped
