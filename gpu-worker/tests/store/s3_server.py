"""A real S3 server for tests, and a wire to it that can be cut."""

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

START_TIMEOUT_S = 100
ACCESS_KEY, SECRET_KEY = "temper-tests", "a secret of these tests"
BUCKET = "temper-tests"
_BUFFER_BYTES = 1 << 16


def versitygw() -> str:
    program = os.environ.get("TEMPER_VERSITYGW") or shutil.which("versitygw")
    if program is None:
        pytest.fail(
            "tests of the S3 store need an S3 server: set TEMPER_VERSITYGW to the program versitygw, made by "
            "`go install github.com/versity/versitygw/cmd/versitygw@v1.8.0`"
        )
    return program


class S3Server:
    """versitygw on a folder: buckets are folders in it, objects files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bucket = folder / BUCKET
        self.bucket.mkdir(parents=True)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        environment = {**os.environ, "ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
        address = f"127.0.0.1:{self.port}"
        command = [versitygw(), "--quiet", "--port", address, "posix", str(self.folder)]
        self._process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        pytest.fail(f"versitygw must listen on {address} within {START_TIMEOUT_S} s, it does not")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def point_aws_at(url: str, patch: pytest.MonkeyPatch, folder: Path) -> None:
    """AWS's environment, whatever the user's own is. No file of settings is in `folder`."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3"):
        patch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        patch.setenv(name, str(folder / "no such file"))
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    patch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    patch.setenv("AWS_REGION", "us-east-1")
    patch.setenv("AWS_ENDPOINT_URL", url)
    patch.setenv("NO_PROXY", "127.0.0.1")


class Wire:
    """Passes bytes between clients and a server. `is_cut` is told how many have come in a direction, over all
    connections, before they are passed on, and ends a connection by returning True."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.num_connections = 0
        self.passed = {"up": 0, "down": 0}
        self.is_cut: Callable[[str, int], bool] = lambda direction, passed: False
        # Takes what clients send, and lets nothing through.
        self.is_swallowing = False
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # or the thread in accept() would keep it open
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.num_connections += 1
            try:
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                client.close()
                continue
            for ends in ((client, server, "up"), (server, client, "down")):
                threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, direction: str) -> None:
        try:
            while data := source.recv(_BUFFER_BYTES):
                with self._lock:
                    self.passed[direction] += len(data)
                    if self.is_cut(direction, self.passed[direction]):
                        break
                if not self.is_swallowing:
                    target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
