"""A base model that a program gets by its name, before anything is started: its files, and its chat template."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from temper_gpu.failures import TemperError

if TYPE_CHECKING:
    from temper_gpu.server.prompts import Prompts


@dataclass(frozen=True)
class Found:
    folder: str
    commit: str | None


def find(name: str, source: str | None) -> Found:
    from temper_gpu.model.hub import DESCRIPTION
    from temper_gpu.model.models import BUILT_IN
    from temper_gpu.model.sources import fetch

    snapshot = None if source is None else fetch(source, files=DESCRIPTION)
    if snapshot is not None:
        return Found(str(snapshot.folder), snapshot.commit)
    folder = source or BUILT_IN.get(name)
    if folder is None or not Path(folder, "config.json").is_file():
        raise TemperError("BadConfig", f"model {name} must be a folder with config.json, got {folder}; pass its folder")
    return Found(str(folder), None)


def read_template(path: str | None) -> str | None:
    from temper_gpu.model.chat_templates import decode_template

    if path is None:
        return None
    try:
        return decode_template(Path(path).read_bytes())
    except (OSError, UnicodeDecodeError) as error:
        raise TemperError(
            "BadConfig", f"--chat-template must be a file of text in UTF-8, got {path} ({error}); correct it"
        ) from error


def prompts_of(name: str, folder: str, template: str | None) -> "Prompts":
    """Prompts by the model's template, or by `template`. Refuses one that cannot write a conversation."""
    from temper_gpu.model.outlines import read_without_weights
    from temper_gpu.server.prompts import Prompts

    prompts = Prompts(read_without_weights(name, folder), given_template=template)
    prompts.require_playable()
    return prompts
