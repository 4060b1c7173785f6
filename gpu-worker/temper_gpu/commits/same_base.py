"""What engine and trainer both require of a checkpoint: their base model is the one that it was trained on.

The same name may stand for other weights, for the same ones in another type, or packed to 4 bits. A policy on another
base answers otherwise, and what it samples would be trained as if the right one had.
"""

from typing import TYPE_CHECKING

from temper_gpu.commits.checkpoints import Manifest
from temper_gpu.failures import TemperError

if TYPE_CHECKING:
    from temper_gpu.model.models import BaseModel


def require_same_base(policy: str, manifest: Manifest, base: "BaseModel") -> None:
    """Hashes the base model's weights the first time: not for an event loop."""
    # torch: seconds, and names must resolve without it
    from temper_gpu.model.lora import dtype_name

    was_packed, is_packed = manifest.is_packed, bool(base.packed)
    if was_packed != is_packed:
        ways, remedy = ("whole", "in 4 bits"), "with" if was_packed else "without"
        raise _another(
            policy,
            f"{manifest.base_model} {ways[was_packed]}, but this GPU worker loads it {ways[is_packed]}; start it "
            f"{remedy} --load-in-4bit (engine.loadIn4bit in temporal.config.ts)",
        )
    here = dtype_name(base.dtype)
    if manifest.dtype != here:
        raise _another(
            policy,
            f"{manifest.base_model} in {manifest.dtype}, but this GPU worker loads it in {here}; start it with --dtype "
            f"{manifest.dtype} (engine.dtype in temporal.config.ts)",
        )
    if manifest.base_model_sha256 != base.sha256:
        raise _another(
            policy,
            f"{manifest.base_model} of sha256 {manifest.base_model_sha256}, but this host has {base.sha256} under that "
            "name; restore the old weights",
        )


def _another(policy: str, how: str) -> TemperError:
    rule = f"{policy} must be used with the base model that it was trained on"
    return TemperError("PolicyMismatch", f"{rule}: it was trained with {how}")
