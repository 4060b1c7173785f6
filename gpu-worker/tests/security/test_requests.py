"""Requests that are too long, too deep or never finished: answered with a reason, and nobody else waits for them."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from typing import Any, cast

import httpx
import orjson
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.embedded.host import EngineHost
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.failures import TemperError
from temper_gpu.model.models import ModelLibrary
from temper_gpu.server import prompts as prompts_module
from temper_gpu.server.chat import ChatRequest
from temper_gpu.server.control_tokens import ControlTokens
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.reading import parse_json
from temper_gpu.server.settings import ServerSettings
from tests.server import served
from tests.server.served import ASKED, KEY, chat, error, serving
from tests.server.templates import prompts_by

POCKET = prompts_by()
MESSAGE = {"role": "user", "content": "?"}
HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
LONG_HEADERS = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"x" * 20_000
LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    library = ModelLibrary(lambda: {}, torch.float32, torch.device("cpu"))
    engine = EmbeddedSettings(num_threads=1, max_pass_tokens=256)
    host = EngineHost(library, engine, DeviceLock(), on_death=lambda error: None)
    host.engine("pocket")
    with serving(host, ServerSettings(max_header_bytes=10_000, header_timeout_s=2)) as url:
        yield url
    host.close()


@pytest.fixture
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {KEY}"}, timeout=30, trust_env=False) as client:
        yield client


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"deeper": value}
    return value


def calling(arguments: str) -> list[dict[str, Any]]:
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": arguments}}
    return [MESSAGE, {"role": "assistant", "content": None, "tool_calls": [call]}]


def test_a_prompt_that_cannot_fit_is_refused_before_it_is_tokenised(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
):
    chat(client)
    tokenised: list[int] = []
    encode = ControlTokens.encode
    monkeypatch.setattr(ControlTokens, "encode", lambda self, text: tokenised.append(len(text)) or encode(self, text))
    answer = chat(client, messages=[{"role": "user", "content": "a long page " * 100_000}])
    assert error(answer) == (400, "BadConfig", "context_length_exceeded")
    assert "4096 tokens of pocket" in answer.json()["error"]["message"]
    assert tokenised == []


def test_others_are_answered_while_a_long_prompt_is_tokenised(client: httpx.Client, monkeypatch: pytest.MonkeyPatch):
    chat(client)
    began, goes_on = threading.Event(), threading.Event()
    encode = ControlTokens.encode

    def slowly(self: ControlTokens, text: str, is_behind_text: bool = False) -> list[int]:
        if len(text) > 4000:
            began.set()
            assert goes_on.wait(20)
        return encode(self, text, is_behind_text)

    monkeypatch.setattr(ControlTokens, "encode", slowly)
    long = [{"role": "user", "content": "x" * 10_000}]
    answers: list[httpx.Response] = []
    asking = threading.Thread(target=lambda: answers.append(chat(client, messages=long)))
    asking.start()
    try:
        assert began.wait(20)
        assert client.get("/health", timeout=10).status_code == 200
        assert chat(client, {"x-temper-deadline-ms": "10000"}).status_code == 200
    finally:
        goes_on.set()
        asking.join()
    assert error(answers[0]) == (400, "BadConfig", "context_length_exceeded")


def test_threads_run_while_the_tokenizer_works_on_a_long_text():
    """Its plain `encode` would keep Python's lock for seconds, and with it every other thread from running."""
    text = "word salad, 123 " * 30_000
    done = threading.Event()
    asking = threading.Thread(target=lambda: (POCKET.tokenise(text), done.set()))
    asking.start()
    turns = 0
    while not done.is_set():
        time.sleep(0.001)
        turns += 1
    asking.join()
    assert turns > 10


def test_a_long_text_has_the_tokens_of_a_short_one(monkeypatch: pytest.MonkeyPatch):
    text = "Grüße <|end|> 漢字 \N{GRINNING FACE} <tool_call>x" * 9
    short = POCKET.tokenise(text)
    monkeypatch.setattr(prompts_module, "SHORT_TEXT", 0)
    assert POCKET.tokenise(text) == short


