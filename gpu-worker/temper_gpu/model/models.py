"""Base models: loaded once, frozen, shared by every engine policy and the trainer."""

import copy
import hashlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging
from transformers.utils.quantization_config import Mxfp4Config

from temper_gpu.contract import BUILT_IN_MODELS, HUB_PREFIX, S3_SCHEME
from temper_gpu.failures import TemperError
from temper_gpu.model.bucket import S3Model, is_s3_model, parse_s3_model, resolve_revision
from temper_gpu.model.four_bit import PackedWeight, pack_layers, place_packed, require_packable
from temper_gpu.model.hub import HubModel, OnProgress, find_commit, parse_hub_model, throttled
from temper_gpu.model.layers import require_independent_tokens, require_known_attention
from temper_gpu.model.memory import describe_error, is_out_of_memory, return_freed_memory
from temper_gpu.model.sources import fetch
from temper_gpu.model.stock_models import make_model, read_model

POCKET, POCKET_TOOLS = BUILT_IN_MODELS
POCKET_FOLDER = Path(__file__).parents[1] / "pocket" / "model"
BUILT_IN = {POCKET: POCKET_FOLDER, POCKET_TOOLS: POCKET_FOLDER.with_name("model-tools")}
# While a model is downloaded.
PROGRESS_EVERY_S = 5.0
# Size in parameters from which memory matters more than page faults.
LARGE_MODEL = 100_000_000

# Gets a model's name, and the model without numbers.
RequireRoom = Callable[[str, PreTrainedModel], None]

log = logging.getLogger(__name__)


def attention_of(config: PreTrainedConfig) -> str:
    kind: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    return "sdpa" if kind._supports_sdpa else "eager"


@dataclass(frozen=True)
class BaseModel:
    """Original weights of one model. `tensors` are read-only: all modules made from them share them."""

    name: str
    config: PreTrainedConfig
    tensors: dict[str, Tensor]
    # `Any` because transformers' tokenizers get most of their methods at run time.
    tokenizer: Any
    # Not part of a state dict (rotary frequencies); a module made on the meta device has none of its own.
    buffers: dict[str, Tensor] = field(default_factory=dict)
    # Ids that end an answer, from the generation config and the tokenizer.
    end_token_ids: frozenset[int] = frozenset()
    # Sampling defaults of the model's publisher; the engine does not read them.
    generation_config: GenerationConfig | None = None
    # Its commit of the Hugging Face hub; None for a folder.
    revision: str | None = None
    # Folder with the same files for other programs; None: it was made in memory.
    folder: str | None = None
    # Device of training from parts, while weights stay in main memory; None: that of the weights.
    parts_on: torch.device | None = None
    # Frozen weights of linear layers in 4 bits, by their names; `tensors` has the others.
    packed: dict[str, PackedWeight] = field(default_factory=dict)

    @property
    def attention(self) -> str:
        """transformers' own that computes this model: the fast one knows no sinks."""
        return attention_of(self.config)

    def instantiate(self, attention: str, overrides: dict[str, Tensor] | None = None) -> PreTrainedModel:
        """A new module on shared storage, without gradients; `overrides` replace tensors by name."""
        # A module keeps its kind of attention in its config: a shared one would be overwritten by the next module.
        config = copy.deepcopy(self.config)
        model = make_model(config, attn_implementation=attention, experts_implementation="eager")
        config.dtype = self.dtype
        unknown = set(overrides or ()) - self.tensors.keys()
        if unknown:
            raise TemperError(
                "BadConfig",
                f"weights to replace must exist in {self.name}, got {sorted(unknown)[0]}; make them from it",
            )
        place_packed(model, self.packed)
        model.load_state_dict({**self.tensors, **(overrides or {})}, strict=True, assign=True)
        for name, buffer in self.buffers.items():
            path, _, leaf = name.rpartition(".")
            # A copy: a module may change its buffers (dynamic rotary embeddings do).
            model.get_submodule(path).register_buffer(leaf, buffer.clone(), persistent=False)
        return model.eval().requires_grad_(False)

    def weight(self, name: str) -> Tensor:
        """A weight by its name, unpacked if necessary."""
        return self.packed[name].unpack() if name in self.packed else self.tensors[name]

    @property
    def shapes(self) -> dict[str, torch.Size]:
        return {name: weight.shape for name, weight in {**self.tensors, **self.packed}.items()}

    @cached_property
    def sha256(self) -> str:
        """Hash of names, shapes and bytes: two names for the same weights have the same hash."""
        digest = hashlib.sha256()
        parts = {f"{name} {part}": tensor for name, packed in self.packed.items() for part, tensor in packed.parts()}
        for name, tensor in sorted({**self.tensors, **parts}.items()):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
            digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).flatten().numpy().data)
        return digest.hexdigest()

    @cached_property
    def parameter_names(self) -> dict[str, list[str]]:
        """All names of each parameter, under the first of them: tied weights are one. Buffers are left out."""
        model = self.instantiate(self.attention)
        by_storage: dict[int, list[str]] = {}
        for name, _ in model.named_parameters(remove_duplicate=False):
            tensor = self.tensors[name]
            # Tensors without numbers have no storage.
            by_storage.setdefault(tensor.data_ptr() or id(tensor), []).append(name)
        return {names[0]: names for names in sorted(by_storage.values())}

    @property
    def num_parameters(self) -> int:
        plain = {tensor.data_ptr(): tensor.numel() for tensor in self.tensors.values()}
        return sum(plain.values()) + sum(packed.shape.numel() for packed in self.packed.values())

    @property
    def context_window(self) -> int:
        return context_window_of(self.config)

    @property
    def vocabulary_size(self) -> int:
        """Rows of the embedding."""
        return int(self.config.get_text_config().vocab_size)

    @property
    def dtype(self) -> torch.dtype:
        return next(iter(self.tensors.values())).dtype

    @property
    def device(self) -> torch.device:
        return self.parts_on or self.weights_on

    @property
    def weights_on(self) -> torch.device:
        return next(iter(self.tensors.values())).device


