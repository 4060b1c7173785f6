"""Bounds on what somebody without the key gets of this process: of a size for headers, and of time for everything."""

import asyncio
from typing import Any

from starlette.types import Scope
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from temper_gpu.server.answers import Refusal, error_response
from temper_gpu.server.settings import ServerSettings


def mark_known(scope: Scope) -> None:
    """The request showed the key: its client may keep the connection."""
    scope["state"]["is_known"] = True


def hang_up(scope: Scope) -> None:
    """Whatever is not sent yet is dropped: its reader has had its time."""
    scope["state"]["transport"].abort()


class LimitedProtocol(HttpToolsProtocol):
    """One connection. Where uvicorn waits for ever (headers, and the rest of a body that was answered already), this
    one has a deadline; it does not begin anew with each byte."""

    settings = ServerSettings()
    # Of this server: connections that have yet to send a request, the oldest first, and since when.
    unfinished: dict["LimitedProtocol", float]

    def __init__(self, config: Config, *given: Any, **named: Any) -> None:
        super().__init__(config, *given, **named)
        self._deadline: asyncio.TimerHandle | None = None
        self._refusal: Refusal | None = None
        self._has_headers = False
        self._is_read = True
        # Of headers that are not complete.
        self._num_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_deadline()
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_read and self._is_answering():
            # No deadline could be kept here without cutting the answer. The client sends again what was not answered.
            self.cycle.keep_alive = False
            return
        if not self._has_headers and self._deadline is None:
            self._set_deadline()
        self._num_bytes += len(data)
        super().data_received(data)
        if not self._has_headers and self._num_bytes > self.settings.max_header_bytes:
            self._refuse(self._too_large())

    def on_headers_complete(self) -> None:
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > self.settings.max_header_bytes:
            self._refusal = self._too_large()
            raise self._refusal  # before any work on it begins; the parser hands it on to `send_400_response`
        self._has_headers, self._is_read = True, False
        self._clear_deadline()
        super().on_headers_complete()
        self.scope.setdefault("state", {})["transport"] = self.transport

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._has_headers, self._is_read, self._num_bytes = False, True, 0
        self._clear_deadline()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._wait_for_next()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing() or not self.cycle.response_complete:
            return
        if self._is_read:
            self._wait_for_next()
        else:
            # Hung up now, the client would see a reset instead of the answer.
            self._unset_keepalive_if_required()
            self._set_deadline()

    def send_400_response(self, msg: str) -> None:
        self._refuse(self._refusal or Refusal(400, "bad_request", f"a request must be HTTP: {msg}; send HTTP/1.1"))

    def _wait_for_next(self) -> None:
        self._unset_keepalive_if_required()
        is_known = self.scope.get("state", {}).get("is_known")
        if not is_known:
            self.unfinished[self] = self.loop.time()
        wait_s = self.timeout_keep_alive if is_known else self.settings.header_timeout_s
        self.timeout_keep_alive_task = self.loop.call_later(wait_s, self.timeout_keep_alive_handler)

    def _too_large(self) -> Refusal:
        most = self.settings.max_header_bytes
        return Refusal(
            431, "headers_too_large", f"headers must have at most {most} bytes, but these have more; send fewer"
        )

    def _set_deadline(self) -> None:
        self._clear_deadline()
        self._deadline = self.loop.call_later(self.settings.header_timeout_s, self._give_up)
        self.unfinished[self] = self.loop.time()

    def _clear_deadline(self) -> None:
        self.unfinished.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _make_room(self) -> None:
        """Each takes a file descriptor, and the store needs some. What came a moment ago may be a burst of clients."""
        oldest, since = next(iter(self.unfinished.items()))
        is_crowded = len(self.unfinished) > self.settings.max_unfinished
        if is_crowded and self.loop.time() - since >= self.settings.unfinished_grace_s:
            oldest._give_up()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _give_up(self) -> None:
        self._clear_deadline()
        if self._has_headers:
            self.transport.close()
            return
        limit = f"{self.settings.header_timeout_s:g} s"
        self._refuse(
            Refusal(408, "timeout", f"headers must be complete within {limit}, but these are not; send them faster")
        )

    def _refuse(self, refusal: Refusal) -> None:
        """Straight onto the wire: there is no request yet that could be answered."""
        if self.transport.is_closing():
            return
        if self._is_answering():  # the request before; there is no answer in the middle of another
            self.cycle.keep_alive = False
            return
        answer = error_response(refusal)
        head = [f"HTTP/1.1 {answer.status_code} \r\nconnection: close\r\n".encode()]
        head += [name + b": " + value + b"\r\n" for name, value in answer.raw_headers]
        self.transport.write(b"".join([*head, b"\r\n", bytes(answer.body)]))
        self.transport.close()


def limited_protocol(settings: ServerSettings) -> type[LimitedProtocol]:
    """As uvicorn wants it: a class, which it gives what it likes."""
    return type("LimitedProtocol", (LimitedProtocol,), {"settings": settings, "unfinished": {}})