@pytest.mark.parametrize(
    "changes",
    [
        {"messages": [MESSAGE | {"deep": nested(150)}]},
        {"messages": [MESSAGE | {"deep": nested(300)}]},
        {"messages": [MESSAGE | {"deep": nested(900)}]},
        {"messages": [MESSAGE], "metadata": nested(300)},
        {"messages": [MESSAGE], "top_p": nested(900)},
        {"messages": [MESSAGE], "tools": [{"type": "function", "function": {"name": "x", "parameters": nested(400)}}]},
    ],
)
def test_json_that_is_too_deep_is_refused_with_the_reason(client: httpx.Client, changes: dict[str, Any]):
    answer = chat(client, **changes)
    assert error(answer) == (400, "BadConfig", "bad_request")
    assert "nested at most 100 levels deep" in answer.json()["error"]["message"]


@pytest.mark.parametrize("arguments", [json.dumps(nested(120)), json.dumps(nested(280)), '{"x": "\\ud800"}'])
def test_arguments_that_are_no_sound_json_are_text(client: httpx.Client, arguments: str):
    """As when they are read: see `parse_call`."""
    assert chat(client, messages=calling(arguments), tools=[LOOK], max_tokens=1).status_code == 200


@pytest.mark.parametrize("deadline", ["9" * 5000, "99999999999"])
def test_a_deadline_beyond_numbers_is_refused(client: httpx.Client, deadline: str):
    assert error(chat(client, {"x-temper-deadline-ms": deadline})) == (400, "BadConfig", "bad_request")


def test_what_makes_the_server_fail_is_named_without_what_depends_on_time(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
):
    """An attempt that fails by it keeps this message, and its bytes are under a hash."""
    chat(client)
    monkeypatch.setattr(Prompts, "encode", lambda *given: 1 / 0)
    answer = chat(client)
    assert error(answer) == (500, "EngineFailed", "internal")
    assert "ZeroDivisionError" in answer.json()["error"]["message"]
    assert "division by zero" not in answer.text


# ---- before the key


def connect(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=20)
    return connection


def read_all(connection: socket.socket) -> bytes:
    """Until the server hangs up."""
    chunks = []
    try:
        while chunk := connection.recv(65_536):
            chunks.append(chunk)
    except ConnectionResetError:
        pass
    return b"".join(chunks)


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half"])
def test_a_request_that_is_never_finished_is_hung_up(url: str, sent: bytes):
    with connect(url) as connection:
        connection.sendall(sent)
        assert read_all(connection).startswith((b"HTTP/1.1 408 ", b"") if not sent else b"HTTP/1.1 408 ")


def test_headers_that_trickle_in_have_no_more_time(url: str):
    with connect(url) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\n")
        started = time.monotonic()
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            while time.monotonic() - started < 20:
                connection.sendall(b"X-More: 1\r\n")
                time.sleep(0.05)


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"])
@pytest.mark.parametrize("header", [b"X-Long: " + b"x" * 20_000, b"X-Many: 1\r\n" * 2000])
def test_headers_of_any_size_are_refused(url: str, header: bytes, end: bytes):
    with connect(url) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n" + header + end)
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 431 ")
    body = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    assert (body["type"], body["code"]) == ("BadConfig", "headers_too_large")
    assert "10000 bytes" in body["message"]


@pytest.mark.parametrize(
    ("at_once", "later"),
    [
        (b"", HEALTH[:20]),
        (b"", HEALTH),
        (HEALTH[:20], b""),
        (b"no HTTP\r\n\r\n", b""),
        (LONG_HEADERS + b"\r\n\r\n", b""),
        (b"", LONG_HEADERS),
    ],
)
def test_what_a_client_sends_ahead_does_not_cut_the_answer_before_it(
    monkeypatch: pytest.MonkeyPatch, at_once: bytes, later: bytes
):
    goes_on = threading.Event()

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        assert await asyncio.to_thread(goes_on.wait, 20)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        await send({"type": "http.response.body", "body": b"done"})

    monkeypatch.setattr(served, "create_app", lambda *_, **__: answer)
    bounds = ServerSettings(max_header_bytes=10_000, header_timeout_s=1)
    with serving(cast(Any, None), bounds) as url, connect(url) as connection:
        connection.sendall(HEALTH + at_once)
        time.sleep(0.1)
        connection.sendall(later)
        time.sleep(1.1)
        goes_on.set()
        answered = read_all(connection)
    assert answered.startswith(b"HTTP/1.1 200 ")
    assert answered.partition(b"\r\n\r\n")[2].startswith(b"done")
    assert b"HTTP/1.1 431" not in answered