class Models(Protocol):
    """The base models that are available to a trainer or engine."""

    def get(self, name: str) -> BaseModel: ...


class ModelLibrary:
    """Base models by name: those of `BUILT_IN`, and this host's `sources`: a folder, `hub:OWNER/NAME`, with or without
    `@REVISION`, or `s3://BUCKET/PREFIX`. A run names a model of the hub with its commit, and one of a bucket with the
    hash of its listing. Names come over the wire, so only registered models are loaded."""

    def __init__(
        self,
        sources: Callable[[], dict[str, str]],
        dtype: torch.dtype,
        device: torch.device,
        require_room: RequireRoom = lambda name, model: None,
        parts_on: torch.device | None = None,
        load_in_4bit: bool = False,
    ) -> None:
        """`require_room` raises before the weights of what cannot fit are read. `parts_on`: where models are trained
        from parts, while their weights stay on `device`. `load_in_4bit`: with packed linear layers."""
        self._parts_on = parts_on
        self._load_in_4bit = load_in_4bit
        self._sources = sources
        self._require_room = require_room
        self._dtype = dtype
        self._device = device
        self._models: dict[str, BaseModel] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> BaseModel:
        # Without the lock, which another model's download may hold for minutes.
        if (loaded := self._models.get(name)) is not None:
            return loaded
        with self._lock:
            if name not in self._models:
                self._models[name] = self._load(name)
            return self._models[name]

    def forget(self, name: str) -> None:
        """Frees a model's weights once they are unused. It takes no lock, because the caller that makes room for a
        model holds it."""
        self._models.pop(name, None)

    def loaded(self) -> list[str]:
        return sorted(self._models)

    def names(self) -> list[str]:
        return sorted({*BUILT_IN, *self._sources(), *self._models})

    @property
    def device(self) -> torch.device:
        return self._parts_on or self._device

    def has(self, name: str) -> bool:
        return name in self._models or self._find(name) is not None

    def pin(self, name: str) -> str:
        """The name that a run records: for a model of the hub or a bucket, with the revision that is found there."""
        source = self._require(name)
        in_bucket = parse_s3_model(source)
        if in_bucket is not None:
            return S3Model(in_bucket.place, resolve_revision(in_bucket)).name
        if not source.startswith(HUB_PREFIX):
            return name
        model = parse_hub_model(source)
        return f"{model.repository}@{find_commit(model)}"

    def _load(self, name: str) -> BaseModel:
        source = self._require(name)
        snapshot = fetch(source, log_progress(source))
        if snapshot is not None:
            return self._read(name, str(snapshot.folder), snapshot.commit)
        if not (Path(source) / "config.json").is_file():
            raise TemperError(
                "BadConfig",
                f"model {name} must be a folder with config.json, got {source}; point the name at a model's folder",
            )
        return self._read(name, source, None)

    def _read(self, name: str, folder: str, revision: str | None) -> BaseModel:
        base = load_base(name, folder, self._dtype, self._device, revision, self._require_room, self._load_in_4bit)
        return replace(base, parts_on=self._parts_on)

    def _require(self, name: str) -> str:
        source = self._find(name)
        if source is not None:
            return source
        raise TemperError(
            "BadConfig",
            f"model {name} must be registered on this host, which has {', '.join(self.names())}; name it in models "
            f'of temporal.config.ts ("{name}": "{parse_s3_model(name) or HUB_PREFIX + name}", or a folder), or pass '
            "it by --base-model here",
        )

    def _find(self, name: str) -> str | None:
        sources = {**{built_in: str(folder) for built_in, folder in BUILT_IN.items()}, **self._sources()}
        if name in sources:
            return sources[name]
        if is_s3_model(name):
            return _find_in_bucket(name, sources.values())
        wanted = parse_hub_model(name)
        # A commit of a repository that is registered under whichever name, unless another commit of it is.
        registered = [parse_hub_model(source) for source in sources.values() if source.startswith(HUB_PREFIX)]
        accepted = [HubModel(wanted.repository, None), wanted]
        return f"{HUB_PREFIX}{name}" if any(model in accepted for model in registered) else None


