"""One step, in the order in which it is spoken of:

advantages → rows → updates; each of them pack → log-probabilities → loss → backward → clip → optimizer step. Load and
commit: trainer.py.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import torch
from torch import Tensor

from temper_gpu.contract import DppoLoss, TrainConfig
from temper_gpu.failures import TemperError
from temper_gpu.training.advantages import Overlong, attempt_advantages
from temper_gpu.training.corrections import correct
from temper_gpu.training.groups import Group
from temper_gpu.training.losses import TokenLoss, find_loss, kl_penalty, kl_reward, policy_kl_penalty
from temper_gpu.training.metrics import (
    Metrics,
    TokenSums,
    batch_metrics,
    comparison_metrics,
    packing_metrics,
    update_metrics,
)
from temper_gpu.training.packing import MicroBatch, Packing
from temper_gpu.training.policy import TokenScores, TrainablePolicy
from temper_gpu.training.ranks import StepCancelled, plan_turns
from temper_gpu.training.rows import Rows, build_rows
from temper_gpu.training.stale_sampler import StaleSampler, first_rows
from temper_gpu.training.tokens import Laid, Tokens, lay, pack_all, tokens_of
from temper_gpu.training.updates import Update, plan_updates

# How much larger the mean k3 of sampler and trainer may be below float32.
HALF_MISMATCH = 10


def train_step(
    policy: TrainablePolicy,
    parent_sha256: str,
    groups: Sequence[Group],
    config: TrainConfig,
    learning_rate: float,
    is_cancelled: Callable[[], bool] = lambda: False,
    seed: str = "",
    sampler: StaleSampler | None = None,
    reference: Mapping[str, Tensor] | None = None,
) -> Metrics:
    """Changes the policy in place by the optimizer updates of one step on these groups; returns what there is to know
    about it. `seed` orders the groups of several updates; `sampler` is given where it is not the parent, `reference`
    where it is not the base model."""
    require_policy(groups, parent_sha256, sampler)
    attempts = list(chain.from_iterable(group.attempts for group in groups))
    overlong = overlong_of(config)
    rules = (config.advantage_scale, config.leave_one_out, config.truncated, overlong)
    advantages = attempt_advantages([g.attempts for g in groups], *rules)
    rows = build_rows(attempts, advantages, config.truncated)
    metrics = batch_metrics(groups, advantages, rows, config.truncated)
    if overlong is not None:
        metrics["overlong"] = sum(a.reward is not None and overlong.cost(a) > 0 for a in attempts)
    if sampler is not None:
        metrics["staleness"] = sampler.staleness
    if not rows.have_signal:
        # All attempts truncated, say. Momentum alone must not move the policy, so the step is an unchanged copy.
        return metrics
    if sampler is not None:
        check_sampler(policy, sampler, groups, rows, config, is_cancelled)
    tokens, compared = compare(policy, tokens_of(rows), config, is_cancelled, reference)
    if compared and sampler is None:
        require_agreement(compared, groups, parent_sha256, most_mismatch(policy, config))
    measured: list[tuple[Update, Metrics]] = []
    for number, update in enumerate(plan_updates(groups, rows, config, seed)):
        of_update = tokens.of_rows(update.rows)
        if not of_update.have_signal:
            continue
        with policy.dropping(f"{seed}/{number}"):
            found = backward(policy, of_update, config, is_cancelled)
        if not measured and sampler is None and not policy.has_dropout:
            require_agreement(found, groups, parent_sha256, most_mismatch(policy, config))
        require_sound(found)
        policy.optimizer_step(config.optimizer, learning_rate)
        require_finite_adapter(policy, learning_rate)
        measured.append((update, found))
    return metrics | update_metrics(measured) | compared | mismatch_metrics(policy, config)


def overlong_of(config: TrainConfig) -> Overlong | None:
    return Overlong(config.overlong_buffer, config.overlong_penalty) if config.overlong_buffer else None


def check_sampler(
    policy: TrainablePolicy,
    sampler: StaleSampler,
    groups: Sequence[Group],
    rows: Rows,
    config: TrainConfig,
    is_cancelled: Callable[[], bool],
) -> None:
    """By a part of what it sampled, with its own weights."""
    if sampler.adapter is None:
        return
    tokens = tokens_of(first_rows(rows))
    with policy.with_adapter(sampler.adapter):
        scored_F, entropy = score(policy, tokens, config, is_cancelled)
    found = {**comparison_metrics(scored_F - tokens.anchors_F), "entropy": entropy}
    require_agreement(found, groups, sampler.adapter_sha256, most_mismatch(policy, config))


def compare(
    policy: TrainablePolicy,
    tokens: Tokens,
    config: TrainConfig,
    is_cancelled: Callable[[], bool],
    reference: Mapping[str, Tensor] | None,
) -> tuple[Tokens, Metrics]:
    """What corrections and references need to know of all tokens before the first update."""
    compared: Metrics = {}
    if config.kl_coefficient:
        with policy.without_adapter() if reference is None else policy.with_adapter(reference):
            tokens = replace(tokens, reference_F=score(policy, tokens, config, is_cancelled)[0])
    # With dropout the gradient's log-probabilities are not those of the sampler, even where the weights are the same.
    if config.correction == "none" and config.kl_as != "reward" and not policy.has_dropout:
        return tokens, compared
    scored_F, entropy = score(policy, tokens, config, is_cancelled)
    log_ratios_F = scored_F - tokens.anchors_F
    compared = {**comparison_metrics(log_ratios_F), "entropy": entropy}
    if config.kl_coefficient and config.kl_as == "reward":
        earned_F = config.kl_coefficient * kl_reward(scored_F, tokens.reference_F)
        tokens = replace(tokens, advantages_F=tokens.advantages_F + earned_F)
    if config.correction != "none" and config.correction_cap is not None:
        correction = correct(
            config.correction, config.correction_cap, log_ratios_F, tokens.sequences_F, tokens.advantages_F
        )
        tokens = tokens.corrected(correction, scored_F)
        compared["correctedShare"] = correction.exceeded_F.double().mean().item()
    return tokens, compared


@torch.no_grad()
def score(
    policy: TrainablePolicy, tokens: Tokens, config: TrainConfig, is_cancelled: Callable[[], bool]
) -> tuple[Tensor, float]:
    """log π of each token, and the mean entropy, without a gradient."""
    scored_F, entropy_F = torch.zeros_like(tokens.anchors_F), torch.zeros_like(tokens.anchors_F)
    packing, ranks = packing_of(policy, config), policy.ranks
    batches = pack_all(tokens.rows, config.micro_batch_tokens, packing, policy.device, ranks.count)
    for turn in plan_turns(ranks, batches, size):
        if is_cancelled():
            raise StepCancelled
        scores, batch = policy.log_probabilities(turn.batch), turn.batch
        if not turn.counts:
            continue
        places_N = batch.places_N.cpu()
        scored_F[places_N] = scores.logprobs_N.double().cpu()
        entropy_F[places_N] = scores.entropy_N.double().cpu()
    # Each place is one rank's, and zero elsewhere.
    return ranks.add(scored_F), ranks.add(entropy_F).mean().item()


def backward(policy: TrainablePolicy, tokens: Tokens, config: TrainConfig, is_cancelled: Callable[[], bool]) -> Metrics:
    """The gradient of one update's loss, clipped, and what the policy was like before the update."""
    policy.zero_grad()
    loss = find_loss(config.loss)
    sums = TokenSums((*loss.metrics, "kl") if config.kl_coefficient else loss.metrics)
    batches = list(lay(tokens, config, packing_of(policy, config), policy.device, policy.ranks.count))
    sizes, trains = (lambda laid: size(laid.batch)), (lambda laid: has_gradient(laid, config))
    for turn in plan_turns(policy.ranks, batches, sizes, trains):
        if is_cancelled():
            raise StepCancelled
        laid = turn.batch
        with torch.set_grad_enabled(turn.goes_back):
            scores = policy.log_probabilities(laid.batch, config.entropy_coefficient > 0)
            losses = regularised(loss.function(laid.batch, scores.logprobs_N), scores, laid, config)
            loss_N = losses.total(laid.weights_N)
        if turn.trains:
            loss_N.sum().backward()
        elif turn.goes_back:
            policy.go_back(scores)
        if turn.counts:
            sums.add(loss_N, losses.metrics, scores.entropy_N, scores.logprobs_N - laid.sampled_logprobs_N)
    if is_cancelled():
        raise StepCancelled
    policy.add_gradients()
    metrics = sums.metrics(policy.clip_gradients(config.optimizer.max_grad_norm), policy.ranks)
    return metrics | packing_metrics([laid.batch for laid in batches], falls_back_to_rows(policy, config))


