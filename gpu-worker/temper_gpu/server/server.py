"""The engine's HTTP server: OpenAI-compatible chat completions, models, health. It speaks no TLS."""

import asyncio
import contextlib
import hashlib
import hmac
import logging
import re
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from temper_gpu.contract import BODY_TOO_LARGE, CALL_HEADER, DEADLINE_HEADER, ENGINE_KEY_VARIABLE, INTERNAL_ERROR
from temper_gpu.engine.interface import DeadlinePassed, Engine, Engines, Generation, GenerationRequest
from temper_gpu.failures import TemperError
from temper_gpu.server.answers import Refusal, error_response, json_response
from temper_gpu.server.chat import ChatRequest, chat_response, choice_seed, parse_chat_request, stops_of
from temper_gpu.server.http_limits import limited_protocol, mark_known
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.settings import ServerSettings
from temper_gpu.server.targets import Target, Targets
from temper_gpu.server.tool_calls import MAX_DEPTH, is_deeper

LOOPBACK = frozenset(["127.0.0.1", "localhost", "::1"])
# A request for a model that is being opened waits this long before it is told to come again.
OPENING_WAIT_S = 5.0
# The engine drops a request at its deadline; this is for an engine that no longer does.
DEADLINE_GRACE_S = 2.0
# How often a request that takes longer is asked whether its client is still there.
PRESENCE_S = 0.5
KEEP_ALIVE_S = 75
SHUTDOWN_S = 3
MAX_CALL_NAME = 512
# Far more policies than an engine keeps loaded; a long run brings a new name with every step.
KEPT_NAMES = 64
# Bodies, and answers, that are read or written within some milliseconds; longer ones leave the loop to others.
SHORT_BODY, SHORT_ANSWER = 4096, 4096
# How many longer ones at once: they take processors from the engine.
NUM_READERS = 2
DEADLINE_MS = re.compile("[0-9]{1,10}")

T = TypeVar("T")

log = logging.getLogger(__name__)


