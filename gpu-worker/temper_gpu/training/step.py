"""One step on groups, in the order of the papers.

advantages → rows → updates; each update: pack → log-probabilities → loss → backward → clip → optimizer step. trainer.py
loads the inputs and commits the result.
"""

from itertools import chain

import torch

from temper_gpu.contract import DppoLoss, TrainConfig
from temper_gpu.training.advantages import attempt_advantages
from temper_gpu.training.checks import (
    mismatch_metrics,
    require_agreement,
    require_finite_adapter,
    require_sampler,
    require_sound,
)
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.losses import TokenLoss, find_loss, kl_penalty, policy_kl_penalty
from temper_gpu.training.metrics import Metrics, TokenSums, batch_metrics, packing_metrics, update_metrics
from temper_gpu.training.packing import num_computed_tokens
from temper_gpu.training.policy import TokenScores, TrainablePolicy
from temper_gpu.training.ranks import IsCancelled, never_cancelled
from temper_gpu.training.ranks.turns import plan_turns, until_cancelled
from temper_gpu.training.rows import Rows, build_rows
from temper_gpu.training.samplers import sampler_of
from temper_gpu.training.scoring import check_samplers, layout_of, prepare_tokens
from temper_gpu.training.token_trace import PassScores, TokenTrace
from temper_gpu.training.tokens import Laid, Layout, Tokens, lay
from temper_gpu.training.updates import Update, plan_updates


def train_step(
    policy: TrainablePolicy,
    step: StepInputs,
    is_cancelled: IsCancelled = never_cancelled,
    trace: TokenTrace | None = None,
) -> Metrics:
    """Updates the policy in place and returns the step's metrics. `trace` gets what was computed of each token."""
    require_sampler(step)
    rows, metrics = build_batch(step)
    if not rows.have_signal:
        return metrics  # All attempts are truncated, say. Momentum alone must not move the policy.
    layout = layout_of(policy, step.config)
    traced = (trace or TokenTrace()).begin(step.groups, rows)
    check_samplers(policy, step, rows, layout, is_cancelled)
    tokens, measured = prepare_tokens(policy, step, rows, layout, is_cancelled, traced)
    updates: list[tuple[Update, Metrics]] = []
    for number, update in enumerate(plan_updates(step.groups, rows, step.config, step.seed)):
        batch = tokens.of_rows(update.rows)
        if not batch.have_signal:
            continue
        scores = traced.begin_update(batch, layout.device)
        with policy.dropping(f"{step.seed}/{number}"):
            result = backward(policy, batch, step.config, layout, is_cancelled, scores)
        if not updates and not step.is_stale and not policy.has_dropout:
            require_agreement(step, result, policy.dtype, step.parent_sha256)
        require_sound(result)
        policy.optimizer_step(step.config.optimizer, step.learning_rate)
        require_finite_adapter(policy, step.learning_rate)
        traced.end_update(batch, scores, policy.ranks)
        updates.append((update, result))
    return metrics | update_metrics(updates) | measured | mismatch_metrics(step.config, policy.dtype)


def build_batch(step: StepInputs) -> tuple[Rows, Metrics]:
    """Rewards → advantages → rows, with the metrics that need no policy."""
    config, groups = step.config, step.groups
    attempts = list(chain.from_iterable(group.attempts for group in groups))
    rules = (config.advantage_scale, config.leave_one_out, config.truncated)
    advantages = attempt_advantages([g.attempts for g in groups], *rules)
    rows = build_rows(attempts, advantages, config.truncated)
    metrics = batch_metrics(groups, advantages, rows, config.truncated)
    if config.overlong_buffer:
        metrics["overlong"] = sum(a.reward is not None and a.overlong_cost > 0 for a in attempts)
    return rows, metrics | staleness_metrics(step)


def staleness_metrics(step: StepInputs) -> Metrics:
    """The mean over groups, and the largest if they differ. Absent if only the parent may have sampled."""
    if not step.is_stale:
        return {}
    sampled_by = [sampler_of(group, step.allowed) for group in step.groups]
    found = [sampler.staleness for sampler in sampled_by if sampler is not None] or [0]
    mean, largest = sum(found) / len(found), max(found)
    return {"staleness": mean} | ({} if mean == largest else {"largestStaleness": largest})


def backward(
    policy: TrainablePolicy,
    tokens: Tokens,
    config: TrainConfig,
    layout: Layout,
    is_cancelled: IsCancelled,
    found: PassScores | None = None,
) -> Metrics:
    """Leaves the clipped gradient of one update's loss. The metrics, and what is `found` of each token, describe the
    policy before the update."""
    policy.zero_grad()
    loss = find_loss(config.loss)
    sums = TokenSums((*loss.metrics, "kl") if config.kl_coefficient else loss.metrics)
    batches = list(lay(tokens, config, layout))
    sizes, trains = (lambda laid: num_computed_tokens(laid.batch)), (lambda laid: has_gradient(laid, config))
    for turn in until_cancelled(plan_turns(policy.ranks, batches, sizes, trains), is_cancelled):
        laid = turn.batch
        with torch.set_grad_enabled(turn.goes_back):
            scores = policy.log_probabilities(laid.batch, config.entropy_coefficient > 0)
            losses = regularised(loss.function(laid.batch, scores.logprobs_N), scores, laid, config)
            loss_N = losses.total(laid.weights_N)
        if turn.trains:
            loss_N.sum().backward()
        elif turn.goes_back:
            policy.backward_only(scores)
        if turn.counts:
            log_ratio_N = scores.logprobs_N - laid.sampled_logprobs_N
            sums.add(loss_N, losses.metrics, scores.entropy_N, log_ratio_N)
            if found is not None:
                found.add(laid.batch.places_N, log_ratio_N, scores.entropy_N)
    policy.add_gradients()
    metrics = sums.metrics(policy.clip_gradients(config.optimizer.max_grad_norm), policy.ranks)
    return metrics | packing_metrics([laid.batch for laid in batches], config.packing, layout.packing)


def has_gradient(laid: Laid, config: TrainConfig) -> bool:
    """False if every advantage is 0 and nothing else pulls a token: the gradient would be zeros, so only the metrics
    are computed."""
    is_pulled = (
        config.entropy_coefficient > 0
        or (config.kl_coefficient > 0 and config.kl_as != "reward")
        or isinstance(config.loss, DppoLoss)
    )
    return is_pulled or bool(laid.batch.weighted_advantages_N.any())


def regularised(losses: TokenLoss, scores: TokenScores, laid: Laid, config: TrainConfig) -> TokenLoss:
    """Adds the penalties that are independent of the advantage, and their metrics."""
    if config.entropy_coefficient:
        losses = losses.penalised(-config.entropy_coefficient * scores.entropy_N)
    if not config.kl_coefficient:
        return losses
    both_N = (scores.logprobs_N, laid.reference_logprobs_N)
    kl_N = kl_penalty(*both_N)
    if config.kl_as == "loss" and config.kl_estimator == "k3-ratio":
        # Weighed like the advantage: by the loss's ratio, and by a correction.
        weighed_N = laid.factors_N * policy_kl_penalty(*both_N, laid.batch.sampled_logprobs_N)
        losses = losses.penalised(config.kl_coefficient * weighed_N)
    elif config.kl_as == "loss":
        losses = losses.penalised(config.kl_coefficient * kl_N)
    return losses._replace(metrics={**losses.metrics, "kl": kl_N.detach()})
