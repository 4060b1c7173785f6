"""Engine and trainer require that their base model is the one that a checkpoint was trained on.

Under one name, a host may have other weights, another type, or weights packed to 4 bits. On such a base a policy
samples other answers, which would be trained as if they were its own.
"""

from typing import TYPE_CHECKING

from temper_gpu.commits.checkpoints import Manifest
from temper_gpu.failures import TemperError

if TYPE_CHECKING:
    from temper_gpu.model.models import BaseModel


def require_same_base(policy: str, manifest: Manifest, base: "BaseModel") -> None:
    """Hashes the base model's weights the first time, which is too slow for an event loop."""
    # Imported late: torch takes seconds, and names must resolve without it.
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
