"""One vLLM server as a child process: it is started, awaited, and ended, and its log lines are passed on. The
supervisor replaces an ended one."""

import logging
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

import torch

from temper_gpu.engine.vllm.client import Address, Client, Unreachable
from temper_gpu.engine.vllm.folders import OwnFolders
from temper_gpu.engine.vllm.server import Completion
from temper_gpu.engine.vllm.settings import VllmSettings, context_window, flags_of, recorded
from temper_gpu.failures import TemperError
from temper_gpu.model.models import BaseModel

GUARD = Path(__file__).with_name("guard.py")
# argparse refused a flag: another start would end the same way.
EXIT_USAGE = 2
KEPT_LINES = 200
# Interval and timeout of the checks while it starts.
POLL_S, ANSWER_S = 0.25, 5.0
# The guard gives vLLM three seconds to end in order.
END_S = 6.0
# Share of a GPU that vLLM expects to be free before it starts. Its default is nearly all, but the trainer's model is
# loaded first. Other flags limit what it takes.
LEAST_FREE = 0.05
# Largest length of a log line; a line of requests can be long.
MAX_LINE = 2000
_LEVELS = {"ERROR": logging.ERROR, "WARNING": logging.WARNING, "CRITICAL": logging.ERROR}

log = logging.getLogger(__name__)
# vLLM's own lines.
log_vllm = logging.getLogger("vllm")


class VllmProcess:
    """One life of a server: from its start to its end."""

    def __init__(self, base: BaseModel, source: str, settings: VllmSettings) -> None:
        self._base = base
        self._settings = settings
        # A folder readable by this user alone, removed by the guard in any case. It is short, because a socket's path
        # may have 107 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="temper-vllm-"))
        self.folders = OwnFolders(self.folder)
        self.address = Address(secrets.token_urlsafe(32), socket=str(self.folder / "server.sock"))
        self.ended = threading.Event()
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        # The key is not in the command line, which every user of this host can read.
        environment = server_environment(base, settings, str(self.folder)) | {"VLLM_API_KEY": self.address.key}
        flags = [*own_flags(base, source, str(self.address.socket), settings), *flags_of(base, settings)]
        command = [sys.executable, "-I", "-S", str(GUARD), str(self.folder), *settings.program, *flags]
        try:
            self._guard = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        except OSError:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        log.info("vLLM starts", extra={"model": base.name, "pid": self._guard.pid, "flags": flags_of(base, settings)})
        if self.context_window < base.context_window:
            # The model's window, as far as key-value cache and arguments allow.
            log.info("context limited", extra={"model": base.name, "tokens": self.context_window})
        reader = threading.Thread(target=self._read_lines, name=f"log of vLLM of {base.name}", daemon=True)
        reader.start()
        threading.Thread(target=self._watch, args=(reader,), name=f"vLLM of {base.name}", daemon=True).start()

    @property
    def pid(self) -> int:
        """Process id of the guard, which leads the session of all its processes."""
        return self._guard.pid

    @property
    def served_name(self) -> str:
        return self._base.name

    @property
    def context_window(self) -> int:
        return context_window(self._base, self._settings)

    def recorded(self) -> dict[str, str]:
        return recorded(self._base, self._settings)

    def proven(self, fingerprint: str | None) -> None:
        pass

    def require_same(self, completion: Completion) -> None:
        """Nothing to check: only this process reaches its socket, and notices its end."""

    def confirm(self, client: Client, adapter: str | None, folder: str | None) -> None:
        pass

    def lost(self, error: TemperError) -> TemperError:
        return error

    def wait_until_ready(self, timeout_s: float) -> None:
        """Raises a TemperError if vLLM ended first, or did not answer in time; then it is ended."""
        end = time.monotonic() + timeout_s
        client = Client(self.address)
        try:
            while not self._answers(client):
                if self.ended.wait(POLL_S):
                    raise self.failure()
                if time.monotonic() > end:
                    self.close()
                    raise TemperError(
                        "EngineFailed", f"vLLM must answer {timeout_s:g} s after its start, but did not; see its log"
                    )
        finally:
            client.close()

    def _answers(self, client: Client) -> bool:
        try:
            return client.get("/health", ANSWER_S).status == 200
        except (Unreachable, TimeoutError):
            return False

    def failure(self) -> TemperError:
        """The error for vLLM's end, with its last lines."""
        code = next((line for line in reversed(self._lines) if line.startswith("vLLM ended with ")), "vLLM was killed")
        words = last_words(list(self._lines))
        if code == f"vLLM ended with exit code {EXIT_USAGE}":
            return TemperError(
                "BadConfig",
                f"vLLM must accept its arguments, but refused them: {words}; correct engine.vllm.args in "
                "temporal.config.ts",
            )
        return TemperError("EngineFailed", f"{code} while it served {self._base.name}: {words}")

    def close(self) -> None:
        """Returns when no process of it is left."""
        with suppress(OSError):
            if self._guard.stdin is not None:
                self._guard.stdin.close()
        if not self.ended.wait(END_S):
            log.warning("vLLM does not end, killed", extra={"pid": self.pid})
            self._kill_session()
            self.ended.wait(END_S)

    def _watch(self, reader: threading.Thread) -> None:
        """When the guard has ended, nothing of the session may be left."""
        self._guard.wait()
        self._kill_session()
        reader.join(END_S)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.ended.set()

    def _read_lines(self) -> None:
        """Logs and keeps lines until all processes that write to the pipe have ended."""
        assert self._guard.stdout is not None
        for data in self._guard.stdout:
            line = data[:MAX_LINE].decode("utf-8", "replace").rstrip()
            if line:
                self._lines.append(line)
                log_vllm.log(level_of(line), line, extra={"model": self._base.name})

    def _kill_session(self) -> None:
        # The group's id is not reused while one of its processes exists.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def own_flags(base: BaseModel, source: str, socket: str, settings: VllmSettings) -> list[str]:
    """Flags without effect on computations, so manifests leave them out."""
    own = [f"--model={source}", f"--served-model-name={base.name}", f"--uds={socket}", "--disable-uvicorn-access-log"]
    if base.device.type == "cpu":
        return own
    sleeping = ["--enable-sleep-mode"] if is_shared(base.device, settings) else []
    return [*own, *sleeping, f"--gpu-memory-utilization={LEAST_FREE}"]


