"""What the fake GPU is made of: if an upgrade of PyTorch changes one of its internals, this fails."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.cuda.fake_gpu import GPU, FakeGpu, OnGpu

_attend = F.scaled_dot_product_attention


@pytest.fixture
def gpu() -> Iterator[FakeGpu]:
    with FakeGpu() as gpu:
        yield gpu


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_what_mixes_devices_raises(gpu: FakeGpu):
    x = numbers(3).to(GPU)
    assert (type(x), x.device, x.is_cuda, x.to(GPU) is x) == (OnGpu, GPU, True, True)
    assert (x * torch.tensor(2.0)).cpu().equal(numbers(3) * 2)
    for mixed in (lambda: x + numbers(3), lambda: numbers(3).add_(x), lambda: torch.tensor(1.0).add_(x[0])):
        with pytest.raises(RuntimeError, match="same device"):
            mixed()
    with pytest.raises((RuntimeError, TypeError)):
        x.numpy()


def test_what_has_no_deterministic_kernel_raises(gpu: FakeGpu):
    torch.use_deterministic_algorithms(True)
    x = numbers(3).to(GPU)
    for refused in (lambda: x.cumsum(0), lambda: torch.arange(3, device=GPU).cumsum(0, dtype=torch.float64)):
        with pytest.raises(RuntimeError, match="cumsum does not have a deterministic implementation"):
            refused()
    torch.arange(3, device=GPU).cumsum(0)
    torch.use_deterministic_algorithms(False)
    x.cumsum(0)


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
    assert gpu.launched["mm"] >= 2


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
    assert gpu.launched["constant_pad_nd"] == is_masked
    assert sum("efficient_attention" in name for name in gpu.launched) == 2


def test_kernels_refuse_masks_that_they_do_not_take(gpu: FakeGpu):
    query = numbers(1, 4, 8, 16).to(GPU)
    for shape, told in (((1, 1, 8, 8), "must have the shape"), ((1, 4, 8, 9), "must begin at multiples of 8")):
        mask = torch.zeros(shape).to(GPU)[..., :8]
        with pytest.raises(RuntimeError, match=told):
            torch.ops.aten._scaled_dot_product_efficient_attention(query, query, query, mask, False)


def test_all_is_as_before_behind_it():
    with FakeGpu():
        tensor = torch.ones(2).to(GPU)
    assert F.scaled_dot_product_attention is _attend
    assert type(torch.tensor([1.0])) is Tensor
    with pytest.raises(RuntimeError, match="outside of the fake GPU"):
        tensor.add(1)
