"""The stand-in as a server that somebody else runs: on a port of TCP, in this process, restarted at will."""

import socket
import threading
from contextlib import suppress
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from temper_gpu.engine.vllm.engine import VllmEngine
from temper_gpu.engine.vllm.settings import External, VllmSettings
from temper_gpu.model.models import POCKET_FOLDER, BaseModel
from tests.engine.vllm.stand_in import Handler, Model

KEY = "the key of somebody else"
# The shared folder, as the server's host has it.
THERE = "/srv/adapters"


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, handler: type[Handler]) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self._connections: list[socket.socket] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.append(request)
        super().process_request(request, client_address)

    def end(self) -> None:
        self.shutdown()
        self.server_close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class Elsewhere:
    """`fault` names what goes wrong; `served` is the model as the server has it now."""

    def __init__(self, base: BaseModel, folder: Path) -> None:
        self._base = base
        self.folder = folder
        self.fault = ""
        self._server: Server | None = None
        self._port = 0
        self.start()

    def start(self, **told: Any) -> None:
        """Without adapters, as after a restart. `told`: what it says of itself."""
        self.served = Model("served", self._base, lambda: self.fault)
        self.served.here = lambda folder: self.folder / folder.removeprefix(f"{THERE}/")
        for name, value in {"fingerprint": "vllm-0.0-1", **told}.items():
            setattr(self.served, name, value)
        self._server = Server(self._port, type("Of", (Handler,), {"model": self.served, "key": KEY}))
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.end()
        self._server = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def settings(self, **changes: Any) -> VllmSettings:
        given = {"url": self.url, "key": KEY, "folder": self.folder, "folder_there": THERE, "watch_s": 0.1}
        external = External(**{**given, **changes})
        return VllmSettings("", "", external=external, slots=16, backoff_s=(0.02, 0.1))

    def engine(self, **changes: Any) -> VllmEngine:
        return VllmEngine(self._base, str(POCKET_FOLDER), self.settings(**changes))
