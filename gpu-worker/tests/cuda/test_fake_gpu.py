"""What the fake GPU is made of, piece by piece: if an upgrade of PyTorch changes one of its internals, this fails."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.cuda.fake_gpu import GPU, FakeGpu, OnGpu, behind, storage_of

_attend = F.scaled_dot_product_attention


@pytest.fixture
def gpu() -> Iterator[FakeGpu]:
    with FakeGpu(has_numbers=True) as gpu:
        yield gpu


@pytest.fixture(params=[True, False], ids=["with numbers", "without"])
def either(request: pytest.FixtureRequest) -> Iterator[FakeGpu]:
    with FakeGpu(has_numbers=request.param) as gpu:
        yield gpu


@pytest.fixture
def deterministic() -> None:
    torch.use_deterministic_algorithms(True)


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_launches_waits_and_copies_are_counted(either: FakeGpu):
    x, w = numbers(2, 3).to(GPU), numbers(3, 4).to(GPU)
    assert (type(x), x.device, x.is_cuda, x.to(GPU) is x) == (OnGpu, GPU, True, True)
    assert (either.copies.total(), either.copied_bytes) == (2, 4 * (6 + 12))
    y = x @ w
    seen = y.view(-1)[2:].add(1)
    assert isinstance(seen.sum().item(), float)
    assert seen.cpu().device.type == "cpu"
    assert either.launched.times == {"mm": 1, "add": 1, "sum": 1}
    assert either.launched.num_bytes["mm"] == 4 * (6 + 12 + 8)
    assert either.waits.total() == 2
    either.forget()
    torch.tensor([1.0, 2.0], device=GPU).to(torch.bfloat16).tolist()
    torch.zeros(3, device=GPU)[[0, 2]].add_(1.0)
    assert either.launched.times == {"_to_copy": 1, "zeros": 1, "index": 1, "add_": 1}
    assert (either.copies.total(), either.waits.total()) == (2, 1)


def test_layers_come_as_their_products_within_inference_mode_too(either: FakeGpu):
    layer = nn.Linear(4, 5).to(GPU)
    either.forget()
    layer(numbers(2, 4).to(GPU))
    with torch.inference_mode():
        x = numbers(2, 4).to(GPU)
        x[0].copy_(layer.weight[0])
        layer(x)
    assert either.launched.times == {"addmm": 2, "copy_": 1}


def test_what_mixes_devices_raises(either: FakeGpu):
    x = numbers(3).to(GPU)
    assert (x * torch.tensor(2.0)).shape == (3,)
    for mixed in (lambda: x + numbers(3), lambda: numbers(3).add_(x), lambda: torch.tensor(1.0).add_(x[0])):
        with pytest.raises(RuntimeError, match="same device"):
            mixed()
    with pytest.raises((RuntimeError, TypeError)):
        x.numpy()


def test_what_has_no_deterministic_kernel_raises(either: FakeGpu, deterministic: None):
    x = numbers(3).to(GPU)
    for refused in (lambda: x.cumsum(0), lambda: torch.arange(3, device=GPU).cumsum(0, dtype=torch.float64)):
        with pytest.raises(RuntimeError, match="cumsum does not have a deterministic implementation"):
            refused()
    torch.arange(3, device=GPU).cumsum(0)
    torch.use_deterministic_algorithms(False)
    x.cumsum(0)


def test_copies_of_a_whole_table_are_counted(either: FakeGpu, deterministic: None):
    table = torch.zeros(4, 2, 8, 3, device=GPU)
    either.launched.watched = frozenset([storage_of(behind(table))])
    rows, places = (torch.tensor([1, 2], device=GPU) for _ in range(2))
    table.flatten(0, 2).index_copy_(0, rows, numbers(2, 3).to(GPU))
    table.flatten(0, 2).index_select(0, rows)
    table[1:3].clone()
    assert either.launched.num_whole_copies == 0
    table[rows, :, places] = numbers(2, 2, 3).to(GPU)
    assert either.launched.num_whole_copies == 1
    table.transpose(1, 2).contiguous()
    assert either.launched.num_whole_copies == 2


def test_a_backward_pass_has_the_cpus_gradients(gpu: FakeGpu):
    def gradient(x: Tensor, weight: Tensor) -> Tensor:
        parameter = nn.Parameter(weight)
        hidden = checkpoint(lambda: F.silu(F.linear(x, parameter)), use_reentrant=False)
        F.log_softmax(hidden.view(2, -1)[:, 2:], -1).square().sum().backward()
        assert parameter.grad is not None
        return parameter.grad

    given = numbers(4, 3), numbers(5, 3, seed=1)
    found = gradient(*(each.to(GPU) for each in given))
    assert isinstance(found, OnGpu)
    torch.testing.assert_close(found.cpu(), gradient(*given))
    assert gpu.launched.times["mm"] >= 2


@pytest.mark.parametrize("is_masked", [False, True])
def test_attention_has_the_cpus_numbers(gpu: FakeGpu, is_masked: bool):
    def attended(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> list[Tensor]:
        query, key, value = (each.requires_grad_() for each in (query, key, value))
        options: dict[str, Any] = {"attn_mask": mask} if is_masked else {"is_causal": True, "enable_gqa": True}
        out = F.scaled_dot_product_attention(query, key, value, **options)
        return [out, *torch.autograd.grad(out.square().sum(), (query, key, value))]

    heads = 4 if is_masked else 2
    given = numbers(1, 4, 5, 16), numbers(1, heads, 5, 16, seed=1), numbers(1, heads, 5, 16, seed=2)
    mask = numbers(1, 1, 5, 5, seed=3)
    query, key, value, mask_there = (each.to(GPU) for each in (*given, mask))
    found = attended(query, key, value, mask_there)
    for one, other in zip(found, attended(*given, mask), strict=True):
        torch.testing.assert_close(one.detach().cpu(), other.detach())
    # Rows of five numbers are copied, so that they begin at multiples of eight.
    assert gpu.launched.times["constant_pad_nd"] == is_masked
    assert sum("efficient_attention" in name for name in gpu.launched.times) == 2


def test_kernels_refuse_masks_that_they_do_not_take(gpu: FakeGpu):
    query = numbers(1, 4, 8, 16).to(GPU)
    for shape, told in (((1, 1, 8, 8), "must have the shape"), ((1, 4, 8, 9), "must begin at multiples of 8")):
        mask = torch.zeros(shape).to(GPU)[..., :8]
        with pytest.raises(RuntimeError, match=told):
            torch.ops.aten._scaled_dot_product_efficient_attention(query, query, query, mask, False)


def test_lists_of_tensors_are_one_launch(either: FakeGpu):
    parameters = [nn.Parameter(numbers(3, seed=seed).to(GPU)) for seed in range(4)]
    for parameter in parameters:
        parameter.grad = numbers(3).to(GPU)
    either.forget()
    optimizer = torch.optim.AdamW(parameters, fused=True)
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    assert either.launched.times["_foreach_norm"] == either.launched.times["_fused_adamw_"] == 1


def test_products_of_halves_may_be_float32(gpu: FakeGpu):
    halves = numbers(3, 4).to(GPU, torch.bfloat16)
    found = torch.mm(halves, halves.T, out_dtype=torch.float32)
    assert torch.equal(found.cpu(), halves.cpu().float() @ halves.cpu().float().T)
    with pytest.raises(RuntimeError, match="must make float32 of halves"):
        torch.mm(halves.float(), halves.T.float(), out_dtype=torch.float32)


def test_all_is_as_before_behind_it():
    with FakeGpu(has_numbers=True):
        tensor = torch.ones(2).to(GPU)
    assert F.scaled_dot_product_attention is _attend
    assert type(torch.tensor([1.0])) is Tensor
    with pytest.raises(RuntimeError, match="outside of the fake GPU"):
        tensor.add(1)
