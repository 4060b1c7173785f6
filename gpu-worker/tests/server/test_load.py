"""Many clients at once, and clients that go away, send too much or do not read: the right answer for each, and nothing
is kept of them. `npm run bench -- soak` does it for minutes, with thousands."""

import asyncio
import json
import select
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, cast

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import ASGIApp

from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.embedded.host import EngineHost
from temper_gpu.engine.interface import OnToken
from temper_gpu.server.answer_text import overlap
from temper_gpu.server.calls import DEADLINE_GRACE_S
from temper_gpu.server.event_stream import EventStream, Tokens
from temper_gpu.server.settings import ServerSettings
from tests.server import served
from tests.server.served import ASKED, KEY, chat, error, serving

WAIT_S = 100
MB = 1 << 20


def until(is_true: Callable[[], bool]) -> bool:
    end = time.monotonic() + WAIT_S
    while not is_true() and time.monotonic() < end:
        time.sleep(0.02)
    return is_true()


def gauges(client: httpx.Client) -> dict[str, float]:
    """Of all models together, by name."""
    lines = client.get("/metrics").text.splitlines()
    samples = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
    return {name.partition("{")[0]: float(value) for name, value in samples}


@contextmanager
def sending(url: str, headers: str, body: bytes = b"", receive_buffer: int | None = None) -> Iterator[socket.socket]:
    """A client that does as it likes."""
    host, port = url.removeprefix("http://").split(":")
    with socket.socket() as connection:
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(WAIT_S)
        connection.connect((host, int(port)))
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\n{headers}\r\n"
        connection.sendall(head.encode() + body)
        yield connection


def told(body: bytes) -> str:
    return f"Content-Length: {len(body)}\r\n"


def body_of(**changes: Any) -> bytes:
    return json.dumps({**ASKED, **changes}).encode()


def test_a_queue_is_answered_and_one_more_is_told_to_come_again(
    client: httpx.Client, host: EngineHost, device_lock: DeviceLock
):
    chat(client)
    engine = host.engine("pocket")
    with ThreadPoolExecutor(8) as pool:
        with device_lock:
            waiting = [pool.submit(chat, client, stream=index % 2 == 0) for index in range(8)]
            assert until(lambda: engine.health().waiting == 8)
            refused = chat(client)
        assert [each.result().status_code for each in waiting] == [200] * 8
    assert error(refused) == (429, "EngineFailed", "queue_full")
    assert refused.headers["retry-after"] == "1"


@pytest.mark.parametrize("is_streamed", [False, True])
def test_clients_that_vanish_leave_the_queue_and_their_slots(
    client: httpx.Client, url: str, host: EngineHost, device_lock: DeviceLock, is_streamed: bool
):
    chat(client)
    engine = host.engine("pocket")
    body = body_of(max_tokens=4000, ignore_eos=True, stream=is_streamed)
    with device_lock:
        with sending(url, told(body), body), sending(url, told(body), body):
            assert until(lambda: engine.health().waiting == 2)
        assert until(lambda: engine.health().waiting == 0)
    with sending(url, told(body), body):
        assert until(lambda: engine.health().running == 1)
    assert until(lambda: engine.health().running == 0)


def test_a_body_that_says_it_is_too_long_is_refused_before_it_is_sent(url: str):
    with sending(url, "Content-Length: 100000000\r\n") as connection:
        assert connection.recv(65_536).startswith(b"HTTP/1.1 413 ")


def test_bodies_have_a_bound_together(host: EngineHost):
    body = body_of(messages=[{"role": "user", "content": "x" * 3000}])
    with (
        serving(host, ServerSettings(max_held_bytes=4000)) as url,
        httpx.Client(base_url=url, trust_env=False) as client,
    ):
        client.headers["authorization"] = f"Bearer {KEY}"
        with sending(url, told(body), body[:-1]) as half:

            def ask() -> httpx.Response:
                return client.post("/v1/chat/completions", content=body, timeout=WAIT_S)

            assert until(lambda: ask().status_code == 429)
            refused = ask()
            assert (error(refused)[2], refused.headers["retry-after"]) == ("too_much_at_once", "1")
            half.sendall(body[-1:])
            assert half.recv(65_536).startswith(b"HTTP/1.1 200 ")
        assert ask().status_code == 200


