"""A supervised step: examples → rows → pack → log-probabilities → cross-entropy → backward → clip → optimizer step.

The same policy, optimizer and packing as a step on groups (step.py), one update in each step. Load and commit:
trainer.py. Shapes: N trained tokens of a micro-batch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from temper_gpu.contract import SupervisedStep, TrainConfig
from temper_gpu.model.models import BaseModel
from temper_gpu.training.examples import Datasets, Examples, TurnReader, read_examples
from temper_gpu.training.losses import cross_entropy
from temper_gpu.training.metrics import Metrics, packing_metrics
from temper_gpu.training.packing import MicroBatch
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.ranks import StepCancelled, plan_turns
from temper_gpu.training.step import (
    falls_back_to_rows,
    packing_of,
    require_finite_adapter,
    require_sound,
    size,
)
from temper_gpu.training.tokens import pack_for_ranks


@dataclass(frozen=True)
class Supervision:
    """What a step trains, and what it scores; None: an evaluation is not due."""

    trained: Examples
    held_out: Examples | None
    scores_parent: bool


def load_supervision(datasets: Datasets, step: SupervisedStep, base: BaseModel, read_turns: TurnReader) -> Supervision:
    dataset, rendering = datasets.open(step.rendering.dataset), step.rendering
    trained = read_examples(dataset, step.examples, base, rendering, read_turns)
    held_out = None if step.held_out is None else read_examples(dataset, step.held_out, base, rendering, read_turns)
    return Supervision(trained, held_out, bool(step.scores_parent))


def supervised_step(
    policy: TrainablePolicy,
    work: Supervision,
    config: TrainConfig,
    learning_rate: float,
    is_cancelled: Callable[[], bool] = lambda: False,
    seed: str = "",
) -> Metrics:
    """Changes the policy in place by one optimizer update; returns what there is to know about it. `seed`: of dropout,
    which loss and entropy of the trained examples have, and held-out losses have not."""
    metrics = example_metrics(work.trained)
    if work.held_out is not None and work.scores_parent:
        metrics |= held_out_metrics(policy, work.held_out, config, is_cancelled, "heldOutLossBefore")
    if work.trained.rows:
        with policy.dropping(f"{seed}/0"):
            found = backward(policy, work.trained, config, is_cancelled)
        require_sound(found, suspect="examples")
        policy.optimizer_step(config.optimizer, learning_rate)
        require_finite_adapter(policy, learning_rate)
        metrics |= found
    if work.held_out is not None:
        metrics |= held_out_metrics(policy, work.held_out, config, is_cancelled, "heldOutLoss")
        metrics["heldOutExamples"] = work.held_out.num_examples
    return metrics


def backward(
    policy: TrainablePolicy, examples: Examples, config: TrainConfig, is_cancelled: Callable[[], bool]
) -> Metrics:
    """The gradient of the mean over all trained tokens, clipped, and what the policy was like before the update."""
    policy.zero_grad()
    sums = torch.zeros(2, dtype=torch.float64)
    batches = pack_examples(policy, examples, config)
    for turn in plan_turns(policy.ranks, batches, size, lambda batch: True):
        if is_cancelled():
            raise StepCancelled
        scores, batch = policy.log_probabilities(turn.batch), turn.batch
        if not turn.counts:
            policy.go_back(scores)
            continue
        loss_N = cross_entropy(scores.logprobs_N, batch.weighted_advantages_N)
        loss_N.sum().backward()
        sums += torch.stack([values_N.detach().double().sum().cpu() for values_N in (loss_N, scores.entropy_N)])
    if is_cancelled():
        raise StepCancelled
    policy.add_gradients()
    loss, entropy = policy.ranks.add(sums).tolist()
    norm = policy.clip_gradients(config.optimizer.max_grad_norm).item()
    measured = {"loss": loss, "gradNorm": norm, "entropy": entropy / examples.num_trained_tokens}
    return measured | packing_metrics(batches, falls_back_to_rows(policy, config))


@torch.no_grad()
def held_out_metrics(
    policy: TrainablePolicy, examples: Examples, config: TrainConfig, is_cancelled: Callable[[], bool], name: str
) -> Metrics:
    """Nats per token of examples that are never trained; nothing where all of them are too long."""
    if not examples.rows:
        return {}
    total = torch.zeros((), dtype=torch.float64)
    for turn in plan_turns(policy.ranks, pack_examples(policy, examples, config), size):
        if is_cancelled():
            raise StepCancelled
        scores, batch = policy.log_probabilities(turn.batch), turn.batch
        if not turn.counts:
            continue
        total += cross_entropy(scores.logprobs_N, batch.weighted_advantages_N).double().sum().cpu()
    return {name: policy.ranks.add(total).item()}


def pack_examples(policy: TrainablePolicy, examples: Examples, config: TrainConfig) -> list[MicroBatch]:
    """With the weight of each token in the mean: every row has the advantage 1."""
    sizes = (examples.num_trained_tokens, config.micro_batch_tokens)
    return pack_for_ranks(examples.rows, *sizes, policy.device, packing_of(policy, config), policy.ranks.count)


def example_metrics(examples: Examples) -> Metrics:
    rare = {"overlongExamples": examples.num_overlong, "forks": sum(row.begins == "fork" for row in examples.rows)}
    return {
        "examples": examples.num_examples,
        "trainedTokens": examples.num_trained_tokens,
        "rows": len(examples.rows),
        **{name: count for name, count in rare.items() if count > 0},
    }
