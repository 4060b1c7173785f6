"""A pytest plugin: vLLM's own tests of its OpenAI server, against the GPU worker's server.

The tests import `tests.utils`, which starts vLLM, and parts of vLLM itself. Modules of the same names stand in for them
here: the server is one GPU worker for all tests, which serves a tiny random model under each name that a test asks for.
table.json says which tests apply. run.ts fetches the tests and starts pytest with this plugin.
"""

import ast
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import openai
import pytest
import requests
import torch
from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM

HERE = Path(__file__).parent
GPU_WORKER = HERE.parents[1] / "gpu-worker"
POCKET = GPU_WORKER / "temper_gpu/pocket/model"
TABLE = json.loads((HERE / "table.json").read_text())
TESTS = Path("tests/entrypoints")
APPLIES = "applies"
# The key that vLLM's tests send.
KEY = "token-abc123"
AUTHORIZED = {"authorization": f"Bearer {KEY}"}
CONTEXT = 8192
PRINTABLE = slice(0x20, 0x7F)
START_S = 300

# Some tests turn thinking off.
SWITCH = "{%- if enable_thinking is false -%}{%- endif -%}"


def make_model(folder: Path) -> None:
    """Says random letters and never ends by itself, so that lengths are those that a request asks for."""
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(POCKET)
    tokenizer.chat_template = SWITCH + tokenizer.chat_template
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        initializer_range=0.2,
        tie_word_embeddings=False,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = Qwen2ForCausalLM(config)
    with torch.no_grad():
        head = model.lm_head.weight
        letters = head[PRINTABLE].clone() * 3
        head.zero_()
        head[PRINTABLE] = letters
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


class Worker:
    """One GPU worker for all tests, started by the first of them that needs it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="temper-vllm-api-")
        self._process: subprocess.Popen[str] | None = None
        self._last: deque[str] = deque(maxlen=20)
        self._port = 0

    @property
    def model(self) -> Path:
        return Path(self._folder.name, "model")

    def url(self) -> str:
        if self._process is None:
            self._start()
        return f"http://127.0.0.1:{self._port}"

    def close(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
        self._folder.cleanup()

    def _start(self) -> None:
        folder = Path(self._folder.name)
        make_model(self.model)
        (folder / "store").mkdir()
        (folder / "models.json").write_text(json.dumps({name: str(self.model) for name in TABLE["models"]}))
        place = ["--store", f"file://{folder}/store", "--models", str(folder / "models.json"), "--port", "0"]
        # The packages of the tests are not the GPU worker's.
        own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "temper_gpu", *place, "--no-temporal", "--leash", "--slots", "16"],
            cwd=GPU_WORKER,
            env={**own, "TEMPER_ENGINE_KEY": KEY},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._port = self._read_port(self._process)
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()
        for name in TABLE["models"]:
            self._load(name)

    def _read_port(self, process: subprocess.Popen[str]) -> int:
        for line in self._lines(process):
            if line.startswith("{") and json.loads(line).get("msg") == "ready":
                return json.loads(line)["port"]
        raise RuntimeError("the GPU worker ended while it started: " + "".join(self._last))

    def _listen(self, process: subprocess.Popen[str]) -> None:
        """Its pipe must not fill."""
        for _ in self._lines(process):
            pass

    def _lines(self, process: subprocess.Popen[str]) -> Iterator[str]:
        for line in process.stdout or ():
            self._last.append(line)
            yield line

    def _load(self, name: str) -> None:
        body = {"model": name, "prompt": "1", "max_tokens": 1}
        end = time.monotonic() + START_S
        while True:
            url = f"http://127.0.0.1:{self._port}/v1/completions"
            answer = httpx.post(url, json=body, headers=AUTHORIZED, timeout=60, trust_env=False)
            if answer.status_code == 200:
                return
            if answer.status_code != 503 or time.monotonic() > end:
                raise RuntimeError(f"{name} was not loaded: {answer.text}")
            time.sleep(0.5)


WORKER = Worker()


class RemoteOpenAIServer:
    """With the members of vLLM's class of this name that its tests use."""

    DUMMY_API_KEY = KEY

    def __init__(self, model: str, vllm_serve_args: list[str], **_: Any) -> None:
        assert model in TABLE["models"], f"{model} must be among the models of table.json"
        self.url_root = WORKER.url()

    def __enter__(self) -> "RemoteOpenAIServer":
        return self

    def __exit__(self, *_: object) -> None:
        """The GPU worker goes on for the next tests."""

    def url_for(self, *parts: str) -> str:
        return "/".join([self.url_root, *(part.strip("/") for part in parts if part)])

    def get_client(self, **given: Any) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.url_for("v1"), api_key=KEY, max_retries=0, **{"timeout": 600, **given})

    def get_async_client(self, **given: Any) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=self.url_for("v1"), api_key=KEY, max_retries=0, **{"timeout": 600, **given})


