"""HTTP to a vLLM server, one connection a thread. Its address is a Unix socket in a folder of this user alone."""

import http.client
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson

# What an answer to a request of the largest context comes to, many times over.
MAX_ANSWER_BYTES = 256 << 20


@dataclass(frozen=True)
class Address:
    socket: str
    key: str


@dataclass(frozen=True)
class Answer:
    status: int
    # Parsed; None where it is no JSON.
    body: Any

    @property
    def message(self) -> str:
        """What a refusal says."""
        error = self.body.get("error") if isinstance(self.body, Mapping) else None
        return str(error.get("message") if isinstance(error, Mapping) else error or "no message")[:500]


class Unreachable(Exception):
    """No answer came, or half of one."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """Used by one thread; `abort` alone may come from others."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: _UnixConnection | None = None
        self._is_aborted = False

    def get(self, path: str, timeout_s: float) -> Answer:
        return self._request("GET", path, None, timeout_s)

    def post(self, path: str, body: Any, timeout_s: float) -> Answer:
        """Raises Unreachable, and TimeoutError; a request that is given up is aborted by vLLM, too."""
        return self._request("POST", path, orjson.dumps(body), timeout_s)

    def abort(self) -> None:
        """Ends the request in hand: vLLM drops what nobody reads."""
        self._is_aborted = True
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _request(self, method: str, path: str, body: bytes | None, timeout_s: float) -> Answer:
        kept, self._is_aborted = self._connection is not None, False
        try:
            return self._ask(method, path, body, timeout_s)
        except TimeoutError:
            self.close()
            raise
        except (OSError, http.client.HTTPException) as error:
            self.close()
            # A server closes a connection that has been idle for long; only a new one tells whether it is there.
            if not kept or self._is_aborted or isinstance(error, http.client.IncompleteRead):
                raise Unreachable(f"{type(error).__name__}: {error}") from error
        return self._request(method, path, body, timeout_s)

    def _ask(self, method: str, path: str, body: bytes | None, timeout_s: float) -> Answer:
        if self._connection is None:
            self._connection = _UnixConnection(self._address.socket, timeout_s)
        connection = self._connection
        connection.timeout = timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        headers = {"authorization": f"Bearer {self._address.key}", "content-type": "application/json"}
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        data = response.read(MAX_ANSWER_BYTES)
        try:
            return Answer(response.status, orjson.loads(data))
        except orjson.JSONDecodeError:
            return Answer(response.status, None)
