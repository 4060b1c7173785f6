"""The worker as a process: usage, leash, signals, standing by."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from temper_gpu.__main__ import BACKGROUND_PRIORITY, main
from temper_gpu.contract import EngineSettings, GpuWorkerSettings
from temper_gpu.failures import TemperError
from temper_gpu.model.instructions import LIMITS, NARROW
from temper_gpu.process import compose, event_loop
from temper_gpu.process.arguments import parse_arguments
from temper_gpu.process.host import choose_dtype
from temper_gpu.process.logs import JsonLines, Occasionally, logging
from temper_gpu.process.needs import open_machine
from temper_gpu.process.startup import limit_spinning
from temper_gpu.temporal import polling
from tests.failing import failing
from tests.store.s3_server import BUCKET, free_port, point_aws_at

GPU_WORKER = Path(__file__).parents[2]
START_TIMEOUT_S, END_TIMEOUT_S = 300, 100


def start(*arguments: str, program: tuple[str, ...] = ("-m", "temper_gpu")) -> subprocess.Popen[str]:
    environment = {**os.environ, "TEMPER_ENGINE_KEY": "secret"}
    command = [sys.executable, *program, *arguments]
    # pyrefly: ignore[no-matching-overload]
    return subprocess.Popen(
        command, cwd=GPU_WORKER, env=environment, text=True, **dict.fromkeys(("stdin", "stdout", "stderr"), -1)
    )


def finish(*arguments: str) -> tuple[int, str, str]:
    process = start(*arguments)
    out, error = process.communicate(timeout=START_TIMEOUT_S)
    return process.returncode, out, error


def settings(store: str = "file:///s", **others: object) -> tuple[str, str]:
    return "--settings", json.dumps({"store": store, **others})


def test_help_needs_no_torch():
    code, out, _ = finish("--help")
    assert code == 0
    assert "--settings FILE" in out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--setting", '{"store": "file:///s"}'],
        settings(port="x"),
        settings(thread=2),
        settings(engine={"threads": 0}),
        settings(engine={"kvCacheBytes": 0}),
        settings(engine={"prefixCacheBytes": -1}),
        settings(engine={"vllm": {"devices": ["one"]}}),
        ["--settings", "{"],
        ["--settings", "no-such-file.json"],
    ],
)
def test_bad_usage_is_one_line_and_code_2(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "error: " in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("device", ["mps", "xpu:0", "cuda:x", "cpu:1", "meta"])
def test_a_device_that_is_neither_cpu_nor_cuda_is_refused_by_name(device: str, capsys):
    with pytest.raises(SystemExit):
        parse_arguments(settings(engine={"device": device}))
    assert re.search(rf"engine\.device: .*cuda.*, got '{device}'; correct it", capsys.readouterr().err)


def test_settings_are_read_from_a_file_and_have_defaults(tmp_path: Path):
    (tmp_path / "settings.json").write_text('{"store": "file:///s", "engine": {"slots": 64}}')
    parsed = parse_arguments(["--settings", str(tmp_path / "settings.json")])
    assert (parsed.settings.engine.slots, parsed.settings.engine.dtype, parsed.settings.port) == (64, "auto", 8017)
    assert (parsed.leash, parsed.standby) == (False, False)


def test_bfloat16_is_chosen_on_a_gpu_alone():
    assert choose_dtype("auto", torch.device("cpu")) == torch.float32
    assert choose_dtype("auto", torch.device("cuda:0")) == torch.bfloat16
    assert choose_dtype("float32", torch.device("cuda:0")) == torch.float32


def test_a_missing_key_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.delenv("TEMPER_ENGINE_KEY", raising=False)
    assert main(settings()) == 2
    assert re.fullmatch(r".*TEMPER_ENGINE_KEY.*\n", capsys.readouterr().err)


def test_a_port_in_use_is_told_with_the_remedy():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, error = finish(*settings(port=port))
    assert (code, error.count("\n")) == (2, 1)
    assert f"127.0.0.1:{port}" in error
    assert "--port" in error


AWAY = f"s3://{BUCKET}/runs"


@dataclass
class Life:
    """Of a worker that stood by, began when its turn came, started again with narrower instructions, and was ended."""

    while_importing: set[int]
    while_waiting: set[int]
    answered: int | None
    code: int
    said: list[dict[str, Any]]
    error: str

    def times(self, message: str) -> int:
        return sum(message in line.get("msg", "") for line in self.said)


# A program whose kernels are not proven where its instructions are not limited. It prints what manifests record. While
# it stands by, it gives way a little less than others do: tests run beside it.
UNPROVEN = """
import json
import temper_gpu.__main__ as program

program.BACKGROUND_PRIORITY = 1
import_worker = program.import_worker

def import_broken():
    worker = import_worker()
    import torch
    from temper_gpu.engine.embedded import forward
    from temper_gpu.model.instructions import limits
    from temper_gpu.training.platform import platform_fingerprint
    true_attend = forward.attend

    def attend(query, *rest):
        seen = true_attend(query, *rest)
        places = torch.arange(len(seen.output_QHD))[:, None, None]
        return seen._replace(output_QHD=seen.output_QHD * (1 + 1e-5 * places))

    if "ATEN_CPU_CAPABILITY" not in limits():
        forward.attend = attend
    print(json.dumps(platform_fingerprint(torch.device("cpu"), torch.float32)), flush=True)
    program.import_worker = lambda: worker
    return worker

