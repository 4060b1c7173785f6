"""Temporal's side of the GPU worker: connects, and polls until the process ends, also through outages."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter
from temporalio.envconfig import ClientConfig
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import RPCError
from temporalio.worker import Worker

from temper_gpu.failures import TemperError
from temper_gpu.store import Store, store_id

RECONNECT_S = 1.0
# Beats come every second; with the default throttle they would leave every 0.8 × timeout only.
HEARTBEAT_THROTTLE = timedelta(seconds=2)
# A step that does not end within this is cancelled between two micro-batches.
GRACEFUL_SHUTDOWN = timedelta(seconds=3)

log = logging.getLogger(__name__)


async def poll_forever(
    address: str | None, namespace: str | None, queue: str, store: Store, activities: Sequence[Callable[..., Any]]
) -> None:
    """Polls until cancelled. The log repeats one message at most every half minute (process/logs.py)."""
    runtime = _runtime()
    task_queue = await store_queue(store, queue)
    while True:
        try:
            client = await connect(address, namespace, runtime)
            worker = Worker(
                client,
                task_queue=task_queue,
                activities=activities,
                max_concurrent_activities=1,
                max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
                default_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
                graceful_shutdown_timeout=GRACEFUL_SHUTDOWN,
            )
            log.info("polling", extra={"queue": task_queue, "namespace": client.namespace})
            await worker.run()
        except (RuntimeError, RPCError) as error:
            log.warning("no Temporal server yet, trying again: %s", error)
        await asyncio.sleep(RECONNECT_S)


async def store_queue(store: Store, name: str) -> str:
    """The task queue of this store (core/names/queues.ts). Waits while the store is unavailable."""
    while True:
        try:
            return f"{name}/{await asyncio.to_thread(store_id, store)}"
        except TemperError as error:
            if not error.retryable:
                raise
            log.warning("store not reached yet: %s", error)
        await asyncio.sleep(RECONNECT_S)


class WirePayloadConverter(PydanticPayloadConverter):
    """Omits members with their default, as stored files do: an optional member is absent on the wire, never null."""

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        return super().to_payloads([_to_json(value) if isinstance(value, BaseModel) else value for value in values])


def _to_json(value: BaseModel) -> Any:
    return value.model_dump(by_alias=True, exclude_defaults=True)


DATA_CONVERTER = DataConverter(payload_converter_class=WirePayloadConverter)


async def connect(address: str | None, namespace: str | None, runtime: Runtime) -> Client:
    """Settings come first, then TEMPORAL_* and temporal.toml, then Temporal's own defaults."""
    settings: dict[str, Any] = {"target_host": "localhost:7233", **ClientConfig.load_client_connect_config()}
    flags = {"target_host": address, "namespace": namespace}
    settings |= {name: value for name, value in flags.items() if value is not None}
    return await Client.connect(**settings, data_converter=DATA_CONVERTER, runtime=runtime)


def _runtime() -> Runtime:
    forwarding = LogForwardingConfig(logging.getLogger("temporalio.core"))
    telemetry = LoggingConfig(TelemetryFilter(core_level="WARN", other_level="ERROR"), forwarding)
    return Runtime(telemetry=TelemetryConfig(logging=telemetry))
