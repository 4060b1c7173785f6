"""The worker's command line: its settings as JSON. Imports nothing heavy: `--help` and bad usage answer at once."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from temper_gpu.contract import ENGINE_KEY_VARIABLE, VLLM_KEY_VARIABLE, GpuWorkerSettings
from temper_gpu.failures import TemperError
from temper_gpu.process.startup import collecting_seldom, limit_spinning

EXIT_USAGE = 2
Input = TypeVar("Input", bound=BaseModel)


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
    add_settings(parser)
    parser.add_argument("--leash", action="store_true", help="end when stdin ends")
    parser.add_argument("--standby", action="store_true", help="import everything, then wait for a byte on stdin")
    return Arguments(**vars(parser.parse_args(argv)))


def add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--settings",
        type=read_as(GpuWorkerSettings),
        required=True,
        metavar="FILE",
        help='JSON, in a file or as it is: {"store": "file:///absolute/folder"} (GpuWorkerSettings in contract.py)',
    )


def read_as(kind: type[Input]) -> Callable[[str], Input]:
    """JSON of this type, or a file with it."""

    def read(text: str) -> Input:
        try:
            return kind.model_validate_json(text if text.lstrip().startswith("{") else Path(text).read_bytes())
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise argparse.ArgumentTypeError(f"{place}: {first['msg']}, got {first['input']!r}; correct it") from error
        except OSError as error:
            raise argparse.ArgumentTypeError(
                f"must be JSON or a file with it, got {text!r} ({error.strerror}); correct the path"
            ) from error

    return read


def exit_code(error: TemperError) -> int:
    return EXIT_USAGE if error.type == "BadConfig" else 1


def print_answer(answer: Callable[[], object]) -> int:
    """Prints the answer as one JSON object, or the error, and returns the program's exit code."""
    limit_spinning()
    try:
        with collecting_seldom():
            print(json.dumps(answer()))
    except TemperError as error:
        print(f"{error.type}: {error}", file=sys.stderr)
        return exit_code(error)
    return 0
