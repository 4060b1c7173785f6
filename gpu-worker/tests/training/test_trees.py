"""Rows laid as trees: what is laid, which tokens attend to which, and that all numbers are those of separate rows."""

import math
from dataclasses import replace
from functools import cache
from itertools import chain, pairwise
from typing import Any, get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from temper_gpu.contract import TrainConfig
from temper_gpu.training.corrections import Kind
from temper_gpu.training.groups import Group
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.losses import find_loss
from temper_gpu.training.metrics import Metrics
from temper_gpu.training.packing import MicroBatch, Row, Segment, SegmentTree, block_keys, pack, plan_blocks
from temper_gpu.training.packing.prefix_order import Placed
from temper_gpu.training.packing.trees import deal_trees, lay_branches, num_unique_tokens
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.step import train_step
from temper_gpu.training.tree_attention import Kept, Mask, TreePlan
from tests.training.samples import VOCABULARY, sampled_groups, tiny_base, train_config
from tests.training.test_losses import GSPO
from tests.training.test_packing import policy_with_a_step_behind_it

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
# CI has none: `npm run bench -- gpu` runs these tests where there is one.
NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
POLICY = policy_with_a_step_behind_it(tiny_base())
MAX_QUERIES = "temper_gpu.training.packing.blocks.MAX_QUERIES"


@st.composite
def rows_that_share(draw: st.DrawFn, vocabulary: int = 3, longest: int = 12) -> list[Row]:
    """Each begins like some row before it, or like none; of few different tokens, so that more is shared by chance."""
    tokens = st.lists(st.integers(0, vocabulary - 1), min_size=1, max_size=longest)
    rows: list[Row] = []
    for _ in range(draw(st.integers(1, 9))):
        before = draw(st.sampled_from(rows)).token_ids if rows else []
        ids = [*before[: draw(st.integers(0, len(before)))], *draw(tokens), draw(st.integers(0, vocabulary - 1))]
        positions = sorted({len(ids) - 1, *draw(st.sets(st.integers(1, len(ids) - 1), max_size=4))})
        advantages = [draw(st.sampled_from([-1.0, 0.5, 2.0])) for _ in positions]
        rows.append(Row(ids, "attempt", positions, [-3.0] * len(positions), [1.25] * len(positions), advantages))
    return rows


def computed(row: Row) -> list[int]:
    return row.token_ids[: row.positions[-1]]


def prefixes_of(rows: list[Row], part: list[Placed]) -> dict[int, tuple[int, ...]]:
    """By their place in the micro-batch: the tokens of a sequence up to each."""
    laid = lay_branches(part)
    return {
        laid.place(at, depth): tuple(rows[placed.index].token_ids[: depth + 1])
        for at, placed in enumerate(part)
        for depth in range(placed.length)
    }


@given(rows_that_share(), st.integers(1, 40))
def test_every_row_is_laid_once_and_every_prefix_once_in_a_micro_batch(rows: list[Row], max_tokens: int):
    parts = deal_trees(rows, max_tokens)
    assert sorted(placed.index for part in parts for placed in part) == list(range(len(rows)))
    for part in parts:
        prefixes = prefixes_of(rows, part)
        assert sorted(prefixes) == list(range(num_unique_tokens(part)))
        assert len(set(prefixes.values())) == len(prefixes)
        assert num_unique_tokens(part) <= max_tokens or len(part) == 1
    sizes = [num_unique_tokens(part) for part in parts]
    assert all(left >= right for left, right in pairwise(sizes))


def test_branches_stay_together_in_order_of_the_plan():
    """Two prompts of three tokens, their attempts dealt in turn; a micro-batch has room for one and a half."""
    prompts = ([1, 2, 3], [4, 5, 6])
    rows = [Row([*prompts[n % 2], n, n, 9], positions=[5]) for n in range(6)]
    assert [[placed.index for placed in part] for part in deal_trees(rows, 13)] == [[0, 2, 4], [1, 3, 5]]
    assert [[placed.index for placed in part] for part in deal_trees(rows, 18)] == [[0, 2, 4, 1, 3, 5]]
    # No branch of a prompt fits whole.
    assert [[placed.index for placed in part] for part in deal_trees(rows, 7)] == [[0, 2], [1, 3], [4], [5]]