def test_a_crowd_that_sends_no_request_gives_way_to_who_comes():
    bounds = ServerSettings(header_timeout_s=60, max_unfinished=3, unfinished_grace_s=0)
    with serving(cast(Any, None), bounds) as url, ExitStack() as crowd:
        connections = [crowd.enter_context(connect(url)) for _ in range(4)]
        assert read_all(connections[0]).startswith(b"HTTP/1.1 408 ")
        with connect(url) as other:
            other.sendall(b"GET /no HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert read_all(other).startswith(b"HTTP/1.1 4")
        assert read_all(connections[1]).startswith(b"HTTP/1.1 408 ")


def test_a_stranger_does_not_keep_a_connection(url: str):
    """Without the key, neither an idle connection nor the rest of a body is waited for."""
    for request in (
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nhalf",
    ):
        with connect(url) as connection:
            connection.sendall(request)
            assert read_all(connection).startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 401 "))


def test_a_body_is_read_to_its_end_before_a_refusal_hangs_up(url: str):
    """Else the client that sends one sees a reset instead of the reason."""
    body = json.dumps({**ASKED, "messages": [{"role": "user", "content": "x" * 3_000_000}]}).encode()
    for _ in range(3):
        with httpx.Client(trust_env=False, timeout=20) as client:
            answer = client.post(f"{url}/v1/chat/completions", content=body, headers={"authorization": "Bearer no"})
        assert error(answer) == (401, "BadConfig", "invalid_api_key")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_one_that_wants_no_other_answer_gets_the_reason_too(url: str, version: str):
    head = f"POST /v1/completions HTTP/{version}\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    head += "Content-Length: 3000000\r\n\r\n"
    with connect(url) as connection:
        connection.sendall(head.encode())
        time.sleep(0.2)
        for _ in range(30):
            connection.sendall(b"x" * 100_000)
        assert read_all(connection).startswith(b"HTTP/1.1 401 ")


def test_a_client_with_the_key_keeps_its_connection(url: str):
    connection = HTTPConnection(url.removeprefix("http://"), timeout=20)
    for _ in range(2):
        # Opens none anew: a connection that the server has closed fails here.
        connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {KEY}"})
        response = connection.getresponse()
        assert (response.status, response.will_close) == (200, False)
        response.read()
        time.sleep(3)
    connection.close()


def test_a_body_that_never_comes_is_waited_for_until_its_deadline(client: httpx.Client, url: str):
    with connect(url) as connection:
        connection.sendall(
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\n"
            "x-temper-deadline-ms: 300\r\nContent-Length: 1000\r\n\r\n{".encode()
        )
        assert connection.recv(65_536).startswith(b"HTTP/1.1 408 ")


# ---- whatever is sent


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ROLE = st.sampled_from(["system", "developer", "user", "assistant", "tool"])
NAMES = st.sampled_from(["role", "content", "name", "tool_calls", "tool_call_id", "refusal"])
CALLS = st.fixed_dictionaries({"function": st.fixed_dictionaries({"name": st.text(), "arguments": ANYTHING})})
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": ROLE | ANYTHING, "content": st.text() | ANYTHING})
    | st.fixed_dictionaries({"role": ROLE, "content": st.text(), "tool_calls": st.lists(CALLS, max_size=2)})
    | st.dictionaries(NAMES, ANYTHING),
    max_size=4,
)
BODY_NAMES = st.sampled_from(sorted({*ChatRequest.model_fields, *ChatRequest.no_effect, *ChatRequest.refused, "other"}))


@given(messages=MESSAGES | ANYTHING, more=st.dictionaries(BODY_NAMES, ANYTHING, max_size=2), has_tools=st.booleans())
def test_whatever_is_sent_is_encoded_or_refused(messages: Any, more: dict[str, Any], has_tools: bool):
    body = {"model": "pocket", "messages": messages, **({"tools": [LOOK]} if has_tools else {}), **more}
    try:
        chat = ChatRequest.parse(parse_json(orjson.dumps(body)))
        POCKET.encode(chat.messages, chat.tools, chat.tool_choice)
    except TemperError as error:
        assert error.type == "BadConfig"
        assert str(error).count(";") >= 1
