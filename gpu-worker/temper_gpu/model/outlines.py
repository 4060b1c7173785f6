"""Models before their weights are read: what follows from config.json and tokenizer alone."""

import copy
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
)

from temper_gpu.failures import TemperError
from temper_gpu.model.chat_templates import check_template
from temper_gpu.model.models import (
    BaseModel,
    ModelLibrary,
    check_decoder,
    check_usable,
    end_token_ids,
    explained,
    outline,
    suit_memory,
)
from temper_gpu.model.stock_models import make_model


@dataclass(frozen=True)
class Outline:
    """A model before its weights are read."""

    model: PreTrainedModel
    tokenizer: Any
    # Why it can be neither served nor trained; None where it can.
    refusal: str | None


def open_outline(name: str, folder: str, template: str | None = None) -> Outline:
    """`template`: a chat template in the place of the model's own."""
    with explained(name, folder):
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        model = outline(folder)
    try:
        check_decoder(name, model)
        check_usable(name, model)
        check_template(name, tokenizer, template)
    except TemperError as error:
        return Outline(model, tokenizer, error.message)
    return Outline(model, tokenizer, None)


def read_without_weights(name: str, folder: str) -> BaseModel:
    """Tokenizer, config and end tokens, enough for prompts."""
    with explained(name, folder):
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        has_own = Path(folder, "generation_config.json").is_file()
        sampled = GenerationConfig.from_pretrained(folder) if has_own else GenerationConfig.from_model_config(config)
    model: Any = SimpleNamespace(generation_config=sampled)
    return BaseModel(name, config, {}, tokenizer, end_token_ids=end_token_ids(model, tokenizer))


def shortened(config: PreTrainedConfig, num_layers: int) -> PreTrainedConfig:
    """The config of the same model with only its first layers."""
    config = copy.deepcopy(config)
    config.num_hidden_layers = num_layers
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:num_layers]
    return config


def without_numbers(config: PreTrainedConfig, dtype: torch.dtype, device: torch.device) -> BaseModel:
    """A base model's shapes, for what does not read its weights."""
    model = make_model(copy.deepcopy(config), device)
    state, buffers = model.state_dict(keep_vars=True), dict(model.named_buffers())
    # Tied weights are one tensor under two names.
    typed = {id(tensor): tensor.detach().to(dtype) for tensor in state.values() if tensor.is_floating_point()}
    tensors = {name: typed.get(id(tensor), tensor.detach()) for name, tensor in state.items()}
    buffers = {name: buffer for name, buffer in buffers.items() if name not in tensors}
    return BaseModel("", config, tensors, None, buffers)


class OutlineLibrary(ModelLibrary):
    """Models that are trained from parts of another process's weights: everything about them but weights."""

    def _read(self, name: str, folder: str, revision: str | None) -> BaseModel:
        with explained(name, folder):
            tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
            model = outline(folder)
            with suppress(OSError):  # as transformers does where there is no such file
                model.generation_config = GenerationConfig.from_pretrained(folder)
        suit_memory(model, self.device)
        shapes = without_numbers(model.config, self._dtype, torch.device("meta"))
        return replace(
            shapes,
            name=name,
            tokenizer=tokenizer,
            end_token_ids=end_token_ids(model, tokenizer),
            generation_config=model.generation_config,
            revision=revision,
            folder=folder,
            parts_on=self.device,
        )
