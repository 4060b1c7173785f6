"""Control tokens in input are text: no tool result, page or question can end its turn or begin another one.

Chat templates render conversations as text, in which a tokenizer takes any `<|im_end|>` for the end of a turn. So
control tokens in messages are sealed before the template sees them, and the text around them is encoded by a tokenizer
without control tokens. All other ids stay the same, because tokenizers split text at control tokens first.
"""

import itertools
import re
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import Any

from tokenizers import Tokenizer

from temper_gpu.failures import TemperError
from temper_gpu.model.detokenizer import END, START
from temper_gpu.server.continuation import Continuation

# A seal is MARK and two characters: which token, and where. A MARK in a request is sealed too. All are from a plane
# without characters, which no template and no tokenizer knows.
MARK, FIRST = "\U0010fffd", 0x100000
SEAL = re.compile(f"{MARK}(.)(.)", re.DOTALL)
# Number of sealed places, by which messages are counted.
TOOLS, LAST = 0, 0xFFF0
# Pattern of control tokens. Tokens that were added for words or blanks do not match.
TAG = re.compile(r"<\S+>|\[\S+\]")


class ControlTokens:
    def __init__(self, name: str, tokenizer: Any, tokenise: Callable[[str], list[int]]) -> None:
        self._name = name
        self._backend = getattr(tokenizer, "backend_tokenizer", None)
        self._tokenise = tokenise
        self._tokenise_behind = Continuation(name, tokenise)
        self._as_text_behind = Continuation(name, self._plain_ids)
        added = {i: token for i, token in getattr(tokenizer, "added_tokens_decoder", {}).items() if token.content}
        controls = {i: token for i, token in added.items() if token.special or TAG.fullmatch(token.content)}
        self.ids = frozenset(controls)
        texts = [MARK, *sorted({token.content for token in controls.values()})]
        self._seals = {text: chr(FIRST + index) for index, text in enumerate(texts)}
        self._sealed = {seal: text for text, seal in self._seals.items()}
        # Speakers may write tags of calls and thoughts: models sample them, and instructions show them.
        special = {token.content for token in controls.values() if token.special} - {START, END}
        self._of_speakers = any_of([MARK, *special])
        self._of_tools = any_of(texts)
        self._added = any_of(token.content for token in added.values())

    def seal_message(self, index: int, message: dict[str, Any]) -> dict[str, Any]:
        """Seals a message. Tool results are foreign text, so no tag has a meaning in them."""
        pattern = self._of_tools if message.get("role") == "tool" else self._of_speakers
        return self._seal(message, pattern, chr(FIRST + min(index + 1, LAST)))

    def seal_tools(self, tools: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
        return self._seal(tools, self._of_tools, chr(FIRST + TOOLS))

    def seal_variables(self, variables: dict[str, Any]) -> dict[str, Any]:
        return self._seal(variables, self._of_tools, chr(FIRST + TOOLS))

    def encode(self, rendered: str, continues: bool = False) -> list[int]:
        """`continues`: the text follows other text, in the middle of a turn."""
        tokenise = self._tokenise_behind if continues else self._tokenise
        if MARK not in rendered:
            return tokenise(rendered)
        runs = itertools.groupby(self._added.split(rendered), key=lambda piece: MARK in piece)
        ids: list[int] = []
        for index, (is_sealed, run) in enumerate(runs):
            # Runs after the first follow an added token.
            continues = self._blanks_once if index > 0 else continues
            encode = partial(self._as_text, continues) if is_sealed else self._tokenise if index > 0 else tokenise
            ids += encode("".join(run))
        return ids

    @cached_property
    def _blanks_once(self) -> bool:
        """Whether the tokenizer encodes text after an added token differently from a whole text."""
        added = next((token for token in self._sealed.values() if token != MARK), None)
        return added is not None and self._tokenise(f"{added}a") != self._tokenise(added) + self._tokenise("a")

    def _seal(self, value: Any, pattern: re.Pattern[str], place: str) -> Any:
        if isinstance(value, str):
            return pattern.sub(lambda found: MARK + self._seals[found[0]] + place, value)
        if isinstance(value, list):
            return [self._seal(item, pattern, place) for item in value]
        if isinstance(value, dict):
            return {self._seal(key, pattern, place): self._seal(item, pattern, place) for key, item in value.items()}
        return value

    def _as_text(self, continues: bool, sealed: str) -> list[int]:
        text = SEAL.sub(lambda seal: self._sealed[seal[1]], sealed)
        tokenise = self._as_text_behind if continues else self._plain_ids
        ids = tokenise(text) if self._plain else None
        if ids is not None and self.ids.isdisjoint(ids):
            return ids
        token, place = SEAL.findall(sealed)[0]
        subject = f"message {ord(place) - FIRST - 1}" if ord(place) > FIRST + TOOLS else "tools"
        rule = f"{subject} must not contain {self._sealed[token]}"
        reason = f"the tokenizer of {self._name} encodes it only as a control token"
        raise TemperError("BadConfig", f"{rule}: {reason}; remove it")

    def _plain_ids(self, text: str) -> list[int]:
        """Encodes without Python's lock, like `Prompts.tokenise`."""
        assert self._plain is not None
        return self._plain.encode_batch_fast([text], add_special_tokens=False)[0].ids

    @cached_property
    def _plain(self) -> Tokenizer | None:
        """The same tokenizer without added tokens; None beneath one that is written in Python."""
        if self._backend is None:
            return None
        # It shares the vocabulary: a copy of a large one would take a second, in which the server answers nobody.
        plain = Tokenizer(self._backend.model)
        plain.normalizer, plain.pre_tokenizer = self._backend.normalizer, self._backend.pre_tokenizer
        return plain


def any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """The longest first, as tokenizers choose. In a group, so that splitting keeps what it splits at."""
    alternatives = "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True))
    return re.compile(f"({alternatives or '(?!)'})")
