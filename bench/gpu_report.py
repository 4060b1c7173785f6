"""The shared parts of `npm run bench -- gpu`: where they compute, how they time, what they tell."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig, Qwen2Config

from temper_gpu.model.memory import free_memory
from temper_gpu.model.models import BaseModel

QWEN_7B = {
    "vocab_size": 152064,
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
}
# To try the bench itself on any machine.
TINY = {
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


class Tokenizer:
    """Stands for one: nothing here is decoded."""

    def decode(self, ids: list[int], **_: object) -> str:
        return ""

    def __len__(self) -> int:
        return TINY["vocab_size"]


@dataclass
class Bench:
    device: torch.device
    # With tiny models, and without what a GPU alone can do.
    is_small: bool
    numbers: dict[str, Any] = field(default_factory=dict)
    rows: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_gpu(self) -> bool:
        return self.device.type == "cuda"

    def tell(self, name: str, text: object, value: object = None) -> None:
        """One row of the table; `value`: what the JSON object has, the text where there is none."""
        print(f"  {name}: {text}", flush=True)
        self.rows.append((name, str(text)))
        self.numbers[name] = text if value is None else value

    def wait(self) -> None:
        if self.is_gpu:
            torch.cuda.synchronize()

    def seconds(self, function: Callable[[], object], repeats: int = 5, warm: int = 2) -> float:
        """The median."""
        for _ in range(warm):
            function()
        times = []
        for _ in range(repeats):
            self.wait()
            started = time.perf_counter()
            function()
            self.wait()
            times.append(time.perf_counter() - started)
        return sorted(times)[len(times) // 2]

    def clean(self) -> None:
        gc.collect()
        free_memory()
        if self.is_gpu:
            torch.cuda.reset_peak_memory_stats()

    def peak(self) -> int:
        return torch.cuda.max_memory_allocated() if self.is_gpu else 0

    @contextmanager
    def tried(self, name: str) -> Iterator[None]:
        """A failure is a row."""
        try:
            yield
        except Exception as error:
            self.tell(name, f"FAILS: {type(error).__name__}: {str(error)[:300]}")
            self.clean()


def gib(num_bytes: float) -> str:
    return f"{num_bytes / 2**30:.2f} GiB"


def shape(bench: Bench, **changes: int) -> PreTrainedConfig:
    sizes = {**(TINY if bench.is_small else QWEN_7B), "max_position_embeddings": 32768, **changes}
    return Qwen2Config(**sizes, tie_word_embeddings=False)


def random_base(bench: Bench, config: PreTrainedConfig, dtype: torch.dtype) -> BaseModel:
    """Made on the device: the weights of 7 billion parameters need not travel."""
    torch.manual_seed(0)
    with torch.device(bench.device):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype).eval().requires_grad_(False)
    tensors = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    buffers = {name: buffer for name, buffer in model.named_buffers() if name not in tensors}
    return BaseModel("random", model.config, tensors, Tokenizer(), buffers)
