"""Requests that an engine answers: from a body to the model's tokens, and back to an answer, whole or as a stream."""

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import Callable
from typing import Any, TypeVar

import orjson
from starlette.requests import Request
from starlette.responses import Response

from temper_gpu.contract import CALL_HEADER
from temper_gpu.engine.interface import Generation, OnToken
from temper_gpu.failures import TemperError
from temper_gpu.server.answers import json_response
from temper_gpu.server.calls import DEADLINE_GRACE_S, Call, Generating, cancel
from temper_gpu.server.chat import ChatRequest, stops_of
from temper_gpu.server.completions import CompletionRequest, CompletionWriter, encode_prompts
from temper_gpu.server.event_stream import Tokens, open_stream
from temper_gpu.server.metrics import Metrics
from temper_gpu.server.open_models import OpenModels
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.reading import Bodies, Readers, Work, deadline_s, parse_json
from temper_gpu.server.sampling import Asked, Sampling
from temper_gpu.server.settings import ServerSettings
from temper_gpu.server.streams import ChatWriter, Writer

MAX_CALL_NAME = 512
# Bodies, and answers, that are read or written within some milliseconds; longer ones leave the loop to others.
SHORT_BODY, SHORT_ANSWER = 4096, 4096

T = TypeVar("T", bound=Sampling)

log = logging.getLogger(__name__)


class Answering:
    def __init__(self, models: OpenModels, settings: ServerSettings, metrics: Metrics) -> None:
        self._models = models
        self._settings = settings
        self._metrics = metrics
        self._bodies = Bodies(settings)
        self._readers = Readers()

    async def _read(self, request: Request, kind: type[T]) -> tuple[Work, T]:
        """Reads and parses a body, and drops its bytes, because the request may wait for long."""
        end = time.monotonic() + deadline_s(request, self._settings)
        async with self._bodies.read(request, end) as body:
            work = Work(request, end, is_short=len(body) <= SHORT_BODY)
            return work, await self._readers.do(work, read_body, kind, body)

    async def chat(self, request: Request) -> Response:
        started = time.perf_counter()
        work, chat = await self._read(request, ChatRequest)
        target = await self._models.target(chat.model)
        prompts = await self._models.prompts_of(target, chat.chat_template_kwargs, chat.chat_template_sha256)
        prompt_ids = await self._readers.do(work, prompts.encode, chat.messages, chat.tools, chat.tool_choice)
        prompts.require_known(chat)
        stops = stops_of(chat, prompts.tools.form.end if chat.parses_calls else "")
        require_answer(chat, prompts, prompt_ids)
        asked = Asked(chat, prompt_ids, stops, chat.top_logprobs, chat.response_format)
        seed = seed_of(asked)
        answer_id = request_id(request, seed, prompt_ids)
        writer = ChatWriter(chat, prompt_ids, prompts, target.adapter_sha256, answer_id)
        call = Call(request, target, [asked], seed, writer, started, work.end)
        return await self._answer(call)

    async def completions(self, request: Request) -> Response:
        started = time.perf_counter()
        work, parsed = await self._read(request, CompletionRequest)
        target = await self._models.target(parsed.model)
        prompts = await self._models.prompts_of(target)
        prompt_ids = await self._readers.do(work, encode_prompts, parsed, prompts)
        prompts.require_known(parsed)
        asked = [Asked(parsed, ids, parsed.stop, parsed.logprobs or 0) for ids in prompt_ids]
        seed = seed_of(asked[0])
        answer_id = request_id(request, seed, prompt_ids)
        writer = CompletionWriter(parsed, prompt_ids, prompts, target.adapter_sha256, answer_id)
        call = Call(request, target, asked, seed, writer, started, work.end)
        return await self._answer(call)

    async def _answer(self, call: Call) -> Response:
        if call.sampling.stream:
            tokens = Tokens()
            return await open_stream(call, tokens, self._submit(call, tokens.on_token), self._answered)
        futures = self._submit(call, None)
        generations = await self._wait(call, futures)
        self._answered(call, generations)
        num_tokens = call.num_prompt_tokens + sum(len(generation.token_ids) for generation in generations)
        work = Work(call.request, call.end + DEADLINE_GRACE_S, is_short=num_tokens <= SHORT_ANSWER)
        return await self._readers.do(work, write_answer, call.writer, generations)

    def _submit(self, call: Call, on_token_of: Callable[[int], OnToken] | None) -> list[Generating]:
        engine = call.target.engine
        futures: list[Generating] = []
        try:
            for asked in call.asked:
                for index in range(asked.sampling.n):
                    on_token = None if on_token_of is None else on_token_of(len(futures))
                    default = self._settings.default_max_tokens
                    request = asked.request(index, call.seed, engine.model, default, on_token)
                    future = engine.submit(call.target.adapter, request, call.end - time.monotonic())
                    futures.append(asyncio.wrap_future(future))
        except TemperError:
            cancel(futures)  # all choices or none
            raise
        return futures

    async def _wait(self, call: Call, futures: list[Generating]) -> list[Generation]:
        try:
            await call.attend(futures)
            return [future.result() for future in futures]
        finally:
            cancel(futures)

    def _answered(self, call: Call, generations: list[Generation], first_token_s: float | None = None) -> None:
        took_s = time.perf_counter() - call.started
        adapter = call.target.adapter_sha256
        log.info(
            "call",
            extra={
                "call": call.request.headers.get(CALL_HEADER, "")[:MAX_CALL_NAME],
                "policy": call.sampling.model,
                "adapter": adapter and adapter[:12],
                "promptTokens": call.num_prompt_tokens,
                "sampledTokens": sum(len(generation.token_ids) for generation in generations),
                "ms": round(took_s * 1000, 2),
            },
        )
        self._metrics.answered(call.target.engine.model.name, generations, took_s, first_token_s)


def require_answer(chat: ChatRequest, prompts: Prompts, prompt_ids: tuple[int, ...]) -> None:
    """Requires answers to match the schema as a whole; thoughts could not."""
    if chat.response_format is not None and prompts.is_thinking(prompt_ids):
        rule = "response_format must be text where the chat template begins the model's thoughts"
        remedy = "turn them off with chat_template_kwargs if the template can, or check the answer's form yourself"
        raise TemperError("BadConfig", f"{rule}; {remedy}")


def seed_of(asked: Asked) -> int:
    return secrets.randbits(48) if asked.sampling.seed is None else asked.sampling.seed


def request_id(request: Request, seed: int, prompt_ids: Any) -> str:
    """The id of an attempt's call, the same in each replay. It is independent of the body, whose model is `run@step`:
    ids of tool calls are hashed, and hashes contain no run name. Other requests get new ids."""
    if CALL_HEADER not in request.headers:
        return secrets.token_hex(12)
    return hashlib.sha256(b"%d %s" % (seed, orjson.dumps(prompt_ids))).hexdigest()[:24]


def read_body(kind: type[T], body: bytes) -> T:
    return kind.parse(parse_json(body))


def write_answer(writer: Writer, generations: list[Generation]) -> Response:
    return json_response(writer.whole(generations))
