"""A tree's attention in one kernel, as a GPU computes it: which blocks of keys it is told to see, and that its numbers
are those of separate rows. FlexAttention has no backward pass on a CPU; a plain function that reads the same lists of
blocks stands for it."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from temper_gpu.training import tree_kernel
from temper_gpu.training.packing import Row, SegmentTree
from temper_gpu.training.tree_attention import attend_tree
from temper_gpu.training.tree_kernel import Heads, block_mask, find_kernel, is_long_enough, padded_length
from tests.training.samples import tiny_base
from tests.training.test_packing import policy_with_a_step_behind_it
from tests.training.test_trees import CPU, GPU, NEEDS_GPU, packed, require_equal, rows_that_share, scored, shared_rows


def seen_by(mask: Any) -> Tensor:
    """What a kernel makes of a block mask: blocks that are whole are not asked for."""
    length, block = mask.seq_lengths[0], tree_kernel.BLOCK
    places_S = torch.arange(length)
    asked_SS = mask.mask_mod(torch.zeros(1), torch.zeros(1), places_S[:, None], places_S)
    seen_SS = torch.zeros(length, length, dtype=torch.bool)
    for counts, lists, is_whole in (
        (mask.kv_num_blocks, mask.kv_indices, False),
        (mask.full_kv_num_blocks, mask.full_kv_indices, True),
    ):
        for row, count in enumerate(counts[0, 0].tolist()):
            for column in lists[0, 0, row, :count].tolist():
                there = slice(row * block, (row + 1) * block), slice(column * block, (column + 1) * block)
                seen_SS[there] = True if is_whole else asked_SS[there]
    return seen_SS


def plain_kernel(query: Tensor, key: Tensor, value: Tensor, block_mask: Any, scale: float, enable_gqa: bool) -> Tensor:
    """As FlexAttention's own function is called."""
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, seen_by(block_mask), scale=scale, enable_gqa=enable_gqa
    )


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_kernel, "BLOCK", 4)
    monkeypatch.setattr(tree_kernel, "SHORTEST", 8)


def tree_of(rows: list[Row], patched: pytest.MonkeyPatch) -> SegmentTree:
    patched.setattr("temper_gpu.training.packing.packer.MOST_UNIQUE", math.inf)
    [batch] = packed(rows, "tree")
    return batch.attention


@given(rows_that_share(), st.sampled_from([None, 1, 3, 6]))
def test_a_kernel_is_told_to_see_what_a_tree_sees_and_padding_itself(rows: list[Row], window: int | None):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tree_kernel, "BLOCK", 4)
        patched.setattr(tree_kernel, "SHORTEST", 8)
        tree = tree_of(rows, patched)
        num_tokens = tree.segments[-1].stop
        seen_SS = seen_by(block_mask(tree, window, num_tokens, CPU))
    places_T = torch.arange(num_tokens)
    wanted_SS = torch.eye(len(seen_SS), dtype=torch.bool)
    wanted_SS[:num_tokens, :num_tokens] = tree.mask_QK(places_T, places_T, window)
    assert torch.equal(seen_SS, wanted_SS)


@pytest.mark.numerics
@pytest.mark.parametrize("is_recomputed", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_a_tree_in_one_kernel_has_the_numbers_of_its_rows(is_recomputed: bool, monkeypatch: pytest.MonkeyPatch):
    """With a last layer of few tokens, too."""
    policy = policy_with_a_step_behind_it(tiny_base())
    monkeypatch.setattr(policy, "recomputes", lambda num_tokens: is_recomputed)
    calls: list[int] = []

    def counted(query: Tensor, *given: Any, **options: Any) -> Tensor:
        calls.append(query.shape[2])
        return plain_kernel(query, *given, **options)

    monkeypatch.setattr(policy, "tree_kernel", counted)
    rows = shared_rows()
    require_equal(scored(policy, packed(rows, "tree")), scored(policy, packed(rows, "rows")))
    assert set(calls) == {128}


@pytest.mark.usefixtures("small_blocks")
def test_trees_of_few_lengths_compile_few_kernels():
    lengths = range(5, 200)
    assert {padded_length(length) for length in lengths if is_long_enough(length)} == {8, 16, 32, 64, 128, 256}
    assert not is_long_enough(4)


@pytest.mark.parametrize(("dtype", "device"), [(torch.float32, GPU), (torch.bfloat16, CPU)])
def test_a_cpu_and_float32_compute_trees_in_blocks(dtype: torch.dtype, device: torch.device):
    assert find_kernel(Heads(4, 2, 16, dtype, device), [None], attend_tree) is None


@pytest.mark.numerics
def test_a_kernel_that_does_not_compile_leaves_trees_to_the_blocks(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def failing(*given: Any, **options: Any) -> Tensor:
        raise RuntimeError("Failed to find C compiler")

    monkeypatch.setattr(tree_kernel, "_compiled", lambda: failing)
    monkeypatch.setattr(tree_kernel, "is_capable", lambda heads: True)
    assert find_kernel(Heads(4, 2, 16, torch.float32, CPU), [None], attend_tree) is None
    assert "trees are computed in blocks" in caplog.text


@pytest.mark.numerics
@NEEDS_GPU
@pytest.mark.parametrize("window", [None, 300], ids=str)
def test_flex_attention_computes_a_tree_on_cuda(window: int | None):
    assert find_kernel(Heads(4, 2, 64, torch.bfloat16, GPU), [window], attend_tree) is not None