class ChatServer:
    def __init__(self, engines: Engines, targets: Targets, settings: ServerSettings, key: str) -> None:
        if not key:
            raise TemperError("BadConfig", f"the engine's key must not be empty; set {ENGINE_KEY_VARIABLE}")
        self._engines = engines
        self._targets = targets
        self._key = f"Bearer {key}".encode()
        self._settings = settings
        self._names = LOOPBACK | settings.hosts
        self._prompts: dict[str, Prompts] = {}
        self._opening: dict[str, asyncio.Future[Target]] = {}
        self._policy_names: dict[str, str] = {}
        # Tells one life of this process from the next.
        self._boot = secrets.token_hex(8)
        self._readers = asyncio.Semaphore(NUM_READERS)
        self._threads = ThreadPoolExecutor(NUM_READERS, thread_name_prefix="prompts")

        self._endpoints: dict[str, tuple[str, bool, Callable[[Request], Awaitable[Response]]]] = {
            "/v1/chat/completions": ("POST", True, self._chat),
            "/v1/models": ("GET", True, self._models),
            "/health": ("GET", False, self._health),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI, without a router: three paths need none, and every microsecond here is paid by every call."""
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
            log.exception("request failed", extra={"path": scope["path"]})
            response = error_response(unexpected(error))
        await response(scope, receive, send)

    def _endpoint(self, request: Request) -> Callable[[Request], Awaitable[Response]]:
        self._check_host(request)
        path = request.scope["path"]
        if path not in self._endpoints:
            raise Refusal(404, "not_found", f"path must be one of {', '.join(self._endpoints)}, got {path[:80]}")
        method, needs_key, endpoint = self._endpoints[path]
        if needs_key:
            self._check_key(request)
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

    def _check_key(self, request: Request) -> None:
        given = request.headers.get("authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self._key):
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

    async def _models(self, request: Request) -> Response:
        loaded = {sha256 for engine in self._engines.started().values() for sha256 in engine.health().adapters}
        policies = [name for name, sha256 in self._policy_names.items() if sha256 in loaded]
        names = [*self._engines.names(), *sorted(policies)]
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "temper"} for name in names]
        return json_response({"object": "list", "data": data})

    async def _chat(self, request: Request) -> Response:
        started = time.perf_counter()
        end = time.monotonic() + self._deadline_s(request)
        body = await self._body(request, end)
        work = Work(request, end, is_short=len(body) <= SHORT_BODY)
        chat = await self._do(work, read_request, body, self._settings.max_choices)
        target = await self._target(chat.model)
        prompts = self._prompts_of(target)
        prompt_ids = await self._do(work, prompts.encode, chat.messages, chat.tools, chat.tool_choice)
        seed = secrets.randbits(48) if chat.seed is None else chat.seed
        futures = self._submit(chat, target, prompt_ids, seed, end - time.monotonic())
        generations = await self._wait(request, futures, end)
        num_sampled = sum(len(generation.token_ids) for generation in generations)
        log.info(
            "call",
            extra={
                "call": request.headers.get(CALL_HEADER, "")[:MAX_CALL_NAME],
                "policy": chat.model,
                "adapter": target.adapter_sha256 and target.adapter_sha256[:12],
                "promptTokens": len(prompt_ids),
                "sampledTokens": num_sampled,
                "ms": round((time.perf_counter() - started) * 1000, 2),
            },
        )
        # Not from the body: its model is `run@step`, and no run's name may reach what is hashed (ids of tool calls do).
        request_id = hashlib.sha256(b"%d %s" % (seed, orjson.dumps(prompt_ids))).hexdigest()[:24]
        answered = (chat, prompt_ids, generations, prompts, target.adapter_sha256, request_id)
        work = Work(request, end + DEADLINE_GRACE_S, is_short=len(prompt_ids) + num_sampled <= SHORT_ANSWER)
        return await self._do(work, write_response, *answered)

    async def _do(self, work: "Work", do: Callable[..., T], *given: Any) -> T:
        """On the loop where it is short, else in a thread: nobody waits for what another one asks."""
        if work.is_short:
            return do(*given)
        try:
            async with asyncio.timeout(work.end - time.monotonic()):
                await self._readers.acquire()
        except TimeoutError as error:
            raise DeadlinePassed(
                "a long prompt must be read by its deadline, but other requests came first; allow more time or send "
                "fewer at once"
            ) from error
        try:
            if await work.request.is_disconnected():
                raise ClientDisconnect
            return await asyncio.get_running_loop().run_in_executor(self._threads, do, *given)
        finally:
            self._readers.release()

    def _deadline_s(self, request: Request) -> float:
        given = request.headers.get(DEADLINE_HEADER)
        if given is None:
            return self._settings.default_deadline_s
        if not DEADLINE_MS.fullmatch(given) or not 0 < int(given) < 1 << 31:
            raise TemperError(
                "BadConfig", f"{DEADLINE_HEADER} must be milliseconds from now, got {given[:40]!r}; send 60000"
            )
        return int(given) / 1000

    async def _body(self, request: Request, end: float) -> bytes:
        most = self._settings.max_body_bytes
        chunks, size = [], 0
        try:
            async with asyncio.timeout(end - time.monotonic()):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > most:
                        rule = f"a body must have at most {most} bytes, but this one has more"
                        raise Refusal(413, BODY_TOO_LARGE, f"{rule}; shorten the conversation")
                    chunks.append(chunk)
        except TimeoutError as error:
            raise Refusal(408, "timeout", "a body must be complete by its deadline, but was not; retry") from error
        return b"".join(chunks)

    async def _target(self, name: str) -> Target:
        target = self._targets.find(name)
        if target is None:
            target = await self._open(name)
        if target.adapter_sha256 is not None:
            self._policy_names[name] = target.adapter_sha256
            for oldest in list(self._policy_names)[:-KEPT_NAMES]:
                del self._policy_names[oldest]
        return target

    async def _open(self, name: str) -> Target:
        """Opening goes on when the request has been sent away."""
        if name not in self._opening:
            opening = asyncio.get_running_loop().run_in_executor(None, self._targets.open, name)
            opening.add_done_callback(lambda done: self._opened(name, done))
            self._opening[name] = opening
        done, _ = await asyncio.wait([self._opening[name]], timeout=OPENING_WAIT_S)
        if not done:
            raise Refusal(503, "loading", f"{name} is still loading; retry", retry_after_s=2)
        return done.pop().result()

    def _opened(self, name: str, done: "asyncio.Future[Target]") -> None:
        self._opening.pop(name, None)
        if not done.cancelled() and done.exception():
            log.warning("model not opened", extra={"policy": name, "reason": str(done.exception())})

    def _prompts_of(self, target: Target) -> Prompts:
        model = target.engine.model
        if model.name not in self._prompts:
            self._prompts[model.name] = Prompts(model)
        return self._prompts[model.name]

    def _submit(
        self, chat: ChatRequest, target: Target, prompt_ids: tuple[int, ...], seed: int, deadline_s: float
    ) -> list["asyncio.Future[Generation]"]:
        model = target.engine.model
        room = max(1, model.context_window - len(prompt_ids))
        max_tokens = chat.max_tokens if chat.max_tokens is not None else min(self._settings.default_max_tokens, room)
        stop = stops_of(chat)
        futures: list[asyncio.Future[Generation]] = []
        try:
            for index in range(chat.num_choices):
                request = GenerationRequest(
                    prompt_ids, max_tokens, chat.temperature, choice_seed(seed, index), model.end_token_ids, stop
                )
                future = target.engine.submit(target.adapter, request, deadline_s)
                futures.append(asyncio.wrap_future(future))
        except TemperError:
            for future in futures:  # all choices or none
                future.cancel()
            raise
        return futures

    async def _wait(
        self, request: Request, futures: list["asyncio.Future[Generation]"], end: float
    ) -> list[Generation]:
        """Until all are there, the client hangs up, or nothing comes."""
        pending: set[asyncio.Future[Generation]] = set(futures)
        try:
            while pending:
                _, pending = await asyncio.wait(pending, timeout=PRESENCE_S)
                if pending and await request.is_disconnected():
                    raise ClientDisconnect
                if pending and time.monotonic() > end + DEADLINE_GRACE_S:
                    raise DeadlinePassed("an answer must be ready by its deadline, but the engine gave none; retry")
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()


def create_app(engines: Engines, targets: Targets, settings: ServerSettings, key: str) -> ASGIApp:
    return ChatServer(engines, targets, settings, key)


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
    """Without the port; `[::1]:80` is an address in brackets."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


@dataclass(frozen=True)
class Work:
    """What reading or writing is done for, until when anybody wants it, and whether it is too short to matter."""

    request: Request
    end: float
    is_short: bool


def read_request(body: bytes, max_choices: int) -> ChatRequest:
    return parse_chat_request(parse_json(body), max_choices)


def write_response(*answered: Any) -> Response:
    return json_response(chat_response(*answered))


def parse_json(body: bytes) -> Any:
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise TemperError("BadConfig", f"the body must be JSON, but is not ({error}); send application/json") from error
    # Whatever goes down level by level, here or in a template, would fail with it; most bodies have fewer brackets.
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and is_deeper(parsed, MAX_DEPTH):
        raise TemperError(
            "BadConfig",
            f"the body must be nested at most {MAX_DEPTH} levels deep, but this one is deeper; make it flatter",
        )
    return parsed


def unexpected(error: Exception) -> Refusal:
    """A bug, or a request that nobody foresaw. Its kind alone: an attempt that fails by it keeps the message, which
    must be the same whenever it is played; texts of exceptions may hold addresses and paths."""
    kind = type(error).__name__
    message = f"the GPU worker failed on this request ({kind}); see 'request failed' in its log, or change it"
    return Refusal(500, INTERNAL_ERROR, message)


class EmbeddedServer(uvicorn.Server):
    """Beside other tasks of one loop: signals are the process's own matter."""

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
        timeout_keep_alive=KEEP_ALIVE_S,
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
