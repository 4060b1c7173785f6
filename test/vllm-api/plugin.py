"""A pytest plugin: vLLM's own tests of its OpenAI server, against the GPU worker's server and `temper serve`.

The tests import `tests.utils`, which starts vLLM, and parts of vLLM itself. Modules of the same names stand in for them
here; which server takes vLLM's place, the name of the model says that a test asks for. table.json says which tests
apply. run.ts fetches the tests and starts pytest with this plugin.
"""

import ast
import json
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import openai
import pytest
import requests
from servers import AUTHORIZED, KEY, Serving, Worker
from transformers import AutoTokenizer

HERE = Path(__file__).parent
TABLE = json.loads((HERE / "table.json").read_text())
TESTS = Path("tests/entrypoints")
APPLIES = "applies"

WORKER = Worker(TABLE["models"])
SERVING = Serving(TABLE["servedModels"])


class RemoteOpenAIServer:
    """With the members of vLLM's class of this name that its tests use."""

    DUMMY_API_KEY = KEY

    def __init__(self, model: str, vllm_serve_args: list[str], **_: Any) -> None:
        server = next((each for each in (WORKER, SERVING) if model in each.models), None)
        assert server is not None, f"{model} must be among the models of table.json"
        self.url_root = server.url()

    def __enter__(self) -> "RemoteOpenAIServer":
        return self

    def __exit__(self, *_: object) -> None:
        """It goes on for the next tests."""

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
    # Only asked whether they are there, and imported.
    "gpt_oss": {},
    "openai_harmony": {},
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
    """Cases of the files with tests that apply."""
    files = {file: verdicts for file, verdicts in TABLE["files"].items() if APPLIES in verdicts}
    return {(file, name) for file, verdicts in files.items() for names in verdicts.values() for name in names}


def pytest_unconfigure() -> None:
    WORKER.close()
    SERVING.close()