def has_gradient(laid: Laid, config: TrainConfig) -> bool:
    """Not where every advantage is 0 and nothing else pulls a token: then metrics alone need the policy, and its
    gradient, which would be all zeros, is not computed."""
    is_pulled = (
        config.entropy_coefficient > 0
        or (config.kl_coefficient > 0 and config.kl_as != "reward")
        or isinstance(config.loss, DppoLoss)
    )
    return is_pulled or bool(laid.batch.weighted_advantages_N.any())


def size(batch: MicroBatch) -> int:
    """Tokens that are computed, padding included."""
    return batch.token_ids_BT.numel()


def packing_of(policy: TrainablePolicy, config: TrainConfig) -> Packing:
    return "rows" if falls_back_to_rows(policy, config) else config.packing


def falls_back_to_rows(policy: TrainablePolicy, config: TrainConfig) -> bool:
    return config.packing == "tree" and not policy.knows_trees


def regularised(losses: TokenLoss, scores: TokenScores, laid: Laid, config: TrainConfig) -> TokenLoss:
    """With the penalties that do not hang on the advantage, and what they measure."""
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


def require_policy(groups: Sequence[Group], parent_sha256: str, sampler: StaleSampler | None) -> None:
    """What sampled is what is trained, or what the plan names, by hash."""
    who, wanted = ("its parent", parent_sha256) if sampler is None else ("its sampler", sampler.adapter_sha256)
    for sha256 in sorted(samplers(groups), key=str):
        if sha256 != wanted:
            raise TemperError(
                "PolicyMismatch",
                f"a step must train what {who} sampled: {who[4:]}'s adapter is {wanted}, but answers came "
                f"from adapter {sha256}; roll back to the parent and run the step again",
            )


