"""A committed policy in another program's format.

merged: one model in transformers' format: weights (safetensors, in parts above 5 GB), config, generation config,
tokenizer and chat template. gguf: the same as one file for llama.cpp. mlx: the adapter for mlx-lm. Written into an
empty folder of the caller's; the store is read, and nothing is written to it. How weights are merged: model/merging.py.
Answers the revision of the base model where a hub has one, and how much of the adapter is left after
rounding.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temper_gpu.commits.checkpoints import Commit, StoredAdapter, parse_policy_name, read_commit
from temper_gpu.commits.templates import StoredTemplates
from temper_gpu.contract import ExportInput
from temper_gpu.failures import TemperError
from temper_gpu.store import open_store

if TYPE_CHECKING:
    import torch

    from temper_gpu.model.full_weights import FullWeights
    from temper_gpu.model.lora import Adapter
    from temper_gpu.model.models import BaseModel

DTYPES = ("float32", "bfloat16", "float16")
GGUF_FILE = "model.gguf"
MAX_SHARD_SIZE = "5GB"


def run(work: ExportInput) -> dict[str, Any]:
    # torch and transformers take seconds to import, so bad usage is reported first.
    folder = require_empty(Path(work.folder))
    source = find_policy(work.store, work.policy)
    policy = source.read()
    from temper_gpu.model.memory import describe_error, describe_memory, is_out_of_memory

    try:
        base = load_trained_base(work.models, source)
        if work.chat_template_sha256 is not None:
            base.tokenizer.chat_template = StoredTemplates(source.store).text(work.chat_template_sha256)
        kept = write_mlx(folder, policy, base) if work.format == "mlx" else write_merged(folder, policy, base, work)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        other = "" if source.manifest.full_fine_tuning else "export the adapter alone with --format peft, or "
        raise TemperError(
            "OutOfMemory",
            f"the model {source.manifest.base_model} must fit into memory twice to be merged: {describe_error(error)}, "
            f"{describe_memory()}; {other}use a host with more memory",
        ) from error
    return {"revision": base.revision, "kept": kept}


def write_merged(folder: Path, policy: "Adapter | FullWeights", base: "BaseModel", work: ExportInput) -> float | None:
    """Returns the share of the adapter's change that is left."""
    import torch

    from temper_gpu.model.gguf_file import NUMBER_TYPES
    from temper_gpu.model.gguf_model import require_known, write_model
    from temper_gpu.model.merging import merge

    if work.format == "gguf":
        require_known(base.config)
    merged = merge(base, policy, getattr(torch, work.dtype))
    if work.format == "merged":
        saving(folder, lambda: save(merged.model, base, folder))
    else:
        # Bits that a block's scale leaves out are noise, which takes nothing away from an adapter on average.
        kind, file = NUMBER_TYPES[work.quantize or work.dtype], folder / GGUF_FILE
        saving(folder, lambda: write_model(file, merged.model, base, work.policy, policy.sha256, kind))
    return merged.kept


def write_mlx(folder: Path, policy: "Adapter | FullWeights", base: "BaseModel") -> None:
    from temper_gpu.model.lora import Adapter
    from temper_gpu.model.mlx_adapter import mlx_files

    if not isinstance(policy, Adapter):
        raise TemperError(
            "BadConfig", "--format mlx needs an adapter, but all weights were trained; pass --format merged"
        )
    files = mlx_files(policy, int(base.config.get_text_config().num_hidden_layers))
    saving(folder, lambda: [(folder / name).write_bytes(data) for name, data in files.items()])


def require_empty(folder: Path) -> Path:
    if folder.is_dir() and not any(folder.iterdir()):
        return folder
    raise TemperError("BadConfig", f"--to must be an empty folder, got {folder}; make one, or name another")


def find_policy(uri: str, name: str) -> StoredAdapter:
    policy, store = parse_policy_name(name), open_store(uri)
    commit: Commit | None = read_commit(store, policy.run, policy.branch, policy.step)
    if commit is None:
        raise TemperError(
            "BadConfig", f"the policy {name} must be a committed step of {store.uri}, found none; correct it"
        )
    return StoredAdapter(store, policy.run, commit.manifest, policy.policy)


def load_trained_base(models: str | None, source: StoredAdapter, device: "torch.device | None" = None) -> "BaseModel":
    """The base model as the run trained it: its hash is that of the weights in that type, packed or whole. `device`:
    None for the CPU."""
    import torch

    from temper_gpu.model.models import ModelLibrary
    from temper_gpu.process.host import ModelFolders

    manifest = source.manifest
    trained = manifest.dtype
    if trained not in DTYPES:
        raise TemperError(
            "StoreCorrupt",
            f"the type of a base model must be one of {', '.join(DTYPES)}, got {trained!r} in a manifest; restore it "
            "from a copy of the store",
        )
    library = ModelLibrary(
        ModelFolders(models),
        getattr(torch, trained),
        device or torch.device("cpu"),
        load_in_4bit=manifest.is_packed,
    )
    base = library.get(manifest.base_model)
    if base.sha256 != manifest.base_model_sha256:
        other = "" if manifest.full_fine_tuning else ", or export the adapter alone with --format peft"
        raise TemperError(
            "PolicyMismatch",
            f"the base model {manifest.base_model} must have the weights that the run was trained on, sha256 "
            f"{manifest.base_model_sha256}, but this host has {base.sha256} under that name; restore the old "
            f"weights{other}",
        )
    return base


def save(model: Any, base: "BaseModel", folder: Path) -> None:
    model.save_pretrained(folder, max_shard_size=MAX_SHARD_SIZE)
    base.tokenizer.save_pretrained(folder)


def saving(folder: Path, write: Callable[[], object]) -> None:
    from safetensors import SafetensorError

    from temper_gpu.model.memory import describe_error

    try:
        write()
    except (OSError, SafetensorError) as error:
        raise TemperError(
            "BadConfig",
            f"the folder of {folder} must take the model's files, but refused ({describe_error(error)}); free space "
            "there, or name a folder elsewhere",
        ) from error
