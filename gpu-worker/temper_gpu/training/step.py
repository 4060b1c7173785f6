"""One optimizer step, in the order in which it is spoken of:

advantages → pack → log-probabilities → loss → backward → clip → optimizer step. Load and commit: trainer.py.
"""

import math
from collections.abc import Callable, Sequence
from itertools import chain

from temper_gpu.contract import TrainConfig
from temper_gpu.failures import TemperError
from temper_gpu.training.advantages import attempt_advantages
from temper_gpu.training.groups import Group
from temper_gpu.training.losses import find_loss
from temper_gpu.training.metrics import Metrics, TokenSums, batch_metrics, packing_metrics
from temper_gpu.training.packing import pack
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.rows import build_rows


class StepCancelled(Exception):
    """The step was given up between two micro-batches: nothing was committed, and the policy's memory is dirty."""


def train_step(
    policy: TrainablePolicy,
    parent_sha256: str,
    groups: Sequence[Group],
    config: TrainConfig,
    learning_rate: float,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> Metrics:
    """Changes the policy in place by one optimizer step on these groups; returns what there is to know about it."""
    require_policy(groups, parent_sha256)
    attempts = list(chain.from_iterable(group.attempts for group in groups))
    advantages = attempt_advantages(
        [g.attempts for g in groups], config.advantage_scale, config.leave_one_out, config.truncated
    )
    rows = build_rows(attempts, advantages, config.truncated)
    metrics = batch_metrics(groups, advantages, rows, config.truncated)
    if not rows.have_signal:
        # All attempts truncated, say. Momentum alone must not move the policy, so the step is an unchanged copy.
        return metrics
    policy.zero_grad()
    loss = find_loss(config.loss)
    sums = TokenSums(loss.metrics)
    packing = "tree" if config.packing == "tree" and policy.knows_trees else "rows"
    batches = pack(rows.rows, rows.num_trained_tokens, config.micro_batch_tokens, policy.device, packing)
    if config.packing is not None:
        metrics |= packing_metrics(batches)
    for batch in batches:
        if is_cancelled():
            raise StepCancelled
        scores = policy.log_probabilities(batch)
        losses = loss.function(batch, scores.logprobs_N)
        losses.loss_N.sum().backward()
        sums.add(losses, scores.entropy_N, scores.logprobs_N - batch.sampled_logprobs_N)
    if is_cancelled():
        raise StepCancelled
    gradient_norm = policy.clip_gradients(config.optimizer.max_grad_norm)
    metrics |= sums.metrics(gradient_norm)
    require_sound(metrics, groups, parent_sha256, config.max_logprob_mismatch)
    policy.optimizer_step(config.optimizer, learning_rate)
    require_finite_adapter(policy, learning_rate)
    return metrics


def require_policy(groups: Sequence[Group], parent_sha256: str) -> None:
    """What sampled is what is trained, by hash."""
    for sha256 in sorted(samplers(groups), key=str):
        if sha256 != parent_sha256:
            raise TemperError(
                "PolicyMismatch",
                f"a step must train what its parent sampled: the parent's adapter is {parent_sha256}, but answers came "
                f"from adapter {sha256}; roll back to the parent and run the step again",
            )


def require_sound(metrics: Metrics, groups: Sequence[Group], parent_sha256: str, max_mismatch: float) -> None:
    """Before the update: the trainer's log-probabilities, the sampler's agreement with them, loss and gradient."""
    if not math.isfinite(metrics["entropy"]):
        raise TemperError(
            "LossNotFinite",
            "log-probabilities of the policy must be finite, but its weights have diverged; "
            "roll back to an earlier step (temper rollback) and lower the learning rate",
        )
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
    if not (math.isfinite(metrics["loss"]) and math.isfinite(metrics["gradNorm"])):
        raise TemperError(
            "LossNotFinite",
            f"loss and gradient must be finite, got loss {metrics['loss']}, gradient norm {metrics['gradNorm']}; "
            "look at the step's rewards, roll back (temper rollback) and lower the learning rate",
        )


def require_finite_adapter(policy: TrainablePolicy, learning_rate: float) -> None:
    """After the update and before the commit: what samples next must be able to."""
    norm = policy.adapter_norm()
    if not math.isfinite(norm):
        raise TemperError(
            "LossNotFinite",
            f"the updated adapter must be finite, its norm is {norm} (learning rate {learning_rate:g}); "
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
