"""HTTP to a vLLM server, one connection a thread. A server that Temper starts has a Unix socket in a folder that only
this user can open; an external one has a URL. Redirects and proxies are not followed."""

import http.client
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import orjson

from temper_gpu.contract import MAX_ANSWER_BYTES

CHUNK_BYTES = 1 << 20
# A host that is there accepts a connection at once.
CONNECT_S = 5.0


@dataclass(frozen=True)
class Address:
    """The address of a server: a socket or a URL."""

    # Empty: the server asks for none.
    key: str = field(repr=False)
    socket: str | None = None
    url: str | None = None

    @property
    def server(self) -> str:
        return "vLLM" if self.url is None else f"the vLLM server {self.url}"

    @property
    def path(self) -> str:
        """Path prefix of the server behind a proxy."""
        return "" if self.url is None else urlsplit(self.url).path.rstrip("/")


@dataclass(frozen=True)
class Answer:
    status: int
    # Parsed; None where it is no JSON.
    body: Any

    @property
    def message(self) -> str:
        error = self.body.get("error") if isinstance(self.body, Mapping) else None
        return str(error.get("message") if isinstance(error, Mapping) else error or "no message")[:500]


class Unreachable(Exception):
    """No answer came, or half of one."""


class Aborted(Unreachable):
    """The caller has stopped waiting: this says nothing about the server."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def connection_to(address: Address, timeout_s: float) -> http.client.HTTPConnection:
    if address.url is None:
        assert address.socket is not None
        return _UnixConnection(address.socket, timeout_s)
    parts = urlsplit(address.url)
    connect_s = min(timeout_s, CONNECT_S)
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=connect_s, context=context)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=connect_s)


def left_until(end: float) -> float:
    """Seconds until a deadline, which has not passed."""
    left_s = end - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


class Client:
    """Used by one thread; `abort` alone may come from others."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._connection: http.client.HTTPConnection | None = None
        self._is_aborted = False

    def get(self, path: str, timeout_s: float) -> Answer:
        return self._request("GET", path, None, time.monotonic() + timeout_s)

    def post(self, path: str, body: Any, timeout_s: float) -> Answer:
        """Raises Unreachable, and TimeoutError; a request that is given up is aborted by vLLM, too."""
        return self._request("POST", path, orjson.dumps(body), time.monotonic() + timeout_s)

    def abort(self) -> None:
        """Closes the connection: vLLM drops requests without a reader."""
        self._is_aborted = True
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _request(self, method: str, path: str, body: bytes | None, end: float) -> Answer:
        kept, self._is_aborted = self._connection is not None, False
        try:
            return self._ask(method, path, body, end)
        except TimeoutError:
            self.close()
            raise
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if self._is_aborted:
                raise Aborted(f"{type(error).__name__}: {error}") from error
            # Servers close idle connections; only a new one shows whether the server is reachable.
            if not kept or isinstance(error, http.client.IncompleteRead):
                raise Unreachable(f"{type(error).__name__}: {error}") from error
        return self._request(method, path, body, end)

    def _ask(self, method: str, path: str, body: bytes | None, end: float) -> Answer:
        connection = self._connected(left_until(end))
        connection.sock.settimeout(left_until(end))
        headers = {"content-type": "application/json"}
        if self.address.key:
            headers["authorization"] = f"Bearer {self.address.key}"
        connection.request(method, self.address.path + path, body, headers)
        response = connection.getresponse()
        data = self._read(response, connection, end)
        try:
            return Answer(response.status, orjson.loads(data))
        except orjson.JSONDecodeError:
            return Answer(response.status, None)

    def _connected(self, timeout_s: float) -> http.client.HTTPConnection:
        if self._connection is None:
            self._connection = connection_to(self.address, timeout_s)
        if self._connection.sock is None:
            try:
                self._connection.connect()
            except TimeoutError as error:
                raise ConnectionError(f"no connection within {self._connection.timeout:g} s") from error
        return self._connection

    def _read(self, response: http.client.HTTPResponse, connection: http.client.HTTPConnection, end: float) -> bytes:
        """All of it by the deadline: a server that sends a byte now and then must not hold a thread for ever."""
        data = bytearray()
        while chunk := response.read1(CHUNK_BYTES):
            data += chunk
            if len(data) > MAX_ANSWER_BYTES:
                raise http.client.HTTPException(f"an answer of more than {MAX_ANSWER_BYTES} bytes")
            left_s = left_until(end)
            if connection.sock is not None:
                connection.sock.settimeout(left_s)
        if response.length:
            raise http.client.IncompleteRead(bytes(data), response.length)
        # The body is read to its end, so that the connection can be reused.
        response.read()
        return bytes(data)