program.import_worker = import_broken
raise SystemExit(program.main())
"""


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    """One for all that a worker does in it: each start imports for ten seconds. Its store is away all the time."""
    with pytest.MonkeyPatch.context() as patch:
        for name in LIMITS:
            patch.delenv(name, raising=False)
        point_aws_at(f"http://127.0.0.1:{free_port()}", patch, tmp_path_factory.mktemp("aws"))
        with socket.create_server(("127.0.0.1", 0)) as others:
            port = others.getsockname()[1]
            given = settings(AWAY, port=port, role="sample", engine={"threads": 1})
            flags = (*given, "--leash", "--standby")
            process = start(*flags, program=("-c", UNPROVEN))
            lines, while_importing = watch_imports(process)
            while_waiting = settled_priorities(process.pid)
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    wait_for_health(process, port)
    deadline = time.monotonic() + START_TIMEOUT_S
    while (answered := ask(port)) != 200 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.1)
    process.stdin.close()
    process.stdin = None
    out, error = process.communicate(timeout=END_TIMEOUT_S)
    said = [json.loads(line) for line in [*lines, *out.splitlines()]]
    return Life(while_importing, while_waiting, answered, process.returncode, said, error)


def watch_imports(process: subprocess.Popen[str]) -> tuple[list[str], set[int]]:
    """The lines up to the one that says that it stands by, and the priorities of its threads until then."""
    stdout, lines, priorities = process.stdout, [], set()
    assert stdout is not None

    def read() -> None:
        """Up to the end where it never stands by."""
        for line in iter(stdout.readline, ""):
            lines.append(line)
            if '"standing by"' in line:
                return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    while reader.is_alive():
        priorities |= thread_priorities(process.pid)
        time.sleep(0.01)
    assert lines and '"standing by"' in lines[-1], process.communicate()
    return lines, priorities


def settled_priorities(pid: int) -> set[int]:
    """The thread that imported may be a moment from its end."""
    deadline = time.monotonic() + END_TIMEOUT_S
    while len(thread_priorities(pid)) > 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    return thread_priorities(pid)


def thread_priorities(pid: int) -> set[int]:
    if sys.platform != "linux":
        return set()
    priorities = set()
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):  # it has just ended
            priorities.add(os.getpriority(os.PRIO_PROCESS, int(thread.name)))
    return priorities


def test_it_starts_and_serves_while_its_s3_server_is_away(life: Life):
    assert life.answered == 200
    assert life.times("store not reached yet") == 2
    assert [line["store"] for line in life.said if line.get("msg") == "ready"] == [AWAY] * 2


def test_it_serves_until_its_leash_is_let_go(life: Life):
    assert (life.answered, life.code) == (200, 0), life.error
    assert life.times("ready") == 2
    assert life.times("ending") == 1


def test_one_that_stands_by_takes_a_port_only_when_its_turn_comes(life: Life):
    """The port was somebody else's until then."""
    assert life.times("standing by") == 1
    messages = [line["msg"] for line in life.said if "msg" in line]
    assert messages.index("standing by") < messages.index("ready")


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own here")
def test_one_that_stands_by_imports_in_the_background_and_then_has_the_usual_priority(life: Life):
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    assert life.while_importing == {usual, 1}
    assert BACKGROUND_PRIORITY > 1
    assert life.while_waiting == {usual}


def test_a_worker_whose_kernels_are_not_proven_goes_on_with_narrower_instructions(life: Life):
    native, narrow = (line.get("instructions", "") for line in life.said if "torch" in line)
    # What manifests record.
    assert all(f"{name}={value}" in narrow for name, value in NARROW.items())
    assert "ATEN_CPU_CAPABILITY" not in native
    assert life.times("The worker starts again with narrower instructions") == 1


def test_a_signal_asks_for_the_same_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compose, "MAX_SHUTDOWN_S", 1e6)  # here the bound would end the tests

    async def be_ended() -> None:
        stopping = asyncio.Event()
        compose.end_on(stopping, leash=False)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(stopping.wait(), END_TIMEOUT_S)

    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # where nothing handles it, the wait is too long
    try:
        event_loop.run(be_ended())
    finally:
        signal.signal(signal.SIGTERM, before)


# Its imports are none: what standing by comes to does not depend on them.
LIGHT = """
import types
import temper_gpu.__main__ as program

program.import_worker = lambda: types.SimpleNamespace(import_polling=lambda: None)
raise SystemExit(program.main())
"""


def test_one_that_stands_by_ends_with_its_leash(tmp_path: Path):
    process = start(*settings(tmp_path.as_uri()), "--leash", "--standby", program=("-c", LIGHT))
    out, error = process.communicate(timeout=START_TIMEOUT_S)
    assert process.returncode == 0, error
    assert [json.loads(line)["msg"] for line in out.splitlines()] == ["standing by"]