def _find_in_bucket(name: str, sources: Iterable[str]) -> str | None:
    """Finds models below a registered prefix, unless they are registered separately, as for repositories."""
    wanted = parse_s3_model(name)
    registered = [parse_s3_model(source) for source in sources if source.startswith(S3_SCHEME)]
    if wanted is None or not any(model in (S3Model(wanted.place, None), wanted) for model in registered):
        return None
    return str(wanted)


def log_progress(source: str) -> OnProgress:
    def report(done: int, total: int) -> None:
        log.info("downloading a model", extra={"model": source, "bytes": done, "of": total})

    return throttled(report, PROGRESS_EVERY_S)


def load_base(
    name: str,
    folder: str,
    dtype: torch.dtype,
    device: torch.device,
    revision: str | None = None,
    require_room: RequireRoom = lambda name, model: None,
    load_in_4bit: bool = False,
) -> BaseModel:
    """Reads config, tokenizer and safetensors from a folder; never code, never pickle."""
    require_no_adapter(name, folder)
    with explained(name, folder):
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        outlined = outline(folder)
        check_decoder(name, outlined)
        if load_in_4bit:
            require_packable(name, outlined)
        require_room(name, outlined)
        suit_memory(outlined, device)
        model, loading = read_model(folder, dtype, **unpacking(name, outlined.config))
    check_complete(name, loading["missing_keys"])
    check_usable(name, model)
    packed = pack_layers(model, device) if load_in_4bit else {}
    # Tied weights are one tensor under two names, and stay one on the device.
    moved: dict[int, Tensor] = {}
    state = {key: moved.setdefault(id(tensor), tensor) for key, tensor in model.state_dict(keep_vars=True).items()}
    # Packed models copy the rest: a memory-mapped file would stay in memory as a whole.
    placed = {address: tensor.detach().to(device, copy=load_in_4bit) for address, tensor in moved.items()}
    tensors = {key: placed[id(tensor)] for key, tensor in state.items()}
    buffers = {key: buffer.to(device) for key, buffer in model.named_buffers() if key not in tensors}
    ends = end_token_ids(model, tokenizer)
    base = BaseModel(name, model.config, tensors, tokenizer, buffers, ends, model.generation_config, revision, folder)
    return replace(base, packed=packed)


