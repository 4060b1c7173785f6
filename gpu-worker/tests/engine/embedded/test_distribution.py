"""What requests change of the distribution, against the processors of transformers. V vocabulary."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode
from transformers import (
    LogitsProcessor,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from temper_gpu.engine.embedded import distribution
from temper_gpu.engine.embedded.distribution import likeliest, shaped
from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.requests import Sequence
from temper_gpu.engine.interface import UNCHANGED, Distribution, GenerationRequest
from tests.engine.embedded.tiny import ask, ask_together, request

LOGITS_V = torch.randn(500, generator=torch.Generator().manual_seed(0)) * 3
PROMPT, SAMPLED = np.array([4, 4, 9]), np.array([7, 7, 7, 11])
EVERYTHING = Distribution(0.8, 40, 0.02, 0.3, 0.4, 1.2, ((3, 5.0), (8, -100.0)))


def shape(asked: Distribution, temperature: float = 1.0) -> torch.Tensor:
    return shaped(LOGITS_V, asked, temperature, PROMPT, SAMPLED)


def by_transformers(processor: LogitsProcessor, logits_V: torch.Tensor) -> torch.Tensor:
    ids = torch.from_numpy(np.concatenate([PROMPT, SAMPLED]))[None]
    return processor(ids, logits_V[None].clone())[0]


@pytest.mark.parametrize(
    ("asked", "processor"),
    [
        (Distribution(top_p=0.3), TopPLogitsWarper(0.3)),
        (Distribution(top_p=0.999), TopPLogitsWarper(0.999)),
        (Distribution(top_k=1), TopKLogitsWarper(1)),
        (Distribution(top_k=300), TopKLogitsWarper(300)),
        (Distribution(top_k=9999), TopKLogitsWarper(500)),
        (Distribution(min_p=0.05), MinPLogitsWarper(0.05)),
        (Distribution(repetition_penalty=1.3), RepetitionPenaltyLogitsProcessor(1.3)),
        (Distribution(repetition_penalty=0.7), RepetitionPenaltyLogitsProcessor(0.7)),
    ],
)
def test_each_parameter_does_what_transformers_does(asked: Distribution, processor: LogitsProcessor):
    assert torch.equal(shape(asked), by_transformers(processor, LOGITS_V))


def test_the_nucleus_is_that_of_a_whole_sort_however_few_tokens_are_looked_at_first(monkeypatch: pytest.MonkeyPatch):
    for first_look in (1, 7, 256):
        monkeypatch.setattr(distribution, "FIRST_LOOK", first_look)
        assert torch.equal(shape(Distribution(top_p=0.95)), by_transformers(TopPLogitsWarper(0.95), LOGITS_V))


class SumsInMainMemory(TorchFunctionMode):
    """CUDA's rule under deterministic algorithms: it has no kernel for running sums of floats."""

    def __init__(self) -> None:
        super().__init__()
        self._moved: list[torch.Tensor] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is torch.Tensor.cpu:
            self._moved.append(result)
        if func is torch.Tensor.cumsum:
            # pyrefly: ignore[bad-index]
            assert any(args[0] is moved for moved in self._moved), "cumsum has no deterministic kernel on CUDA"
        return result


def test_the_nucleus_is_summed_where_every_device_can():
    expected = shape(Distribution(top_p=0.9))
    with SumsInMainMemory():
        assert torch.equal(shape(Distribution(top_p=0.9)), expected)


def test_leaving_out_is_after_temperature():
    expected = by_transformers(TopPLogitsWarper(0.7), LOGITS_V / 2) * 2
    assert torch.equal(shape(Distribution(top_p=0.7), temperature=2.0), expected)
    assert torch.equal(shape(Distribution(top_p=0.7, top_k=1), temperature=0.0), LOGITS_V)


def test_penalties_count_the_answer_alone():
    changes = shape(Distribution(presence_penalty=0.5, frequency_penalty=0.25)) - LOGITS_V
    assert changes[[4, 7, 9, 11]].tolist() == pytest.approx([0, -1.25, 0, -0.75], abs=1e-6)


