"""What the fake GPU refuses: else tests on it would pass with what ends a run on a GPU."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from tests.cuda.fake_gpu import GPU, FakeGpu, OnGpu


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


def test_kernels_refuse_masks_that_they_do_not_take(gpu: FakeGpu):
    query = numbers(1, 4, 8, 16).to(GPU)
    for shape, told in (((1, 1, 8, 8), "must have the shape"), ((1, 4, 8, 9), "must begin at multiples of 8")):
        mask = torch.zeros(shape).to(GPU)[..., :8]
        with pytest.raises(RuntimeError, match=told):
            torch.ops.aten._scaled_dot_product_efficient_attention(query, query, query, mask, False)
