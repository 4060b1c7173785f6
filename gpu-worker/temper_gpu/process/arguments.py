"""The worker's command line. Imports nothing heavy: `--help` and bad usage answer at once."""

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from temper_gpu.contract import (
    DEFAULT_KV_CACHE_BYTES,
    DEFAULT_SLOTS,
    DEFAULT_THREADS,
    DEVICE_PATTERN,
    DTYPES,
    ENGINE_KEY_VARIABLE,
    ENGINES,
    GPU_QUEUE,
    LEAST_KV_CACHE_BYTES,
    LEAST_SLOTS,
    MOST_DEVICES,
    MOST_SLOTS,
    VLLM_KEY_VARIABLE,
)
from temper_gpu.failures import TemperError

EXIT_USAGE = 2
# The empty one is what a variable of a shell that is not set leaves.
EVERY_ADDRESS = frozenset(["0.0.0.0", "::", ""])
# As a client's Host header has it: a name, an address, or an address of IPv6 (without brackets).
HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252})|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*")


@dataclass(frozen=True)
class Arguments:
    store: str
    models: str | None
    host: str
    port: int
    allow_host: list[str]
    threads: int
    device: str
    # auto: bfloat16 on a GPU, float32 on a CPU.
    dtype: str
    # Whether linear layers of base models are packed to NF4.
    load_in_4bit: bool
    # That train. The engine has one of them.
    devices: int
    # Whether each of them has a part of the base model alone.
    shard_base_model: bool
    # Whether PyTorch compiles the decoder layers that train.
    compile_layers: bool
    # None: by the device (needs.py).
    kv_cache_bytes: int | None
    # None: the engine's own share of `kv_cache_bytes`.
    prefix_cache_bytes: int | None
    slots: int
    engine: str
    # Of vLLM alone: a Python that has it, arguments that are passed on, GPUs of its own.
    vllm_python: str | None
    vllm_args: tuple[str, ...]
    vllm_devices: tuple[int, ...]
    # Of a vLLM server that somebody else runs: its root, and a folder that both hosts see, here and there.
    vllm_url: str | None
    vllm_adapters: str | None
    vllm_adapters_as: str | None
    # None: the environment's (TEMPORAL_*), or Temporal's own default.
    temporal_address: str | None
    namespace: str | None
    queue: str
    no_temporal: bool
    # Whether policies are served on their base model in another type, or packed otherwise, than they were trained on.
    any_base: bool
    leash: bool
    standby: bool

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """Names under which clients may ask, besides those of loopback: an address to listen on is one of them."""
        own = [] if self.host in EVERY_ADDRESS else [self.host]
        return frozenset(name.lower() for name in [*own, *self.allow_host])


def parse_arguments(argv: Sequence[str] | None = None) -> Arguments:
    parser = argparse.ArgumentParser(
        prog="temper_gpu",
        allow_abbrev=False,
        description="Owns a device's weights: engine with an OpenAI-compatible server, trainer, Temporal worker.",
        epilog=f"environment: {ENGINE_KEY_VARIABLE} (the key that clients send), {VLLM_KEY_VARIABLE} (the key of the "
        "server at --vllm-url), TEMPORAL_* (how to reach Temporal), AWS_* (how to reach S3)",
    )
    for flags in (_place, _machine, _temporal):
        flags(parser)
    parser.add_argument("--leash", action="store_true", help="end when stdin ends")
    parser.add_argument("--standby", action="store_true", help="import everything, then wait for a byte on stdin")
    arguments = Arguments(**vars(parser.parse_args(argv)))
    _check_engine(parser, arguments)
    if arguments.load_in_4bit:
        _check_packing(parser, arguments)
    if arguments.compile_layers:
        _check_compiling(parser, arguments)
    if arguments.devices > 1 and arguments.no_temporal:
        parser.error("--devices has no effect with --no-temporal, which trains nothing; remove it")
    if arguments.any_base and not arguments.no_temporal:
        parser.error("--any-base must come with --no-temporal: what samples for training must be what is trained")
    if arguments.devices == 1 and arguments.shard_base_model:
        parser.error("--shard-base-model must come with several --devices, got 1: there is nothing to shard over")
    if arguments.host in EVERY_ADDRESS and not arguments.allow_host:
        parser.error(
            f"--host {arguments.host or repr('')} must come with --allow-host, otherwise requests from other machines "
            "are refused; pass --allow-host and the name or address that they use"
        )
    return arguments


