"""Builds the GPU worker from its parts, and runs it. Engine and trainer share models, store and device."""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from starlette.types import ASGIApp

from temper_gpu.commits.resolver import StoreResolver
from temper_gpu.commits.templates import StoredTemplates
from temper_gpu.contract import GpuWorkerSettings, InitialiseInput, LoraConfig, TrainConfig
from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.embedded.host import EngineHost, exit_process
from temper_gpu.engine.interface import Engines, GenerationRequest
from temper_gpu.engine.vllm.host import VllmHost
from temper_gpu.engine.vllm.settings import VllmSettings, installed_version
from temper_gpu.engine.vllm.switching import Held, StepNeed
from temper_gpu.engine.vllm.training import Training
from temper_gpu.failures import TemperError
from temper_gpu.model.full_weights import require_whole_weights
from temper_gpu.model.instructions import start_narrower
from temper_gpu.model.lora import adapter_shapes, dtype_name
from temper_gpu.model.models import BaseModel, ModelLibrary, Models, RequireRoom, outline
from temper_gpu.process import event_loop
from temper_gpu.process.host import ModelFolders, choose_device, describe_device
from temper_gpu.process.leash import on_leash
from temper_gpu.process.needs import Machine, open_machine, refuse_without_room_to_train, switching_needs
from temper_gpu.process.room import Room
from temper_gpu.process.training import choose_devices, open_trainer, require_shardable
from temper_gpu.server.chat_turns import ChatTurns
from temper_gpu.server.metrics import Metrics
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.server import create_app, run_server
from temper_gpu.server.settings import ServerSettings
from temper_gpu.server.targets import Targets
from temper_gpu.server.template_kwargs import CLOCK, parse_template_kwargs
from temper_gpu.store import Store
from temper_gpu.training.examples import Dataset, TurnReader, check_examples
from temper_gpu.training.group import RankSettings
from temper_gpu.training.optimizers import packed_moments
from temper_gpu.training.platform import between_steps, make_deterministic
from temper_gpu.training.trainer import Trainer

# An unset shell variable leaves an empty host.
EVERY_ADDRESS = frozenset(["0.0.0.0", "::", ""])
# Longest orderly shutdown. A step that it interrupts is computed again from the store.
MAX_SHUTDOWN_S = 7.0
PROBE_DEADLINE_S = 120.0
# Shortest and longest pause between two tries to reach an external vLLM server.
AWAITED_S = (0.5, 8.0)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Keys:
    """Keys from the environment, which only `__main__` reads."""

    # The key that clients of this server send.
    server: str = field(repr=False)
    # The key of an external vLLM server; empty if it needs none.
    vllm: str = field(repr=False)
    # Opens the server's metrics and nothing else; empty if they need the server's key.
    metrics: str = field(default="", repr=False)


def run_worker(settings: GpuWorkerSettings, leash: bool, keys: Keys, listener: socket.socket, store: Store) -> None:
    make_deterministic(settings.engine.threads)
    event_loop.run(_run(settings, leash, keys, listener, store))


async def _run(settings: GpuWorkerSettings, leash: bool, keys: Keys, listener: socket.socket, store: Store) -> None:
    stopping = asyncio.Event()
    end_on(stopping, leash)
    engine = settings.engine
    device = choose_device(engine.device)
    between_steps(device)
    machine = open_machine(engine, device)
    log.info("device chosen", extra=describe_device(device, machine.dtype))
    devices = choose_devices(engine.devices, device, engine.vllm.devices)
    if engine.shard_base_model:
        require_shardable(engine.kind, device)
    sampling = open_sampling(settings, machine, keys.vllm)
    any_base = settings.role == "sample-any-base"
    targets = Targets(StoreResolver(store), sampling.engines, None if any_base else sampling.models)
    templates = StoredTemplates(store)
    server = ServerSettings(hosts=allowed_hosts(settings))
    metrics = Metrics()
    app = create_app(sampling.engines, targets, server, keys.server, templates.text, metrics, keys.metrics)
    works = [_serving(app, server, listener, stopping)]
    if settings.role == "train":
        read_turns = ChatTurns(templates.text)
        ranks = RankSettings(settings, devices, dtype_name(machine.dtype))
        shared = (sampling.models, store, sampling.training, sampling.recorded, read_turns)
        trainer = open_trainer(*shared, ranks, sampling.switching)
        if isinstance(sampling.engines, EngineHost):
            sampling.engines.trained = lambda: trainer.base_model
        check = partial(check_run, sampling.models, store, templates, read_turns, sampling.machine)
        checks = (partial(probe, targets), check)
        works.append(_polling(settings, trainer, store, checks, sampling.switching, metrics))
    tasks = [asyncio.create_task(work) for work in works]
    log.info("ready", extra={"host": settings.host, "port": listener.getsockname()[1], "store": store.uri})
    try:
        await _until_stopped(tasks, stopping)
    finally:
        await asyncio.to_thread(sampling.close)


