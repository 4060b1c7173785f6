"""bitsandbytes, which packs weights and moments. It is imported on first use, because that takes seconds."""

import logging
import sys
from functools import cache
from typing import Any

from temper_gpu.failures import TemperError

NAME, REQUIREMENT = "bitsandbytes", "bitsandbytes==0.50.2"
# Warns on import about a kernel that nothing here uses.
_NOISY = "bitsandbytes.backends.cpu.ops"


@cache
def import_bitsandbytes(option: str) -> Any:
    """Imports bitsandbytes, which registers its operators. `option` needs it, and is named in the error."""
    logger = logging.getLogger(_NOISY)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        import bitsandbytes
    except (ImportError, OSError, RuntimeError) as error:
        raise TemperError(
            "BadConfig",
            f"{option} needs bitsandbytes, but {sys.executable} cannot import it ({error}); install {REQUIREMENT} "
            f"there, or leave {option} out",
        ) from error
    finally:
        logger.setLevel(level)
    return bitsandbytes