def test_a_bias_is_added():
    changes = shape(Distribution(logit_bias=((3, 5.0), (8, -100.0)))) - LOGITS_V
    assert changes.nonzero()[:, 0].tolist() == [3, 8]
    assert changes[[3, 8]].tolist() == pytest.approx([5, -100], abs=1e-4)


@pytest.mark.parametrize("top_p", [0.0, 0.4])
def test_equally_likely_tokens_stay_together(top_p: float):
    shaped_V = shaped(torch.tensor([2.0, 0.0, 2.0, -1.0]), Distribution(top_p=top_p), 1.0, PROMPT[:0], SAMPLED[:0])
    assert shaped_V.tolist() == [2, -torch.inf, 2, -torch.inf]


def test_numbers_that_are_none_stay_none():
    """They are found when a token is drawn, and the policy is named there."""
    none_V = torch.full((4,), torch.nan)
    assert shaped(none_V, Distribution(top_p=0.5, top_k=2, min_p=0.1), 1.0, PROMPT[:0], SAMPLED[:0]).isnan().all()


def test_the_likeliest_tokens_are_those_that_can_be_sampled():
    three = likeliest(shape(Distribution(top_k=3)), 0.5, 20)
    assert [token_id for token_id, _ in three] == LOGITS_V.topk(3).indices.tolist()
    assert sum(np.exp(logprob) for _, logprob in three) == pytest.approx(1)


def asking(seed: int, asked: Distribution, temperature: float = 1.0) -> GenerationRequest:
    return replace(request(seed, 12, 20, temperature), distribution=asked, num_top_logprobs=5)


def test_rows_that_ask_for_something_change_nothing_for_their_neighbours_nor_these_for_them(engine: EmbeddedEngine):
    plain = [request(seed, 12, 20) for seed in range(6)]
    changed = [asking(seed, EVERYTHING, 0.7 if seed % 2 else 0.0) for seed in range(6)]
    alone = [ask(engine, each) for each in [*plain, *changed]]
    assert ask_together(engine, [*plain, *changed]) == alone
    assert alone[:6] != alone[6:]


def test_the_defaults_sample_what_a_request_without_them_samples(engine: EmbeddedEngine):
    assert ask(engine, asking(3, Distribution())).token_ids == ask(engine, request(3, 12, 20)).token_ids
    assert not replace(UNCHANGED).changes


def test_log_probabilities_are_those_of_what_was_sampled_from(engine: EmbeddedEngine):
    answer = ask(engine, asking(5, Distribution(top_k=1)))
    assert answer.logprobs == [0.0] * len(answer.token_ids)
    assert answer.top_logprobs == [[(token_id, 0.0)] for token_id in answer.token_ids]
    free = ask(engine, asking(5, UNCHANGED))
    assert [len(each) for each in free.top_logprobs] == [5] * len(free.token_ids)
    for token_id, logprob, likely in zip(free.token_ids, free.logprobs, free.top_logprobs, strict=True):
        assert dict(likely).get(token_id, logprob) == pytest.approx(logprob)


def test_each_token_is_told_once_as_it_is_sampled(engine: EmbeddedEngine):
    told: list[tuple[int, float]] = []
    asked = asking(6, EVERYTHING)
    answer = ask(engine, replace(asked, on_token=lambda token_id, logprob, _: told.append((token_id, logprob))))
    assert told == list(zip(answer.token_ids, answer.logprobs, strict=True))
    assert answer == ask(engine, asked)


def test_a_request_that_begins_again_is_not_told_the_same_tokens_again():
    told: list[int] = []
    asked = replace(request(7, 3, 20), on_token=lambda token_id, *_: told.append(token_id))
    sequence = Sequence(None, asked, 0, lambda token_ids: "")
    for token_ids in ([1, 2], [1, 2, 3]):
        sequence.begin_again()
        for token_id in token_ids:
            sequence.add(token_id, -1.0)
    assert told == [1, 2, 3]
