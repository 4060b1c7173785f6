"""A stand-in for vLLM's server, run as a program: the part of its HTTP interface that Temper uses, on a Unix socket,
with a real model behind it. What FAULT_FILE names goes wrong from then on."""

import argparse
import json
import os
import socketserver
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path

KEY = os.environ["VLLM_API_KEY"]


def fault() -> str:
    return Path(os.environ["FAULT_FILE"]).read_text().strip()


class Model:
    def __init__(self, name: str, folder: str) -> None:
        # Seconds: arguments are refused before.
        import torch

        from temper_gpu.model import lora
        from temper_gpu.model.models import load_base

        torch.set_num_threads(1)
        self._lora, self._torch = lora, torch
        self.name = name
        self._base = load_base(name, folder, torch.float32, torch.device("cpu"))
        self._folders: dict[str, str] = {}
        self._modules = {name: self._base.instantiate("sdpa")}
        other = {key: tensor * 1.1 for key, tensor in self._base.tensors.items()}
        self._other = self._base.instantiate("sdpa", other)

    def load(self, name: str, folder: str) -> None:
        files = (Path(folder) / file for file in ("adapter_model.safetensors", "adapter_config.json"))
        adapter = self._lora.parse_adapter(*(file.read_bytes() for file in files))
        if fault() == "another adapter":
            adapter = self._lora.Adapter(
                name, {key: tensor.flip(0) for key, tensor in adapter.tensors.items()}, adapter.rank, 3.0
            )
        self._folders[name] = folder
        self._modules[name] = self._lora.attach(self._base.instantiate("sdpa"), adapter)

    def unload(self, name: str) -> bool:
        self._modules.pop(name, None)
        return self._folders.pop(name, None) is not None

    def cards(self) -> list[dict[str, str]]:
        wrong = fault() == "wrong name"
        cards = [{"id": "run@1" if wrong else name, "root": folder} for name, folder in self._folders.items()]
        return [{"id": self.name, "root": "base"}, *cards]

    def knows(self, name: str) -> bool:
        return name in self._modules

    def complete(self, body: dict) -> dict:
        torch = self._torch
        module = self._modules[self.name if fault() == "no adapter" else body["model"]]
        if fault() == "another base":
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
            logprobs.append(float((logits.log_softmax(-1) if fault() == "raw" else scaled)[token]))
            if token in body["stop_token_ids"] or (fault() == "stops early" and len(sampled) == 2):
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
        name = "another" if fault() == "another model" else body["model"]
        return {"model": name, "choices": [choice]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self._send(200, {"data": self.model.cards()})
        else:
            self._send(200 if self.path == "/health" else 404, {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path.startswith("/v1") and self.headers["authorization"] != f"Bearer {KEY}":
            return self._send(401, {"error": "Unauthorized"})
        if self.path == "/v1/load_lora_adapter":
            self.model.load(body["lora_name"], body["lora_path"])
        elif self.path == "/v1/unload_lora_adapter":
            return self._send(200 if self.model.unload(body["lora_name"]) else 404, {})
        elif self.path == "/v1/completions":
            return self._complete(body)
        else:
            with Path(os.environ["FAULT_FILE"]).with_name("told").open("a") as told:
                told.write(f"{self.path}\n")
        return self._send(200, {})

    def _complete(self, body: dict) -> None:
        if fault() == "dies":
            os._exit(1)
        if not self.model.knows(body["model"]):
            return self._send(404, {"error": {"message": "no such model"}})
        while fault() == "hangs":
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
    Handler.model = Model(arguments.served_model_name, arguments.model)
    Server(arguments.uds, Handler).serve_forever()


if __name__ == "__main__":
    sys.exit(main())