@dataclass(frozen=True)
class Sampling:
    """Engines of one kind, and what the trainer needs from them."""

    engines: Engines
    models: Models
    # Lock of the trainer while it computes.
    training: AbstractContextManager[object]
    # Manifest entries about the engine of a base model. The embedded engine, part of this package, adds only what it
    # cannot guarantee.
    recorded: Callable[[str], Mapping[str, str]]
    close: Callable[[], None]
    machine: Machine
    # Set for a vLLM that may share the trainer's GPU.
    switching: Training | None = None


def allowed_hosts(settings: GpuWorkerSettings) -> frozenset[str]:
    """Host names that clients may use besides those of loopback. The address to listen on is one of them."""
    own = [] if settings.host in EVERY_ADDRESS else [settings.host]
    return frozenset(name.lower() for name in [*own, *settings.allow_host])


def open_sampling(settings: GpuWorkerSettings, machine: Machine, vllm_key: str) -> Sampling:
    engine = machine.engine
    if isinstance(engine, VllmSettings):
        engine = completed(engine, settings, vllm_key)
        machine = replace(machine, engine=engine)
    room = Room(machine)
    library = open_library(settings.models, machine, room.require)
    if isinstance(engine, VllmSettings):
        vllm = VllmHost(library, engine, partial(step_needs, library, machine))
        return Sampling(vllm, library, vllm.training, vllm.recorded, vllm.close, machine, vllm.training)
    device_lock = DeviceLock()
    host = EngineHost(library, engine, device_lock, on_doubt=start_narrower)
    room.loaded, room.close_idle = library.loaded, host.close_idle
    return Sampling(host, ProvenModels(host), device_lock, host.recorded, host.close, machine)


def step_needs(library: ModelLibrary, machine: Machine, base_model: str, train: TrainConfig) -> tuple[StepNeed, Held]:
    return switching_needs(outline(library.get(base_model).folder or base_model), machine, train)


def open_library(models: str | None, machine: Machine, require_room: RequireRoom) -> ModelLibrary:
    """A base model that ranks hold in parts stays in main memory."""
    folders = ModelFolders(models)
    if machine.settings.shard_base_model:
        return ModelLibrary(folders, machine.dtype, torch.device("cpu"), require_room, parts_on=machine.device)
    return ModelLibrary(folders, machine.dtype, machine.device, require_room, load_in_4bit=machine.settings.load_in4bit)


def completed(vllm: VllmSettings, settings: GpuWorkerSettings, key: str) -> VllmSettings:
    """Adds the installation's Python and version, or the key and folder of an external server."""
    chosen = settings.engine.vllm
    if vllm.external is None:
        python = settings.vllm_python or ""
        return replace(vllm, python=python, version=installed_version(python), args=tuple(chosen.args))
    folder = chosen.adapters.folder or ""
    external = replace(vllm.external, key=key, folder=Path(folder), folder_there=chosen.adapters.as_ or folder)
    return replace(vllm, external=external, backoff_s=AWAITED_S)


def _serving(
    app: ASGIApp, settings: ServerSettings, listener: socket.socket, stopping: asyncio.Event
) -> Coroutine[Any, Any, None]:
    """The server gets an event loop of its own, so that requests do not delay heartbeats."""
    return event_loop.run_apart(partial(run_server, app, settings, listener), stopping)


async def _until_stopped(tasks: list[asyncio.Task[None]], stopping: asyncio.Event) -> None:
    """Ends all tasks when `stopping` is set or one of them ends, and raises that task's error. The server ends by
    `stopping`."""
    waiting = asyncio.create_task(stopping.wait())
    done, _ = await asyncio.wait([*tasks, waiting], return_when=asyncio.FIRST_COMPLETED)
    log.info("ending")
    stopping.set()
    for polling in tasks[1:]:
        polling.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in done - {waiting}:
        task.result()


