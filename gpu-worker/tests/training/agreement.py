"""Where two ways of adding up meet, gradients agree relative to their norm.

Parameters after Adam do not serve: its first steps have the learning rate's size whatever the gradient is, so that the
rounding of a gradient near zero moves a parameter by any amount.
"""

from collections.abc import Mapping

from torch import Tensor

from temper_gpu.training.policy import TrainablePolicy


def require_same_gradients(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Each parameter's, to 1e-5 of the norm of what is expected; some of them are not zero."""
    assert found.keys() == expected.keys()
    assert any(tensor.any() for tensor in expected.values())
    for name, tensor in expected.items():
        require_near(found[name], tensor, name)


def require_near(found: Tensor, expected: Tensor, name: str = "") -> None:
    assert (found - expected).norm() <= 1e-5 * expected.norm(), name


def first_moments(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Of an optimizer's file: after its first update, a tenth of the (clipped) gradients."""
    return {name: tensor for name, tensor in tensors.items() if name.startswith("exp_avg/")}


def gradients(policy: TrainablePolicy) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in policy.parameters.items() if p.grad is not None}
