"""The engine against the model called plainly, without cache, batch or blocks. B rows, T tokens, V vocabulary."""

import pytest
import torch
from transformers import PreTrainedModel

from temper_gpu.model.models import BaseModel
from tests.engine.embedded.tiny import ask_together, open_engine, request, tiny_base

pytestmark = pytest.mark.numerics

LENGTHS = (1, 2, 12, 15, 16, 17, 33, 64, 65, 130, 300)


def greedy(model: PreTrainedModel, prompt: tuple[int, ...], answer: list[int]) -> tuple[list[int], list[float]]:
    """The likeliest token after the prompt, and after each token of the answer but the last, in one call.

    They are the answer if and only if it is the greedy one: its first token is, and so each next.
    """
    ids = torch.tensor([[*prompt, *answer]])
    logprobs_TV = model(ids, use_cache=False).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
    logprobs_T, tokens_T = logprobs_TV.max(-1)
    return tokens_T.tolist(), logprobs_T.tolist()


@pytest.mark.parametrize("kind", ["qwen2", "odd"])
def test_greedy_answers_are_those_of_the_plain_model(kind: str):
    base = tiny_base(kind)
    engine, model = open_engine(base, max_pass_tokens=512), base.instantiate("eager")
    requests = [request(length, length, 20, temperature=0) for length in LENGTHS]
    for asked, answer in zip(requests, ask_together(engine, requests), strict=True):
        ids, logprobs = greedy(model, asked.prompt_token_ids, answer.token_ids)
        assert (answer.token_ids, len(ids)) == (ids, 20)
        assert answer.logprobs == pytest.approx(logprobs, abs=1e-4)
    engine.close()


def test_log_probabilities_are_taken_after_temperature(base: BaseModel):
    engine = open_engine(base)
    asked = request(7, 20, 8, temperature=0.5)
    [answer] = ask_together(engine, [asked])
    ids = torch.tensor([[*asked.prompt_token_ids, *answer.token_ids]])
    logprobs_TV = (base.instantiate("eager")(ids).logits[0, 19:-1] / 0.5).log_softmax(-1)
    expected = logprobs_TV.gather(1, torch.tensor(answer.token_ids)[:, None])[:, 0].tolist()
    assert answer.logprobs == pytest.approx(expected, abs=1e-4)
    engine.close()