async def a_long_answer(scope: Any, receive: Any, send: Any) -> None:
    """Longer than the buffers of both sides."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x" * (16 * MB)})


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b"x" * MB
        await asyncio.sleep(0)


async def an_endless_stream(scope: Any, receive: Any, send: Any) -> None:
    await EventStream(endless(), [], time.monotonic() + 100)(scope, receive, send)


async def a_stream_past_its_deadline(scope: Any, receive: Any, send: Any) -> None:
    await EventStream(endless(), [], time.monotonic() - DEADLINE_GRACE_S + 0.3)(scope, receive, send)


@pytest.mark.parametrize("keeps", ["close", "keep-alive"])
@pytest.mark.parametrize(
    ("answer", "idle_timeout_s"), [(a_long_answer, 0.3), (an_endless_stream, 0.3), (a_stream_past_its_deadline, 75)]
)
def test_an_answer_that_nobody_reads_is_dropped(
    monkeypatch: pytest.MonkeyPatch, answer: ASGIApp, idle_timeout_s: float, keeps: str
):
    monkeypatch.setattr(served, "create_app", lambda *_, **__: answer)
    with (
        serving(cast(Any, None), ServerSettings(idle_timeout_s=idle_timeout_s)) as url,
        sending(url, f"Connection: {keeps}\r\n{told(b'')}", receive_buffer=4096) as connection,
    ):
        watched = select.poll()
        # Nothing but a reset, of which one hears without reading.
        watched.register(connection, 0)
        assert watched.poll(WAIT_S * 1000)


def test_others_have_their_turn_while_a_slow_client_is_told_what_it_missed():
    async def tell() -> int:
        tokens, num_turns, num_told = Tokens(), 0, 0
        hear = tokens.on_token(0)
        for token_id in range(5000):
            hear(token_id, 0.0, [])

        async def others() -> None:
            nonlocal num_turns
            while True:
                await asyncio.sleep(0)
                num_turns += 1

        beside = asyncio.ensure_future(others())
        await asyncio.sleep(0)
        while num_told < 5000:
            num_told += len(await tokens.next())
        beside.cancel()
        return num_turns

    assert asyncio.run(tell()) > 10


def test_an_engine_may_tell_tokens_to_a_server_that_has_ended():
    async def listen() -> OnToken:
        return Tokens().on_token(0)

    hear = asyncio.run(listen())
    hear(1, 0.0, [])  # what it raised here would be the engine's end


def test_nothing_is_kept_of_whoever_came(client: httpx.Client, url: str):
    chat(client)
    before = gauges(client)
    for body in (b"\xff", b"{" * 400, b"x" * 200_000, body_of(stop=["x"] * 1000), body_of(max_tokens=9999)):
        assert client.post("/v1/chat/completions", content=body).status_code in (400, 413)
    long = body_of(max_tokens=4000, ignore_eos=True, stream=True)
    for body in (long, long[:-1], b""):
        with sending(url, told(long), body):
            time.sleep(0.05)
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")
    assert until(lambda: [gauges(client)[name] for name in names] == [0, 0, 0])
    assert until(lambda: gauges(client)["temper_server_tasks"] <= before["temper_server_tasks"])
    assert until(lambda: gauges(client).get("process_open_fds", 0) <= before.get("process_open_fds", 0))


@given(text=st.text("ab", max_size=12), end=st.text("ab", min_size=1, max_size=6))
def test_what_may_become_a_stop_string_is_its_longest_beginning_at_the_end_of_the_text(text: str, end: str):
    lengths = [length for length in range(len(end)) if text.endswith(end[:length])]
    assert overlap(text, end) == max(lengths)
