"""Checks that end a step before it changes the policy wrongly, or commits weights that are not finite."""

import math

import torch

from temper_gpu.contract import TrainConfig
from temper_gpu.failures import TemperError
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.metrics import Metrics
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.samplers import sampler_of

# Factor on the largest mean k3 below float32: sampler and trainer round the same numbers further apart.
HALF_MISMATCH = 10


def require_sampler(step: StepInputs) -> None:
    """Requires that each group was sampled by the parent, or by the checkpoint that the plan names for it."""
    who = "sampler" if step.is_stale else "parent"
    for group in step.groups:
        sampler = sampler_of(group, step.allowed)
        if sampler is None and group.answered_by:
            raise TemperError(
                "PolicyMismatch",
                f"group {group.index} of a step must be sampled by a policy that the step names, its rollouts name "
                f"adapter {group.sampled_by}; restore the group from a copy of the run",
            )
        for sha256 in sorted(group.answered_by, key=str):
            if sampler is not None and sha256 != sampler.adapter_sha256:
                raise TemperError(
                    "PolicyMismatch",
                    f"a step must train what its {who} sampled: {who}'s adapter is {sampler.adapter_sha256}, but "
                    f"answers came from adapter {sha256}; roll back to the parent and run the step again",
                )


def most_mismatch(config: TrainConfig, dtype: torch.dtype) -> float:
    """The configured bound holds for float32."""
    return config.max_logprob_mismatch * (1 if dtype == torch.float32 else HALF_MISMATCH)


def mismatch_metrics(config: TrainConfig, dtype: torch.dtype) -> Metrics:
    """Reports the bound if it is not the configured one."""
    most = most_mismatch(config, dtype)
    return {} if most == config.max_logprob_mismatch else {"mostLogprobK3": most}


def require_agreement(step: StepInputs, metrics: Metrics, dtype: torch.dtype, adapter_sha256: str) -> None:
    """Requires the same log-probabilities of sampler and trainer, measured with the weights of one adapter."""
    require_finite_scores(metrics)
    mismatch, most = metrics["logprobK3"], most_mismatch(step.config, dtype)
    if not math.isfinite(mismatch) or mismatch > most:
        raise TemperError(
            "PolicyMismatch",
            f"sampler and trainer must give the same log-probabilities (mean k3 at most {most}), got "
            f"k3 {mismatch:.3g}, max |log ratio| {metrics['maxAbsLogRatio']:.3g}: sampled by adapter "
            f"{', '.join(sorted(map(str, step.answered_by)))}, trained from adapter {adapter_sha256}; check that "
            "engine and trainer use the same base model, or raise maxLogprobMismatch",
        )


def require_finite_scores(metrics: Metrics) -> None:
    if not math.isfinite(metrics["entropy"]):
        raise TemperError(
            "LossNotFinite",
            "log-probabilities of the policy must be finite, but its weights have diverged; "
            "roll back to an earlier step (temper rollback) and lower the learning rate",
        )


def require_sound(metrics: Metrics, suspect: str = "rewards") -> None:
    """Requires a finite update. `suspect` names the input to look at."""
    require_finite_scores(metrics)
    if not (math.isfinite(metrics["loss"]) and math.isfinite(metrics["gradNorm"])):
        raise TemperError(
            "LossNotFinite",
            f"loss and gradient must be finite, got loss {metrics['loss']}, gradient norm {metrics['gradNorm']}; "
            f"look at the step's {suspect}, roll back (temper rollback) and lower the learning rate",
        )


def require_finite_adapter(policy: TrainablePolicy, learning_rate: float) -> None:
    """Requires finite weights after an update: the next sampler must be able to compute with them."""
    norm = policy.adapter_norm()
    if not math.isfinite(norm):
        raise TemperError(
            "LossNotFinite",
            f"the updated weights must be finite, their norm is {norm} (learning rate {learning_rate:g}); "
            "roll back (temper rollback) and lower the learning rate",
        )
