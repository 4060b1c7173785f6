"""Every loss of the contract: the class of its options, its function, its metrics."""

from functools import partial
from typing import assert_never

from temper_gpu.contract import (
    CispoLoss,
    DppoLoss,
    GspoLoss,
    ImportanceSamplingLoss,
    LossConfig,
    PpoLoss,
    SapoLoss,
)
from temper_gpu.training.losses.loss import CLIPPED_SHARE, Loss
from temper_gpu.training.losses.policy_gradient import cispo, dppo, gspo, importance_sampling, ppo, sapo


def find_loss(config: LossConfig) -> Loss:
    """Type checking finds a loss without a row here, and a function with another loss's options."""
    match config:
        case CispoLoss():
            return Loss(partial(cispo, config), (CLIPPED_SHARE,))
        case PpoLoss():
            return Loss(partial(ppo, config), (CLIPPED_SHARE,))
        case GspoLoss():
            return Loss(partial(gspo, config), (CLIPPED_SHARE,))
        case DppoLoss():
            return Loss(partial(dppo, config), (CLIPPED_SHARE,))
        case SapoLoss():
            return Loss(partial(sapo, config), ())
        case ImportanceSamplingLoss():
            return Loss(partial(importance_sampling, config), (CLIPPED_SHARE,))
        case _:
            assert_never(config)
