"""The worker's command line. Imports nothing heavy: `--help` and bad usage answer at once."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Arguments:
    store: str
    models: str | None
    host: str
    port: int
    threads: int
    device: str
    dtype: str
    # None: the environment's (TEMPORAL_*), or Temporal's own default.
    temporal_address: str | None
    namespace: str | None
    queue: str
    no_temporal: bool
    leash: bool
    standby: bool


def parse_arguments(argv: Sequence[str] | None = None) -> Arguments:
    parser = argparse.ArgumentParser(
        prog="temper_gpu",
        allow_abbrev=False,
        description="Owns a device's weights: engine with an OpenAI-compatible server, trainer, Temporal worker.",
        epilog="environment: TEMPER_ENGINE_KEY (the key that clients send), TEMPORAL_* (how to reach Temporal), AWS_* "
        "(how to reach S3)",
    )
    for flags in (_place, _machine, _temporal):
        flags(parser)
    parser.add_argument("--leash", action="store_true", help="end when stdin ends")
    parser.add_argument("--standby", action="store_true", help="import everything, then wait for a byte on stdin")
    return Arguments(**vars(parser.parse_args(argv)))


def _place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", required=True, metavar="URI", help="file:///absolute/folder or s3://bucket/prefix")
    parser.add_argument("--models", metavar="FILE", help='JSON, name to folder: {"mine": "/absolute/folder"}')
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=_whole(0, 65535), default=8017, help="port to listen on (default: %(default)s)")


def _machine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads", type=_whole(1, 1024), default=2, help="of torch; bytes depend on it (default: %(default)s)"
    )
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1 … (default: cuda where there is one)")
    parser.add_argument(
        "--dtype", choices=("float32", "bfloat16"), default="float32", help="of the base (default: %(default)s)"
    )


def _temporal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--temporal-address", metavar="HOST:PORT", help="default: TEMPORAL_ADDRESS")
    parser.add_argument("--namespace", help="default: TEMPORAL_NAMESPACE")
    parser.add_argument("--queue", default="gpu", help="task queue (default: %(default)s)")
    parser.add_argument("--no-temporal", action="store_true", help="engine and server alone")


def _whole(least: int, most: int) -> Any:
    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {most}, got {text!r}")
        return int(text)

    return parse
