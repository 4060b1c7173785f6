"""Deployments that went wrong, and how their answers are explained: by a plain model that answers in their place."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from temper_gpu.contract import GivenAnswer
from temper_gpu.model.explanations import only_modules
from temper_gpu.model.lora import Adapter, adapted_modules
from temper_gpu.model.merging import merge
from temper_gpu.model.models import BaseModel
from temper_gpu.process import measure
from tests.engine.embedded.tiny import tiny_base
from tests.process.programs import answered
from tests.process.test_export import Make, make

__all__ = ["make"]

PROMPTS, TOKENS = 8, 12


@dataclass(frozen=True)
class Deployment:
    """The policy `demo@1`, and what is deployed in its name."""

    base: BaseModel
    adapter: Adapter
    place: dict[str, str]

    def measured(self, answers: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
        assert answered("measure", **self.place, answers=answers, device="cpu") == 0
        return json.loads(capsys.readouterr().out)

    def answers(self, model: Any, noise: float = 0.0) -> list[dict[str, Any]]:
        return [self.answer(model, seed, noise) for seed in range(PROMPTS)]

    def answer(self, model: Any, seed: int, noise: float = 0.0) -> dict[str, Any]:
        """The likeliest printable tokens, with their log-probabilities."""
        prompt = list(f"{seed}x34o6789".encode())
        ids, scores = list(prompt), []
        generator = torch.Generator().manual_seed(seed)
        for _ in range(TOKENS):
            logprobs = next_logprobs(model, ids)
            ids.append(32 + int(logprobs[32:127].argmax()))
            error = noise * float(torch.randn((), generator=generator))
            scores.append({"token": chr(ids[-1]), "logprob": float(logprobs[ids[-1]]) + error})
        text = "".join(map(chr, ids[len(prompt) :]))
        return {"promptTokenIds": prompt, "text": text, "scores": scores, "hasEnded": False}

    def greedy_text(self, model: Any, seed: int) -> dict[str, Any]:
        prompt = self.base.tokenizer.apply_chat_template(
            [{"role": "user", "content": f"{seed}x34o6789"}], add_generation_prompt=True, return_dict=False
        )
        ids = list(prompt)
        while len(ids) < len(prompt) + TOKENS and ids[-1] not in self.base.end_token_ids:
            ids.append(int(next_logprobs(model, ids).argmax()))
        answer = [id for id in ids[len(prompt) :] if id not in self.base.end_token_ids]
        text = self.base.tokenizer.decode(answer)
        return {"promptTokenIds": prompt, "text": text, "scores": None, "hasEnded": len(answer) < TOKENS}


def next_logprobs(model: Any, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0, -1].log_softmax(-1)


@pytest.fixture
def deployment(make: Make) -> Deployment:
    made = make(scale=0.03)
    adapter = made.adapter.read()
    assert isinstance(adapter, Adapter)
    place = {"store": made.store.uri, "policy": made.policy, "models": str(made.models)}
    return Deployment(made.base, adapter, place)


def nearest(measured: dict[str, Any]) -> tuple[str, Any]:
    by = "regret" if measured["measures"][0]["distance"] is None else "distance"
    best = min(measured["measures"], key=lambda each: each[by])
    return best["kind"], best["of"]


def without(leaf: str) -> Callable[[Adapter], Adapter]:
    return lambda adapter: only_modules(adapter, [name for name in adapted_modules(adapter) if not name.endswith(leaf)])


def scaled(factor: float) -> Callable[[Adapter], Adapter]:
    return lambda adapter: replace(adapter, alpha=adapter.alpha * factor)


def attention_of(adapter: Adapter) -> list[str]:
    return [name for name in adapted_modules(adapter) if "self_attn" in name]


WRONG = {
    "scaled twice": (scaled(2.0), ("scale", pytest.approx(2.0, rel=0.15))),
    "alpha for alpha / r": (scaled(4.0), ("scale", pytest.approx(4.0, rel=0.15))),
    "no alpha": (scaled(0.5), ("scale", pytest.approx(0.5, rel=0.15))),
    "no down_proj": (without("down_proj"), ("missing", "down_proj")),
    "no mlp": (lambda adapter: only_modules(adapter, attention_of(adapter)), ("missing", "mlp")),
}


@pytest.mark.parametrize("change", WRONG)
def test_what_was_deployed_instead_is_named(deployment: Deployment, capsys: pytest.CaptureFixture[str], change: str):
    """Also beside the noise of a type that rounds."""
    make, expected = WRONG[change]
    model = merge(deployment.base, make(deployment.adapter), torch.float32).model
    found = deployment.measured(deployment.answers(model, noise=0.02), capsys)
    assert nearest(found) == expected
    assert max(each["lead"] for each in found["measures"]) > 3


def test_the_checkpoint_explains_its_own_answers_alone(deployment: Deployment, capsys: pytest.CaptureFixture[str]):
    model = merge(deployment.base, deployment.adapter, torch.float32).model
    found = deployment.measured(deployment.answers(model), capsys)
    assert [each["kind"] for each in found["measures"]] == ["checkpoint", "base"]
    assert found["measures"][0]["distance"] < 1e-5
    assert found["share"] == pytest.approx(1, abs=1e-4)
    assert (found["tokens"], found["scored"]) == (PROMPTS * TOKENS, PROMPTS * TOKENS)


def test_a_lost_adapter_is_the_base_model_also_by_its_text_alone(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
):
    model = deployment.base.instantiate("sdpa")
    assert nearest(deployment.measured(deployment.answers(model), capsys)) == ("base", None)
    by_text = deployment.measured([deployment.greedy_text(model, seed) for seed in range(PROMPTS)], capsys)
    assert by_text["measures"][0]["distance"] is None
    assert by_text["share"] is None
    assert nearest(by_text) == ("base", None)
    assert by_text["measures"][1]["regret"] == 0
    assert by_text["sameTexts"] < PROMPTS


def test_another_base_model_is_far_from_every_explanation(deployment: Deployment, capsys: pytest.CaptureFixture[str]):
    found = deployment.measured(deployment.answers(tiny_base("qwen2").instantiate("sdpa")), capsys)
    assert min(each["distance"] for each in found["measures"]) > 0.5


def test_tokens_of_another_tokenizer_are_compared_by_their_text(deployment: Deployment):
    given = deployment.answer(deployment.base.instantiate("sdpa"), 0)
    merged = [{"token": "ab", "logprob": -1.0}] * (TOKENS // 2)
    read = measure.read_answer(deployment.base, GivenAnswer.model_validate({**given, "scores": merged}))
    assert read.logprobs is None
    assert len(read.token_ids) == TOKENS


def test_the_end_of_an_answer_is_compared_whether_it_is_told_or_not(deployment: Deployment):
    given = {"promptTokenIds": [65], "scores": None}
    ended = GivenAnswer.model_validate({**given, "text": "7<|end|>", "hasEnded": False})
    plain = GivenAnswer.model_validate({**given, "text": "7", "hasEnded": True})
    assert measure.read_answer(deployment.base, ended) == measure.read_answer(deployment.base, plain)


def test_answers_without_text_explain_nothing(deployment: Deployment, capsys: pytest.CaptureFixture[str]):
    empty = {"promptTokenIds": [65], "text": "", "scores": None, "hasEnded": False}
    assert answered("measure", **deployment.place, answers=[empty], device="cpu") == 2
    assert "must hold text, but all are empty" in capsys.readouterr().err


def test_an_input_of_another_form_is_told_without_its_prompts(capsys: pytest.CaptureFixture[str]):
    wrong = {"promptTokenIds": [65], "text": "a long prompt " * 500, "scores": None}
    assert answered("measure", store="file:///s", policy="demo@1", answers=[wrong]) == 2
    told = capsys.readouterr().err
    assert "BadConfig: the input of measure must be right, but answers.0.hasEnded: Field required" in told
    assert len(told) < 300
