"""What a divergence is charged against: the base model, or the frozen adapter of another checkpoint (`klReference`).

The plan names the adapter by its hash, so that a copy of a run needs its bytes and nothing else of the other run.
"""

from collections.abc import Mapping

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from temper_gpu.contract import TrainConfig
from temper_gpu.failures import TemperError
from temper_gpu.store import Store


def read_reference(store: Store, config: TrainConfig) -> Mapping[str, Tensor] | None:
    """None: the base model."""
    blob = config.kl_reference
    if blob is None:
        return None
    try:
        return load(store.get_blob(blob))
    except SafetensorError as error:
        raise TemperError(
            "StoreCorrupt", f"{blob.key} must be an adapter as safetensors, got {error}; restore it from a copy"
        ) from error