def _check_engine(parser: argparse.ArgumentParser, arguments: Arguments) -> None:
    own = {
        "--vllm-python": arguments.vllm_python,
        "--vllm-args": arguments.vllm_args,
        "--vllm-devices": arguments.vllm_devices,
    }
    elsewhere = {"--vllm-adapters": arguments.vllm_adapters, "--vllm-adapters-as": arguments.vllm_adapters_as}
    if arguments.engine != "vllm":
        remedy = f"has no effect with --engine {arguments.engine}; pass --engine vllm"
        return _refuse_idle(parser, {**own, "--vllm-url": arguments.vllm_url, **elsewhere}, remedy)
    if arguments.prefix_cache_bytes is not None:
        parser.error("--prefix-cache-bytes has no effect with --engine vllm; remove it")
    if arguments.vllm_url is None:
        if arguments.vllm_python is None:
            parser.error("--engine vllm must come with --vllm-python; install vLLM with temper setup vllm")
        return _refuse_idle(parser, elsewhere, "has no effect without --vllm-url; remove it")
    if arguments.vllm_adapters is None:
        parser.error(
            "--vllm-url must come with --vllm-adapters, a folder that the server's host shares with this one; vLLM "
            "takes no adapters by upload"
        )
    idle = {**own, "--kv-cache-bytes": arguments.kv_cache_bytes}
    return _refuse_idle(
        parser, idle, "has no effect with --vllm-url, the server is started by somebody else; remove it"
    )


def _check_packing(parser: argparse.ArgumentParser, arguments: Arguments) -> None:
    if arguments.engine != "embedded":
        parser.error(
            f"--load-in-4bit must come with --engine embedded, got {arguments.engine}, which reads weights by itself; "
            "remove one of them"
        )
    if arguments.shard_base_model:
        parser.error(
            "--load-in-4bit must come with a whole base model on each device, got --shard-base-model; remove one of "
            "them"
        )


def _check_compiling(parser: argparse.ArgumentParser, arguments: Arguments) -> None:
    if arguments.no_temporal:
        parser.error("--compile-layers has no effect with --no-temporal, which trains nothing; remove it")
    if arguments.device == "cpu":
        parser.error("--compile-layers must come with a GPU, got --device cpu; remove one of them")
    for flag, is_given in (
        ("--load-in-4bit", arguments.load_in_4bit),
        ("--shard-base-model", arguments.shard_base_model),
    ):
        if is_given:
            parser.error(
                f"--compile-layers must come with a whole base model in its own type on each device, got {flag}; "
                "remove one of them"
            )


def _refuse_idle(parser: argparse.ArgumentParser, values: Mapping[str, object], because: str) -> None:
    for flag, value in values.items():
        if value:
            parser.error(f"{flag} {because}")


def exit_code(error: TemperError) -> int:
    return EXIT_USAGE if error.type == "BadConfig" else 1


def print_answer(answer: Callable[[], object]) -> int:
    """What a program that answers with one JSON object ends with: its exit code."""
    try:
        print(json.dumps(answer()))
    except TemperError as error:
        print(f"{error.type}: {error}", file=sys.stderr)
        return exit_code(error)
    return 0


def _place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", required=True, metavar="URI", help="file:///absolute/folder or s3://bucket/prefix")
    add_models(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=whole(0, 65535), default=8017, help="port to listen on (default: %(default)s)")
    parser.add_argument(
        "--allow-host",
        type=_name,
        action="append",
        default=[],
        metavar="NAME",
        help="a name or address that clients use for this machine, besides --host and localhost; may be given several "
        "times",
    )


def _machine(parser: argparse.ArgumentParser) -> None:
    add_computing(parser)
    parser.add_argument(
        "--devices",
        type=whole(1, MOST_DEVICES),
        default=1,
        metavar="N",
        help="how many train: GPUs from --device on, or processes on the CPU; bytes depend on it (default: 1)",
    )
    add_sharding(parser)
    parser.add_argument(
        "--compile-layers",
        action="store_true",
        help="compile the decoder layers that train, with a minute's start; on GPUs alone; bytes depend on it",
    )
    add_engine(parser)
    parser.add_argument("--vllm-python", metavar="FILE", help="a Python that has vLLM installed")
    parser.add_argument(
        "--vllm-args", type=_texts, default=(), metavar="JSON", help='arguments for vLLM: ["--max-model-len=8192"]'
    )
    parser.add_argument(
        "--vllm-adapters", metavar="FOLDER", help="a folder that this host and that of --vllm-url share, for adapters"
    )
    parser.add_argument(
        "--vllm-adapters-as", metavar="FOLDER", help="the same folder as the server's host has it (default: the same)"
    )