# Names of variables with credentials: of Temporal, stores, hubs and providers.
SECRET = re.compile(
    r"^(AWS|TEMPORAL|AZURE|GOOGLE)_|(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)(_ID|_FILE)?$", re.IGNORECASE
)


def server_environment(base: BaseModel, settings: VllmSettings, folder: str) -> dict[str, str]:
    """This process's environment, without variables that would mislead another Python, and without keys: vLLM reads
    only a folder."""
    astray = {"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in astray and not SECRET.search(name)}
    environment |= {
        "PYTHONUNBUFFERED": "1",
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
        "VLLM_LOGGING_COLOR": "0",
        "VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "120",
        "VLLM_RPC_BASE_PATH": folder,
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
    }
    if base.device.type == "cpu":
        # Thread binding would pin one thread to each core of the machine, which others use, too.
        threads = {"OMP_NUM_THREADS": str(settings.num_threads), "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
        environment |= {name: value for name, value in threads.items() if name not in os.environ}
        # This process's setting is for GNU's runtime; vLLM's would spin forever.
        environment["OMP_WAIT_POLICY"] = "PASSIVE"
    elif settings.devices:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(map(visible_device, settings.devices))
    else:
        environment["CUDA_VISIBLE_DEVICES"] = visible_device(base.device.index or 0)
    if is_shared(base.device, settings):
        environment["VLLM_SERVER_DEV_MODE"] = "1"
    return environment | dict(settings.environment)


def is_shared(device: torch.device, settings: VllmSettings) -> bool:
    """Whether it computes on the trainer's own GPU, and has to make room while that trains."""
    if device.type == "cpu":
        return False
    return not settings.devices or (device.index or 0) in settings.devices


def visible_device(index: int) -> str:
    """The host's name of a GPU of this process, which may see only some of them, renumbered."""
    seen = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return seen[index] if index < len(seen) else str(index)


def require_devices(settings: VllmSettings, device: torch.device) -> None:
    if settings.devices and device.type == "cpu":
        raise TemperError(
            "BadConfig",
            f"engine.vllm.devices must be empty where the model is on the CPU, got {list(settings.devices)}; remove "
            "it, or pass --device cuda",
        )


def level_of(line: str) -> int:
    """Its lines begin with their level, in a worker after the worker's name in brackets."""
    words = line.split(maxsplit=3)[:3]
    return next((_LEVELS[word] for word in words if word in _LEVELS), logging.INFO)


def last_words(lines: list[str]) -> str:
    """The last line that names an error; its traceback comes before it."""
    own = [line for line in lines if not line.startswith("vLLM ended with ")]
    errors = [line for line in own if "rror:" in line or "xception:" in line]
    return (errors or own or ["it said nothing"])[-1][-400:]
