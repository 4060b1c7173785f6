"""HTTP to a server that somebody else runs: where it is asked, and what an answer may be."""

import socket
import threading
import time
from contextlib import suppress

import pytest

from temper_gpu.engine.vllm import client as module
from temper_gpu.engine.vllm.client import Address, Client, Unreachable

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


@pytest.fixture
def answering():
    """Gives a URL whose server answers each connection so, piece by piece, and what it was asked."""
    asked: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(*pieces: bytes, pause_s: float = 0.0) -> tuple[str, list[bytes]]:
        def run() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, suppress(OSError):  # what goes on for too long is not read to its end
                    asked.append(connection.recv(1 << 16))
                    for piece in pieces:
                        connection.sendall(piece)
                        time.sleep(pause_s)

        threading.Thread(target=run, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/behind/a/proxy", asked

    yield serve
    listener.close()


def test_the_key_goes_to_the_server_alone_and_a_redirect_is_an_answer(answering):
    url, asked = answering(b"HTTP/1.1 307 x\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n")
    address = Address("secret", url=url)
    assert Client(address).get("/version", 5).status == 307
    assert asked[0].startswith(b"GET /behind/a/proxy/version HTTP/1.1\r\n")
    assert b"authorization: Bearer secret\r\n" in asked[0]
    assert "secret" not in repr(address)


def test_where_there_is_no_key_none_is_sent(answering):
    url, asked = answering(OK)
    assert Client(Address("", url=url)).post("/v1/completions", {}, 5).body == {}
    assert b"authorization" not in asked[0]


def test_an_answer_is_bounded_in_size_and_in_time(answering, monkeypatch):
    monkeypatch.setattr(module, "MAX_ANSWER_BYTES", 1000)
    long = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    url, _ = answering(long, *[b"5\r\n     \r\n"] * 300)
    with pytest.raises(Unreachable, match="more than 1000 bytes"):
        Client(Address("", url=url)).get("/", 5)


def test_a_server_that_sends_a_byte_now_and_then_is_not_waited_for(answering):
    url, _ = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n", *[b" "] * 1200, pause_s=0.05)
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        Client(Address("", url=url)).get("/", 0.3)
    assert time.monotonic() - started < 30


def test_a_retry_on_a_new_connection_has_what_is_left_of_the_time(answering, monkeypatch):
    url, asked = answering(OK)
    client, true, given = Client(Address("", url=url)), module.connection_to, []
    client.get("/", 60)
    monkeypatch.setattr(
        module, "connection_to", lambda address, left_s: (given.append(left_s), true(address, left_s))[1]
    )
    # The server has closed the connection that the client kept.
    assert client.get("/", 30).body == {}
    assert (len(asked), len(given), given[0] < 30) == (2, 1, True)


def test_half_an_answer_is_none(answering):
    url, _ = answering(b'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"a":')
    with pytest.raises(Unreachable, match="IncompleteRead"):
        Client(Address("", url=url)).get("/", 5)


def test_an_address_that_nobody_listens_on_says_so():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unreachable, match="refused"):
        Client(Address("", url=f"http://127.0.0.1:{port}")).get("/", 5)
