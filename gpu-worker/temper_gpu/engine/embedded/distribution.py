"""Changes of a request to the probabilities that it is sampled from. Rows of other requests are not changed.

Each row is computed alone, so it does not depend on its neighbours. Shapes: S sampled rows, V vocabulary.
"""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from temper_gpu.engine.embedded.requests import Sequence
from temper_gpu.engine.interface import Distribution

# Tokens among which the nucleus of `top_p` is looked for first: sorting a whole vocabulary takes milliseconds.
FIRST_LOOK = 256


def shape_rows(logits_SV: Tensor, asked: Iterable[tuple[int, Sequence]]) -> None:
    """Turns each row into its request's distribution, and records the likeliest tokens. Runs before sampling."""
    for row, sequence in asked:
        request = sequence.request
        if sequence.constraint is not None:
            sequence.constraint.leave_out(logits_SV[row])
        if request.distribution.changes:
            sampled = np.array(sequence.token_ids, dtype=np.int64)
            logits_SV[row] = shaped(logits_SV[row], request.distribution, request.temperature, sequence.prompt, sampled)
        if request.num_top_logprobs:
            sequence.top_logprobs.append(likeliest(logits_SV[row], request.temperature, request.num_top_logprobs))


def shaped(
    logits_V: Tensor, asked: Distribution, temperature: float, prompt: np.ndarray, sampled: np.ndarray
) -> Tensor:
    """Applies `Distribution` in its order. At temperature 0 no token is left out, because the likeliest is taken
    anyway."""
    logits_V = logits_V.to(torch.float32, copy=True)
    if asked.logit_bias:
        ids, biases = zip(*asked.logit_bias, strict=True)
        logits_V[list(ids)] += torch.tensor(biases, dtype=torch.float32, device=logits_V.device)
    if asked.repetition_penalty != 1:
        _penalise_repetition(logits_V, asked.repetition_penalty, np.concatenate([prompt, sampled]))
    if asked.frequency_penalty or asked.presence_penalty:
        ids, counts = np.unique(sampled, return_counts=True)
        penalties = asked.frequency_penalty * counts + asked.presence_penalty
        logits_V[torch.from_numpy(ids)] -= torch.from_numpy(penalties).to(logits_V)
    if temperature > 0 and asked.leaves_out:
        probs_V = (logits_V / temperature).softmax(-1)
        logits_V.masked_fill_(probs_V < least_probability(probs_V, asked), -torch.inf)
    return logits_V


def _penalise_repetition(logits_V: Tensor, penalty: float, seen: np.ndarray) -> None:
    ids = torch.from_numpy(np.unique(seen)).to(logits_V.device)
    logits_of_seen = logits_V[ids]
    logits_V[ids] = torch.where(logits_of_seen > 0, logits_of_seen / penalty, logits_of_seen * penalty)


def least_probability(probs_V: Tensor, asked: Distribution) -> float:
    """The least probability of tokens that stay. Equally probable tokens stay or go together."""
    least = asked.min_p * float(probs_V.max()) if asked.min_p else 0.0
    if 0 < asked.top_k < len(probs_V):
        least = max(least, float(probs_V.topk(asked.top_k).values[-1]))
    return _least_of_nucleus(probs_V, asked.top_p, least) if asked.top_p < 1 else least


def _least_of_nucleus(probs_V: Tensor, top_p: float, least: float) -> float:
    """The nucleus: as few of the likeliest tokens as together have the share `top_p` of what is left."""
    wanted = top_p * float(probs_V.masked_fill(probs_V < least, 0).sum(dtype=torch.float64))
    for count in (FIRST_LOOK, len(probs_V)):
        # The sum runs on the CPU: CUDA has no deterministic kernel for running sums of floats.
        likeliest_first = probs_V.topk(min(count, len(probs_V))).values.cpu()
        reached = (likeliest_first.cumsum(-1, dtype=torch.float64) >= wanted).nonzero()
        if len(reached):
            return max(least, float(likeliest_first[reached[0]]))
    return least  # by rounding alone


def likeliest(logits_V: Tensor, temperature: float, count: int) -> list[tuple[int, float]]:
    """Fewer where no more tokens can be sampled. At temperature 0 as of temperature 1, as `sample` has it."""
    logprobs_V = (logits_V.float() / (temperature or 1.0)).log_softmax(-1)
    found = logprobs_V.topk(min(count, len(logprobs_V)))
    pairs = zip(found.indices.tolist(), found.values.tolist(), strict=True)
    return [(token_id, logprob) for token_id, logprob in pairs if logprob > -torch.inf]
