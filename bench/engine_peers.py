"""One engine of `npm run bench -- engine`: reads a workload a line, plays it, writes what it took as a line of JSON.

A workload is a list of conversations that begin at once. Each is a list of turns: tokens that come in, and how many
tokens are sampled after them. Shapes: B rows, T tokens.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import torch
from transformers import GenerationConfig

from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.interface import Generation, GenerationRequest
from temper_gpu.model.lora import Adapter, attach, parse_adapter
from temper_gpu.model.models import BaseModel, ModelLibrary
from temper_gpu.training.platform import fix_kernels

Conversation = list[tuple[list[int], int]]


@dataclass(frozen=True)
class Played:
    """Per conversation: tokens sampled, and seconds from the start to its first and to its last token."""

    tokens: list[int] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    last: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Held:
    sha256: str
    adapter: Adapter

    def read(self) -> Adapter:
        return self.adapter

    def write_folder(self, folder: Path) -> None:
        raise NotImplementedError


def read_adapter(folder: str) -> Adapter:
    files = [Path(folder, name).read_bytes() for name in ("adapter_model.safetensors", "adapter_config.json")]
    return parse_adapter(*files)


class Embedded:
    """Conversations take turns by policy: all of the same adapter, which the engine does not know."""

    def __init__(self, base: BaseModel, adapter: Adapter | None, threads: int, num_policies: int) -> None:
        self._engine = EmbeddedEngine(base, EmbeddedSettings(num_threads=threads, max_slots=256))
        self._policies = [None if adapter is None else Held(f"{n}", adapter) for n in range(num_policies)]

    def play(self, conversations: list[Conversation], seed: int) -> Played:
        done = [Event() for _ in conversations]
        count = len(conversations)
        played = Played([0] * count, [0.0] * count, [0.0] * count)
        started = time.perf_counter()

        def now() -> float:
            return time.perf_counter() - started

        def ask(index: int, turn: int, history: tuple[int, ...]) -> None:
            new, max_tokens = conversations[index][turn]
            prompt = (*history, *new)

            def told(token_id: int, logprob: float, top: object) -> None:
                played.first[index] = played.first[index] or now()

            def answered(generation: Generation) -> None:
                played.tokens[index] += len(generation.token_ids)
                played.last[index] = now()
                if turn + 1 < len(conversations[index]):
                    ask(index, turn + 1, (*prompt, *generation.token_ids))
                else:
                    done[index].set()

            asked = GenerationRequest(prompt, max_tokens, 1.0, seed * 10007 + index, on_token=told)
            policy = self._policies[index % len(self._policies)]
            future = self._engine.submit(policy, asked, 3600)
            future.add_done_callback(lambda future: answered(future.result()))

        for index in range(count):
            ask(index, 0, ())
        for event in done:
            event.wait()
        return played


class Generate:
    """transformers: all conversations in one static batch, padded on the left, once for each turn."""

    def __init__(self, base: BaseModel, adapter: Adapter | None, threads: int, num_policies: int) -> None:
        model = base.instantiate("sdpa")
        self._model: Any = model if adapter is None else attach(model, adapter)

    @torch.inference_mode()
    def play(self, conversations: list[Conversation], seed: int) -> Played:
        torch.manual_seed(seed)
        count = len(conversations)
        played = Played([0] * count, [], [0.0] * count)
        histories: list[list[int]] = [[] for _ in conversations]
        started = time.perf_counter()

        def note_first(ids: torch.Tensor, scores: object, **options: object) -> torch.Tensor:
            if not played.first:
                played.first.extend([time.perf_counter() - started] * count)
            return torch.zeros(count, dtype=torch.bool)

        for turn in range(len(conversations[0])):
            prompts = [[*histories[index], *conversations[index][turn][0]] for index in range(count)]
            longest = max(map(len, prompts))
            ids_BT = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts])
            mask_BT = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
            wanted = [conversation[turn][1] for conversation in conversations]
            config = GenerationConfig(do_sample=True, top_k=0, max_new_tokens=max(wanted), pad_token_id=0)
            output_BT = self._model.generate(
                input_ids=ids_BT, attention_mask=mask_BT, generation_config=config, stopping_criteria=[note_first]
            )
            for index in range(count):
                answer = output_BT[index, longest : longest + wanted[index]].tolist()
                histories[index] = [*prompts[index], *answer]
                played.tokens[index] += len(answer)
                played.last[index] = time.perf_counter() - started
        return played


PEERS: dict[str, Callable[[BaseModel, Adapter | None, int, int], Embedded | Generate]] = {
    "embedded": Embedded,
    "generate": Generate,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--adapter")
    parser.add_argument("--policies", type=int, default=1)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    options = parser.parse_args()
    if options.peer == "embedded":
        fix_kernels()  # as the GPU worker does: without, fewer sizes of passes are proven on Intel's processors
    torch.set_num_threads(options.threads)
    folder = str(Path(options.model).resolve())
    dtype = getattr(torch, options.dtype)
    base = ModelLibrary(lambda: {"bench": folder}, dtype, torch.device("cpu")).get("bench")
    base.config.eos_token_id = None
    adapter = read_adapter(options.adapter) if options.adapter else None
    peer = PEERS[options.peer](base, adapter, options.threads, options.policies)
    for seed, line in enumerate(sys.stdin):
        played = peer.play(json.loads(line), seed)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({**vars(played), "peakBytes": peak}), flush=True)


if __name__ == "__main__":
    main()
