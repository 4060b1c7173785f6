"""Memory that trees take. Counted bytes are the same with all of a processor's instructions and with few."""

import pytest
from transformers import Qwen2Config

from temper_gpu.model.models import BaseModel
from tests.engine.embedded.tiny import SHAPE, random_base
from tests.live_bytes import peak_bytes
from tests.training.test_packing import policy_with_a_step_behind_it
from tests.training.test_trees import MAX_QUERIES, packed, scored, shared_rows


@pytest.mark.parametrize("is_recomputed", [False, True])
def test_a_tree_takes_no_more_memory_than_its_rows(is_recomputed: bool, monkeypatch: pytest.MonkeyPatch):
    """The bound leaves room for two rows, or for all; in either case a tree has more of them. The model is narrow and
    has few layers, so blocks are small, too: what one of them copies weighs little beside what layers keep."""
    monkeypatch.setattr(MAX_QUERIES, 32)
    policy = policy_with_a_step_behind_it(deep_base())
    monkeypatch.setattr(policy, "recomputes", lambda num_tokens: is_recomputed)
    rows = shared_rows(num_rows=8, num_shared=300, num_own=40)
    for max_tokens in (700, 10**6):
        tree, chains = ([packed(rows, packing, max_tokens)[0]] for packing in ("tree", "rows"))
        assert tree[0].num_sequences > 2
        taken = [peak_bytes(lambda batches=batches: scored(policy, batches)) for batches in (tree, chains)]
        assert taken[0] <= taken[1]


def deep_base() -> BaseModel:
    return random_base("deep", Qwen2Config(**{**SHAPE, "num_hidden_layers": 8}))