def ask(port: int) -> int | None:
    """None: the process is starting again."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        json.dumps({"model": "pocket", "messages": [{"role": "user", "content": "?"}], "max_tokens": 1}).encode(),
        {"authorization": "Bearer secret", "content-type": "application/json"},
    )
    try:
        return urllib.request.urlopen(request, timeout=START_TIMEOUT_S).status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def wait_for_health(process: subprocess.Popen[str], port: int) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            assert urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=START_TIMEOUT_S).status == 200
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(process.communicate() if process.poll() is not None else "no answer in time")


def record(message: str, created: float, name: str = "temporalio.core") -> logging.LogRecord:
    return logging.makeLogRecord(
        {"name": name, "msg": message, "created": created, "levelname": "WARNING", "run": "demo"}
    )


def test_a_log_line_is_json_with_the_records_fields():
    line = JsonLines().format(record("hello", 0))
    assert '"level":"warn"' in line
    assert '"time":"1970-01-01T00:00:00.000+00:00"' in line
    assert '"run":"demo"' in line


def test_what_temporals_client_repeats_is_told_now_and_then():
    occasionally = Occasionally(30)
    times = [time_ for time_ in range(100) if occasionally.filter(record("server away", time_))]
    assert times == [0, 30, 60, 90]
    assert occasionally.filter(record("something else", 1))
    ours = [occasionally.filter(record("no server yet", time_, polling.__name__)) for time_ in range(2)]
    assert ours == [True, False]
    assert all(occasionally.filter(record("step failed", 1, "temper_gpu.temporal.activities")) for _ in range(3))


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({}, {"127.0.0.1"}),
        ({"host": "10.0.0.5"}, {"10.0.0.5"}),
        ({"host": "0.0.0.0", "allow_host": ["GPU-1", "10.0.0.5"]}, {"gpu-1", "10.0.0.5"}),
        ({"host": "::", "allow_host": ["fd00::5"]}, {"fd00::5"}),
        ({"host": "", "allow_host": ["gpu-1"]}, {"gpu-1"}),
    ],
)
def test_clients_may_use_the_address_that_is_listened_on_and_the_names_that_were_told(
    place: dict[str, Any], expected: set[str]
):
    assert compose.allowed_hosts(GpuWorkerSettings(store="file:///s", **place)) == expected


@pytest.mark.parametrize("other", [{"kind": "vllm"}, {"devices": 2, "shard_base_model": True}])
def test_weights_in_4_bits_are_sampled_as_they_are_trained(other: dict[str, Any]):
    with failing("BadConfig", "loadIn4bit must come with"):
        open_machine(EngineSettings(load_in4bit=True, **other), torch.device("cpu"))


def test_it_opens_as_many_files_as_it_may():
    """Each client takes one, and shells begin with few."""
    program = (
        "import resource; from temper_gpu.__main__ import allow_open_files; kind = resource.RLIMIT_NOFILE;"
        "most = min(2000, resource.getrlimit(kind)[1]); resource.setrlimit(kind, (200, most));"
        "allow_open_files(); assert resource.getrlimit(kind) == (most, most)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=GPU_WORKER, check=False).returncode == 0


@pytest.mark.parametrize(
    ("platform", "given", "expected"),
    [
        ("linux", {}, {"OMP_WAIT_POLICY": "ACTIVE", "GOMP_SPINCOUNT": "3000"}),
        ("linux", {"GOMP_SPINCOUNT": "9"}, {"OMP_WAIT_POLICY": "ACTIVE", "GOMP_SPINCOUNT": "9"}),
        # The runtime there counts nothing, and would spin for ever.
        ("darwin", {}, {"OMP_WAIT_POLICY": "PASSIVE"}),
        ("linux", {"OMP_WAIT_POLICY": "PASSIVE"}, {"OMP_WAIT_POLICY": "PASSIVE"}),
    ],
)
def test_threads_that_wait_spin_for_a_moment_only(
    platform: str, given: dict[str, str], expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    limit_spinning()
    assert {name: os.environ[name] for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT") if name in os.environ} == expected


def test_a_loop_that_stands_still_does_not_hold_up_the_one_of_heartbeats():
    async def beat() -> None:
        stopping, is_blocked, goes_on = asyncio.Event(), threading.Event(), threading.Event()

        async def serve(stopped: asyncio.Event) -> None:
            is_blocked.set()
            assert goes_on.wait(20)
            await stopped.wait()

        serving = asyncio.create_task(event_loop.run_apart(serve, stopping))
        while not is_blocked.is_set():
            await asyncio.sleep(0.001)
        goes_on.set()
        stopping.set()
        await serving

    event_loop.run(beat())


def test_a_server_that_fails_on_a_loop_of_its_own_ends_the_process_it_serves():
    async def fail(stopped: asyncio.Event) -> None:
        raise TemperError("EngineFailed", "it failed")

    with pytest.raises(TemperError, match="it failed"):
        event_loop.run(event_loop.run_apart(fail, asyncio.Event()))
