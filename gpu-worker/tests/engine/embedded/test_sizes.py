"""How many tokens a forward pass may have, by the model and the device."""

import pytest
import torch

from temper_gpu.engine.embedded.sizes import LARGEST, SMALLEST_LARGEST, sizes_for


@pytest.mark.parametrize(
    ("num_parameters", "on_cpu"), [(2e5, LARGEST), (135e6, 192), (7.6e9, SMALLEST_LARGEST), (70e9, SMALLEST_LARGEST)]
)
def test_a_gpu_takes_large_passes_of_every_model_and_a_cpu_smaller_ones_of_larger_models(
    num_parameters: float, on_cpu: int
):
    largest = [sizes_for(int(num_parameters), None, torch.device(name)).largest for name in ("cpu", "cuda")]
    assert largest == [on_cpu, LARGEST]


def test_a_bound_that_was_set_holds_on_every_device():
    assert [sizes_for(135_000_000, 64, torch.device(name)).largest for name in ("cpu", "cuda")] == [64, 64]