def add_sharding(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--shard-base-model",
        action="store_true",
        help="each of several --devices holds a part of the base model, which need not fit into one of them",
    )


def add_engine(parser: argparse.ArgumentParser) -> None:
    """What an engine's memory depends on."""
    parser.add_argument(
        "--kv-cache-bytes",
        type=whole(LEAST_KV_CACHE_BYTES, 1 << 44),
        metavar="N",
        help=f"memory that keys and values of requests may take (default: {DEFAULT_KV_CACHE_BYTES}; on a GPU a quarter "
        "of its memory)",
    )
    parser.add_argument(
        "--prefix-cache-bytes",
        type=whole(0, 1 << 44),
        metavar="N",
        help="the most of --kv-cache-bytes that is used to keep prompts for reuse; 0 keeps none (default: a quarter)",
    )
    parser.add_argument(
        "--slots",
        type=whole(LEAST_SLOTS, MOST_SLOTS),
        default=DEFAULT_SLOTS,
        metavar="N",
        help="requests decoded at once (default: %(default)s)",
    )
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0], help="what samples (default: %(default)s)")
    parser.add_argument(
        "--vllm-devices", type=_numbers, default=(), metavar="N,N", help="GPUs for vLLM alone (default: the trainer's)"
    )
    parser.add_argument("--vllm-url", type=_root, metavar="URL", help="a vLLM server that runs already: its root")


def add_models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", metavar="FILE", help='JSON, name to folder: {"mine": "/absolute/folder"}')


def add_computing(parser: argparse.ArgumentParser) -> None:
    """What the bytes of a step depend on."""
    parser.add_argument(
        "--threads",
        type=whole(1, 1024),
        default=DEFAULT_THREADS,
        help="of torch; bytes depend on it (default: %(default)s)",
    )
    parser.add_argument(
        "--device", type=_device, default="auto", help="cpu, cuda, cuda:1 …; auto: cuda if there is one (default)"
    )
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        default="auto",
        help="of the base model's weights; auto: bfloat16 on cuda, float32 on cpu (default)",
    )
    parser.add_argument(
        "--load-in-4bit",
        action="store_true",
        help="pack the base model's linear layers to NF4 (QLoRA); adapters are trained and sampled beside them",
    )


def _device(text: str) -> str:
    """Others (mps, xpu …) would fail later, in the middle of a step: the engine's kernels are not proven there."""
    if re.fullmatch(DEVICE_PATTERN, text) is None:
        raise argparse.ArgumentTypeError(f"must be auto, cpu, cuda or cuda:N, got {text!r}; pass --device cpu")
    return text


def _temporal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--temporal-address", metavar="HOST:PORT", help="default: TEMPORAL_ADDRESS")
    parser.add_argument("--namespace", help="default: TEMPORAL_NAMESPACE")
    parser.add_argument(
        "--queue", default=GPU_QUEUE, help="task queue, to which the id of the store is added (default: %(default)s)"
    )
    parser.add_argument("--no-temporal", action="store_true", help="engine and server alone")
    parser.add_argument(
        "--any-base",
        action="store_true",
        help="serve policies on their base model in another type, or packed otherwise, than they were trained on",
    )


def _name(text: str) -> str:
    if not HOST_NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"must be a name or an address without port, got {text!r}; pass gpu.example")
    return text


def _root(text: str) -> str:
    parts = urlsplit(text)
    is_plain = parts.username is None and not parts.query and not parts.fragment
    is_root = bool(parts.hostname) and not parts.path.rstrip("/").endswith("/v1")
    if parts.scheme not in ("http", "https") or not is_plain or not is_root:
        raise argparse.ArgumentTypeError(
            "must be a server's root like http://gpu-host:8000, without /v1, user, password and query, got "
            f"{re.sub('//[^/@]*@', '//…@', text)!r}; correct it"
        )
    return text.rstrip("/")


def _texts(text: str) -> tuple[str, ...]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise argparse.ArgumentTypeError(f"must be a JSON list of texts, got {text!r}; correct it")
    return tuple(found)


def _numbers(text: str) -> tuple[int, ...]:
    if not re.fullmatch("[0-9]{1,4}(,[0-9]{1,4})*", text):
        raise argparse.ArgumentTypeError(f"must be numbers with commas between them, got {text!r}; pass 0,1")
    return tuple(map(int, text.split(",")))


def whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {most}, got {text!r}; correct it")
        return int(text)

    return parse
