"""The worker's command line: its settings as JSON. Imports nothing heavy: `--help` and bad usage answer at once."""

import argparse
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from temper_gpu.contract import ENGINE_KEY_VARIABLE, VLLM_KEY_VARIABLE, GpuWorkerSettings
from temper_gpu.failures import TemperError

EXIT_USAGE = 2


@dataclass(frozen=True)
class Arguments:
    settings: GpuWorkerSettings
    leash: bool
    standby: bool


def parse_arguments(argv: Sequence[str] | None = None) -> Arguments:
    parser = argparse.ArgumentParser(
        prog="temper_gpu",
        allow_abbrev=False,
        description="Owns a device's weights: engine with an OpenAI-compatible server, trainer, Temporal worker. "
        "`temper gpu-worker` starts it with the settings of temporal.config.ts.",
        epilog=f"environment: {ENGINE_KEY_VARIABLE} (the key that clients send), {VLLM_KEY_VARIABLE} (the key of the "
        "server at engine.vllm.url), TEMPORAL_* (how to reach Temporal), AWS_* (how to reach S3)",
    )
    parser.add_argument(
        "--settings",
        type=read_settings,
        required=True,
        metavar="FILE",
        help='JSON, in a file or as it is: {"store": "file:///absolute/folder"} (GpuWorkerSettings in contract.py)',
    )
    parser.add_argument("--leash", action="store_true", help="end when stdin ends")
    parser.add_argument("--standby", action="store_true", help="import everything, then wait for a byte on stdin")
    return Arguments(**vars(parser.parse_args(argv)))


def read_settings(text: str) -> GpuWorkerSettings:
    """JSON, or a file with it."""
    try:
        is_json = text.lstrip().startswith("{")
        return GpuWorkerSettings.model_validate_json(text if is_json else Path(text).read_bytes())
    except ValidationError as error:
        raise argparse.ArgumentTypeError(describe_invalid(error)) from error
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"must be JSON or a file with it, got {text!r} ({error.strerror}); correct the path"
        ) from error


def describe_invalid(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"])) or "all of it"
    # Shortened: the input may be long, and hold prompts.
    return f"{place}: {first['msg']}, got {reprlib.repr(first['input'])}; correct it"


def exit_code(error: TemperError) -> int:
    return EXIT_USAGE if error.type == "BadConfig" else 1