@given(rows_that_share(), st.integers(1, 8), st.none() | st.integers(1, 6))
def test_blocks_attend_to_what_their_own_sequences_begin_with(rows: list[Row], max_queries: int, window: int | None):
    """Every pair of tokens, block by block: those before a token in its own sequence, within the window."""
    [part] = deal_trees(rows, 10**6)
    prefixes, tree = prefixes_of(rows, part), lay_branches(part).tree
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MAX_QUERIES, max_queries)
        blocks = plan_blocks(tree, window)
    assert [block.start for block in blocks] == [0, *(block.stop for block in blocks[:-1])]
    assert blocks[-1].stop == len(prefixes)
    for block in blocks:
        queries_Q, keys_K = torch.arange(block.start, block.stop), block_keys(blocks, block)
        mask_QK = tree.mask_QK(queries_Q, keys_K, window)
        for query, sees in zip(queries_Q.tolist(), mask_QK.tolist(), strict=True):
            sequence = prefixes[query]
            first = 0 if window is None else max(0, len(sequence) - window)
            seen = [prefixes[key] for key, is_seen in zip(keys_K.tolist(), sees, strict=True) if is_seen]
            assert seen == [sequence[:length] for length in range(first + 1, len(sequence) + 1)]
        if block.is_causal:
            assert torch.equal(mask_QK, torch.ones_like(mask_QK).tril())
        else:
            assert len(queries_Q) <= max(1, max_queries)


def test_a_token_attends_to_its_own_segment_and_its_ancestors():
    """A root of two tokens with two branches, one of them branched again."""
    tree = SegmentTree((Segment(0, 0, 2), Segment(0, 2, 1, 0), Segment(0, 3, 2, 0), Segment(0, 5, 1, 2)))
    all_T = torch.arange(6)
    assert tree.positions_BT(6, CPU).tolist() == [[0, 1, 2, 2, 3, 4]]
    assert seen(tree.mask_QK(all_T, all_T)) == [[0], [0, 1], [0, 1, 2], [0, 1, 3], [0, 1, 3, 4], [0, 1, 3, 4, 5]]
    # The last token is the fifth of its sequence, and the sixth of the row.
    assert seen(tree.mask_QK(all_T, all_T, 3)) == [[0], [0, 1], [0, 1, 2], [0, 1, 3], [1, 3, 4], [3, 4, 5]]


def seen(mask_QK: torch.Tensor) -> list[list[int]]:
    return [[k for k, sees in enumerate(of_query) if sees] for of_query in mask_QK.tolist()]


@pytest.mark.numerics
def test_long_shared_segments_are_attended_to_without_a_mask_of_their_own(monkeypatch: pytest.MonkeyPatch):
    """What a prompt of 40 tokens and its eight answers of 3 come to, with blocks of at most 8 queries."""
    monkeypatch.setattr(MAX_QUERIES, 8)
    rows = [Row([*range(40), 50 + n, 1, 2, 3], positions=[43]) for n in range(8)]
    [part] = deal_trees(rows, 10**6)
    blocks = plan_blocks(lay_branches(part).tree, None)
    assert [(block.start, block.stop, block.before) for block in blocks] == [
        (0, 40, ()),
        *((start, start + 6, (0,)) for start in (40, 46, 52, 58)),
    ]
    assert [block.is_causal for block in blocks] == [True, False, False, False, False]
    # A window of 10 leaves only what the answers still see of the prompt.
    assert [block.before for block in plan_blocks(lay_branches(part).tree, 10)][-1] == (3, 4)


