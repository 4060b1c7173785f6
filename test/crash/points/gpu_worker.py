"""The GPU worker with points: its modules are wrapped as they are imported, then it runs as always.

The product knows nothing of points. A name that is gone from it fails here, at the start.
"""

import importlib.abc
import importlib.machinery
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(os.environ["TEMPER_CRASH_FOLDER"])
PROCESS = "gpu-worker"
AIM = FOLDER / f"aim-{PROCESS}.json"
POLL_S = 0.005

KINDS = (
    (re.compile(r"/blobs/"), "blob"),
    (re.compile(r"/manifest\.json$"), "manifest"),
    (re.compile(r"/checkpoints/.*/adapter_config\.json$"), "view-config"),
    (re.compile(r"/checkpoints/"), "view"),
    (re.compile(r"\.times\.json$"), "times"),
)

# Requests that make an object in a bucket.
S3_WRITES = frozenset({"PutObject", "CopyObject", "CompleteMultipartUpload"})

_passed: dict[str, Any] = {"row": "", "count": 0}


def reach(point: str) -> None:
    """Passes a point as reach.ts does, and is hit there if it is aimed at. A hold blocks the thread alone."""
    note("trace.jsonl", point, {})
    try:
        aim = json.loads(AIM.read_text())
    except (OSError, ValueError):
        return
    if aim["point"] != point:
        return
    if _passed["row"] != aim["row"]:
        _passed.update(row=aim["row"], count=0)
    _passed["count"] += 1
    if _passed["count"] == aim["occurrence"]:
        act(point, aim)


def act(point: str, aim: dict[str, Any]) -> None:
    AIM.unlink()
    note("hits.jsonl", point, aim, is_synced=True)
    if aim["action"] == "hold":
        released = FOLDER / f"released-{aim['row']}"
        while not released.exists():
            time.sleep(POLL_S)
    else:
        os.kill(os.getpid(), signal.SIGKILL if aim["action"] == "kill" else signal.SIGSTOP)


def note(name: str, point: str, fields: dict[str, Any], is_synced: bool = False) -> None:
    line = {**fields, "time": time.time() * 1000, "process": PROCESS, "pid": os.getpid(), "point": point}
    descriptor = os.open(FOLDER / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, json.dumps(line).encode() + b"\n")
    if is_synced:
        os.fsync(descriptor)
    os.close(descriptor)


def around(owner: Any, name: str, point: str) -> None:
    """Points before and after a function."""
    inner = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        reach(f"{point}.before")
        result = inner(*args, **kwargs)
        reach(f"{point}.after")
        return result

    setattr(owner, name, wrapped)


def lay_file_points(store: ModuleType) -> None:
    for name in ("link", "rename"):
        setattr(store.FileSystem, name, _placing(getattr(store.FileSystem, name)))


def _placing(place: Callable[..., None]) -> Callable[..., None]:
    def placed(self: Any, source: Path, target: Path) -> None:
        kind = kind_of(target.as_posix())
        reach(f"{kind}.before")
        place(self, source, target)
        reach(f"{kind}.after")

    return placed


def lay_s3_points(s3_store: ModuleType) -> None:
    create = s3_store.create_client

    def create_with_points(settings: Any) -> Any:
        client = create(settings)
        call = client._make_api_call

        def call_with_points(operation: str, arguments: dict[str, Any]) -> Any:
            if operation not in S3_WRITES:
                return call(operation, arguments)
            kind = kind_of("/" + arguments["Key"])
            reach(f"{kind}.before")
            answer = call(operation, arguments)
            reach(f"{kind}.after")
            return answer

        client._make_api_call = call_with_points
        return client

    s3_store.create_client = create_with_points


def kind_of(name: str) -> str:
    return next((kind for pattern, kind in KINDS if pattern.search(name)), "other")


def lay_trainer_points(trainer: ModuleType) -> None:
    from temper_gpu.training.optimizers import AdamW

    train, initialise = trainer.Trainer.train, trainer.Trainer.initialise

    def train_with_points(self: Any, work: Any, is_cancelled: Callable[[], bool]) -> Any:
        def at_boundary() -> bool:
            reach("train.micro-batch")
            return is_cancelled()

        reach("train.entry")
        return train(self, work, at_boundary)

    def initialise_with_points(self: Any, work: Any) -> Any:
        reach("initialise.entry")
        return initialise(self, work)

    trainer.Trainer.train, trainer.Trainer.initialise = train_with_points, initialise_with_points
    around(trainer.Trainer, "_load_policy", "train.load")
    around(AdamW, "step", "optimizer")


def lay_activity_points(activities: ModuleType) -> None:
    from temporalio import activity

    perform, beat = activities.GpuActivities._perform, activity.heartbeat

    async def perform_with_points(self: Any, *work: Any) -> Any:
        result = await perform(self, *work)
        # In a thread, so that one who is held here goes on beating.
        import asyncio

        await asyncio.to_thread(reach, f"{activity.info().activity_type}.done")
        return result

    def beat_with_points(*details: Any) -> None:
        reach("heartbeat")
        beat(*details)

    activities.GpuActivities._perform = perform_with_points
    activity.heartbeat = beat_with_points
    around(activities, "require_probed", "probe")


def lay_engine_points(forward: ModuleType) -> None:
    around(forward.Forward, "prefill", "prefill")
    around(forward.Forward, "decode", "decode")


def lay_policy_points(policies: ModuleType) -> None:
    # Runs of all scenes have the same adapters: an engine that keeps them loaded would load none in the next scene.
    policies.LITTLE = 0
    around(policies.Policies, "load", "adapter-load")


def lay_server_points(answering: ModuleType) -> None:
    chat = answering.Answering.chat

    async def chat_with_points(self: Any, request: Any) -> Any:
        reach("answer.begun")
        response = await chat(self, request)
        reach("answer.ready")
        return response

    answering.Answering.chat = chat_with_points


LAYERS: dict[str, Callable[[ModuleType], None]] = {
    "temper_gpu.store": lay_file_points,
    "temper_gpu.store.s3_store": lay_s3_points,
    "temper_gpu.training.trainer": lay_trainer_points,
    "temper_gpu.temporal.activities": lay_activity_points,
    "temper_gpu.engine.embedded.forward": lay_engine_points,
    "temper_gpu.engine.embedded.policies": lay_policy_points,
    "temper_gpu.server.answering": lay_server_points,
}


def require_modules() -> None:
    """Found without being imported."""
    for name in LAYERS:
        path: Sequence[str] | None = None
        for end in (index for index, letter in enumerate(f"{name}.") if letter == "."):
            spec = importlib.machinery.PathFinder.find_spec(name[:end], path)
            if spec is None:
                raise ModuleNotFoundError(f"points are laid in {name}, which is gone", name=name)
            path = spec.submodule_search_locations


class Layering(importlib.abc.MetaPathFinder):
    """Wraps modules when the product itself imports them: its order of imports is what recovery is measured with."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in LAYERS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_wrap(module: ModuleType) -> None:
            execute(module)
            LAYERS[fullname](module)

        spec.loader.exec_module = execute_and_wrap
        return spec


if __name__ == "__main__":
    require_modules()
    sys.meta_path.insert(0, Layering())
    from temper_gpu import __main__ as program

    # Each row begins with one that stands by: whole stacks beside this one would keep it from importing.
    program.BACKGROUND_PRIORITY = 0
    sys.exit(program.main())
