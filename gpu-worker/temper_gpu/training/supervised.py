"""A supervised step: examples → rows → pack → log-probabilities → cross-entropy → backward → clip → optimizer step.

Policy, optimizer and packing are those of a step on groups (step.py), with one update in each step. trainer.py loads
and commits. Shapes: N trained tokens of a micro-batch.
"""

from dataclasses import dataclass

import torch

from temper_gpu.contract import SupervisedStep, TrainConfig
from temper_gpu.model.models import BaseModel
from temper_gpu.training.checks import require_finite_adapter, require_sound
from temper_gpu.training.examples import Datasets, Examples, TurnReader, read_examples
from temper_gpu.training.losses import cross_entropy
from temper_gpu.training.metrics import Metrics, packing_metrics
from temper_gpu.training.packing import MicroBatch, num_computed_tokens
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.ranks import IsCancelled, never_cancelled
from temper_gpu.training.ranks.turns import plan_turns, until_cancelled
from temper_gpu.training.scoring import layout_of
from temper_gpu.training.tokens import Layout, pack_for_ranks


@dataclass(frozen=True)
class Supervision:
    """The examples that a step trains, and those that it scores (None: no evaluation is due)."""

    trained: Examples
    held_out: Examples | None
    scores_parent: bool


@dataclass(frozen=True)
class SupervisedInputs:
    """`seed` seeds dropout, which held-out losses do not have."""

    examples: Supervision
    config: TrainConfig
    learning_rate: float
    seed: str = ""


def load_supervision(datasets: Datasets, step: SupervisedStep, base: BaseModel, read_turns: TurnReader) -> Supervision:
    dataset, rendering = datasets.open(step.rendering.dataset), step.rendering
    trained = read_examples(dataset, step.examples, base, rendering, read_turns)
    held_out = None if step.held_out is None else read_examples(dataset, step.held_out, base, rendering, read_turns)
    return Supervision(trained, held_out, bool(step.scores_parent))


def supervised_step(
    policy: TrainablePolicy, step: SupervisedInputs, is_cancelled: IsCancelled = never_cancelled
) -> Metrics:
    """Updates the policy in place by one optimizer update, and returns the step's metrics."""
    examples, layout = step.examples, layout_of(policy, step.config)
    metrics = example_metrics(examples.trained)
    if examples.held_out is not None and examples.scores_parent:
        metrics |= held_out_metrics(policy, examples.held_out, layout, is_cancelled, "heldOutLossBefore")
    if examples.trained.rows:
        with policy.dropping(f"{step.seed}/0"):
            result = backward(policy, examples.trained, step.config, layout, is_cancelled)
        require_sound(result, suspect="examples")
        policy.optimizer_step(step.config.optimizer, step.learning_rate)
        require_finite_adapter(policy, step.learning_rate)
        metrics |= result
    if examples.held_out is not None:
        metrics |= held_out_metrics(policy, examples.held_out, layout, is_cancelled, "heldOutLoss")
        metrics["heldOutExamples"] = examples.held_out.num_examples
    return metrics


def backward(
    policy: TrainablePolicy, examples: Examples, config: TrainConfig, layout: Layout, is_cancelled: IsCancelled
) -> Metrics:
    """Leaves the clipped gradient of the mean over all trained tokens. The metrics describe the policy before it."""
    policy.zero_grad()
    sums = torch.zeros(2, dtype=torch.float64)
    batches = pack_examples(examples, layout)
    turns = plan_turns(policy.ranks, batches, num_computed_tokens, lambda batch: True)
    for turn in until_cancelled(turns, is_cancelled):
        scores, batch = policy.log_probabilities(turn.batch), turn.batch
        if not turn.counts:
            policy.backward_only(scores)
            continue
        loss_N = cross_entropy(scores.logprobs_N, batch.weighted_advantages_N)
        loss_N.sum().backward()
        sums += torch.stack([values_N.detach().double().sum().cpu() for values_N in (loss_N, scores.entropy_N)])
    policy.add_gradients()
    loss, entropy = policy.ranks.add(sums).tolist()
    norm = policy.clip_gradients(config.optimizer.max_grad_norm).item()
    measured = {"loss": loss, "gradNorm": norm, "entropy": entropy / examples.num_trained_tokens}
    return measured | packing_metrics(batches, config.packing, layout.packing)


@torch.no_grad()
def held_out_metrics(
    policy: TrainablePolicy, examples: Examples, layout: Layout, is_cancelled: IsCancelled, name: str
) -> Metrics:
    """Nats per token of examples that are never trained; empty if all of them are too long."""
    if not examples.rows:
        return {}
    total = torch.zeros((), dtype=torch.float64)
    turns = plan_turns(policy.ranks, pack_examples(examples, layout), num_computed_tokens)
    for turn in until_cancelled(turns, is_cancelled):
        scores, batch = policy.log_probabilities(turn.batch), turn.batch
        if turn.counts:
            total += cross_entropy(scores.logprobs_N, batch.weighted_advantages_N).double().sum().cpu()
    return {name: policy.ranks.add(total).item()}


def pack_examples(examples: Examples, layout: Layout) -> list[MicroBatch]:
    """Weighs each token for the mean: every row has the advantage 1."""
    return pack_for_ranks(examples.rows, examples.num_trained_tokens, layout)


def example_metrics(examples: Examples) -> Metrics:
    rare = {"overlongExamples": examples.num_overlong, "forks": sum(row.begins == "fork" for row in examples.rows)}
    return {
        "examples": examples.num_examples,
        "trainedTokens": examples.num_trained_tokens,
        "rows": len(examples.rows),
        **{name: count for name, count in rare.items() if count > 0},
    }
