"""The two servers that vLLM's tests are run against: a GPU worker, and `temper serve`. Each is started by the first
test that needs it, and serves a model of its own under each name that a test asks for."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import httpx
import torch
from transformers import AutoTokenizer, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
GPU_WORKER = ROOT / "gpu-worker"
POCKET = GPU_WORKER / "temper_gpu/pocket/model"
# The key that vLLM's tests send.
KEY = "token-abc123"
AUTHORIZED = {"authorization": f"Bearer {KEY}"}
CONTEXT = 8192
PRINTABLE = slice(0x20, 0x7F)
START_S = 300

# Some tests turn thinking off.
SWITCH = "{%- if enable_thinking is false -%}{%- endif -%}"

START, END = "<think>", "</think>"
THOUGHTS = "Hm."
# No letter twice: each says which one comes next.
ANSWER = "abcdefghijklnopqrstuvwxyzABCDEFGIJKLMNOPQRSTUVWXYZ0123456789"
# Characters that keep JSON short which a schema leaves open.
PREFERRED = '"}]{[:,'


def make_random_model(folder: Path) -> None:
    """Says random letters and never ends by itself, so that lengths are those that a request asks for."""
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(POCKET)
    model = tiny_model(tokenizer, hidden_size=64, initializer_range=0.2)
    with torch.no_grad():
        head = model.lm_head.weight
        letters = head[PRINTABLE].clone() * 3
        head.zero_()
        head[PRINTABLE] = letters
    save(folder, model, tokenizer)


def make_reciting_model(folder: Path) -> None:
    """Thinks, answers the same to whatever it is asked, and ends."""
    tokenizer = AutoTokenizer.from_pretrained(POCKET)
    tokenizer.add_tokens([START, END])
    said = ["<|assistant|>", START, *THOUGHTS, END, *ANSWER, tokenizer.eos_token]
    # Also within a call that the prompt has opened, and within JSON.
    followed = [*pairwise(said), ('"', ANSWER[0]), (" ", ANSWER[0])]
    number = tokenizer.convert_tokens_to_ids
    vocabulary = len(tokenizer)
    model = tiny_model(tokenizer, hidden_size=64 * (vocabulary // 64 + 1), initializer_range=0.0)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.dim() > 1:
                weights.zero_()
        # A token is where its own number is, and the last number is 1 for all: it says what is preferred anyhow.
        model.get_input_embeddings().weight[:, :vocabulary].fill_diagonal_(1.0)
        model.get_input_embeddings().weight[:, -1] = 1.0
        head = model.lm_head.weight
        for rank, letter in enumerate(reversed(PREFERRED)):
            head[number(letter), -1] = 0.1 * (rank + 1)
        for token, following in followed:
            head[number(following), number(token)] = 2.3
    save(folder, model, tokenizer)


def tiny_model(tokenizer: PreTrainedTokenizerFast, hidden_size: int, initializer_range: float) -> Qwen2ForCausalLM:
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        initializer_range=initializer_range,
        tie_word_embeddings=False,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen2ForCausalLM(config)


def save(folder: Path, model: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    tokenizer.chat_template = SWITCH + tokenizer.chat_template
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


class Server:
    def __init__(self, models: list[str]) -> None:
        self.models = models
        self._folder = tempfile.TemporaryDirectory(prefix="temper-vllm-api-")
        self._process: subprocess.Popen[str] | None = None
        self._last: deque[str] = deque(maxlen=20)
        self._url = ""

    @property
    def model(self) -> Path:
        return Path(self._folder.name, "model")

    def url(self) -> str:
        if self._process is None:
            self._process = self.start(Path(self._folder.name))
            self._url = self._read_url(self._process)
            threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()
            self.load(self._url)
        return self._url

    def start(self, folder: Path) -> subprocess.Popen[str]:
        raise NotImplementedError

    def url_in(self, line: str) -> str | None:
        """The address in the line with which the server says that it listens."""
        raise NotImplementedError

    def load(self, url: str) -> None:
        """Work that is still to do before it is asked."""

    def close(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
        self._folder.cleanup()

    def _read_url(self, process: subprocess.Popen[str]) -> str:
        for line in self._lines(process):
            url = self.url_in(line)
            if url is not None:
                return url
        raise RuntimeError("the server ended while it started: " + "".join(self._last))

    def _listen(self, process: subprocess.Popen[str]) -> None:
        """Its pipe must not fill."""
        for _ in self._lines(process):
            pass

    def _lines(self, process: subprocess.Popen[str]) -> Iterator[str]:
        for line in process.stdout or ():
            self._last.append(line)
            yield line


def own_environment() -> dict[str, str]:
    """The packages of the tests are not the servers'."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def spawn(command: list[str], folder: Path, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**own_environment(), **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


class Worker(Server):
    def start(self, folder: Path) -> subprocess.Popen[str]:
        make_random_model(self.model)
        (folder / "store").mkdir()
        (folder / "models.json").write_text(json.dumps({name: str(self.model) for name in self.models}))
        place = {"store": f"file://{folder}/store", "models": str(folder / "models.json"), "port": 0}
        settings = json.dumps({**place, "role": "sample", "engine": {"slots": 16}})
        command = [sys.executable, "-m", "temper_gpu", "--settings", settings, "--leash"]
        return spawn(command, GPU_WORKER, TEMPER_ENGINE_KEY=KEY)

    def url_in(self, line: str) -> str | None:
        said = json.loads(line) if line.startswith("{") else {}
        return f"http://127.0.0.1:{said['port']}" if said.get("msg") == "ready" else None

    def load(self, url: str) -> None:
        for name in self.models:
            self._load(url, name)

    def _load(self, url: str, name: str) -> None:
        body = {"model": name, "prompt": "1", "max_tokens": 1}
        end = time.monotonic() + START_S
        while True:
            answer = httpx.post(f"{url}/v1/completions", json=body, headers=AUTHORIZED, timeout=60, trust_env=False)
            if answer.status_code == 200:
                return
            if answer.status_code != 503 or time.monotonic() > end:
                raise RuntimeError(f"{name} was not loaded: {answer.text}")
            time.sleep(0.5)


class Serving(Server):
    """`temper serve`, in a project with one run."""

    def start(self, folder: Path) -> subprocess.Popen[str]:
        make_reciting_model(self.model)
        adapter = folder / "adapter"
        adapter.mkdir()
        run = {"check": True, "cwd": folder, "env": {**own_environment(), "PYTHONPATH": str(GPU_WORKER)}}
        subprocess.run([sys.executable, ROOT / "bench/make_adapter.py", self.model, adapter], **run)
        typescript = ["node", "--import", str(ROOT / "workers/typescript.js")]
        subprocess.run([*typescript, HERE / "make-run.ts", folder, self.model, adapter], **run)
        names = [word for name in self.models for word in ("--model-name", name)]
        command = ["node", str(ROOT / "cli/temper.js"), "serve", "demo@0", "--port", "0", "--json", *names]
        return spawn(command, folder, TEMPER_SERVE_KEY=KEY, TEMPER_PYTHON=sys.executable)

    def url_in(self, line: str) -> str | None:
        # The JSON object has a line for each member.
        name, _, value = line.strip().partition(": ")
        return json.loads(value.rstrip(",")).removesuffix("/v1") if name == '"baseUrl"' else None
