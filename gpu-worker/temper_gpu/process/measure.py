"""How far the answers of a deployment are from a committed policy.

Gets the token ids of recorded prompts with the text, and where there are some the log-probabilities, that a deployment
answered with at temperature 0. Answers the distance of these answers from the policy, from its base
model and, unless the policy explains them, from what else may have been deployed (model/explanations.py). Reads the
store, and writes nothing to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from temper_gpu.contract import GivenAnswer, MeasureInput
from temper_gpu.failures import TemperError
from temper_gpu.process.export import find_policy, load_trained_base

if TYPE_CHECKING:
    from torch import Tensor

    from temper_gpu.model.explanations import Answer, Scored
    from temper_gpu.model.models import BaseModel

# Below that share of what the adapter changes, the rest is rounding: nothing else needs to explain it.
CLEAR_SHARE = 0.02
# Shares no further apart are the same one: log-probabilities do not change quite in proportion to an adapter's scale.
SAME_SHARE = 0.1
# A greedy token that is less likely than the likeliest by no more than that is a tie, decided by rounding.
TIE = 1e-3


def run(work: MeasureInput) -> dict[str, Any]:
    source = find_policy(work.store, work.policy)
    policy = source.read()
    import torch

    from temper_gpu.model.explanations import checkpoint_and_base, score, without_parts
    from temper_gpu.model.lora import Adapter
    from temper_gpu.process.host import choose_device

    base = load_trained_base(work.models, source, choose_device(work.device))
    answers = [read_answer(base, given) for given in work.answers]
    if not any(answer.token_ids or answer.has_ended for answer in answers):
        raise TemperError("BadConfig", "answers of a deployment must hold text, but all are empty; check its model")
    end_ids = sorted(id for id in base.end_token_ids if id < base.vocabulary_size)
    told = [
        None if answer.logprobs is None else torch.tensor(answer.logprobs, dtype=torch.float64) for answer in answers
    ]
    explanations = checkpoint_and_base(policy)
    errors = [errors_of(told, score(base, each.policy, answers, end_ids)) for each in explanations]
    measures = [error.measure(each.kind, each.of, errors[0]) for each, error in zip(explanations, errors, strict=True)]
    checkpoint, plain = errors
    share = found_share(checkpoint, plain)
    if isinstance(policy, Adapter) and not is_clear(checkpoint, plain):
        for each in without_parts(policy):
            error = errors_of(told, score(base, each.policy, answers, end_ids))
            measures.append(error.measure(each.kind, each.of, checkpoint))
        if share is not None and min(abs(share), abs(share - 1)) > SAME_SHARE:
            measures.append(checkpoint.at_scale(share, plain).measure("scale", share, checkpoint))
    return {
        "tokens": sum(len(answer.token_ids) for answer in answers),
        "scored": 0 if checkpoint.logprobs_T is None else len(checkpoint.logprobs_T),
        "sameTexts": checkpoint.num_same_texts,
        "share": share,
        "measures": measures,
    }


def read_answer(base: "BaseModel", given: GivenAnswer) -> "Answer":
    """Log-probabilities count only if the deployment's tokens are those of the tokenizer."""
    from temper_gpu.model.explanations import Answer

    ids: list[int] = base.tokenizer.encode(given.text, add_special_tokens=False)
    # Some servers tell the token that ended the answer.
    has_ended = given.has_ended or (len(ids) > 0 and ids[-1] in base.end_token_ids)
    while ids and ids[-1] in base.end_token_ids:
        ids.pop()
    scores = given.scores
    is_aligned = scores is not None and len(ids) <= len(scores) <= len(ids) + 1
    logprobs = tuple(each.logprob for each in scores[: len(ids)]) if scores is not None and is_aligned else None
    return Answer(tuple(given.prompt_token_ids), tuple(ids), logprobs, has_ended)


@dataclass(frozen=True)
class Errors:
    """How far the answers are from a policy. `logprobs_T`: differences, of the answers that came with some; None: no
    answer did."""

    logprobs_T: "Tensor | None"
    regrets_T: "Tensor"
    num_same_texts: int

    @property
    def each_T(self) -> "Tensor":
        return self.regrets_T if self.logprobs_T is None else self.logprobs_T.abs()

    def measure(self, kind: str, of: str | float | None, checkpoint: "Errors") -> dict[str, Any]:
        """`distance`: mean difference of log-probabilities, in nats; None: none were given. `regret`: mean regret of
        greedy tokens, in nats. `lead`: how many standard errors it is nearer to the answers than the checkpoint."""
        distance = None if self.logprobs_T is None else float(self.logprobs_T.abs().mean())
        regret, lead = float(self.regrets_T.mean()), self.lead_over(checkpoint)
        return {"kind": kind, "of": of, "distance": distance, "regret": regret, "lead": lead}

    def lead_over(self, checkpoint: "Errors") -> float:
        """Paired over tokens: positive if it explains them better than the checkpoint."""
        gain_T = checkpoint.each_T - self.each_T
        if len(gain_T) < 2 or not gain_T.any():
            return 0.0
        return float(gain_T.mean() / (gain_T.std() / len(gain_T) ** 0.5).clamp(min=1e-12))

    def at_scale(self, scale: float, base: "Errors") -> "Errors":
        """Of the policy with so many times its change of log-probabilities."""
        assert self.logprobs_T is not None
        assert base.logprobs_T is not None
        return replace(self, logprobs_T=scale * self.logprobs_T + (1 - scale) * base.logprobs_T)


def errors_of(told: "Sequence[Tensor | None]", scored: "Sequence[Scored]") -> Errors:
    import torch

    pairs = [(one_T, each.logprobs_T) for one_T, each in zip(told, scored, strict=True) if one_T is not None]
    return Errors(
        torch.cat([one_T - own_T for one_T, own_T in pairs]) if pairs else None,
        torch.cat([each.regrets_T for each in scored]),
        sum(not (each.regrets_T > TIE).any() for each in scored),
    )


def is_clear(checkpoint: Errors, base: Errors) -> bool:
    """Whether the checkpoint explains the answers so well that nothing else can be meant."""
    own, other = float(checkpoint.each_T.sum()), float(base.each_T.sum())
    return other > 0 and own <= CLEAR_SHARE * other


def found_share(checkpoint: Errors, base: Errors) -> float | None:
    """The share of the policy's change that was found; None if that cannot be told."""
    if checkpoint.logprobs_T is None or base.logprobs_T is None:
        return None
    from temper_gpu.model.change_kept import ChangeKept

    kept = ChangeKept()
    kept.add(base.logprobs_T - checkpoint.logprobs_T, base.logprobs_T, 0)
    return kept.share
