"""Answers that must match a JSON schema: which tokens may come next, by llguidance. It is imported for such requests
alone. Shapes: V vocabulary."""

import json
import logging
from collections.abc import Callable, Iterator
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from temper_gpu.failures import TemperError
from temper_gpu.model.models import BaseModel

# Between the parts of an answer. A model may stay in blanks without end where it may write any number of them.
OPTIONS = {"whitespace_pattern": r"[\x20\x0A\x0D\x09]{0,32}"}

DEFINITIONS = ("$defs", "definitions")
# Keywords whose values are schemas: by name, in a list, or one.
NAMED = frozenset(["properties", "patternProperties"])
LISTED = frozenset(["anyOf", "oneOf", "allOf", "prefixItems"])
SINGLE = frozenset(["items", "additionalProperties", "not"])
# Limits for explaining a refused schema: parts that are tried to find the place, and characters of the reason.
MAX_TRIES, MAX_REASON = 200, 500

log = logging.getLogger(__name__)


class Constraint:
    """The state of one answer: its sampled text, and the tokens that may follow."""

    def __init__(self, matcher: Any, end_token_ids: frozenset[int]) -> None:
        self._matcher = matcher
        self._end_token_ids = sorted(end_token_ids)

    def begin_again(self) -> None:
        self._matcher.reset()

    def take(self, token_id: int) -> None:
        self._matcher.consume_token(token_id)

    def leave_out(self, logits_V: Tensor) -> None:
        """Masks tokens that the schema forbids. An answer that cannot continue ends."""
        allowed_V = self._allowed(len(logits_V))
        logits_V.masked_fill_(~torch.from_numpy(allowed_V).to(logits_V.device), -torch.inf)

    def _allowed(self, num_tokens: int) -> np.ndarray:
        if not self._matcher.is_stopped():
            bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
            allowed = np.unpackbits(bits, bitorder="little")[:num_tokens].astype(bool)
            if allowed.any():
                return np.pad(allowed, (0, num_tokens - len(allowed)))
        if self._matcher.is_error():
            log.warning("an answer cannot go on by its schema: %s", self._matcher.get_error())
        ends = np.zeros(num_tokens, dtype=bool)
        ends[self._end_token_ids] = True
        return ends


class Constraints:
    """Constraints of one base model. The first one reads the whole vocabulary, which takes a second, so it must not be
    made in an event loop."""

    def __init__(self, base: BaseModel) -> None:
        self._base = base

    def of(self, schema: str) -> Constraint:
        llguidance = import_llguidance()
        tokenizer = self._tokenizer
        grammar = grammar_of(schema)
        refusal = llguidance.LLMatcher.validate_grammar(grammar, tokenizer)
        if refusal:
            place = refused_place(json.loads(schema), self._refuses)
            reason = f"{' '.join(refusal.split())[:MAX_REASON]}, at {place}"
            rule = f"response_format must be a JSON schema that can be enforced, but is not ({reason})"
            raise TemperError("BadConfig", f"{rule}; change the schema")
        return Constraint(llguidance.LLMatcher(tokenizer, grammar), self._base.end_token_ids)

    def _refuses(self, schema: Any) -> bool:
        if not isinstance(schema, dict):
            return not isinstance(schema, bool)
        grammar = grammar_of(json.dumps(schema))
        return bool(import_llguidance().LLMatcher.validate_grammar(grammar, self._tokenizer))

    @cached_property
    def _tokenizer(self) -> Any:
        import_llguidance()
        from llguidance.hf import from_tokenizer

        try:
            ends = sorted(self._base.end_token_ids)
            return from_tokenizer(self._base.tokenizer, n_vocab=self._base.config.vocab_size, eos_token=ends)
        except ValueError as error:
            reason = f"the tokenizer of {self._base.name} cannot be used for it ({error})"
            raise TemperError("BadConfig", f"response_format must be text, because {reason}; leave it out") from error


def grammar_of(schema: str) -> str:
    return import_llguidance().LLMatcher.grammar_from_json_schema(schema, overrides=OPTIONS)


def refused_place(schema: Any, refuses: Callable[[Any], bool]) -> str:
    """A JSON pointer to the innermost part of a refused schema that is refused alone. A definition has the place of its
    reference."""
    shared = {name: schema[name] for name in DEFINITIONS if name in schema}
    place, num_left = "#", MAX_TRIES
    while True:
        for name, part in parts_of(schema):
            num_left -= 1
            if num_left >= 0 and refuses({**shared, **part} if isinstance(part, dict) else part):
                place, schema = f"{place}/{name}", part
                break
        else:
            return place


def parts_of(schema: Any) -> Iterator[tuple[str, Any]]:
    """The schemas in a schema, and where in it they are."""
    for keyword, value in schema.items() if isinstance(schema, dict) else ():
        if keyword in NAMED and isinstance(value, dict):
            yield from ((f"{keyword}/{escaped(name)}", part) for name, part in value.items())
        elif keyword in LISTED and isinstance(value, list):
            yield from ((f"{keyword}/{index}", part) for index, part in enumerate(value))
        elif keyword in SINGLE:
            yield keyword, value


def escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def import_llguidance() -> ModuleType:
    try:
        import llguidance
    except ImportError as error:
        rule = "response_format needs the package llguidance, which is not installed with this GPU worker"
        remedy = "install the versions in gpu-worker/requirements.lock, or leave it out"
        raise TemperError("BadConfig", f"{rule}; {remedy}") from error
    return llguidance