class ModelConfig:
    def __init__(self, **_: Any) -> None:
        pass

    def get_vocab_size(self) -> int:
        return json.loads((WORKER.model / "config.json").read_text())["vocab_size"]


class Hub:
    """Nothing is downloaded: adapters and weights have no part in the tests that apply."""

    def snapshot_download(self, **_: Any) -> str:
        return ""


class Absent:
    """A part of vLLM that only tests need which do not apply."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"{self._name} of vLLM is not here; correct table.json")


STANDING_IN: dict[str, dict[str, Any]] = {
    "vllm.config": {"ModelConfig": ModelConfig},
    "vllm.tokenizers": {"get_tokenizer": lambda tokenizer_name: AutoTokenizer.from_pretrained(WORKER.model)},
    "vllm.transformers_utils.repo_utils": {"hf_api": Hub},
    "tests.utils": {"RemoteOpenAIServer": RemoteOpenAIServer, "ROCM_EXTRA_ARGS": []},
}


class StandIn(MetaPathFinder, Loader):
    """Finds vLLM's modules, and the one of its tests that starts a server."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        is_ours = fullname.partition(".")[0] == "vllm" or fullname in STANDING_IN
        return ModuleSpec(fullname, self, is_package=True) if is_ours else None

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(STANDING_IN.get(module.__name__, {}), __getattr__=Absent)


sys.meta_path.insert(0, StandIn())


def functions_of(file: Path) -> list[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, kinds)]
    return [name for name in found if name.startswith("test_")]


def files_of_folders() -> Iterator[Path]:
    for folder in TABLE["folders"]:
        yield from (TESTS / folder).rglob("test_*.py")


def pytest_sessionstart() -> None:
    """The table must speak of each test, and of nothing else."""
    # A server of vLLM asks for no key.
    requests.sessions.default_headers = lambda: {**requests.utils.default_headers(), **AUTHORIZED}
    found = {str(file.relative_to(TESTS)): functions_of(file) for file in files_of_folders()}
    if found.keys() != TABLE["files"].keys():
        raise pytest.UsageError(f"table.json must have these files: {sorted(found.keys() ^ TABLE['files'].keys())}")
    for file, verdicts in TABLE["files"].items():
        unknown = verdicts.keys() - {APPLIES} - TABLE["reasons"].keys()
        if unknown:
            raise pytest.UsageError(f"table.json: {file} has unknown reasons: {sorted(unknown)}")
        if APPLIES not in verdicts:
            if sum(verdicts.values()) != len(found[file]):
                raise pytest.UsageError(f"table.json: {file} has {len(found[file])} tests")
            continue
        named = [name for names in verdicts.values() for name in names if "[" not in name]
        if Counter(named) != Counter(found[file]):
            raise pytest.UsageError(f"table.json: {file} must name once each: {set(named) ^ set(found[file])}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A case in brackets goes before its function."""
    applying: list[pytest.Item] = []
    seen: set[tuple[str, str]] = set()
    for item in items:
        file = str(item.path.relative_to(Path.cwd() / TESTS))
        verdict_of = {name: verdict for verdict, names in TABLE["files"][file].items() for name in names}
        case = item.name if item.name in verdict_of else item.name.partition("[")[0]
        seen.add((file, case))
        if verdict_of[case] == APPLIES:
            applying.append(item)
    missing = listed_cases() - seen
    if missing:
        raise pytest.UsageError(f"table.json names what was not collected: {sorted(missing)}")
    config.hook.pytest_deselected(items=[item for item in items if item not in applying])
    items[:] = applying


def listed_cases() -> set[tuple[str, str]]:
    """Of the files with tests that apply."""
    files = {file: verdicts for file, verdicts in TABLE["files"].items() if APPLIES in verdicts}
    return {(file, name) for file, verdicts in files.items() for names in verdicts.values() for name in names}


def pytest_unconfigure() -> None:
    WORKER.close()