def _polling(
    settings: GpuWorkerSettings,
    trainer: Trainer,
    store: Store,
    checks: tuple[Callable[[str], str | None], Callable[[InitialiseInput], None]],
    switching: Training | None,
    metrics: Metrics,
) -> Coroutine[Any, Any, None]:
    activities, polling = import_polling()
    room = {} if switching is None else {"has_more_room": switching.take_more_room}
    told = {"on_lost_device": exit_process, "executed": metrics.executed}
    gpu = activities.GpuActivities(trainer, store, *checks, **told, **room)
    return polling.poll_forever(
        settings.temporal_address, settings.namespace, settings.queue, store, [gpu.initialise, gpu.train]
    )


def import_polling() -> tuple[ModuleType, ModuleType]:
    """Temporal's client is imported before the server answers, because importing blocks the loop."""
    from temper_gpu.temporal import activities, polling

    return activities, polling


def probe(targets: Targets, policy: str) -> str | None:
    """Loads a policy and samples one token with it: the hash is that of the adapter that answered."""
    target = targets.open(policy)
    request = GenerationRequest(prompt_token_ids=(0,), max_tokens=1, temperature=1.0, seed=0)
    target.engine.submit(target.adapter, request, PROBE_DEADLINE_S).result(PROBE_DEADLINE_S)
    return target.adapter_sha256


def check_run(
    models: Models,
    store: Store,
    templates: StoredTemplates,
    read_turns: TurnReader,
    machine: Machine,
    work: InitialiseInput,
) -> None:
    """Refuses a run that could never be sampled from or trained. A broken chat template would otherwise fail each
    call, and a broken example its step."""
    if isinstance(machine.engine, VllmSettings):
        check_for_vllm(work.lora)
    if machine.settings.shard_base_model and work.lora is None:
        raise TemperError(
            "BadConfig",
            "a run that trains all weights must have the whole base model on each device, because only frozen weights "
            "are sharded; start the GPU worker without --shard-base-model, or leave --full-fine-tuning out",
        )
    base, given = models.get(work.base_model), work.chat_template_sha256
    if work.lora is None:
        require_whole_weights(base)
    if work.optimizer_kind != "adamw":
        check_eight_bits(base, work.lora)
    if work.lora is None and base.folder is not None:
        refuse_without_room_to_train(machine, base.name, outline(base.folder), work.optimizer_kind)
    kwargs = parse_template_kwargs(work.chat_template_kwargs)
    prompts = Prompts(base, kwargs, None if given is None else templates.text(given))
    prompts.require_playable()
    require_one_day(prompts, base.name)
    if work.supervised is not None:
        check_examples(Dataset(store, work.supervised.dataset), base, work.supervised, read_turns)


def require_one_day(prompts: Prompts, name: str) -> None:
    """A run may be killed before midnight and resumed after it."""
    if prompts.reads_clock:
        raise TemperError(
            "BadConfig",
            f"the prompts of a run must be the same on every day, but the chat template of {name} writes the date; "
            f'set the day that it writes: --chat-template-kwargs \'{{"{CLOCK}": "{date.today()}"}}\' '
            "(rollout.chatTemplateKwargs)",
        )


def check_for_vllm(lora: LoraConfig | None) -> None:
    if lora is None:
        raise TemperError(
            "BadConfig",
            "a run that trains all weights must be sampled from by the embedded engine, because vLLM takes only "
            "adapters per request; set engine.kind to embedded, or leave --full-fine-tuning out",
        )
    if lora.dora:
        raise TemperError(
            "BadConfig",
            "an adapter with magnitudes (DoRA) must be sampled from by the embedded engine, because vLLM loads none; "
            "set engine.kind to embedded, or leave --lora-dora out",
        )


def check_eight_bits(base: BaseModel, lora: LoraConfig | None) -> None:
    model = base.instantiate(base.attention)
    if lora is not None:
        packed_moments({name: shape.numel() for name, shape in adapter_shapes(model, lora).items()})
        return
    embedding = model.get_input_embeddings().weight
    packed_moments({name: each.numel() for name, each in model.named_parameters() if each is not embedding})


class ProvenModels:
    """Base models of the trainer. The model's engine starts first, because its proof may restart the process with
    other instructions; training before that would make the bytes depend on when the process was started."""

    def __init__(self, host: EngineHost) -> None:
        self._host = host

    def get(self, name: str) -> BaseModel:
        return self._host.engine(name).base


def end_on(stopping: asyncio.Event, leash: bool) -> None:
    """SIGTERM, Ctrl-C and the end of the leash start an orderly shutdown of bounded length."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        timer = threading.Timer(MAX_SHUTDOWN_S, os._exit, [1])
        timer.daemon = True
        timer.start()
        with suppress(RuntimeError):  # the loop has ended already
            loop.call_soon_threadsafe(stopping.set)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    if leash:
        on_leash(sys.stdin.fileno(), end)