def scored(policy: TrainablePolicy, batches: list[MicroBatch]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Loss, log-probabilities in order of what they are of, and the gradient."""
    policy.zero_grad()
    losses, logprobs = [], []
    for batch in batches:
        logprobs_N = policy.log_probabilities(batch).logprobs_N
        loss = find_loss(train_config().loss).function(batch, logprobs_N).loss_N.sum()
        loss.backward()
        losses.append(loss.detach())
        logprobs.append(logprobs_N.detach())
    gradients = [parameter.grad.flatten() for parameter in policy.parameters.values() if parameter.grad is not None]
    return torch.stack(losses).sum(), torch.cat(logprobs).sort().values, torch.cat(gradients)


def require_equal(left: tuple[torch.Tensor, ...], right: tuple[torch.Tensor, ...]) -> None:
    (loss, logprobs, gradient), (other_loss, other_logprobs, other_gradient) = left, right
    torch.testing.assert_close(loss, other_loss, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(logprobs, other_logprobs, atol=1e-5, rtol=1e-5)
    assert (gradient - other_gradient).norm() <= 1e-5 * other_gradient.norm() + 1e-7


def packed(rows: list[Row], packing: Any, max_tokens: int = 10**6, device: torch.device = CPU) -> list[MicroBatch]:
    return pack(rows, sum(len(row.positions) for row in rows), max_tokens, device, packing)


@cache
def policy_on(device: torch.device) -> TrainablePolicy:
    base = tiny_base()
    tensors, buffers = ({name: t.to(device) for name, t in of.items()} for of in (base.tensors, base.buffers))
    return policy_with_a_step_behind_it(replace(base, tensors=tensors, buffers=buffers))


@pytest.mark.numerics
@pytest.mark.parametrize(
    "device",
    [CPU, pytest.param(GPU, marks=NEEDS_GPU)],
    ids=str,
)
@given(rows_that_share(VOCABULARY), st.sampled_from([4, 256]), st.integers(1, 60))
def test_a_tree_has_the_numbers_of_its_rows(device: torch.device, rows: list[Row], max_queries: int, max_tokens: int):
    policy = policy_on(device)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MAX_QUERIES, max_queries)
        patched.setattr("temper_gpu.training.packing.packer.MOST_UNIQUE", math.inf)
        trees = packed(rows, "tree", max_tokens, device)
        require_equal(scored(policy, trees), scored(policy, packed(rows, "rows", device=device)))
    assert sum(batch.num_shared_tokens for batch in trees) <= sum(map(len, map(computed, rows)))


def shared_rows(num_rows: int = 8, num_shared: int = 40, num_own: int = 5) -> list[Row]:
    rows = []
    for n in range(num_rows):
        ids = [*(t % 30 for t in range(num_shared)), *((7 * n + t) % VOCABULARY for t in range(num_own))]
        positions = list(range(num_shared, len(ids)))
        advantages = [n - 3.5] * num_own
        rows.append(Row(ids, "attempt", positions, [-3.0] * num_own, [1.0] * num_own, advantages))
    return rows


@pytest.mark.parametrize("num_shared", [0, 2])
def test_rows_that_share_little_are_laid_as_separate_rows(num_shared: int):
    """Of many lengths: that padding is saved is no reason for another layout."""
    rows = shared_rows(4, num_shared, 30) + shared_rows(8, num_shared, 5)[4:]
    if num_shared == 0:
        rows = [replace(row, token_ids=[n, *row.token_ids]) for n, row in enumerate(rows)]
    for tree, chains in zip(packed(rows, "tree"), packed(rows, "rows"), strict=True):
        assert tree.attention == chains.attention
        assert torch.equal(tree.token_ids_BT, chains.token_ids_BT)


@pytest.mark.numerics
def test_layers_of_a_tree_that_are_computed_again_give_the_same_bits(monkeypatch: pytest.MonkeyPatch):
    batches = packed(shared_rows(), "tree")
    kept = scored(POLICY, batches)[2]
    monkeypatch.setattr("temper_gpu.training.policy.free_bytes", lambda device: 1)
    assert torch.equal(scored(POLICY, batches)[2], kept)


def test_views_of_what_the_backward_pass_makes_again_are_made_again_as_views():
    """As kernels of GPUs save a mask: for all heads, at the same address."""
    kept = Kept()
    made = kept.made(lambda: torch.arange(6.0).view(1, 1, 2, 3))
    for view in (made, made.expand(1, 4, 2, 3), made[..., :2], made.mT):
        packed = kept.pack(view)
        assert not isinstance(packed, torch.Tensor)
        again = kept.unpack(packed)
        assert (again.shape, again.stride()) == (view.shape, view.stride())
        assert torch.equal(again, view)


@pytest.mark.numerics
@pytest.mark.parametrize("is_recomputed", [False, True])
def test_masks_that_a_gpu_holds_for_all_layers_give_the_same_bits(is_recomputed: bool, monkeypatch: pytest.MonkeyPatch):
    """Their rows begin at whole vectors, and each is made once."""
    monkeypatch.setattr(POLICY, "recomputes", lambda num_tokens: is_recomputed)
    batches = packed(shared_rows(num_shared=301, num_own=7), "tree")
    made: list[torch.Tensor] = []
    make = Mask.make

    def counted(self: Mask) -> torch.Tensor:
        made.append(make(self))
        return made[-1]

    monkeypatch.setattr(Mask, "make", counted)
    again, num_again = scored(POLICY, batches), len(made)
    made.clear()
    monkeypatch.setattr("temper_gpu.training.tree_attention.REMADE_ON", ())
    for held, remade in zip(scored(POLICY, batches), again, strict=True):
        assert torch.equal(held, remade)
    assert 0 < len(made) < num_again
    assert all(mask.stride(-2) % 8 == 0 for mask in made)


STEPS: dict[str, dict[str, Any]] = {
    "default": {},
    "two passes of gspo": {"loss": GSPO, "passes": 2},
    "kl": {"kl_coefficient": 0.5},
    "weighed kl": {"kl_coefficient": 0.5, "kl_estimator": "k3-ratio"},
    "kl as reward": {"kl_coefficient": 0.1, "kl_as": "reward"},
    **{kind: {"correction": kind, "correction_cap": 1.2} for kind in get_args(Kind)},
    "entropy": {"entropy_coefficient": 0.1},
    "attempts": {"reduction": "attempt"},
    "scale": {"advantage_scale": "group-std"},
}


@pytest.mark.numerics
@pytest.mark.parametrize("name", STEPS)
def test_a_step_on_trees_has_the_metrics_and_the_gradient_of_one_on_rows(name: str):
    (rows, of_rows), (tree, of_tree) = (stepped(packing, name) for packing in ("rows", "tree"))
    assert (rows["sharedTokens"], tree["sharedTokens"] > 0) == (0, True)
    assert tree["computedTokens"] + tree["sharedTokens"] <= rows["computedTokens"]
    expected = rows | {key: tree[key] for key in ("computedTokens", "sharedTokens")}
    assert tree == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert (of_tree - of_rows).norm() <= 1e-5 * of_rows.norm()
    # Each option has an effect on its own.
    assert all((of_rows - stepped("rows", other)[1]).norm() > 0.01 * of_rows.norm() for other in STEPS if other != name)


@cache
def stepped(packing: str, name: str) -> tuple[Metrics, torch.Tensor]:
    """Metrics and AdamW's first moment, to which each update's gradient is added. Its ε is so large that no rounding
    of a small gradient becomes an update."""
    policy = policy_with_a_step_behind_it(tiny_base())
    optimizer = train_config().optimizer.model_copy(update={"epsilon": 1.0, "max_grad_norm": 1e9})
    config = forgiving(packing).model_copy(update={"optimizer": optimizer, "micro_batch_tokens": 1000, **STEPS[name]})
    metrics = train_step(policy, StepInputs("x", groups_of_two_prompts(), config, 0.01))
    moments = policy.optimizer_tensors().items()
    return metrics, torch.cat([tensor.flatten() for name, tensor in moments if name.startswith("exp_avg/")])


def groups_of_two_prompts() -> list[Group]:
    """In turn, so that a tree of all attempts has another order than the plan."""
    by_prompt = [group.attempts for group in sampled_groups("x", shared=20)]
    attempts = list(chain.from_iterable(zip(*by_prompt, strict=True)))
    return [Group(0, attempts[:4]), Group(1, attempts[4:])]


@pytest.mark.numerics
def test_a_model_that_goes_another_way_to_attention_is_trained_row_by_row(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    groups = sampled_groups("x", num_attempts=8, shared=20)
    assert train_step(POLICY, StepInputs("x", groups, forgiving("tree"), 0.0))["sharedTokens"] > 0
    expected = train_step(POLICY, StepInputs("x", groups, forgiving("rows"), 0.0))
    for other_way in (without_a_plan, as_chains):
        other = policy_with_a_step_behind_it(tiny_base())
        monkeypatch.setattr(other, "_attention_inputs", other_way)
        assert not other.knows_trees
        assert "shared prefixes are computed for each row" in caplog.text
        assert train_step(other, StepInputs("x", groups, forgiving("tree"), 0.0)) == expected | {"packedAsRows": 1}
        assert train_step(other, StepInputs("x", groups, forgiving("rows"), 0.0)) == expected


def forgiving(packing: str) -> TrainConfig:
    return train_config(packing=packing, max_logprob_mismatch=10.0)


def without_a_plan(batch: MicroBatch, is_recomputed: bool) -> dict[str, TreePlan]:
    """As of a model that passes nothing on to its attention."""
    return {}


def as_chains(batch: MicroBatch, is_recomputed: bool) -> dict[str, TreePlan]:
    """As of a model that attends to all that stands before a token."""
    whole = SegmentTree((Segment(0, 0, batch.token_ids_BT.shape[1]),))
    return {"tree_plan": TreePlan(whole, [None, None], False, is_recomputed)}
