"""Bounds on what a connection gets of this process, above all without the key: of a size for headers, and of time for
everything, reading an answer included."""

import asyncio
import socket
import struct
from typing import Any, cast

from starlette.types import Scope
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from temper_gpu.server.answers import Refusal, error_response
from temper_gpu.server.settings import ServerSettings

# SO_LINGER of a closed socket: do not wait for unsent data.
AT_ONCE = struct.pack("ii", 1, 0)


def mark_known(scope: Scope) -> None:
    """The request showed the key: its client may keep the connection."""
    scope["state"]["is_known"] = True


def hang_up(scope: Scope) -> None:
    """Drops the connection and all unsent bytes."""
    drop(scope["state"]["transport"])


def drop(transport: asyncio.Transport) -> None:
    """Resets the connection: otherwise the system would try to send megabytes for minutes."""
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    transport.abort()


class LimitedProtocol(HttpToolsProtocol):
    """One connection. Where uvicorn waits for ever (headers, and the rest of a body that was answered already), this
    one has a deadline; it does not begin anew with each byte."""

    settings = ServerSettings()
    # Connections of this server without a request, the oldest first, with their start.
    unfinished: dict["LimitedProtocol", float]

    def __init__(self, config: Config, *given: Any, **named: Any) -> None:
        super().__init__(config, *given, **named)
        self._deadline: asyncio.TimerHandle | None = None
        self._refusal: Refusal | None = None
        self._has_headers = False
        self._is_read = True
        # Bytes of incomplete headers.
        self._num_bytes = 0
        self._reader_check: asyncio.TimerHandle | None = None
        # Number of times that the client caught up, and that number with the unsent bytes at the last check.
        self._num_resumed = 0
        self._taken = (0, 0)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_deadline()
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        if self._reader_check is not None:
            self._reader_check.cancel()
        super().connection_lost(exc)
        # Needed after a reset, too: the timer would keep the last request's data alive.
        self._unset_keepalive_if_required()

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
            raise self._refusal  # before any work on it begins; the parser calls `send_400_response` with it
        self._has_headers, self._is_read = True, False
        self._clear_deadline()
        super().on_headers_complete()
        self.scope.setdefault("state", {})["transport"] = self.transport
        self.cycle.transport = cast(asyncio.Transport, Lingering(self))

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._has_headers, self._is_read, self._num_bytes = False, True, 0
        self._clear_deadline()
        if self.cycle.response_complete and not self.transport.is_closing():
            if self.cycle.keep_alive:
                self._wait_for_next()
            else:
                self._close()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.cycle.response_complete:
            return
        if self.transport.is_closing():
            self._watch_reader()
        elif self._is_read:
            self._wait_for_next()
        else:
            # Hung up now, the client would see a reset instead of the answer.
            self._unset_keepalive_if_required()
            self._set_deadline(self._patience_s())

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._num_resumed += 1

    def send_400_response(self, msg: str) -> None:
        self._refuse(self._refusal or Refusal(400, "bad_request", f"a request must be HTTP: {msg}; send HTTP/1.1"))

    def _wait_for_next(self) -> None:
        self._unset_keepalive_if_required()
        if not self._is_known():
            self.unfinished[self] = self.loop.time()
        self.timeout_keep_alive_task = self.loop.call_later(self._patience_s(), self.timeout_keep_alive_handler)

    def _is_known(self) -> bool:
        return self.scope.get("state", {}).get("is_known", False)

    def _patience_s(self) -> float:
        return self.settings.idle_timeout_s if self._is_known() else self.settings.header_timeout_s

    def _too_large(self) -> Refusal:
        most = self.settings.max_header_bytes
        return Refusal(
            431, "headers_too_large", f"headers must have at most {most} bytes, but these have more; send fewer"
        )

    def _set_deadline(self, wait_s: float | None = None) -> None:
        self._clear_deadline()
        self._deadline = self.loop.call_later(wait_s or self.settings.header_timeout_s, self._give_up)
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

    def _close(self) -> None:
        """Once all is sent, for which the client gets no more time than to send something."""
        self.transport.close()
        self._watch_reader()

    def _watch_reader(self) -> None:
        """Keeps unsent bytes for a client that does not read no longer than an idle connection."""
        num_unsent = self.transport.get_write_buffer_size()
        if num_unsent and self._reader_check is None:
            self._taken = (self._num_resumed, num_unsent)
            self._reader_check = self.loop.call_later(self.settings.idle_timeout_s, self._check_reader)

    def _check_reader(self) -> None:
        self._reader_check = None
        if self._taken == (self._num_resumed, self.transport.get_write_buffer_size()):
            drop(self.transport)
        else:
            self._watch_reader()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _give_up(self) -> None:
        self._clear_deadline()
        if self._has_headers:
            self._close()
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
        self._close()


class Lingering:
    """The transport that uvicorn closes after an answer. Hung up before the request is read to its end, the client
    would see a reset instead of the answer."""

    def __init__(self, protocol: LimitedProtocol) -> None:
        self._transport, self._cycle = protocol.transport, protocol.cycle
        self.write, self.is_closing = self._transport.write, self._transport.is_closing

    def close(self) -> None:
        if not (self._cycle.response_complete and self._cycle.more_body):
            self._transport.close()


def limited_protocol(settings: ServerSettings) -> type[LimitedProtocol]:
    """A protocol class with these limits, in the form that uvicorn takes."""
    return type("LimitedProtocol", (LimitedProtocol,), {"settings": settings, "unfinished": {}})
