"""Which of a processor's instructions the libraries use. They read it once, when they start."""

import logging
import os
import re
import sys

# Each limits a library to fewer instructions than the processor has, and so changes last bits.
LIMITS = ("ATEN_CPU_CAPABILITY", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")
NARROW = {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AUTO,STRICT", "ONEDNN_MAX_CPU_ISA": "AVX2"}

log = logging.getLogger(__name__)


def limits() -> str:
    """`NAME=value NAME=value`; empty where nothing is limited."""
    return " ".join(f"{name}={os.environ[name]}" for name in LIMITS if os.environ.get(name))


def limit_as(recorded: object) -> None:
    """Limits this process as `limits()` said of another one; before torch is imported.

    What else the text says is not taken over: it may come from a foreign store.
    """
    for name in LIMITS:
        os.environ.pop(name, None)
    words = recorded.split(" ") if isinstance(recorded, str) else []
    for found in filter(None, (re.fullmatch(r"(\w+)=([\w,]+)", word, re.ASCII) for word in words)):
        if found[1] in LIMITS:
            os.environ[found[1]] = found[2]


def start_narrower(reason: str) -> None:
    """Starts this process again, with the same id and stdin, limited to narrower instructions.

    Returns where it is limited already. What is in flight is lost, as when the process is killed.
    """
    missing = {name: value for name, value in NARROW.items() if not os.environ.get(name)}
    if not missing:
        return
    settings = " ".join(f"{name}={value}" for name, value in missing.items())
    log.warning("%s. The worker starts again with narrower instructions, which are slower: %s", reason, settings)
    for handler in logging.getLogger().handlers:
        handler.flush()
    # Its turn has come already.
    arguments = [argument for argument in sys.orig_argv[1:] if argument != "--standby"]
    os.execve(sys.executable, [sys.executable, *arguments], {**os.environ, **missing})
