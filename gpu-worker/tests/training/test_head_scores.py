"""A frozen output head, differentiated in the forward pass, beside the plain way."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import Gemma2Config

from temper_gpu.training.head_scores import Scores, frozen_head_scores, is_frozen, plain_scores
from temper_gpu.training.packing import pack
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.rows import build_rows
from tests.engine.embedded.tiny import SHAPE, random_base
from tests.training.agreement import gradients
from tests.training.samples import lora, sampled_groups, tiny_base
from tests.training.test_packing import policy_with_a_step_behind_it

pytestmark = pytest.mark.numerics

NUM_TOKENS, HIDDEN, VOCABULARY = 11, 24, 150
# Of values and gradients, beside those of the plain way in float32.
NEAR = {torch.float32: 1e-6, torch.bfloat16: 1e-2}
TEMPERATURES = {"one": [1.0], "several": [0.3, 1.0, 1.7], "alike": [0.6]}

Given = tuple[Tensor, Tensor, Tensor, Tensor]


def given(dtype: torch.dtype, temperatures: list[float], spread: float = 3.0) -> Given:
    """Hidden states, weights, targets, temperatures."""
    generator = torch.Generator().manual_seed(5)
    hidden_ND = torch.randn(NUM_TOKENS, HIDDEN, generator=generator).to(dtype).requires_grad_()
    weight_VD = (torch.randn(VOCABULARY, HIDDEN, generator=generator) * spread / HIDDEN**0.5).to(dtype)
    targets_N = torch.randint(0, VOCABULARY, (NUM_TOKENS,), generator=generator)
    repeated = torch.tensor(temperatures * NUM_TOKENS)[:NUM_TOKENS]
    return hidden_ND, weight_VD, targets_N, repeated


def forward(of: Given, trains_entropy: bool, chunk: int) -> Scores:
    hidden_ND, weight_VD, targets_N, temperatures_N = of
    return frozen_head_scores(weight_VD, hidden_ND, targets_N, temperatures_N, trains_entropy, chunk)


def plainly(of: Given, trains_entropy: bool, chunk: int) -> Scores:
    hidden_ND, weight_VD, targets_N, temperatures_N = of
    head = partial(nn.functional.linear, weight=weight_VD)
    return plain_scores(head, hidden_ND, targets_N, temperatures_N, trains_entropy, chunk)


def both_ways(of: Given, trains_entropy: bool, chunk: int) -> tuple[Scores, Scores]:
    return forward(of, trains_entropy, chunk), plainly(of, trains_entropy, chunk)


def gradient(scores: Scores, hidden_ND: Tensor, trains_entropy: bool) -> Tensor:
    """Of a loss that gives each token weights of its own."""
    weights_N = torch.linspace(-1.0, 2.0, NUM_TOKENS)
    loss = (weights_N * scores[0]).sum()
    if trains_entropy:
        loss = loss + (weights_N.flip(0) * scores[1]).sum()
    return torch.autograd.grad(loss, hidden_ND)[0].float()


@pytest.mark.parametrize("chunk", [1, 4, NUM_TOKENS, 100])
@pytest.mark.parametrize("trains_entropy", [False, True])
@pytest.mark.parametrize("temperatures", TEMPERATURES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_values_and_gradients_are_those_of_the_plain_way(
    dtype: torch.dtype, temperatures: str, trains_entropy: bool, chunk: int
):
    of = given(dtype, TEMPERATURES[temperatures])
    found, plain = both_ways(of, trains_entropy, chunk)
    # Logits are rounded to the head's type in both ways.
    torch.testing.assert_close(found[0], plain[0], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(found[1], plain[1], rtol=0, atol=1e-5)
    assert found[0].dtype == found[1].dtype == torch.float32
    assert found[1].requires_grad == plain[1].requires_grad == trains_entropy
    found_ND, plain_ND = (gradient(scores, of[0], trains_entropy) for scores in (found, plain))
    assert (found_ND - plain_ND).norm() <= NEAR[dtype] * plain_ND.norm()


def test_gradients_in_bfloat16_are_as_near_to_exact_ones_as_those_of_the_plain_way():
    of = given(torch.bfloat16, TEMPERATURES["several"])
    exact = tuple(each.detach().double() if each.is_floating_point() else each for each in of)
    exact[0].requires_grad_()
    wanted = gradient(both_ways(exact, True, 4)[0], exact[0], True)
    found, plain = (gradient(scores, of[0], True) for scores in both_ways(of, True, 4))
    assert (found - wanted).norm() <= 1.5 * (plain - wanted).norm()


@pytest.mark.parametrize("trains_entropy", [False, True])
def test_gradients_are_those_of_finite_differences(trains_entropy: bool):
    hidden_ND, weight_VD, targets_N, temperatures_N = given(torch.float64, TEMPERATURES["several"])

    def scores(hidden_ND: Tensor) -> tuple[Tensor, ...]:
        others = (targets_N, temperatures_N.double(), trains_entropy, 4)
        found = frozen_head_scores(weight_VD, hidden_ND, *others)
        return found if trains_entropy else found[:1]

    assert torch.autograd.gradcheck(scores, hidden_ND)


@pytest.mark.parametrize("used", [0, 1])
def test_a_loss_may_read_one_of_both(used: int):
    of = given(torch.float32, TEMPERATURES["several"])
    found, plain = (torch.autograd.grad(scores[used].sum(), of[0])[0] for scores in both_ways(of, True, 4))
    assert (found - plain).norm() <= 1e-6 * plain.norm()


def test_a_token_that_is_nearly_certain_or_nearly_impossible_has_finite_scores():
    hidden_ND, weight_VD, targets_N, temperatures_N = given(torch.float32, [0.05], spread=60.0)
    likeliest_N = (hidden_ND @ weight_VD.T).argmax(-1).where(torch.arange(NUM_TOKENS) % 2 == 0, targets_N)
    of = (hidden_ND, weight_VD, likeliest_N, temperatures_N)
    found, plain = both_ways(of, True, 4)
    assert plain[0].min() < -1000 and plain[0].max() > -1e-3
    torch.testing.assert_close(found[0], plain[0], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(found[1], plain[1], rtol=0, atol=1e-5)
    assert all(gradient(scores, hidden_ND, True).isfinite().all() for scores in (found, plain))


def test_without_a_gradient_the_scores_have_the_same_bits():
    of = given(torch.float32, TEMPERATURES["several"])
    with_gradient = both_ways(of, True, 4)[0]
    with torch.no_grad():
        without = both_ways(of, True, 4)[0]
    assert not without[0].requires_grad
    assert all(map(torch.equal, with_gradient, without))


class Traffic(TorchDispatchMode):
    """Bytes that operations read and write of tensors of the shape of logits."""

    def __init__(self) -> None:
        super().__init__()
        self.num_bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if not func.is_view:
            # What is written in place is read, too; what is given as `out` is not.
            self.num_bytes += sum(leaf.nbytes for leaf in tree_leaves((args, made)) if is_of_logits(leaf))
        return made


def is_of_logits(leaf: object) -> bool:
    return isinstance(leaf, Tensor) and leaf.shape[1:] == (VOCABULARY,) and len(leaf) <= NUM_TOKENS


def test_the_logits_are_gone_over_less_than_half_as_often():
    of = given(torch.bfloat16, TEMPERATURES["several"])
    bytes_of_logit: list[float] = []
    for way in (forward, plainly):
        # Two chunks, so that the plain way computes its logits twice.
        chunk = NUM_TOKENS // 2 + 1
        with Traffic() as traffic:
            gradient(way(of, False, chunk), of[0], False)
        bytes_of_logit.append(traffic.num_bytes / (NUM_TOKENS * VOCABULARY))
    assert bytes_of_logit[0] < 0.5 * bytes_of_logit[1], bytes_of_logit


@pytest.mark.parametrize("most_logits", [37 * 5, 1 << 26])
def test_a_policy_that_scores_forward_has_the_gradients_of_one_that_does_not(
    most_logits: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("temper_gpu.training.policy.MAX_LOGITS", most_logits)
    attempts = [attempt for group in sampled_groups("x", 0) for attempt in group.attempts]
    rows = build_rows(attempts, [[attempt.reward or 0.0] for attempt in attempts], "keep")
    found = []
    for scores_forward in (True, False):
        policy = policy_with_a_step_behind_it(tiny_base(), scores_forward=scores_forward)
        for batch in pack(rows.rows, rows.num_trained_tokens, 60, policy.device):
            scores = policy.log_probabilities(batch, trains_entropy=True)
            (scores.logprobs_N.sum() - 0.1 * scores.entropy_N.sum()).backward()
        found.append(gradients(policy))
    assert found[0].keys() == found[1].keys()
    for name, tensor in found[1].items():
        assert (found[0][name] - tensor).norm() <= 1e-5 * tensor.norm(), name


def test_a_head_that_trains_or_is_more_than_a_product_is_scored_in_the_plain_way():
    frozen = nn.Linear(4, 9, bias=False).requires_grad_(False)
    assert is_frozen(frozen)
    assert not is_frozen(nn.Linear(4, 9).requires_grad_(False))
    assert not is_frozen(nn.Linear(4, 9, bias=False))

    class Scaled(nn.Linear):
        """Computes something else."""

    assert not is_frozen(Scaled(4, 9, bias=False).requires_grad_(False))
    assert TrainablePolicy(tiny_base(), lora(), scores_forward=True)._scores_forward
    assert not TrainablePolicy(tiny_base(), None, scores_forward=True)._scores_forward
    no_ids = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
    capped = Gemma2Config(**SHAPE, head_dim=16, **no_ids)
    assert not TrainablePolicy(random_base("capped", capped), lora(), scores_forward=True)._scores_forward
