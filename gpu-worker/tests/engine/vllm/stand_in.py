"""A stand-in for vLLM's server: the part of its HTTP interface that Temper uses, with a real model behind it.

Run as a program it listens on a Unix socket and passes everything on to the tests' own process (`serve`), which has the
model: a start costs no import of PyTorch. elsewhere.py has it on TCP.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import socketserver
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any


class Refused(Exception):
    """Status and message."""


class Model:
    # What it tells of itself.
    context_window = 4096
    fingerprint: str | None = None
    owner = "vllm"
    max_lora_rank = 64

    def __init__(self, name: str, base: Any, fault: Callable[[], str]) -> None:
        import torch

        from temper_gpu.model import lora

        self._lora, self._torch = lora, torch
        self.name = name
        self.fault = fault
        self._base = base
        self._folders: dict[str, str] = {}
        self._modules = {name: self._base.instantiate("sdpa")}
        other = {key: tensor * 1.1 for key, tensor in self._base.tensors.items()}
        self._other = self._base.instantiate("sdpa", other)

    def here(self, folder: str) -> Path:
        """Where it reads what it is told as this folder."""
        return Path(folder)

    def load(self, name: str, folder: str) -> None:
        if self.fault() == "no lora":
            raise Refused(500, "LoRA is not enabled. Use --enable-lora to enable LoRA.")
        if name in self._folders:
            raise Refused(400, f"The lora adapter '{name}' has already been loaded.")
        files = [self.here(folder) / file for file in ("adapter_config.json", "adapter_model.safetensors")]
        if not files[0].exists():
            raise Refused(404, f"Loading lora {name} failed: No adapter found for {folder}")
        rank = json.loads(files[0].read_bytes()).get("r")
        if rank is None:
            raise Refused(500, "Missing required configuration fields: {'r'}")
        if rank > self.max_lora_rank:
            raise Refused(500, f"LoRA rank {rank} is greater than max_lora_rank {self.max_lora_rank}.")
        adapter = self._lora.parse_adapter(files[1].read_bytes(), files[0].read_bytes())
        if self.fault() == "another adapter":
            adapter = self._lora.Adapter(
                name, {key: tensor.flip(0) for key, tensor in adapter.tensors.items()}, adapter.rank, 3.0
            )
        self._folders[name] = folder
        self._modules[name] = self._lora.attach(self._base.instantiate("sdpa"), adapter)

    def unload(self, name: str) -> bool:
        self._modules.pop(name, None)
        return self._folders.pop(name, None) is not None

    def replace(self, name: str, folder: str) -> None:
        """As somebody else would do it."""
        self._folders[name] = folder

    def names(self) -> list[str]:
        return list(self._folders)

    def cards(self) -> list[dict[str, Any]]:
        base = {"id": self.name, "root": "base", "max_model_len": self.context_window, "parent": None}
        wrong = self.fault() == "wrong name"
        adapters = [
            {"id": "run@1" if wrong else name, "root": folder, "parent": self.name}
            for name, folder in self._folders.items()
        ]
        return [{**card, "owned_by": self.owner} for card in (base, *adapters)]

    def knows(self, name: str) -> bool:
        return name in self._modules

    def complete(self, body: dict) -> dict:
        torch = self._torch
        module = self._modules[self.name if self.fault() == "no adapter" else body["model"]]
        if self.fault() == "another base":
            module = self._other
        prompt, sampled, logprobs, tops = body["prompt"], [], [], []
        reason = "length"
        while len(sampled) < body["max_tokens"]:
            ids = torch.tensor([[*prompt, *sampled]])
            logits = module(input_ids=ids, use_cache=False).logits[0, -1]
            temperature = body["temperature"]
            scaled = (logits / (temperature or 1)).log_softmax(-1)
            token = int(scaled.argmax() if temperature == 0 else torch.multinomial(scaled.exp(), 1))
            sampled.append(token)
            likeliest = {token, *scaled.topk(body["logprobs"]).indices.tolist()}
            tops.append({f"token_id:{each}": float(scaled[each]) for each in likeliest})
            logprobs.append(float((logits.log_softmax(-1) if self.fault() == "raw" else scaled)[token]))
            if token in body["stop_token_ids"] or (self.fault() == "stops early" and len(sampled) == 2):
                reason = "stop"
                break
        choice = {
            "token_ids": sampled,
            "prompt_token_ids": prompt,
            "logprobs": {"token_logprobs": logprobs, "top_logprobs": tops},
            "finish_reason": reason,
        }
        if "prompt_logprobs" in body:
            scores = module(input_ids=torch.tensor([prompt]), use_cache=False).logits[0].log_softmax(-1)
            told = [{str(token): {"logprob": float(scores[i, token])}} for i, token in enumerate(prompt[1:])]
            choice["prompt_logprobs"] = [None, *told]
        name = "another" if self.fault() == "another model" else body["model"]
        return {"model": name, "choices": [choice], "system_fingerprint": self.fingerprint}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model
    key: str
    # What else was asked, for tests.
    told: Callable[[str], None]
    # The program that passes on.
    pid: int

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self._send(200, {"data": self.model.cards()}) if self._is_known() else None
        elif self.path == "/version" and self.model.fault() != "no version":
            self._send(200, {"version": "0.0"})
        else:
            self._send(200 if self.path == "/health" else 404, {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self._is_known():
            return None
        try:
            return self._act(body)
        except Refused as refused:
            status, message = refused.args
            return self._send(status, {"error": {"message": message}})

    def _is_known(self) -> bool:
        if not self.path.startswith("/v1") or self.headers["authorization"] == f"Bearer {self.key}":
            return True
        self._send(401, {"error": "Unauthorized"})
        return False

    def _act(self, body: dict) -> None:
        if self.path.endswith("_lora_adapter") and self.model.fault() == "no loading":
            return self._send(404, {"detail": "Not Found"})
        if self.path == "/v1/load_lora_adapter":
            self.model.load(body["lora_name"], body["lora_path"])
        elif self.path == "/v1/unload_lora_adapter":
            return self._send(200 if self.model.unload(body["lora_name"]) else 404, {})
        elif self.path == "/v1/completions":
            return self._complete(body)
        elif self.path == "/release_kv_cache_memory" and self.model.fault() == "keeps its cache":
            return self._send(404, {"detail": "Not Found"})
        else:
            self.told(self.path)
        return self._send(200, {})

    def _complete(self, body: dict) -> None:
        if self.model.fault() == "dies":
            return os.kill(self.pid, signal.SIGKILL)
        if not self.model.knows(body["model"]):
            return self._send(404, {"error": {"message": "no such model"}})
        while self.model.fault() == "hangs":
            if not self.connection.recv(1):
                return None
        return self._send(200, self.model.complete(body))

    def _send(self, status: int, body: dict) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def address_string(self) -> str:
        return "local"

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def serve(base: Any, fault_file: Path) -> Server:
    """What `fault_file` names goes wrong from then on. Adapters go with the program that passes on, as vLLM's do."""

    class Behind(Handler):
        def _act(self, body: dict) -> None:
            if self.path != "/start":
                return super()._act(body)
            Behind.model = Model(body["name"], base, lambda: fault_file.read_text().strip())
            Behind.key, Behind.pid = body["key"], body["pid"]
            return self._send(200, {})

        @staticmethod
        def told(path: str) -> None:
            with fault_file.with_name("told").open("a") as lines:
                lines.write(f"{path}\n")

    server = Server(str(fault_file.with_name("behind")), Behind)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("model", "served-model-name", "uds", "logprobs-mode"):
        parser.add_argument(f"--{name}", required=True)
    arguments, others = parser.parse_known_args()
    if "--no-such-flag" in others:
        parser.error("unrecognized arguments: --no-such-flag")
    print("INFO stand-in starts, pid", os.getpid(), flush=True)
    if os.fork() == 0:
        # As vLLM's engine core: a process of its own, which would outlive this one.
        os.execvp("sleep", ["sleep", "600"])
    behind = os.environ["BEHIND"]
    tell_start(behind, {"name": arguments.served_model_name, "key": os.environ["VLLM_API_KEY"], "pid": os.getpid()})
    asyncio.run(pass_on(arguments.uds, behind))


def tell_start(behind: str, told: dict[str, Any]) -> None:
    body = json.dumps(told).encode()
    head = f"POST /start HTTP/1.1\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(behind)
        connection.sendall(head.encode() + body)
        while connection.recv(4096):
            pass


async def pass_on(here: str, behind: str) -> None:
    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind_reader, behind_writer = await asyncio.open_unix_connection(behind)
        await asyncio.gather(copy(reader, behind_writer), copy(behind_reader, writer))

    async with await asyncio.start_unix_server(connect, here) as server:
        await server.serve_forever()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    sys.exit(main())