def most_mismatch(policy: TrainablePolicy, config: TrainConfig) -> float:
    """The bound is one for float32. With fewer bits, sampler and trainer round the same numbers further apart."""
    return config.max_logprob_mismatch * (1 if policy.dtype == torch.float32 else HALF_MISMATCH)


def mismatch_metrics(policy: TrainablePolicy, config: TrainConfig) -> Metrics:
    """Where the bound is another one than the run's, so that who looks at the mismatch knows it."""
    most = most_mismatch(policy, config)
    return {} if most == config.max_logprob_mismatch else {"mostLogprobK3": most}


def require_agreement(metrics: Metrics, groups: Sequence[Group], parent_sha256: str, max_mismatch: float) -> None:
    """Before the first update: sampler and trainer have the same weights, so the same log-probabilities."""
    require_finite_scores(metrics)
    mismatch = metrics["logprobK3"]
    if not math.isfinite(mismatch) or mismatch > max_mismatch:
        sampler = ", ".join(sorted(map(str, samplers(groups))))
        raise TemperError(
            "PolicyMismatch",
            f"sampler and trainer must give the same log-probabilities (mean k3 at most {max_mismatch}), got "
            f"k3 {mismatch:.3g}, max |log ratio| {metrics['maxAbsLogRatio']:.3g}: sampled by adapter {sampler}, "
            f"trained from adapter {parent_sha256}; check that engine and trainer use the same base model, "
            "or raise maxLogprobMismatch",
        )


def require_finite_scores(metrics: Metrics) -> None:
    if not math.isfinite(metrics["entropy"]):
        raise TemperError(
            "LossNotFinite",
            "log-probabilities of the policy must be finite, but its weights have diverged; "
            "roll back to an earlier step (temper rollback) and lower the learning rate",
        )


def require_sound(metrics: Metrics, suspect: str = "rewards") -> None:
    """Before each update; `suspect` is what a step is made of that may be wrong."""
    require_finite_scores(metrics)
    if not (math.isfinite(metrics["loss"]) and math.isfinite(metrics["gradNorm"])):
        raise TemperError(
            "LossNotFinite",
            f"loss and gradient must be finite, got loss {metrics['loss']}, gradient norm {metrics['gradNorm']}; "
            f"look at the step's {suspect}, roll back (temper rollback) and lower the learning rate",
        )


def require_finite_adapter(policy: TrainablePolicy, learning_rate: float) -> None:
    """After the update and before the commit: what samples next must be able to."""
    norm = policy.adapter_norm()
    if not math.isfinite(norm):
        raise TemperError(
            "LossNotFinite",
            f"the updated weights must be finite, their norm is {norm} (learning rate {learning_rate:g}); "
            "roll back (temper rollback) and lower the learning rate",
        )


def samplers(groups: Sequence[Group]) -> set[str | None]:
    """Adapters that answered the calls of attempts that are data."""
    return {
        call.adapter_sha256
        for group in groups
        for attempt in group.attempts
        if attempt.reward is not None
        for call in attempt.calls
    }
