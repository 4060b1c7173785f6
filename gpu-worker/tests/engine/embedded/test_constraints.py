"""Answers that match a schema, from a model with random weights, which never would by itself."""

import json
from dataclasses import replace
from typing import Any

import pytest

from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.requests import Sequence
from temper_gpu.engine.interface import Distribution, GenerationRequest
from temper_gpu.failures import TemperError
from tests.engine.embedded.tiny import ask, ask_together, request

END = frozenset([261])
SCHEMA = {
    "type": "object",
    "properties": {
        "cell": {"type": "integer", "minimum": 1, "maximum": 9},
        "piece": {"enum": ["x", "o"]},
        "free": {"type": "boolean"},
    },
    "required": ["cell", "piece", "free"],
    "additionalProperties": False,
}


def asking(seed: int, schema: Any = SCHEMA, **changes: Any) -> GenerationRequest:
    asked = replace(request(seed, 12, 200), schema=json.dumps(schema), stop_token_ids=END)
    # Blanks are allowed, and a model with random weights writes many.
    return replace(asked, distribution=Distribution(logit_bias=((9, -20), (10, -20), (13, -20), (32, -20))), **changes)


def text_of(token_ids: list[int]) -> str:
    return bytes(token_ids[:-1]).decode()


def test_an_answer_matches_its_schema_and_ends_with_it(engine: EmbeddedEngine):
    answers = ask_together(engine, [asking(seed, temperature=seed % 3) for seed in range(8)])
    for answer in answers:
        value = json.loads(text_of(answer.token_ids))
        assert (answer.finish_reason, set(value)) == ("stop", {"cell", "piece", "free"})
        assert 1 <= value["cell"] <= 9
        assert value["piece"] in ("x", "o")
        assert all(logprob <= 0 for logprob in answer.logprobs)
    assert len({text_of(answer.token_ids) for answer in answers}) > 1


def test_any_object_is_one(engine: EmbeddedEngine):
    answer = ask(engine, asking(1, {"type": "object"}, max_tokens=40))
    assert text_of(answer.token_ids).lstrip().startswith("{")


def test_neighbours_sample_what_they_sample_alone(engine: EmbeddedEngine):
    asked = [request(seed, 12, 20) if seed % 2 else asking(seed) for seed in range(6)]
    alone = [ask(engine, each) for each in asked]
    assert ask_together(engine, asked) == alone


def test_an_answer_that_begins_again_is_the_same(engine: EmbeddedEngine):
    asked = asking(2)
    answer = ask(engine, asked)
    sequence = Sequence(None, asked, 0, lambda token_ids: "")
    sequence.constraint = engine._constraints.of(str(asked.schema))
    for _ in range(2):
        sequence.begin_again()
        ends = [sequence.add(token_id, -1.0) for token_id in answer.token_ids]
        assert ends == [*[None] * (len(ends) - 1), "stop"]


BROKEN = {"type": "integre"}


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": 7}, "#"),
        ({"$ref": "#/nowhere"}, "#"),
        ({"type": "string", "pattern": "("}, "#"),
        ({"type": "object", "properties": 5}, "#"),
        ({"type": "object", "properties": {"a/b": {"type": "integer"}, "c/d": BROKEN}}, "#/properties/c~1d"),
        ({"$defs": {"cell": BROKEN}, "items": {"$ref": "#/$defs/cell"}}, "#/items"),
        (
            {"$defs": {"cell": {"type": "string"}}, "anyOf": [{"$ref": "#/$defs/cell"}, {"items": {"not": 5}}]},
            "#/anyOf/1/items/not",
        ),
    ],
)
def test_a_schema_that_is_none_is_refused_with_the_place(engine: EmbeddedEngine, schema: Any, place: str):
    with pytest.raises(TemperError, match="response_format must be a JSON schema that can be enforced") as caught:
        ask(engine, asking(1, schema))
    assert caught.value.type == "BadConfig"
    assert f", at {place}); change the schema" in str(caught.value)
    assert engine.health().waiting == 0
