"""transformers' models, made one at a time.

While transformers makes a model, it sets PyTorch's default type, and methods of its own classes, for the whole process,
and then restores what it found. Two threads at once would leave another default behind for the life of the process. So
all models are made here, under one lock, and made as float32, PyTorch's own default; only reading weights of a smaller
type sets another one for a moment. Other threads compute meanwhile, so they name the types of what they make.
"""

import threading
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel

MAKING = threading.Lock()


def make_model(config: PreTrainedConfig, device: torch.device | str = "meta", **options: Any) -> PreTrainedModel:
    """A module in float32, by default without numbers. It gets `config` itself, and changes it."""
    with MAKING, torch.device(device):
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32, trust_remote_code=False, **options)


def read_model(folder: str, dtype: torch.dtype, **options: Any) -> tuple[Any, dict[str, Any]]:
    """The weights of a folder, and what transformers says of the loading."""
    options |= {"trust_remote_code": False, "use_safetensors": True, "output_loading_info": True}
    with MAKING:
        return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **options)
