"""Models of the Hugging Face hub: one commit of a repository, kept in the cache of `huggingface_hub`.

That library's variables set the hub, its cache and the credentials: HF_ENDPOINT, HF_HOME, HF_TOKEN, HF_HUB_OFFLINE.
Cached files are not requested again, because a commit does not change.
"""

import errno
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, constants, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
    RevisionResolutionError,
)
from tqdm.auto import tqdm

from temper_gpu.contract import HUB_PREFIX
from temper_gpu.failures import TemperError

# Downloaded files: a model's description, and its weights as safetensors. Nothing pickled, and no code.
DESCRIPTION = ["*.json", "*.jinja", "*.model", "*.tiktoken", "*.txt"]
FILES = [*DESCRIPTION, "*.safetensors"]
# The same weights again, in the formats of others; and an adapter, which transformers would load into them.
LEFT_OUT = ["*/*", "consolidated*", "adapter_*"]

# Bytes so far, and of all files that are known so far.
OnProgress = Callable[[int, int], None]


def unreported(done: int, total: int) -> None:
    pass


@dataclass(frozen=True)
class HubModel:
    # OWNER/NAME
    repository: str
    # A branch, a tag or a commit; None: the repository's default branch.
    revision: str | None

    def __str__(self) -> str:
        return self.repository if self.revision is None else f"{self.repository}@{self.revision}"


@dataclass(frozen=True)
class Snapshot:
    folder: Path
    commit: str


def parse_hub_model(text: str) -> HubModel:
    """`OWNER/NAME` or `OWNER/NAME@REVISION`."""
    repository, _, revision = text.removeprefix(HUB_PREFIX).partition("@")
    return HubModel(repository, revision or None)


def download(model: HubModel, report: OnProgress = unreported, files: list[str] = FILES) -> Snapshot:
    """The model's files in the cache, downloaded where they are missing; what broke off is taken up where it ended.

    Raises TemperError BadConfig for what a person has to change, and EngineFailed where the hub could not be reached.
    """
    commit = find_commit(model)
    with _explained(model):
        place = snapshot_download(
            model.repository, revision=commit, allow_patterns=files, ignore_patterns=LEFT_OUT, tqdm_class=_bar(report)
        )
    folder = Path(place)
    if not (folder / "config.json").is_file():
        raise _not_loaded(model, "it has no config.json", "name the repository of a model in transformers' format")
    if files == FILES and not any(folder.glob("*.safetensors")):
        raise _not_loaded(
            model,
            "it has no .safetensors file (pickled weights are not loaded)",
            "name a repository or revision that has one, or convert the model to a folder of your own",
        )
    return Snapshot(folder, commit)


def find_commit(model: HubModel) -> str:
    """The current commit of its revision; the last known one if the hub is unavailable. Raises as `download` does."""
    with _explained(model):
        return HfApi().resolve_revision(model.repository, revision=model.revision).resolved


def throttled(report: OnProgress, every_s: float) -> OnProgress:
    """Reports at most once in `every_s`: chunks come by the thousand."""
    reported_at = time.monotonic() - every_s

    def limited(done: int, total: int) -> None:
        nonlocal reported_at
        if time.monotonic() - reported_at >= every_s:
            reported_at = time.monotonic()
            report(done, total)

    return limited


def _not_loaded(model: HubModel, reason: str, remedy: str) -> TemperError:
    return TemperError("BadConfig", f"the model {model} of the hub cannot be loaded: {reason}; {remedy}")


@contextmanager
def _explained(model: HubModel) -> Iterator[None]:
    try:
        yield
    except (OSError, RevisionResolutionError, HFValidationError) as error:
        raise _explain(model, error) from error


def _explain(model: HubModel, error: Exception) -> TemperError:
    hub = constants.ENDPOINT
    page = f"{hub}/{model.repository}"
    if isinstance(error, GatedRepoError):
        return _refused(
            f"the model {model} of the hub is gated, and its files were refused to you; accept its terms at {page}, "
            "then set HF_TOKEN to a token of the account that did"
        )
    if isinstance(error, RepositoryNotFoundError):
        return _refused(
            f"{hub} has no model {model.repository}, or it is private; correct the name, or set HF_TOKEN to a token "
            "of an account that may read it"
        )
    if isinstance(error, RevisionNotFoundError):
        return _refused(
            f"the model {model.repository} has no revision {model.revision}; name a branch, tag or commit of {page}"
        )
    if isinstance(error, HFValidationError):
        return _refused(f"a model of the hub must be named OWNER/NAME, got {model.repository}; correct the name")
    if getattr(error, "errno", None) == errno.ENOSPC:
        place = constants.HF_HUB_CACHE
        return _refused(f"the disk is full while downloading {model} into {place}; free space there, or set HF_HOME")
    return _unreachable(model, error)


def _unreachable(model: HubModel, error: Exception) -> TemperError:
    """Neither the hub nor the cache has it."""
    if constants.HF_HUB_OFFLINE:
        return _refused(
            f"the model {model} is not complete in {constants.HF_HUB_CACHE}, and HF_HUB_OFFLINE forbids to download "
            "it; unset HF_HUB_OFFLINE, or copy a cache that has it"
        )
    is_wrapper = isinstance(error, (LocalEntryNotFoundError, RevisionResolutionError))
    cause = (error.__cause__ if is_wrapper else None) or error
    return TemperError(
        "EngineFailed",
        f"the model {model} could not be had from {constants.ENDPOINT} ({type(cause).__name__}: {_first_line(cause)}); "
        "check the network, set HF_ENDPOINT to a mirror, or pass the model's folder",
    )


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "no reason given")


def _refused(message: str) -> TemperError:
    return TemperError("BadConfig", message)


def _bar(report: OnProgress) -> type[tqdm]:
    """A bar that shows nothing: the library counts the bytes of all files in one of those that it makes."""

    class Bar(tqdm):
        def __init__(self, *args: Any, desc: str | None = None, **options: Any) -> None:
            self._is_written = desc is not None and desc.startswith("Reconstructing")
            self._done = 0
            super().__init__(*args, desc=desc, **{**options, "disable": True})  # pyrefly: ignore[no-matching-overload]

        def update(self, n: float | None = 1) -> bool | None:
            if self._is_written:
                self._done += int(n or 0)
                report(self._done, int(self.total or 0))
            return None

    return Bar