def require_no_adapter(name: str, folder: str) -> None:
    """Refuses a folder with an adapter beside the weights, which transformers would silently apply."""
    if (Path(folder) / "adapter_config.json").exists():
        raise TemperError(
            "BadConfig",
            f"model {name} must be weights without an adapter, but {folder} has adapter_config.json beside them; move "
            "the adapter's files (adapter_*) to a folder of their own: temper train --adapter starts from them",
        )


def suit_memory(model: PreTrainedModel, device: torch.device) -> None:
    """Prepares the allocator before a large model computes on a CPU."""
    if device.type == "cpu" and model.num_parameters() >= LARGE_MODEL:
        return_freed_memory()


@contextmanager
def explained(name: str, folder: str) -> Iterator[None]:
    """Turns every error of transformers' loading into BadConfig, because the user chose the model."""
    transformers_logging.disable_progress_bar()
    try:
        yield
    except Exception as error:
        if isinstance(error, TemperError) or is_out_of_memory(error):
            raise
        reason = describe_error(error)
        raise TemperError(
            "BadConfig",
            f"model {name} must have a config, a tokenizer and weights that transformers loads, but {folder} does not "
            f"({reason}); name another model, or mend its folder",
        ) from error


def outline(folder: str) -> PreTrainedModel:
    """The model without its weights: what cannot be used is refused before they are read."""
    return make_model(AutoConfig.from_pretrained(folder, trust_remote_code=False))


def unpacking(name: str, config: PreTrainedConfig) -> dict[str, Any]:
    """MXFP4 (gpt-oss) is turned into plain weights of the same values; what else is packed cannot be shared."""
    quantization: Any = getattr(config, "quantization_config", None)
    if quantization is None:
        return {}
    method = quantization["quant_method"] if isinstance(quantization, dict) else quantization.quant_method
    if method == "mxfp4":
        return {"quantization_config": Mxfp4Config(dequantize=True)}
    raise TemperError(
        "BadConfig",
        f"model {name} must have plain weights (or MXFP4), but its config says quantization {method}; use its edition "
        "without quantization",
    )


def context_window_of(config: PreTrainedConfig) -> int:
    return int(getattr(config, "max_position_embeddings", None) or 4096)


def check_complete(name: str, missing: Iterable[str]) -> None:
    """transformers makes up what the files lack."""
    absent = sorted(missing)
    if absent:
        raise TemperError(
            "BadConfig",
            f"model {name} must have all weights that its config.json declares, but {len(absent)} are missing "
            f"({absent[0]} …); download it again, or put the right config.json beside the weights",
        )


def check_decoder(name: str, model: PreTrainedModel) -> None:
    """A decoder of text alone, of the shape that engine and adapters know."""
    config, kind = model.config, type(model).__name__
    reason = None
    if config.get_text_config(decoder=True) is not config:
        reason = f"{kind} has more parts than a text decoder (images, sound)"
    elif not isinstance(getattr(config, "num_hidden_layers", None), int) or not _has_linear_layers(model):
        reason = f"{kind} has no linear layers that an adapter could target"
    elif hasattr(config, "kv_lora_rank"):
        reason = f"{kind} keeps compressed keys (multi-head latent attention)"
    if reason is not None:
        raise TemperError(
            "BadConfig",
            f"model {name} must be a plain text decoder, but {reason}; use a Qwen2, Qwen3, Llama or Mistral model",
        )


def _has_linear_layers(model: PreTrainedModel) -> bool:
    head = model.get_output_embeddings()
    return any(isinstance(module, nn.Linear) and module is not head for module in model.modules())


def check_usable(name: str, model: PreTrainedModel) -> None:
    if not getattr(model, "_supports_attention_backend", False):
        raise TemperError(
            "BadConfig",
            f"model {name} must work with transformers' attention interface, but {type(model).__name__} does not; "
            "use a Qwen, Llama or Mistral model",
        )
    require_known_attention(name, model.config)
    require_independent_tokens(name, model)


def end_token_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    generation = getattr(model, "generation_config", None)
    named = (getattr(generation, "eos_token_id", None), tokenizer.eos_token_id)
    ids = [value for entry in named for value in (entry if isinstance(entry, list) else [entry])]
    return frozenset(value for value in ids if isinstance(value, int))
