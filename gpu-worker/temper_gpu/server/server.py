"""The engine's HTTP server: OpenAI's endpoints, tokens, metrics and health. It speaks no TLS."""

import asyncio
import contextlib
import hmac
import secrets
import socket
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from temper_gpu.contract import ENGINE_KEY_VARIABLE
from temper_gpu.engine.interface import Engine, Engines
from temper_gpu.failures import TemperError
from temper_gpu.server.answering import Answering
from temper_gpu.server.answers import Refusal, error_response, json_response, unexpected
from temper_gpu.server.http_limits import limited_protocol, mark_known
from temper_gpu.server.metrics import PROMETHEUS, Metrics
from temper_gpu.server.open_models import OpenModels, ReadTemplate, no_template
from temper_gpu.server.settings import ServerSettings
from temper_gpu.server.targets import Targets

LOOPBACK = frozenset(["127.0.0.1", "localhost", "::1"])
SHUTDOWN_S = 3
METRICS = "/metrics"
# Path before the name of one model.
ONE_MODEL = "/v1/models/"

# The method, whether a key is required, and the function that answers.
Endpoint = tuple[str, bool, Callable[[Request], Awaitable[Response]]]


class ChatServer:
    def __init__(
        self,
        engines: Engines,
        targets: Targets,
        settings: ServerSettings,
        key: str,
        read_template: ReadTemplate,
        metrics: Metrics,
        metrics_key: str,
    ) -> None:
        if not key:
            raise TemperError("BadConfig", f"the engine's key must not be empty; set {ENGINE_KEY_VARIABLE}")
        self._engines = engines
        self._key = bearer(key)
        # Opens the metrics and nothing else.
        self._metrics_key = bearer(metrics_key or key)
        self._names = LOOPBACK | settings.hosts
        # Distinguishes this process from the next one.
        self._boot = secrets.token_hex(8)
        self._models = OpenModels(engines, targets, read_template)
        self._metrics = metrics
        answering = Answering(self._models, settings, self._metrics)
        self._endpoints: dict[str, Endpoint] = {
            "/v1/chat/completions": ("POST", True, answering.chat),
            "/v1/completions": ("POST", True, answering.completions),
            "/v1/models": ("GET", True, self._list_models),
            METRICS: ("GET", True, self._show_metrics),
            "/health": ("GET", False, self._health),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI, without a router: so few paths need none, and every microsecond here is paid by every call."""
        if scope["type"] != "http":
            raise RuntimeError(f"this server speaks HTTP only, got {scope['type']}")
        request = Request(scope, receive)
        try:
            response = await self._endpoint(request)(request)
        except (Refusal, TemperError) as error:
            response = error_response(error)
        except ClientDisconnect:
            return
        except Exception as error:
            response = error_response(unexpected(error, request))
        await response(scope, receive, send)

    def _endpoint(self, request: Request) -> Callable[[Request], Awaitable[Response]]:
        self._check_host(request)
        path = request.scope["path"]
        known = self._endpoints.get("/v1/models" if path.startswith(ONE_MODEL) else path)
        if known is None:
            raise Refusal(404, "not_found", f"path must be one of {', '.join(self._endpoints)}, got {path[:80]}")
        method, needs_key, endpoint = known
        if needs_key:
            self._check_key(request, self._metrics_key if path == METRICS else self._key)
            mark_known(request.scope)
        if request.method != method:
            raise Refusal(405, "method", f"{path} must be requested with {method}, got {request.method[:20]}")
        return endpoint

    def _check_host(self, request: Request) -> None:
        """A web page that points its own name at this address sends that name."""
        name = host_name(request.headers.get("host", ""))
        if name not in self._names:
            raise Refusal(
                403,
                "host",
                f"Host must be one of {', '.join(sorted(self._names))}, got {name[:80]!r}; use one of these, or start "
                "the GPU worker with --allow-host",
            )

    def _check_key(self, request: Request, key: bytes) -> None:
        given = request.headers.get("authorization", "").encode("utf-8", "surrogateescape")
        if not any([hmac.compare_digest(given, known) for known in (self._key, key)]):
            raise Refusal(
                401,
                "invalid_api_key",
                f"Authorization must be 'Bearer' and the engine's key; it is in {ENGINE_KEY_VARIABLE}",
            )

    async def _health(self, request: Request) -> Response:
        started = self._engines.started()
        is_dead = any(engine.health().failure is not None for engine in started.values())
        engines = {name: shown_health(engine) for name, engine in started.items()}
        status = "dead" if is_dead else "ok"
        body = {"status": status, "boot": self._boot, "loaded": sorted(engines), "engines": engines}
        return json_response(body, 503 if is_dead else 200)

    async def _list_models(self, request: Request) -> Response:
        path = request.scope["path"]
        if path.startswith(ONE_MODEL):
            return json_response(await self._models.find_listed(path.removeprefix(ONE_MODEL)))
        return json_response({"object": "list", "data": self._models.listed()})

    async def _show_metrics(self, request: Request) -> Response:
        text = self._metrics.text(self._engines.started(), len(asyncio.all_tasks()))
        return Response(text, media_type=PROMETHEUS)


def create_app(
    engines: Engines,
    targets: Targets,
    settings: ServerSettings,
    key: str,
    read_template: ReadTemplate = no_template,
    metrics: Metrics | None = None,
    metrics_key: str = "",
) -> ASGIApp:
    """`metrics_key`: empty if the metrics need the server's own key."""
    return ChatServer(engines, targets, settings, key, read_template, metrics or Metrics(), metrics_key)


def bearer(key: str) -> bytes:
    return f"Bearer {key}".encode()


def shown_health(engine: Engine) -> dict[str, Any]:
    health = engine.health()
    return {
        "waiting": health.waiting,
        "running": health.running,
        "policies": health.adapters,
        **health.details,
        "counters": engine.counters(),
    }


def host_name(header: str) -> str:
    """The host without its port; `[::1]:80` is an address in brackets."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


class EmbeddedServer(uvicorn.Server):
    """Runs beside other tasks of one loop, and leaves signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def run_server(app: ASGIApp, settings: ServerSettings, listener: socket.socket, stopping: asyncio.Event) -> None:
    """Serves on a socket that listens already, until `stopping`; requests in flight get a moment to end."""
    config = uvicorn.Config(
        app,
        http=limited_protocol(settings),
        ws="none",
        lifespan="off",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        log_config=None,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
    server = EmbeddedServer(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    stopped = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait([serving, stopped], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        server.should_exit = True
        await serving
