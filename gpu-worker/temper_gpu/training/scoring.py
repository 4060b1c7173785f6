"""Log-probabilities without a gradient, before a step's first update: of the sampler, the reference and the policy."""

from contextlib import nullcontext
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from temper_gpu.contract import TrainConfig
from temper_gpu.training.checks import require_agreement
from temper_gpu.training.corrections import correct
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.losses import kl_reward
from temper_gpu.training.metrics import Metrics, comparison_metrics
from temper_gpu.training.packing import num_computed_tokens
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.ranks import IsCancelled
from temper_gpu.training.ranks.turns import plan_turns, until_cancelled
from temper_gpu.training.rows import Rows
from temper_gpu.training.samplers import rows_by_sampler
from temper_gpu.training.token_trace import PolicyTrace
from temper_gpu.training.tokens import Layout, Tokens, pack_all, tokens_of


class Scored(NamedTuple):
    """log π of each token, and the entropy of the distribution that it was drawn from."""

    logprobs_F: Tensor
    entropy_F: Tensor


def layout_of(policy: TrainablePolicy, config: TrainConfig) -> Layout:
    packing = "tree" if config.packing == "tree" and policy.knows_trees else "rows"
    return Layout(packing, config.micro_batch_tokens, policy.device, policy.ranks.count)


def check_samplers(
    policy: TrainablePolicy, step: StepInputs, rows: Rows, layout: Layout, is_cancelled: IsCancelled
) -> None:
    """Re-scores some of the rows of each sampler with its own adapter and requires agreement."""
    if not step.is_stale:
        return  # All rows are compared before the first update.
    for sampler, sampled in rows_by_sampler(rows, step.groups, step.allowed):
        read = sampler.read_adapter
        if sampler.staleness > 0 and read is None:
            continue
        with nullcontext() if read is None else policy.with_adapter(read()):
            _, measured = compare(policy, tokens_of(sampled), layout, is_cancelled)
        require_agreement(step, measured, policy.dtype, sampler.adapter_sha256)


def prepare_tokens(
    policy: TrainablePolicy,
    step: StepInputs,
    rows: Rows,
    layout: Layout,
    is_cancelled: IsCancelled,
    trace: PolicyTrace,
) -> tuple[Tokens, Metrics]:
    """Adds the reference's log-probabilities and the corrections of all tokens."""
    config, tokens = step.config, tokens_of(rows)
    if config.kl_coefficient:
        with policy.without_adapter() if step.reference is None else policy.with_adapter(step.reference):
            tokens = replace(tokens, reference_F=score(policy, tokens, layout, is_cancelled).logprobs_F)
    # Dropout changes the log-probabilities of an update, so they cannot be compared with the sampler's.
    if config.correction == "none" and config.kl_as != "reward" and not policy.has_dropout:
        return tokens, {}
    (scored_F, entropy_F), measured = compare(policy, tokens, layout, is_cancelled)
    if not step.is_stale:
        require_agreement(step, measured, policy.dtype, step.parent_sha256)
    log_ratios_F = scored_F - tokens.anchors_F
    trace.scored(log_ratios_F, entropy_F)
    if config.kl_coefficient and config.kl_as == "reward":
        earned_F = config.kl_coefficient * kl_reward(scored_F, tokens.reference_F)
        tokens = replace(tokens, advantages_F=tokens.advantages_F + earned_F)
    if config.correction != "none" and config.correction_cap is not None:
        correction = correct(
            config.correction, config.correction_cap, log_ratios_F, tokens.sequences_F, tokens.advantages_F
        )
        tokens = tokens.corrected(correction, scored_F)
        measured["correctedShare"] = correction.exceeded_F.double().mean().item()
    return tokens, measured


def compare(
    policy: TrainablePolicy, tokens: Tokens, layout: Layout, is_cancelled: IsCancelled
) -> tuple[Scored, Metrics]:
    """Scores each token, and measures how far it is from the sampler's."""
    scored = score(policy, tokens, layout, is_cancelled)
    entropy = scored.entropy_F.mean().item()
    return scored, {**comparison_metrics(scored.logprobs_F - tokens.anchors_F), "entropy": entropy}


@torch.no_grad()
def score(policy: TrainablePolicy, tokens: Tokens, layout: Layout, is_cancelled: IsCancelled) -> Scored:
    scored_F, entropy_F = torch.zeros_like(tokens.anchors_F), torch.zeros_like(tokens.anchors_F)
    batches = pack_all(tokens.rows, layout)
    for turn in until_cancelled(plan_turns(policy.ranks, batches, num_computed_tokens), is_cancelled):
        scores, batch = policy.log_probabilities(turn.batch), turn.batch
        if not turn.counts:
            continue
        places_N = batch.places_N.cpu()
        scored_F[places_N] = scores.logprobs_N.double().cpu()
        entropy_F[places_N] = scores.entropy_N.double().cpu()
    # Each place belongs to one rank; the others have zeros there.
    return Scored(policy.ranks.add(scored_F), policy.ranks.add(entropy_F))
