"""Explanations of answers that a deployment gave: the checkpoint itself, and what may have been deployed in its place.

A deployment that has lost its adapter, scales it otherwise or leaves out some of its modules still answers, only less
well. So each of these policies is made here from the same weights, and the answers are scored by all of them. The
deployment is explained by the nearest one. An adapter at another scale is told by the share of its change that the
answers show (process/measure.py).

What is compared: log-probabilities, where the deployment gave them; otherwise the regret of each token of its greedy
answers, which is how much less probable it is than the likeliest token in its place. Regrets are zero exactly if the
deployment's greedy text is the policy's own.

Shapes: T tokens of an answer (and one more for its end), V vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from temper_gpu.model.full_weights import FullWeights, replaced_weights
from temper_gpu.model.lora import Adapter, adapted_modules, attach

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

    from temper_gpu.model.models import BaseModel

Policy = Adapter | FullWeights | None

# Modules that servers leave out together.
PARTS = {
    "attention": ("q_proj", "k_proj", "v_proj", "o_proj", "qkv_proj"),
    "mlp": ("gate_proj", "up_proj", "down_proj", "gate_up_proj"),
}


@dataclass(frozen=True)
class Answer:
    """A greedy answer of a deployment, as the store's tokenizer reads it."""

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    # None: the deployment gave none, or for other tokens.
    logprobs: tuple[float, ...] | None
    # Whether it ended by itself.
    has_ended: bool


@dataclass(frozen=True)
class Explanation:
    """`kind`: checkpoint, base or missing (of is the module)."""

    kind: str
    of: str | None
    policy: Policy


@dataclass(frozen=True)
class Scored:
    """An answer as a policy scores it, token by token; its end is included in regrets."""

    logprobs_T: Tensor
    regrets_T: Tensor


def checkpoint_and_base(policy: Adapter | FullWeights) -> list[Explanation]:
    return [Explanation("checkpoint", None, policy), Explanation("base", None, None)]


def without_parts(adapter: Adapter) -> Iterator[Explanation]:
    """The adapter without one kind of modules, or several that servers leave out together."""
    by_leaf: dict[str, set[str]] = {}
    for module in adapted_modules(adapter):
        by_leaf.setdefault(module.rsplit(".", 1)[-1], set()).add(module)
    parts = {leaf: {leaf} for leaf in by_leaf} | {
        part: set(leaves) & by_leaf.keys() for part, leaves in PARTS.items() if len(set(leaves) & by_leaf.keys()) > 1
    }
    for part, leaves in sorted(parts.items()):
        left = [module for leaf in by_leaf.keys() - leaves for module in by_leaf[leaf]]
        # Without any, it is the base model.
        if left:
            yield Explanation("missing", part, only_modules(adapter, left))


def only_modules(adapter: Adapter, modules: Sequence[str]) -> Adapter:
    kept = {
        name: tensor
        for name, tensor in adapter.tensors.items()
        if any(f".{module}.lora_" in name for module in modules)
    }
    return replace(adapter, tensors=kept)


@torch.no_grad()
def score(base: "BaseModel", policy: Policy, answers: Sequence[Answer], end_ids: Sequence[int]) -> list[Scored]:
    model = instantiate(base, policy)
    return [_score_row(model, base, answer, end_ids) for answer in answers]


def instantiate(base: "BaseModel", policy: Policy) -> "PreTrainedModel":
    if isinstance(policy, FullWeights):
        return base.instantiate(base.attention, replaced_weights(base, policy.tensors))
    model = base.instantiate(base.attention)
    return model if policy is None else attach(model, policy)


def _score_row(model: "PreTrainedModel", base: "BaseModel", answer: Answer, end_ids: Sequence[int]) -> Scored:
    length = len(answer.token_ids)
    ids_1T = torch.tensor([[*answer.prompt_ids, *answer.token_ids]], device=base.weights_on)
    logits_TV = model(input_ids=ids_1T, use_cache=False, logits_to_keep=length + 1).logits[0].float()
    scores_TV = logits_TV.log_softmax(-1)
    tokens_T = ids_1T[0, len(answer.prompt_ids) :, None]
    logprobs_T = scores_TV[:length].gather(1, tokens_T)[:, 0]
    regrets_T = scores_TV[:length].amax(-1) - logprobs_T
    if answer.has_ended and end_ids:
        end = scores_TV[length].max() - scores_TV[length, list(end_ids)].max()
        regrets_T = torch.cat([regrets_T, end[None]])
    return Scored(logprobs_T.double().cpu(), regrets_T.double().cpu())
